//! Sends the database file to a client, with its SHA-256 at the end.

use bytes::Bytes;
use proto::etcdserverpb::SnapshotResponse;
use sha2::{Digest, Sha256};
use storage::{Backend, schema};
use tokio::sync::mpsc::Sender;
use tonic::Status;

use crate::status;

/// As etcd's: a few pages of the file in one message.
const CHUNK_BYTES: usize = 32 * 1024;

/// Runs on a thread that may block. Ends early if the client goes away.
pub fn send(backend: &Backend, to: &Sender<Result<SnapshotResponse, Status>>) {
    if let Err(status) = try_send(backend, to) {
        // Fails only if the client is gone.
        let _ = to.blocking_send(Err(status));
    }
}

fn try_send(backend: &Backend, to: &Sender<Result<SnapshotResponse, Status>>) -> Result<(), Status> {
    let begin = std::time::Instant::now();
    let version = schema::meta::storage_version(&backend.view()).map_err(|e| status::unknown(e.to_string()))?;
    let version = version.map(|v| v.stored()).unwrap_or_default();
    let mut snapshot = backend.snapshot().map_err(|e| status::unknown(e.to_string()))?;
    let total = snapshot.size();
    tracing::info!(total_bytes = total, storage_version = %version, "sending database snapshot to client");
    let mut hash = Sha256::new();
    let mut left = total;
    while let Some(blob) = snapshot.next_chunk(CHUNK_BYTES).map_err(|e| status::unknown(e.to_string()))? {
        hash.update(&blob);
        left -= blob.len() as u64;
        let message = SnapshotResponse { remaining_bytes: left, blob, version: version.clone(), ..Default::default() };
        if to.blocking_send(Ok(message)).is_err() {
            return Ok(());
        }
    }
    let blob = Bytes::copy_from_slice(&hash.finalize());
    let _ = to.blocking_send(Ok(SnapshotResponse { blob, version, ..Default::default() }));
    tracing::info!(total_bytes = total, took = ?begin.elapsed(), "successfully sent database snapshot to client");
    Ok(())
}
