//! The whole file as of one commit, as a stream.

use std::{
    io::{self, Read},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;

use super::{Backend, Failure, Observer, file::FileView};
use crate::schema::{DecodeError, meta};

/// The file as of one commit. Later commits do not change it, and do not wait for it; the file may grow meanwhile,
/// since pages that this snapshot needs are not reused.
pub struct Snapshot {
    file: FileView,
    stream: bolt::Copy,
    begin: Instant,
    observer: Option<Arc<dyn Observer>>,
}

/// Why there is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error(transparent)]
    Backend(#[from] Failure),
    #[error("failed to read from the snapshot which entry was applied last")]
    Consistent(#[from] DecodeError),
}

impl Backend {
    /// Commits what is applied and opens the result for streaming.
    pub fn snapshot(&self) -> Result<Snapshot, Failure> {
        self.commit()?;
        let file = self.handle.shared.state().file.clone();
        let stream = file.stream();
        let observer = self.handle.shared.options.observer.clone();
        Ok(Snapshot { file, stream, begin: Instant::now(), observer })
    }

    /// As [`snapshot`](Self::snapshot), with index and term of the last entry whose changes are in it. Called by the one
    /// who applies, between two entries, these are the last it recorded ([`super::Batch::set_consistent`]).
    pub fn snapshot_now(&self) -> Result<(Snapshot, u64, u64), SnapshotError> {
        let snapshot = self.snapshot()?;
        let consistent = meta::consistent(&snapshot.view());
        // A damaged page reads as if nothing were there.
        if let Some(failure) = snapshot.file.failed() {
            return Err(failure.into());
        }
        let (index, term) = consistent?;
        Ok((snapshot, index, term))
    }
}

impl Snapshot {
    /// Bytes there are in all.
    pub fn size(&self) -> u64 {
        self.stream.len()
    }

    /// Bytes not yet handed out.
    pub fn remaining(&self) -> u64 {
        self.stream.remaining()
    }

    /// The next `bytes_max` bytes, fewer at the end, `None` after it. Blocks on reading from disk.
    pub fn next_chunk(&mut self, bytes_max: usize) -> io::Result<Option<Bytes>> {
        let n = self.remaining().min(bytes_max as u64) as usize;
        if n == 0 {
            return Ok(None);
        }
        let mut chunk = vec![0; n];
        self.stream.read_exact(&mut chunk)?;
        Ok(Some(chunk.into()))
    }

    /// What the snapshot holds, for reading keys.
    pub fn view(&self) -> super::View {
        super::View::of_file(self.file.clone())
    }
}

impl io::Read for Snapshot {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.stream.read(buf)
    }
}

/// It is read by another thread than the one that took it.
const _: () = {
    const fn can_be_sent<T: Send + io::Read>() {}
    can_be_sent::<Snapshot>();
};

impl Drop for Snapshot {
    fn drop(&mut self) {
        if let Some(observer) = &self.observer {
            observer.snapshot_ended(self.begin.elapsed());
        }
    }
}
