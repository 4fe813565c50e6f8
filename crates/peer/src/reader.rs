//! Reads a peer's streams: dials, decodes, hands over, and dials again when the stream ends.

use std::sync::Arc;

use bytes::Bytes;
use failpoint::failpoint;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use membership::MemberId;
use proto::raftpb::{Message, MessageType};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    client::{RequestError, read_body, request_once},
    codec::{DecodeError, Decoder, StreamKind, is_link_heartbeat},
    header::{CLUSTER_ID, RAFT_TO, insert, is_ours, supports_streams, text},
    io::Patience,
    shared::Shared,
    status::Status,
    url::{PeerUrl, UrlPicker},
};

/// A refusal is a line of text.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Reader {
    pub shared: Arc<Shared>,
    pub kind: StreamKind,
    pub remote: MemberId,
    pub picker: Arc<UrlPicker>,
    pub status: Arc<Status>,
    /// Where proposals wait for room while other messages go on.
    pub proposals: mpsc::Sender<Message>,
}

/// Why there is no stream. The texts are etcd's where it has one.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("unsupported stream type")]
    Unsupported,
    #[error("the member has been permanently removed from the cluster")]
    Removed,
    #[error("peer {remote} failed to find local node {local}")]
    Unknown { remote: MemberId, local: MemberId },
    #[error("incompatible version")]
    IncompatibleVersion,
    #[error("cluster ID mismatch")]
    ClusterIdMismatch,
    #[error("the peer is not a lockgate member, and cannot follow this cluster version")]
    NotOurs,
    #[error("unhandled error {0:?} when precondition failed")]
    Precondition(String),
    #[error("unhandled http status {0}")]
    Status(StatusCode),
    #[error("failed to read: {0}")]
    Read(#[from] hyper::Error),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("the local member is stopping")]
    Stopped,
}

impl Reader {
    pub(crate) async fn run(self) {
        let (local, remote, kind) = (self.shared.local(), self.remote, self.kind.name());
        tracing::info!(
            stream_reader_type = kind,
            local_member_id = %local,
            remote_peer_id = %remote,
            "started stream reader with remote peer"
        );
        loop {
            let started = Instant::now();
            match self.dial().await {
                Err(StreamError::Unsupported) => {}
                Err(error) => self.status.deactivate("dial", kind, &error),
                Ok(body) => {
                    self.status.activate();
                    tracing::info!(
                        stream_reader_type = kind,
                        local_member_id = %local,
                        remote_peer_id = %remote,
                        "established TCP streaming connection with remote peer"
                    );
                    let end = self.read(body).await;
                    let error = end.as_ref().err().map_or("EOF".to_string(), ToString::to_string);
                    tracing::warn!(
                        stream_reader_type = kind,
                        local_member_id = %local,
                        remote_peer_id = %remote,
                        error,
                        "lost TCP streaming connection with remote peer"
                    );
                    match end {
                        Ok(()) => {}
                        Err(StreamError::Stopped) => return,
                        Err(error) => self.status.deactivate("read", kind, &error),
                    }
                }
            }
            tokio::time::sleep_until(started + self.shared.options.redial_interval).await;
        }
    }

    async fn dial(&self) -> Result<Incoming, StreamError> {
        let url = self.picker.pick();
        let result = self.open(&url).await;
        if let Err(error) = &result {
            self.picker.unreachable(&url);
            if matches!(error, StreamError::Removed) {
                self.shared.removed_from_cluster();
            }
        }
        result
    }

    async fn open(&self, url: &PeerUrl) -> Result<Incoming, StreamError> {
        let options = &self.shared.options;
        let path = format!("{}/{}", self.kind.path(), self.shared.local());
        let mut request = self.shared.request(Method::GET, url, &path, Empty::<Bytes>::new());
        insert(request.headers_mut(), RAFT_TO, &self.remote.to_string());
        let patience = Patience { read: Some(options.read_timeout), write: Some(options.write_timeout) };
        let response = request_once(url, request, options.local_address, options.dial_timeout, patience).await?;
        self.check(url, response).await
    }

    async fn check(&self, url: &PeerUrl, response: Response<Incoming>) -> Result<Incoming, StreamError> {
        if !supports_streams(response.headers()) {
            return Err(StreamError::Unsupported);
        }
        match response.status() {
            StatusCode::OK if self.is_foreign(&response) => Err(StreamError::NotOurs),
            StatusCode::OK => Ok(response.into_body()),
            StatusCode::GONE => Err(StreamError::Removed),
            StatusCode::NOT_FOUND => Err(StreamError::Unknown { remote: self.remote, local: self.shared.local() }),
            StatusCode::PRECONDITION_FAILED => {
                let cluster = text(response.headers(), &CLUSTER_ID).to_string();
                let body = read_body(url, response.into_body(), REFUSAL_BYTES_MAX).await?;
                Err(self.precondition(&String::from_utf8_lossy(&body), &cluster))
            }
            status => Err(StreamError::Status(status)),
        }
    }

    fn is_foreign(&self, response: &Response<Incoming>) -> bool {
        self.shared.member().is_some_and(|member| member.is_ours_alone()) && !is_ours(response.headers())
    }

    fn precondition(&self, text: &str, remote_cluster: &str) -> StreamError {
        match text.trim_end_matches('\n') {
            "incompatible version" => {
                tracing::warn!(
                    local_member_id = %self.shared.local(),
                    remote_peer_id = %self.remote,
                    "request sent was ignored by remote peer due to server version incompatibility"
                );
                StreamError::IncompatibleVersion
            }
            "cluster ID mismatch" => {
                tracing::warn!(
                    remote_peer_id = %self.remote,
                    remote_peer_cluster_id = remote_cluster,
                    local_member_id = %self.shared.local(),
                    local_member_cluster_id = %self.shared.options.identity.cluster,
                    "request sent was ignored by remote peer due to cluster ID mismatch"
                );
                StreamError::ClusterIdMismatch
            }
            other => StreamError::Precondition(other.chars().take(256).collect()),
        }
    }

    /// Until the stream ends.
    async fn read(&self, mut body: Incoming) -> Result<(), StreamError> {
        let options = &self.shared.options;
        let mut decoder = Decoder::new(self.kind, self.shared.local(), self.remote, options.message_bytes_max);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            self.shared.observer.received_bytes(self.remote, data.len() as u64);
            decoder.push(data);
            let mut messages = Vec::new();
            while let Some(message) = decoder.next_message()? {
                failpoint!("raftDropHeartbeat", || continue);
                self.sort(message, &mut messages);
            }
            if !messages.is_empty() {
                self.hand_over(messages).await?;
            }
        }
        Ok(())
    }

    /// Proposals to their queue, what may not come from outside nowhere, the rest to `messages`.
    fn sort(&self, message: Message, messages: &mut Vec<Message>) {
        if is_link_heartbeat(&message) || self.shared.check_received(&message).is_err() {
            return;
        }
        if message.r#type() != MessageType::MsgProp {
            messages.push(message);
        } else if self.proposals.try_send(message).is_err() {
            self.shared.observer.receive_failed(&self.remote.to_string());
            tracing::warn!(
                message_type = "MsgProp",
                local_member_id = %self.shared.local(),
                from = %self.remote,
                remote_peer_active = self.status.is_active(),
                "dropped internal Raft message since receiving buffer is full (overloaded network)"
            );
        }
    }

    async fn hand_over(&self, messages: Vec<Message>) -> Result<(), StreamError> {
        let Some(member) = self.shared.member() else { return Err(StreamError::Stopped) };
        if let Err(error) = member.receive_all(messages).await {
            tracing::warn!(%error, remote_peer_id = %self.remote, "failed to process Raft message");
        }
        Ok(())
    }
}

/// Hands proposals over one by one; each may wait for room.
pub(crate) async fn hand_over_proposals(shared: Arc<Shared>, mut proposals: mpsc::Receiver<Message>) {
    while let Some(proposal) = proposals.recv().await {
        let Some(member) = shared.member() else { return };
        if let Err(error) = member.receive(proposal).await {
            tracing::warn!(%error, "failed to process Raft message");
        }
    }
}
