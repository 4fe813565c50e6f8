//! What members ask of each other besides raft.

use bytes::Bytes;
use failpoint::failpoint;
use http::{Method, Request, header::AUTHORIZATION};
use hyper::body::Incoming;
use membership::MemberId;
use proto::{
    etcdserverpb::{LeaseKeepAliveRequest, LeaseKeepAliveResponse},
    leasepb::{LeaseInternalRequest, LeaseInternalResponse},
};

use super::{BodyError, Call, reply::Reply};
use crate::{
    header::{CLUSTER_ID, text},
    json::{HashKvJson, HashKvRequest, member_list},
    member::{ControlError, Member},
};

/// Requests of this kind are a few bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

pub(super) fn members(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return Reply::method_not_allowed(Some("GET"));
    }
    Reply::json(&member_list(&member.members()), true).with_cluster(call.cluster())
}

pub(super) fn version(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return Reply::method_not_allowed(Some("GET"));
    }
    let mut versions = member.versions();
    versions.lockgate = Some(call.transport.shared().options.identity.lockgate_version.clone());
    Reply::json(&versions, false)
}

pub(super) async fn promote(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Reply {
    if request.method() != Method::POST {
        return Reply::method_not_allowed(Some("POST"));
    }
    let id = request.uri().path().trim_start_matches("/members/promote/");
    let reply = match id.parse() {
        Ok(id) => promote_member(member, MemberId(id), request).await,
        Err(_) => Reply::error(404, format!("member {id} not found in cluster")),
    };
    reply.with_cluster(call.cluster())
}

async fn promote_member(member: &dyn Member, id: MemberId, request: &Request<Incoming>) -> Reply {
    let token = text(request.headers(), &AUTHORIZATION);
    let token = (!token.is_empty()).then(|| token.to_string());
    match member.promote(id, token).await {
        Ok(members) => Reply::json(&member_list(&members), true),
        Err(error) => {
            tracing::warn!(member_id = %id, %error, "failed to promote a member");
            match error {
                ControlError::MemberNotFound => Reply::error(404, error.to_string()),
                ControlError::NotLearner | ControlError::LearnerNotReady | ControlError::LearnerFeatures(_) => {
                    Reply::error(412, error.to_string())
                }
                _ => Reply::json_error(500, "Internal Server Error"),
            }
        }
    }
}

pub(super) async fn hash_kv(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return Reply::method_not_allowed(Some("GET"));
    }
    let cluster = text(request.headers(), &CLUSTER_ID);
    if !cluster.is_empty() && cluster != call.cluster().to_string() {
        return Reply::error(412, ControlError::ClusterIdMismatch.to_string());
    }
    let body = match small_body(call, request).await {
        Ok(body) => body,
        Err(refusal) => return *refusal,
    };
    let Ok(request) = serde_json::from_slice::<HashKvRequest>(&body) else {
        tracing::warn!(remote_addr = %call.remote, "failed to unmarshal request");
        return Reply::error(400, "error unmarshalling request");
    };
    match member.hash_kv(request.revision).await {
        Ok(hash) => Reply::json(&HashKvJson::from(hash), false).with_cluster(call.cluster()),
        Err(error) => {
            tracing::warn!(requested_revision = request.revision, %error, "failed to get hashKV");
            Reply::error(400, error.to_string())
        }
    }
}

pub(super) async fn renew_lease(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    let request = match lease_request::<LeaseKeepAliveRequest>(call, request).await {
        Ok(request) => request,
        Err(refusal) => return *refusal,
    };
    failpoint!("beforeServeHTTPLeaseRenew");
    match member.renew_lease(request.id).await {
        Ok(ttl) => protobuf(&LeaseKeepAliveResponse { header: None, id: request.id, ttl }),
        Err(error) => lease_error(&error, 400),
    }
}

pub(super) async fn lease_time_to_live(call: &Call<'_>, member: &dyn Member, request: Request<Incoming>) -> Reply {
    let request = match lease_request::<LeaseInternalRequest>(call, request).await {
        Ok(request) => request,
        Err(refusal) => return *refusal,
    };
    let Some(request) = request.lease_time_to_live_request else {
        return Reply::error(400, "error unmarshalling request");
    };
    failpoint!("beforeLookupWhenForwardLeaseTimeToLive");
    match member.lease_time_to_live(request).await {
        Ok(response) => protobuf(&LeaseInternalResponse { lease_time_to_live_response: Some(response) }),
        Err(error) => lease_error(&error, 500),
    }
}

async fn lease_request<T: prost::Message + Default>(
    call: &Call<'_>,
    request: Request<Incoming>,
) -> Result<T, Box<Reply>> {
    if request.method() != Method::POST {
        return Err(Box::new(Reply::method_not_allowed(None)));
    }
    let body = small_body(call, request).await?;
    T::decode(body).map_err(|_| Box::new(Reply::error(400, "error unmarshalling request")))
}

fn lease_error(error: &ControlError, otherwise: u16) -> Reply {
    let status = match error {
        ControlError::LeaseNotFound => 404,
        ControlError::LeaseTimeout => 408,
        _ => otherwise,
    };
    Reply::error(status, error.to_string())
}

fn protobuf<T: prost::Message>(message: &T) -> Reply {
    Reply::bytes("application/protobuf", message.encode_to_vec().into())
}

pub(super) async fn downgrade_enabled(call: &Call<'_>, member: &dyn Member, request: &Request<Incoming>) -> Reply {
    if request.method() != Method::GET {
        return Reply::method_not_allowed(Some("GET"));
    }
    let reply = match member.downgrade_enabled().await {
        Ok(enabled) => Reply::bytes("text/plain", enabled.to_string().into()),
        Err(error) => Reply::error(500, format!("failed linearized read: {error}")),
    };
    reply.with_cluster(call.cluster())
}

async fn small_body(call: &Call<'_>, request: Request<Incoming>) -> Result<Bytes, Box<Reply>> {
    call.body(request.into_body(), REQUEST_BYTES_MAX).await.map_err(|error| match error {
        BodyError::TooLarge => Box::new(Reply::error(413, "request body too large")),
        BodyError::Broken(_) => Box::new(Reply::error(400, "error reading body")),
    })
}
