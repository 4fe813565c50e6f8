//! What all parts of a transport share: settings, the member, the observer, the client.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header::CONTENT_TYPE, header::HOST};
use membership::MemberId;
use parking_lot::RwLock;
use proto::raftpb::Message;

use crate::{
    client::{Answer, Client},
    header::{CLUSTER_ID, text},
    member::Member,
    observer::Observer,
    options::Options,
    route::{Rejection, check_received},
    url::PeerUrl,
};

pub(crate) struct Shared {
    pub options: Options,
    pub observer: Arc<dyn Observer>,
    pub client: Client,
    /// `None` before it is attached and after the transport was stopped.
    member: RwLock<Option<Arc<dyn Member>>>,
}

/// How a post to a peer went wrong. The texts are etcd's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    #[error(transparent)]
    Request(#[from] crate::client::RequestError),
    #[error("incompatible version")]
    IncompatibleVersion,
    #[error("cluster ID mismatch")]
    ClusterIdMismatch,
    #[error("the member has been permanently removed from the cluster")]
    Removed,
    #[error("unhandled error {0:?} when precondition failed")]
    Precondition(String),
    #[error("unexpected http status {0} while posting to {1}")]
    Status(http::StatusCode, PeerUrl),
}

impl Shared {
    pub(crate) fn new(options: Options, observer: Arc<dyn Observer>) -> Shared {
        let client = Client::new(options.local_address, options.dial_timeout, options.write_timeout);
        Shared { options, observer, client, member: RwLock::new(None) }
    }

    pub(crate) fn attach(&self, member: Arc<dyn Member>) {
        *self.member.write() = Some(member);
    }

    pub(crate) fn detach(&self) {
        *self.member.write() = None;
        self.client.close_idle();
    }

    pub(crate) fn member(&self) -> Option<Arc<dyn Member>> {
        self.member.read().clone()
    }

    pub(crate) fn local(&self) -> MemberId {
        self.options.identity.local
    }

    pub(crate) fn is_removed(&self, id: MemberId) -> bool {
        self.member().is_some_and(|member| member.is_removed(id))
    }

    /// Whether a message that arrived may be handed to raft; says in the log why not.
    pub(crate) fn check_received(&self, message: &Message) -> Result<(), Rejection> {
        let rejection = check_received(message, self.local(), |id| self.is_removed(id));
        match rejection {
            Err(Rejection::RemovedSender) => tracing::warn!(
                local_member_id = %self.local(),
                removed_member_id = %MemberId(message.from()),
                "rejected Raft message from removed member"
            ),
            Err(Rejection::WrongReceiver) => tracing::warn!(
                local_member_id = %self.local(),
                mismatch_member_id = %MemberId(message.to()),
                "rejected Raft message to mismatch member"
            ),
            Err(Rejection::Local) => {
                tracing::debug!(
                    from = %MemberId(message.from()),
                    kind = ?message.r#type,
                    "ignored a local Raft message"
                )
            }
            Ok(()) => {}
        }
        rejection
    }

    pub(crate) fn send_failed(&self, to: MemberId) {
        self.observer.send_failed(to);
        if let Some(member) = self.member() {
            member.report_unreachable(to);
        }
    }

    pub(crate) fn report_snapshot(&self, to: MemberId, sent: bool) {
        if let Some(member) = self.member() {
            member.report_snapshot(to, sent);
        }
    }

    pub(crate) fn removed_from_cluster(&self) {
        if let Some(member) = self.member() {
            member.removed_from_cluster();
        }
    }

    /// A request to `url` with all headers that introduce this member.
    pub(crate) fn request<B>(&self, method: Method, url: &PeerUrl, path: &str, body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = self.options.identity.request_headers();
        address(&mut request, url, path);
        request
    }

    pub(crate) fn post<B>(&self, url: &PeerUrl, path: &str, content_type: &'static str, body: B) -> Request<B> {
        let mut request = self.request(Method::POST, url, path, body);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        request
    }

    /// What a peer's answer to a post means.
    pub(crate) fn check_posted(&self, to: MemberId, url: &PeerUrl, answer: &Answer) -> Result<(), PostError> {
        match answer.status.as_u16() {
            204 => Ok(()),
            403 => Err(PostError::Removed),
            412 => Err(match answer.text().as_str() {
                "incompatible version" => {
                    tracing::error!(remote_peer_id = %to, "request sent was ignored by peer");
                    PostError::IncompatibleVersion
                }
                "cluster ID mismatch" => {
                    tracing::error!(
                        remote_peer_id = %to,
                        remote_peer_cluster_id = text(&answer.headers, &CLUSTER_ID),
                        local_member_cluster_id = %self.options.identity.cluster,
                        "request sent was ignored due to cluster ID mismatch"
                    );
                    PostError::ClusterIdMismatch
                }
                other => PostError::Precondition(other.chars().take(256).collect()),
            }),
            _ => Err(PostError::Status(answer.status, url.clone())),
        }
    }
}

/// Fills in where a request goes.
pub(crate) fn address<B>(request: &mut Request<B>, url: &PeerUrl, path: &str) {
    if let Ok(uri) = path.parse() {
        *request.uri_mut() = uri;
    }
    if let Ok(host) = HeaderValue::from_str(url.authority()) {
        request.headers_mut().insert(HOST, host);
    }
}

/// How long a post of this size may take: a moment for the answer, and time for the bytes on a slow link.
pub(crate) fn post_timeout(body: &Bytes, answer: Duration) -> Duration {
    answer + Duration::from_secs(body.len() as u64 >> 20)
}
