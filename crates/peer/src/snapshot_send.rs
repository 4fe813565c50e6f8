//! Sends a snapshot: the raft message, then the database, in one post.

use std::{
    io::Read,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use membership::MemberId;
use proto::raftpb::Message;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    client::{Answer, RequestError, read_body, request_once},
    codec::encode_framed,
    io::Patience,
    member::Database,
    shared::{PostError, Shared},
    status::Status,
    url::{PeerUrl, UrlPicker},
};

const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS_AHEAD: usize = 4;
const ANSWER_BYTES_MAX: usize = 64 << 10;

pub(crate) struct SnapshotSender {
    shared: Arc<Shared>,
    to: MemberId,
    picker: Arc<UrlPicker>,
    status: Arc<Status>,
    under_way: UnderWay,
}

impl SnapshotSender {
    /// The transfer counts as under way from here on, so a sender that is dropped before it has run is reported, too.
    pub(crate) fn new(
        shared: Arc<Shared>,
        to: MemberId,
        picker: Arc<UrlPicker>,
        status: Arc<Status>,
    ) -> SnapshotSender {
        let under_way = UnderWay::begin(shared.clone(), to);
        SnapshotSender { shared, to, picker, status, under_way }
    }

    pub(crate) async fn send(mut self, message: Message, database: Database) {
        let start = Instant::now();
        let index = message.snapshot.as_ref().and_then(|s| s.metadata.as_ref()).map_or(0, |m| m.index());
        let (to, observer) = (self.to, &self.shared.observer);
        let bytes = database.len;
        tracing::info!(snapshot_index = index, remote_peer_id = %to, bytes, "sending database snapshot");
        let url = self.picker.pick();
        match self.post(&url, message, database).await {
            Ok(sent) => {
                self.status.activate();
                observer.sent_bytes(to, sent);
                self.under_way.took = Some(start.elapsed());
                tracing::info!(
                    snapshot_index = index,
                    remote_peer_id = %to,
                    bytes,
                    took = ?start.elapsed(),
                    "sent database snapshot"
                );
            }
            Err(error) => {
                tracing::warn!(
                    snapshot_index = index,
                    remote_peer_id = %to,
                    bytes,
                    %error,
                    "failed to send database snapshot"
                );
                if matches!(error, PostError::Removed) {
                    self.shared.removed_from_cluster();
                }
                self.picker.unreachable(&url);
                self.status.deactivate("post", "sendMsgSnap", &error);
                self.shared.send_failed(to);
            }
        }
    }

    async fn post(&self, url: &PeerUrl, message: Message, database: Database) -> Result<u64, PostError> {
        let options = &self.shared.options;
        let body = SnapshotBody::new(&message, database);
        let len = body.left;
        let request = self.shared.post(url, "/raft/snapshot", "application/octet-stream", body);
        // The receiver syncs the whole database before it answers.
        let patience = Patience { read: Some(options.snapshot_timeout), write: Some(options.write_timeout * 6) };
        let response = request_once(url, request, options.local_address, options.dial_timeout, patience).await?;
        let (head, body) = response.into_parts();
        let timeout = options.read_timeout;
        let body = tokio::time::timeout(timeout, read_body(url, body, ANSWER_BYTES_MAX))
            .await
            .map_err(|_| RequestError::Timeout { url: url.clone(), timeout })??;
        let answer = Answer { status: head.status, headers: head.headers, body };
        self.shared.check_posted(self.to, url, &answer)?;
        Ok(len)
    }
}

/// A transfer that is counted and whose end raft waits for. Both learn of the end when this is dropped, also if the
/// task is aborted because its receiver was removed: raft keeps the log in memory while a transfer is under way.
struct UnderWay {
    shared: Arc<Shared>,
    to: MemberId,
    /// How long the transfer took; `None` until the receiver has confirmed it.
    took: Option<Duration>,
}

impl UnderWay {
    fn begin(shared: Arc<Shared>, to: MemberId) -> UnderWay {
        shared.observer.snapshot_send_started(to);
        UnderWay { shared, to, took: None }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.shared.observer.snapshot_send_ended(self.to, self.took);
        self.shared.report_snapshot(self.to, self.took.is_some());
    }
}

/// The head, then what a thread reads from the database.
struct SnapshotBody {
    head: Option<Bytes>,
    chunks: mpsc::Receiver<std::io::Result<Bytes>>,
    left: u64,
}

impl SnapshotBody {
    fn new(message: &Message, database: Database) -> SnapshotBody {
        let mut head = BytesMut::new();
        encode_framed(message, &mut head);
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        let left = head.len() as u64 + database.len;
        tokio::task::spawn_blocking(move || read_database(database, &sender));
        SnapshotBody { head: Some(head.freeze()), chunks, left }
    }
}

/// Sends exactly `database.len` bytes on, or an error. Ends early when nobody wants them any more.
fn read_database(mut database: Database, chunks: &mpsc::Sender<std::io::Result<Bytes>>) {
    let mut left = database.len;
    while left > 0 {
        let mut chunk = BytesMut::zeroed(CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES)));
        let read = database.reader.read_exact(&mut chunk);
        let failed = read.is_err();
        left -= chunk.len() as u64;
        if chunks.blocking_send(read.map(|()| chunk.freeze())).is_err() || failed {
            return;
        }
    }
}

impl Body for SnapshotBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let next = match self.head.take() {
            Some(head) => Some(Ok(head)),
            None => std::task::ready!(self.chunks.poll_recv(cx)),
        };
        if let Some(Ok(chunk)) = &next {
            self.left -= chunk.len() as u64;
        }
        Poll::Ready(next.map(|chunk| chunk.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}
