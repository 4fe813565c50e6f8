//! Raft's messages: posts of single ones, and the streams that peers dial.

use http::{Method, Request, header::CONNECTION};
use hyper::body::Incoming;
use membership::MemberId;

use super::{BodyError, Call, reply::Reply};
use crate::{
    codec::{StreamKind, decode_message},
    header::{self, Incompatible, RAFT_TO, SERVER_FROM, SERVER_VERSION, parse_id, text},
    member::Member,
    route::Rejection,
};

impl Call<'_> {
    /// The refusal of a request that comes from elsewhere or from another time.
    pub(super) fn check(&self, member: &dyn Member, headers: &http::HeaderMap) -> Result<(), Box<Reply>> {
        let identity = &self.transport.shared().options.identity;
        let is_foreign = || member.is_ours_alone() && !header::is_ours(headers);
        let refusal = match identity.check(headers) {
            Err(refusal) => refusal,
            Ok(()) if is_foreign() => Incompatible::NotOurs,
            Ok(()) => return Ok(()),
        };
        let what = match refusal {
            Incompatible::NotOurs => "refused a member that cannot follow this cluster version",
            Incompatible::Version => "failed version compatibility check",
            Incompatible::ClusterId => "request cluster ID mismatch",
        };
        tracing::warn!(
            local_member_id = %identity.local,
            local_member_cluster_id = %identity.cluster,
            local_member_server_version = identity.server_version,
            local_member_server_minimum_cluster_version = identity.min_cluster_version,
            remote_addr = %self.remote,
            remote_peer_server_name = text(headers, &SERVER_FROM),
            remote_peer_server_version = text(headers, &SERVER_VERSION),
            remote_peer_server_minimum_cluster_version = text(headers, &header::MIN_CLUSTER_VERSION),
            remote_peer_cluster_id = text(headers, &header::CLUSTER_ID),
            "{what}"
        );
        Err(Box::new(Reply::error(412, refusal.to_string())))
    }

    /// The sender may be a member that this one has not heard of yet: it is answered to where it says it is.
    pub(super) fn add_sender(&self, member: &dyn Member, headers: &http::HeaderMap) {
        if let Some((id, urls)) = header::sender(headers) {
            self.add_remote(member, id, &urls);
        }
    }

    fn add_remote(&self, member: &dyn Member, id: MemberId, urls: &[String]) {
        if member.is_removed(id) {
            return;
        }
        if let Err(error) = self.transport.add_remote(id, urls) {
            tracing::warn!(remote_peer_id = %id, %error, "ignored the peer URLs of an unknown member");
        }
    }

    pub(super) fn cluster(&self) -> membership::ClusterId {
        self.transport.shared().options.identity.cluster
    }
}

/// `POST /raft`: one message.
pub(super) async fn post(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    if request.method() != Method::POST {
        return Reply::method_not_allowed(Some("POST"));
    }
    post_message(call, member, request).await.with_cluster(call.cluster())
}

async fn post_message(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    if let Err(refusal) = call.check(member, request.headers()) {
        return *refusal;
    }
    call.add_sender(member, request.headers());
    let shared = call.transport.shared();
    let failed = |what: &str, error: String| {
        tracing::warn!(
            local_member_id = %shared.local(),
            remote_addr = %call.remote,
            error,
            "failed to {what} Raft message"
        );
        shared.observer.receive_failed(&call.remote.to_string());
    };
    let bytes = match call.body(request.into_body(), shared.options.message_bytes_max).await {
        Ok(bytes) => bytes,
        Err(BodyError::TooLarge) => {
            failed("read", format!("the body exceeds {} bytes", shared.options.message_bytes_max));
            return Reply::error(413, "error reading raft message");
        }
        Err(BodyError::Broken(error)) => {
            failed("read", error);
            return Reply::error(400, "error reading raft message");
        }
    };
    let len = bytes.len() as u64;
    let message = match decode_message(bytes) {
        Ok(message) => message,
        Err(error) => {
            failed("unmarshal", error.to_string());
            return Reply::error(400, "error unmarshalling raft message");
        }
    };
    shared.observer.received_bytes(MemberId(message.from()), len);
    match shared.check_received(&message) {
        Ok(()) => {}
        Err(Rejection::Local) => return Reply::no_content(),
        Err(rejection) => return Reply::json_error(403, &rejection.to_string()),
    }
    match member.receive(message).await {
        Ok(()) => Reply::no_content(),
        Err(error) => {
            failed("process", error.to_string());
            Reply::error(500, "error processing raft message").with(CONNECTION, "close")
        }
    }
}

/// `GET /raft/stream/{msgapp,message}/<id>`: the peer of this id reads what is sent to it, without end.
pub(super) fn stream(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return Reply::method_not_allowed(Some("GET"));
    }
    let version = &call.transport.shared().options.identity.server_version;
    let reply = open(call, member, request).unwrap_or_else(|refusal| *refusal);
    reply.with_cluster(call.cluster()).with(SERVER_VERSION, version)
}

fn open(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Result<Reply, Box<Reply>> {
    let headers = request.headers();
    call.check(member, headers)?;
    let local = call.transport.local();
    let (dir, from) = request.uri().path().rsplit_once('/').unwrap_or_default();
    let kinds = [StreamKind::MsgApp, StreamKind::Message];
    let kind = kinds.into_iter().find(|kind| kind.path() == dir).ok_or_else(|| refusal(404, "invalid path"))?;
    let from = MemberId(parse_id(from).ok_or_else(|| refusal(404, "invalid from"))?);
    if member.is_removed(from) {
        tracing::warn!(
            local_member_id = %local,
            remote_peer_id_from = %from,
            "rejected stream from remote peer because it was removed"
        );
        return Err(refusal(410, "removed member"));
    }
    let Some(peer) = call.transport.peer(from) else {
        // This member may lag behind the change that brought the other one.
        call.add_remote(member, from, &header::peer_urls(headers));
        tracing::warn!(
            local_member_id = %local,
            remote_peer_id_from = %from,
            cluster_id = %call.cluster(),
            "failed to find remote peer in cluster"
        );
        return Err(refusal(404, "error sender not found"));
    };
    let to = text(headers, &RAFT_TO);
    if to != local.to_string() {
        tracing::warn!(
            local_member_id = %local,
            remote_peer_id_header = to,
            remote_peer_id_from = %from,
            "ignored streaming request; ID mismatch"
        );
        return Err(refusal(412, "to field mismatch"));
    }
    Ok(Reply::stream(peer.attach(kind, header::is_ours(headers))))
}

fn refusal(status: u16, text: &str) -> Box<Reply> {
    Box::new(Reply::error(status, text))
}
