//! `.snap` files: a raft snapshot with a checksum around it, as etcd up to 3.7 keeps them beside the backend.

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use prost::Message;
use proto::{raftpb, snappb, walpb};

use crate::{
    disk::{Disk, OpenMode, OsDisk},
    segment::parse_hex16,
};

/// Why a `.snap` file could not be read or written. The texts begin with those of etcd.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation on a file or directory failed.
    #[error("snap: cannot {action} {}", path.display())]
    Io {
        /// The failed step, as a verb that the path follows.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No readable `.snap` file has a record in the log (etcd's `ErrNoSnapshot`).
    #[error("snap: no available snapshot in {} that the WAL lists", dir.display())]
    NoSnapshot {
        /// The directory of the `.snap` files.
        dir: PathBuf,
    },
    /// The file is empty, has no data, or has the checksum 0 (etcd's `ErrEmptySnapshot`).
    #[error("snap: empty snapshot")]
    Empty,
    /// The checksum of the data is wrong (etcd's `ErrCRCMismatch`).
    #[error("snap: crc mismatch: the file says {expected:x}, its data gives {computed:x}")]
    CrcMismatch {
        /// The checksum in the file.
        expected: u32,
        /// The checksum of the data in the file.
        computed: u32,
    },
    /// The file is not valid Protobuf.
    #[error("snap: the {part} does not decode")]
    Decode {
        /// `wrapper` for the outer message with the checksum (`snappb.Snapshot`), `snapshot` for
        /// the message inside (`raftpb.Snapshot`).
        part: &'static str,
        /// The error of the decoder.
        source: prost::DecodeError,
    },
}

/// Returns the name of the snapshot's file: `<term>-<index>.snap`, in hexadecimal digits, so that
/// names sort by age.
pub fn file_name(snapshot: &raftpb::Snapshot) -> String {
    let (term, index) = term_and_index(snapshot);
    format!("{term:016x}-{index:016x}.snap")
}

/// Returns the contents of the snapshot's file: a `snappb.Snapshot` with the encoded snapshot and
/// its CRC-32C.
pub fn encode(snapshot: &raftpb::Snapshot) -> Vec<u8> {
    let data = Bytes::from(snapshot.encode_to_vec());
    snappb::Snapshot { crc: Some(crc32c::crc32c(&data)), data: Some(data) }.encode_to_vec()
}

/// Decodes the contents of a `.snap` file and verifies the checksum.
pub fn decode(file: Bytes) -> Result<raftpb::Snapshot, Error> {
    let outer = snappb::Snapshot::decode(file).map_err(|source| Error::Decode { part: "wrapper", source })?;
    let expected = outer.crc();
    let data = outer.data.unwrap_or_default();
    if data.is_empty() || expected == 0 {
        return Err(Error::Empty);
    }
    let computed = crc32c::crc32c(&data);
    if computed != expected {
        return Err(Error::CrcMismatch { expected, computed });
    }
    raftpb::Snapshot::decode(data).map_err(|source| Error::Decode { part: "snapshot", source })
}

/// Writes and syncs `<term>-<index>.snap` in `dir`, and returns its path. Removes the file if that
/// fails. The caller must write the snapshot record to the log first, because only files that the
/// log lists are used.
pub fn save(dir: &Path, snapshot: &raftpb::Snapshot) -> Result<PathBuf, Error> {
    let path = dir.join(file_name(snapshot));
    let bytes = encode(snapshot);
    let write = || {
        let file = OsDisk.open(&path, OpenMode::Create)?;
        file.write_all_at(&bytes, 0)?;
        file.sync_data()?;
        OsDisk.sync_dir(dir)
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => {
            // The write's error is the one to report.
            let _ = OsDisk.remove_file(&path);
            Err(Error::Io { action: "write", path, source })
        }
    }
}

/// The paths of the `.snap` files in `dir`, newest first.
pub fn list(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = OsDisk.list(dir).map_err(|source| Error::Io { action: "list", path: dir.into(), source })?;
    let mut names: Vec<_> = names.into_iter().filter(|name| is_snap_name(name)).collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// Reads one `.snap` file and verifies its checksum.
pub fn read(path: &Path) -> Result<raftpb::Snapshot, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::Io { action: "read", path: path.into(), source })?;
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    decode(bytes.into())
}

/// Returns the newest readable snapshot that has a record among `listed`. Files that do not decode
/// are renamed to `<name>.broken`.
pub fn load_newest(dir: &Path, listed: &[walpb::Snapshot]) -> Result<raftpb::Snapshot, Error> {
    for path in list(dir)? {
        match read(&path) {
            Ok(snapshot) if is_listed(&snapshot, listed) => return Ok(snapshot),
            Ok(_) => {}
            // Not being able to read says nothing about the contents, so the file keeps its name.
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) => set_aside(&path, &error)?,
        }
    }
    Err(Error::NoSnapshot { dir: dir.into() })
}

fn set_aside(path: &Path, why: &Error) -> Result<(), Error> {
    let broken = PathBuf::from(format!("{}.broken", path.display()));
    tracing::warn!(path = %path.display(), %why, "renaming a broken snap file");
    OsDisk.rename(path, &broken).map_err(|source| Error::Io { action: "rename to", path: broken, source })
}

fn is_listed(snapshot: &raftpb::Snapshot, listed: &[walpb::Snapshot]) -> bool {
    let found = term_and_index(snapshot);
    listed.iter().any(|record| (record.term(), record.index()) == found)
}

fn term_and_index(snapshot: &raftpb::Snapshot) -> (u64, u64) {
    snapshot.metadata.as_ref().map_or((0, 0), |metadata| (metadata.term(), metadata.index()))
}

fn is_snap_name(name: &str) -> bool {
    let parts = name.strip_suffix(".snap").and_then(|stem| stem.split_once('-'));
    parts.is_some_and(|(term, index)| parse_hex16(term).is_some() && parse_hex16(index).is_some())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn snapshot(term: u64, index: u64) -> raftpb::Snapshot {
        let conf_state = Some(raftpb::ConfState { voters: vec![1], ..Default::default() });
        let metadata = raftpb::SnapshotMetadata { conf_state, index: Some(index), term: Some(term) };
        raftpb::Snapshot { data: Some("{}".into()), metadata: Some(metadata) }
    }

    fn record(term: u64, index: u64) -> walpb::Snapshot {
        walpb::Snapshot { index: Some(index), term: Some(term), conf_state: None }
    }

    #[test]
    fn the_newest_that_is_listed_and_whole_is_loaded() {
        let dir = harness::tempdir();
        for (term, index) in [(1, 5), (1, 9), (2, 30), (2, 40)] {
            save(dir.path(), &snapshot(term, index)).unwrap();
        }
        let newest = dir.path().join("0000000000000002-0000000000000028.snap");
        fs::write(&newest, b"").unwrap();
        fs::write(dir.path().join("db"), b"not a snapshot").unwrap();
        let listed = [record(1, 5), record(1, 9), record(2, 40)];
        assert_eq!(load_newest(dir.path(), &listed).unwrap(), snapshot(1, 9), "40 is empty, 30 is not listed");
        assert!(!newest.exists() && dir.path().join("0000000000000002-0000000000000028.snap.broken").exists());
        assert!(matches!(load_newest(dir.path(), &[]), Err(Error::NoSnapshot { .. })));
    }

    #[test]
    fn no_damaged_file_is_taken() {
        let good = encode(&snapshot(3, 77));
        assert_eq!(decode(good.clone().into()).unwrap(), snapshot(3, 77));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // Bits of the crc's varint beyond the 32nd mean nothing, and then nothing is damaged.
            assert!(decode(bad.into()).map_or(true, |same| same == snapshot(3, 77)), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(decode(good[..cut].to_vec().into()).is_err(), "cut at {cut}");
        }
    }
}
