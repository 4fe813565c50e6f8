//! `POST /raft/snapshot`: a raft message and the database that belongs to it.
//!
//! Invariant: `<index>.snap.db` is there in full and synced, name and all, before raft hears of the message. A transfer
//! that breaks off leaves nothing behind.

use std::{
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use failpoint::failpoint;
use http::{Method, Request};
use hyper::body::Incoming;
use membership::MemberId;
use proto::raftpb::{Message, MessageType};
use tokio::{fs, io::AsyncWriteExt, time::Instant};

use super::{BodyError, Call, reply::Reply};
use crate::{
    codec::{DecodeError, MessageDecoder},
    member::Member,
    route::Rejection,
};

/// Between two lines about a long transfer.
const PROGRESS_BYTES: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
enum ReceiveError {
    #[error("{0}")]
    Broken(String),
    #[error("the request ends before its raft message does")]
    Short,
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("the database exceeds {0} bytes")]
    TooLarge(u64),
    #[error("{0}")]
    Disk(#[from] io::Error),
}

impl From<BodyError> for ReceiveError {
    fn from(error: BodyError) -> ReceiveError {
        match error {
            BodyError::TooLarge => ReceiveError::Short,
            BodyError::Broken(reason) => ReceiveError::Broken(reason),
        }
    }
}

pub(super) async fn post(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    let observer = &call.transport.shared().observer;
    if request.method() != Method::POST {
        observer.snapshot_refused();
        return Reply::method_not_allowed(Some("POST"));
    }
    let reply = match call.check(member, request.headers()) {
        Ok(()) => {
            call.add_sender(member, request.headers());
            receive(call, member, request.into_body()).await
        }
        Err(refusal) => {
            observer.snapshot_refused();
            *refusal
        }
    };
    reply.with_cluster(call.cluster())
}

async fn receive(call: &Call<'_>, member: &dyn Member, mut body: Incoming) -> Reply {
    let start = Instant::now();
    let shared = call.transport.shared();
    let local = shared.local();
    let (message, rest) = match read_head(call, &mut body).await {
        Ok(head) => head,
        Err(error) => {
            tracing::warn!(
                local_member_id = %local,
                remote_addr = %call.remote,
                %error,
                "failed to decode Raft message"
            );
            shared.observer.receive_failed(&call.remote.to_string());
            shared.observer.snapshot_refused();
            return Reply::error(400, format!("failed to decode raft message ({error})"));
        }
    };
    let from = MemberId(message.from());
    if message.r#type != Some(MessageType::MsgSnap as i32) {
        tracing::warn!(
            local_member_id = %local,
            remote_snapshot_sender_id = %from,
            message_type = ?message.r#type,
            "unexpected Raft message type"
        );
        shared.observer.snapshot_refused();
        return Reply::error(400, "wrong raft message type");
    }
    // Looked at before gigabytes are written for nothing.
    match shared.check_received(&message) {
        Ok(()) => {}
        Err(Rejection::Local) => return Reply::no_content(),
        Err(rejection) => return Reply::json_error(403, &rejection.to_string()),
    }
    let mut under_way = UnderWay { call, from, took: None };
    shared.observer.snapshot_receive_started(from);
    let index = message.snapshot.as_ref().and_then(|s| s.metadata.as_ref()).map_or(0, |m| m.index());
    tracing::info!(
        local_member_id = %local,
        remote_snapshot_sender_id = %from,
        incoming_snapshot_index = index,
        "receiving database snapshot"
    );
    let bytes = match save(call, &member.snapshot_dir(), index, rest, &mut body).await {
        Ok(bytes) => bytes,
        Err(error) => {
            tracing::warn!(
                local_member_id = %local,
                remote_snapshot_sender_id = %from,
                incoming_snapshot_index = index,
                %error,
                "failed to save incoming database snapshot"
            );
            return Reply::error(500, format!("failed to save KV snapshot ({error})"));
        }
    };
    shared.observer.received_bytes(from, bytes);
    tracing::info!(
        local_member_id = %local,
        remote_snapshot_sender_id = %from,
        incoming_snapshot_index = index,
        incoming_snapshot_size_bytes = bytes,
        download_took = ?start.elapsed(),
        "received and saved database snapshot"
    );
    match member.receive(message).await {
        Ok(()) => {
            under_way.took = Some(start.elapsed());
            Reply::no_content()
        }
        Err(error) => {
            tracing::warn!(
                local_member_id = %local,
                remote_snapshot_sender_id = %from,
                %error,
                "failed to process Raft message"
            );
            Reply::error(500, format!("failed to process raft message ({error})"))
        }
    }
}

/// Counted until it has ended, also when the sender breaks off.
struct UnderWay<'a> {
    call: &'a Call<'a>,
    from: MemberId,
    took: Option<std::time::Duration>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.call.transport.shared().observer.snapshot_receive_ended(self.from, self.took);
    }
}

/// The message, and the first bytes of the database that came with it.
async fn read_head(call: &Call<'_>, body: &mut Incoming) -> Result<(Message, Bytes), ReceiveError> {
    let mut decoder = MessageDecoder::new(call.transport.shared().options.snapshot_message_bytes_max);
    loop {
        let piece = call.next_piece(body).await?.ok_or(ReceiveError::Short)?;
        decoder.push(piece);
        if let Some(message) = decoder.next_message()? {
            return Ok((message, decoder.into_rest()));
        }
    }
}

async fn save(call: &Call<'_>, dir: &Path, index: u64, first: Bytes, body: &mut Incoming) -> Result<u64, ReceiveError> {
    static TRANSFERS: AtomicU64 = AtomicU64::new(0);
    let transfer = TRANSFERS.fetch_add(1, Ordering::Relaxed);
    // etcd removes files of this name when it starts, should we be gone before we can.
    let temporary = Temporary(dir.join(format!("db.tmp.{index:016x}.{}.{transfer}", std::process::id())));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&temporary.0).await?;
    let bytes = write_all(call, &mut file, first, body).await?;
    file.sync_all().await?;
    drop(file);
    let path = dir.join(format!("{index:016x}.snap.db"));
    // A database of this index that was saved before is as good; raft may be about to open it.
    if !fs::try_exists(&path).await? {
        fs::rename(&temporary.0, &path).await?;
        temporary.keep();
    }
    failpoint!("snapDBRenameBeforeDirSync");
    failpoint!("snapDBDirSyncError", |text| return Err(std::io::Error::other(text).into()));
    fs::File::open(dir).await?.sync_all().await?;
    tracing::info!(path = %path.display(), bytes, "saved database snapshot to disk");
    Ok(bytes)
}

async fn write_all(
    call: &Call<'_>,
    file: &mut fs::File,
    first: Bytes,
    body: &mut Incoming,
) -> Result<u64, ReceiveError> {
    let max = call.transport.shared().options.database_bytes_max;
    let (mut written, mut logged) = (0, 0);
    let mut next = Some(first);
    while let Some(piece) = next {
        written += piece.len() as u64;
        if written > max {
            return Err(ReceiveError::TooLarge(max));
        }
        file.write_all(&piece).await?;
        if written - logged >= PROGRESS_BYTES {
            logged = written;
            tracing::info!(remote_addr = %call.remote, bytes = written, "receiving database snapshot: progress");
        }
        next = call.next_piece(body).await?;
    }
    file.flush().await?;
    Ok(written)
}

/// A file that is removed unless it was kept.
struct Temporary(PathBuf);

impl Temporary {
    fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.0.display(), %error, "failed to remove an unfinished snapshot");
        }
    }
}
