//! The snapshot file: database pages, then the SHA-256 of them.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use super::Plan;
use crate::{failure::path_error, progress::Progress};

const HASH_BYTES: u64 = 32;
const CHUNK_BYTES: usize = 1 << 20;

/// A snapshot open for reading, under a shared lock: a database in use by a server is not copied while it changes.
pub(super) struct Source {
    file: File,
    /// Without the hash.
    body_bytes: u64,
    /// The hash at its end, if that is to be checked.
    expected: Option<[u8; HASH_BYTES as usize]>,
}

impl Source {
    pub(super) fn open(plan: &Plan) -> anyhow::Result<Source> {
        let path = &plan.snapshot;
        let mut file = File::open(path).map_err(|error| path_error("open", path, &error))?;
        lock(&file, path, plan.lock_timeout)?;
        let bytes = file.metadata().map_err(|error| path_error("stat", path, &error))?.len();
        if bytes < HASH_BYTES {
            bail!("seek {}: invalid argument: {bytes} bytes are too few for a snapshot", path.display());
        }
        // Pages are multiples of the smallest sector, so what is left over is a hash.
        let has_hash = bytes % 512 == HASH_BYTES;
        if !has_hash && !plan.skip_hash_check {
            bail!("snapshot missing hash but --skip-hash-check=false");
        }
        let body_bytes = if has_hash { bytes - HASH_BYTES } else { bytes };
        let mut hash = [0; HASH_BYTES as usize];
        file.seek(SeekFrom::Start(bytes - HASH_BYTES))
            .and_then(|_| file.read_exact(&mut hash))
            .and_then(|()| file.rewind())
            .map_err(|error| path_error("read", path, &error))?;
        let expected = (has_hash && !plan.skip_hash_check).then_some(hash);
        Ok(Source { file, body_bytes, expected })
    }

    /// Copies the pages into a new, private file, makes them durable, and compares the hash.
    pub(super) fn copy_to(mut self, to: &Path, plan: &Plan) -> anyhow::Result<()> {
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .map_err(|error| path_error("open", to, &error))?;
        let mut progress = Progress::bytes("copying", self.body_bytes);
        let (mut hash, mut chunk, mut done) = (Sha256::new(), vec![0; CHUNK_BYTES], 0);
        while done < self.body_bytes {
            let want = (self.body_bytes - done).min(CHUNK_BYTES as u64) as usize;
            let chunk = &mut chunk[..want];
            self.file.read_exact(chunk).map_err(|error| path_error("read", &plan.snapshot, &error))?;
            out.write_all(chunk).map_err(|error| path_error("write", to, &error))?;
            if self.expected.is_some() {
                hash.update(&*chunk);
            }
            done += want as u64;
            progress.set(done);
        }
        out.sync_all().with_context(|| format!("failed to sync {}", to.display()))?;
        let found: [u8; HASH_BYTES as usize] = hash.finalize().into();
        match self.expected {
            Some(expected) if expected != found => bail!("expected sha256 {}, got {}", list(&expected), list(&found)),
            _ => Ok(()),
        }
    }
}

/// Bytes as Go prints them.
fn list(bytes: &[u8]) -> String {
    let numbers: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!("[{}]", numbers.join(" "))
}

fn lock(file: &File, path: &Path, timeout: Option<Duration>) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        match file.try_lock_shared() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(path_error("lock", path, &error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if timeout.is_some_and(|timeout| begin.elapsed() >= timeout) {
            bail!(
                "{} is locked by another process (waited {:?}): it is the database of a running server; save a \
                 snapshot of that server with `etcdctl snapshot save` and restore it, or stop the server first",
                path.display(),
                begin.elapsed()
            );
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_look_as_in_go() {
        assert_eq!(super::list(&[4, 195, 0]), "[4 195 0]");
    }
}
