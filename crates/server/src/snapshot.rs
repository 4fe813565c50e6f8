//! Sends the database file to a client, with its SHA-256 at the end.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use futures_util::Stream;
use proto::etcdserverpb::SnapshotResponse;
use sha2::{Digest, Sha256};
use storage::{Backend, Snapshot, schema};
use tonic::Status;

use crate::status;

/// As etcd's: a few pages of the file in one message.
const CHUNK_BYTES: usize = 32 * 1024;

/// The pieces of the file. One is read when the one before it has been taken, so a slow client holds a view of the
/// database, but neither memory nor a thread.
pub(crate) struct Pieces {
    snapshot: Snapshot,
    version: String,
    /// `None` when the digest is sent.
    hash: Option<Sha256>,
    begin: Instant,
}

impl Pieces {
    /// Commits what is applied, so it may block.
    pub(crate) fn open(backend: &Backend) -> Result<Pieces, Status> {
        let version = schema::meta::storage_version(&backend.view()).map_err(|e| status::unknown(e.to_string()))?;
        let version = version.map(|v| v.stored()).unwrap_or_default();
        let snapshot = backend.snapshot().map_err(|e| status::unknown(e.to_string()))?;
        let total_bytes = snapshot.size();
        tracing::info!(total_bytes, storage_version = %version, "sending database snapshot to client");
        Ok(Pieces { snapshot, version, hash: Some(Sha256::new()), begin: Instant::now() })
    }

    fn next_piece(&mut self) -> Option<Result<SnapshotResponse, Status>> {
        let hash = self.hash.as_mut()?;
        let blob = match self.snapshot.next_chunk(CHUNK_BYTES) {
            Ok(Some(blob)) => {
                hash.update(&blob);
                blob
            }
            Ok(None) => Bytes::copy_from_slice(&self.hash.take()?.finalize()),
            Err(error) => {
                self.hash = None;
                return Some(Err(status::unknown(error.to_string())));
            }
        };
        if self.hash.is_none() {
            let (total_bytes, took) = (self.snapshot.size(), self.begin.elapsed());
            tracing::info!(total_bytes, ?took, "successfully sent database snapshot to client");
        }
        let remaining_bytes = self.snapshot.remaining();
        Some(Ok(SnapshotResponse { remaining_bytes, blob, version: self.version.clone(), ..Default::default() }))
    }
}

impl Stream for Pieces {
    type Item = Result<SnapshotResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.next_piece())
    }
}
