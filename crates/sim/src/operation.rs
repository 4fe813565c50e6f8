//! What clients ask of a member, through the same calls as the server's services.

use std::sync::Arc;

use bytes::Bytes;
use linear::{Effect, Value};
use node::{Node, ProposeError, Response};
use proto::{
    etcdserverpb::{
        CompactionRequest, Compare, DeleteRangeRequest, InternalRaftRequest, LeaseGrantRequest, LeaseRevokeRequest,
        PutRequest, RangeRequest, RequestOp, TxnRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
        response_op::Response as OpResponse,
    },
    mvccpb::KeyValue,
};

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What the key held before, and the store's revision.
    Key { seen: Option<Value>, revision: i64 },
    /// A lease that lives for so many seconds more, or does not exist.
    Lease(Option<i64>),
    /// Nothing to tell.
    Done,
    /// It surely did not happen.
    Refused,
    /// Nobody knows.
    Unknown,
}

pub(crate) async fn key_operation(node: Arc<Node>, key: String, effect: Effect) -> Answer {
    match effect {
        Effect::Read => read(&node, key).await,
        Effect::Write(Some(value)) => put(&node, key, value, 0).await,
        Effect::Write(None) => delete(&node, key).await,
        Effect::Swap { expected, new } => swap(&node, key, expected, new).await,
    }
}

async fn read(node: &Node, key: String) -> Answer {
    if node.read_index().await.is_err() {
        return Answer::Unknown;
    }
    match node.store().range(&RangeRequest { key: key.into(), ..Default::default() }) {
        Ok(result) => {
            let response = result.into_response();
            Answer::Key { seen: value_of(response.kvs.first()), revision: response.header.map_or(0, |h| h.revision) }
        }
        Err(_) => Answer::Unknown,
    }
}

async fn put(node: &Node, key: String, value: Value, lease: i64) -> Answer {
    let put = PutRequest { prev_kv: true, lease, ..put_request(key, value) };
    match node.propose(InternalRaftRequest { put: Some(put), ..Default::default() }).await {
        Ok(Response::Put(r)) => {
            Answer::Key { seen: value_of(r.prev_kv.as_ref()), revision: r.header.map_or(0, |h| h.revision) }
        }
        other => no_answer(other),
    }
}

async fn delete(node: &Node, key: String) -> Answer {
    let delete = DeleteRangeRequest { key: key.into(), prev_kv: true, ..Default::default() };
    match node.propose(InternalRaftRequest { delete_range: Some(delete), ..Default::default() }).await {
        Ok(Response::DeleteRange(r)) => {
            Answer::Key { seen: value_of(r.prev_kvs.first()), revision: r.header.map_or(0, |h| h.revision) }
        }
        other => no_answer(other),
    }
}

async fn swap(node: &Node, key: String, expected: Option<Value>, new: Value) -> Answer {
    let (target, union) = match expected {
        Some(value) => (CompareTarget::Value, TargetUnion::Value(text(value))),
        None => (CompareTarget::Create, TargetUnion::CreateRevision(0)),
    };
    let compare = Compare {
        result: CompareResult::Equal as i32,
        target: target as i32,
        key: key.clone().into(),
        target_union: Some(union),
        ..Default::default()
    };
    let get = RangeRequest { key: key.clone().into(), ..Default::default() };
    let txn = TxnRequest {
        compare: vec![compare],
        success: vec![RequestOp { request: Some(Request::RequestPut(put_request(key, new))) }],
        failure: vec![RequestOp { request: Some(Request::RequestRange(get)) }],
    };
    match node.propose(InternalRaftRequest { txn: Some(txn), ..Default::default() }).await {
        Ok(Response::Txn(r)) => {
            let revision = r.header.as_ref().map_or(0, |h| h.revision);
            let found = match r.responses.first().and_then(|op| op.response.as_ref()) {
                Some(OpResponse::ResponseRange(range)) => value_of(range.kvs.first()),
                _ => None,
            };
            Answer::Key { seen: if r.succeeded { expected } else { found }, revision }
        }
        other => no_answer(other),
    }
}

pub(crate) async fn compact(node: Arc<Node>, revision: i64) -> Answer {
    let compaction = CompactionRequest { revision, physical: false };
    match node.propose(InternalRaftRequest { compaction: Some(compaction), ..Default::default() }).await {
        Ok(_) => Answer::Done,
        other => no_answer(other),
    }
}

pub(crate) async fn grant(node: Arc<Node>, id: i64, ttl: i64) -> Answer {
    match node
        .propose(InternalRaftRequest { lease_grant: Some(LeaseGrantRequest { id, ttl }), ..Default::default() })
        .await
    {
        Ok(Response::LeaseGrant(r)) => Answer::Lease(Some(r.ttl)),
        other => no_answer(other),
    }
}

pub(crate) async fn revoke(node: Arc<Node>, id: i64) -> Answer {
    match node
        .propose(InternalRaftRequest { lease_revoke: Some(LeaseRevokeRequest { id }), ..Default::default() })
        .await
    {
        Ok(_) => Answer::Done,
        other => no_answer(other),
    }
}

pub(crate) async fn renew(node: Arc<Node>, id: i64) -> Answer {
    match node.renew_lease(id).await {
        Ok(ttl) => Answer::Lease(ttl),
        Err(_) => Answer::Unknown,
    }
}

pub(crate) async fn attach(node: Arc<Node>, id: i64, key: String, value: Value) -> Answer {
    put(&node, key, value, id).await
}

/// A change of the members, or a request that is no client's.
pub(crate) async fn admin(node: Arc<Node>, change: Admin) -> Answer {
    let result = match change {
        Admin::Members(change) => node.change_members(&change).await,
        Admin::Request(request) => node.propose(*request).await.map(drop),
    };
    match result {
        Ok(()) => Answer::Done,
        Err(ProposeError::Apply(_)) => Answer::Refused,
        Err(_) => Answer::Unknown,
    }
}

pub(crate) enum Admin {
    Members(membership::Change),
    Request(Box<InternalRaftRequest>),
}

fn no_answer(result: Result<Response, ProposeError>) -> Answer {
    match result {
        Err(ProposeError::Apply(_) | ProposeError::TooManyRequests | ProposeError::TooLarge) => Answer::Refused,
        Ok(_) | Err(_) => Answer::Unknown,
    }
}

fn put_request(key: String, value: Value) -> PutRequest {
    PutRequest { key: key.into(), value: text(value), ..Default::default() }
}

fn text(value: Value) -> Bytes {
    Bytes::from(value.to_string())
}

fn value_of(kv: Option<&KeyValue>) -> Option<Value> {
    // What nobody wrote reads as a value that nobody wrote.
    kv.map(|kv| std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok()).unwrap_or(Value::MAX))
}
