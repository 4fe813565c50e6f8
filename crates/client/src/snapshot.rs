//! A database copy off the wire, checked against the SHA-256 that follows it.

use bytes::Bytes;
use proto::etcdserverpb::SnapshotResponse;
use sha2::{Digest, Sha256};
use tonic::Streaming;

use crate::{Error, Result};

const DIGEST_BYTES: usize = 32;
/// A database is whole pages, so the file's size modulo a disk sector tells whether a digest was appended.
const SECTOR_BYTES: u64 = 512;

/// A snapshot being received: the database file, then its SHA-256.
pub struct Snapshot {
    stream: Streaming<SnapshotResponse>,
    first: Option<SnapshotResponse>,
    version: String,
    check: TailCheck,
}

impl Snapshot {
    pub(crate) async fn open(mut stream: Streaming<SnapshotResponse>) -> Result<Snapshot> {
        let first = next(&mut stream).await?;
        let version = first.as_ref().map(|piece| piece.version.clone()).unwrap_or_default();
        Ok(Snapshot { stream, first, version, check: TailCheck::default() })
    }

    /// The storage version of the server, empty before etcd 3.6.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Bytes that follow, as the server last said.
    pub fn remaining_bytes(&self) -> u64 {
        self.first.as_ref().map_or(0, |piece| piece.remaining_bytes + piece.blob.len() as u64)
    }

    /// The next bytes, or `None` at the end. Write all of them, digest included, to have etcd's file format.
    /// The last call fails if the digest is missing or does not match.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let piece = match self.first.take() {
            Some(piece) => Some(piece),
            None => next(&mut self.stream).await?,
        };
        match piece {
            Some(piece) => {
                self.check.update(&piece.blob);
                Ok(Some(piece.blob))
            }
            None => self.check.finish().map(|()| None),
        }
    }
}

async fn next(stream: &mut Streaming<SnapshotResponse>) -> Result<Option<SnapshotResponse>> {
    stream.message().await.map_err(|status| Error::from_status(status, "snapshot stream"))
}

/// Hashes all but the last 32 bytes, which may be the digest.
#[derive(Default)]
struct TailCheck {
    hash: Sha256,
    tail: Vec<u8>,
    size: u64,
}

impl TailCheck {
    fn update(&mut self, blob: &[u8]) {
        self.size += blob.len() as u64;
        let settled = blob.len().saturating_sub(DIGEST_BYTES);
        if settled > 0 {
            self.hash.update(&self.tail);
            self.hash.update(&blob[..settled]);
            self.tail.clear();
        }
        self.tail.extend_from_slice(&blob[settled..]);
        let excess = self.tail.len().saturating_sub(DIGEST_BYTES);
        self.hash.update(&self.tail[..excess]);
        self.tail.drain(..excess);
    }

    fn finish(&mut self) -> Result<()> {
        if self.size % SECTOR_BYTES != DIGEST_BYTES as u64 {
            return Err(Error::Snapshot(format!("sha256 checksum not found [bytes: {}]", self.size)));
        }
        let found = std::mem::take(&mut self.hash).finalize();
        if found[..] != self.tail[..] {
            return Err(Error::Snapshot(format!("sha256 of the {} bytes received does not match", self.size)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]]) -> Result<()> {
        let mut check = TailCheck::default();
        pieces.iter().for_each(|piece| check.update(piece));
        check.finish()
    }

    #[test]
    fn the_tail_is_checked_however_it_is_cut() {
        let database: Vec<u8> = (0..1024u32).map(|i| i as u8).collect();
        let mut file = database.clone();
        file.extend_from_slice(&Sha256::digest(&database));
        for size in [1, 7, 31, 32, 33, 500, 1056] {
            let pieces: Vec<&[u8]> = file.chunks(size).collect();
            check(&pieces).unwrap_or_else(|error| panic!("{size}: {error}"));
        }
        assert!(check(&[&database]).is_err(), "no digest");
        file[5] ^= 1;
        assert!(check(&[&file]).is_err(), "a flipped bit");
        assert!(check(&[&file[..100]]).is_err(), "cut short");
    }
}
