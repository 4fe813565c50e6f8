//! What the recipes need of KV, leases and watches. Every error has the code Unknown, as in etcd, where it comes from a client
//! inside of the server.

use bytes::Bytes;
use http::HeaderValue;
use proto::{
    etcdserverpb::{
        Compare, DeleteRangeRequest, LeaseGrantRequest, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest,
        TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        kv_server::Kv,
        lease_server::Lease,
        range_request::{SortOrder, SortTarget},
        request_op,
    },
    mvccpb::event::EventType,
};
use tonic::{Request, Response, Status};

use super::events::Events;
use crate::{
    call::{self, Noted},
    services::{Context, KvService, LeaseService},
    status,
};

/// Of a lease that is granted because the client brings none.
const SESSION_TTL: i64 = 60;

#[derive(Clone)]
pub(super) struct View(pub Context);

impl View {
    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        plain(KvService(self.0.clone()).txn(Request::new(request)).await)
    }

    pub(super) async fn get(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        plain(KvService(self.0.clone()).range(Request::new(request)).await)
    }

    /// The lease that the client brings, or a new one.
    pub(super) async fn session(&self, lease: i64) -> Result<i64, Status> {
        if lease != 0 {
            return Ok(lease);
        }
        let grant = LeaseGrantRequest { ttl: SESSION_TTL, id: 0 };
        Ok(plain(LeaseService(self.0.clone()).lease_grant(Request::new(grant)).await)?.id)
    }

    /// Waits until every key below `prefix` that was created at or before a revision is gone.
    pub(super) async fn wait_deletes(&self, prefix: &Bytes, create_revision_max: i64) -> Result<(), Status> {
        let last = RangeRequest {
            max_create_revision: create_revision_max,
            sort_order: SortOrder::Descend as i32,
            ..first_created(prefix)
        };
        loop {
            let found = self.get(last.clone()).await?;
            let Some(kv) = found.kvs.into_iter().next() else { return Ok(()) };
            let revision = found.header.map_or(0, |header| header.revision);
            let mut events = Events::of(&self.0, kv.key, Bytes::new(), revision)?;
            while !events.next().await?.1.iter().any(|event| event.r#type() == EventType::Delete) {}
        }
    }

    /// What is to be done if the client goes away before it is answered.
    pub(super) fn undo(&self, txn: TxnRequest) -> Undo {
        Undo { view: self.clone(), txn: Some(txn), token: call::noted().token }
    }
}

/// Runs a txn when it is dropped, unless it is taken back.
pub(super) struct Undo {
    view: View,
    txn: Option<TxnRequest>,
    /// Whose call it is, for when the call is gone.
    token: Option<HeaderValue>,
}

impl Undo {
    pub(super) fn take_back(mut self) {
        self.txn = None;
    }

    /// Before the client is told of a failure.
    pub(super) async fn now(mut self) {
        if let Some(txn) = self.txn.take() {
            // If it fails, the key goes with its lease.
            let _ = call::lifted(self.view.txn(txn)).await;
        }
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let Some(txn) = self.txn.take() else { return };
        let (view, noted) = (self.view.clone(), Noted { required: None, token: self.token.take() });
        self.view.0.pool.spawn(call::during(noted, async move { view.txn(txn).await }));
    }
}

/// Errors as etcd's clients get them. That a required feature is off is none of those.
pub(super) fn plain<T>(result: Result<Response<T>, Status>) -> Result<T, Status> {
    result
        .map(Response::into_inner)
        .map_err(|error| if status::is_feature_refusal(&error) { error } else { status::unknown(error.message()) })
}

/// The key of a session below a prefix.
pub(super) fn session_key(prefix: &Bytes, lease: i64) -> Bytes {
    let sign = if lease < 0 { "-" } else { "" };
    [&prefix[..], format!("{sign}{:x}", lease.unsigned_abs()).as_bytes()].concat().into()
}

/// What sessions' keys begin with.
pub(super) fn prefix_of(name: &[u8]) -> Bytes {
    [name, b"/"].concat().into()
}

/// The key after all that begin with such a prefix.
pub(super) fn end_of(prefix: &Bytes) -> Bytes {
    let (_slash, name) = prefix.split_last().unwrap_or((&b'/', &[]));
    // The byte after the slash.
    [name, b"0"].concat().into()
}

/// The oldest key below a prefix: who holds the lock or leads.
pub(super) fn first_created(prefix: &Bytes) -> RangeRequest {
    RangeRequest {
        key: prefix.clone(),
        range_end: end_of(prefix),
        limit: 1,
        sort_order: SortOrder::Ascend as i32,
        sort_target: SortTarget::Create as i32,
        ..Default::default()
    }
}

/// That a key was created at a revision; 0: that it is not there.
pub(super) fn created_at(key: &Bytes, revision: i64) -> Compare {
    Compare {
        key: key.clone(),
        result: CompareResult::Equal as i32,
        target: CompareTarget::Create as i32,
        target_union: Some(TargetUnion::CreateRevision(revision)),
        ..Default::default()
    }
}

pub(super) fn put(key: &Bytes, value: &Bytes, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.clone(), value: value.clone(), lease, ..Default::default() };
    RequestOp { request: Some(request_op::Request::RequestPut(put)) }
}

pub(super) fn get(request: RangeRequest) -> RequestOp {
    RequestOp { request: Some(request_op::Request::RequestRange(request)) }
}

pub(super) fn delete(key: &Bytes) -> RequestOp {
    let delete = DeleteRangeRequest { key: key.clone(), ..Default::default() };
    RequestOp { request: Some(request_op::Request::RequestDeleteRange(delete)) }
}

/// The first key of the answer with this number, if that is a range.
pub(super) fn found(response: &TxnResponse, op: usize) -> Option<&proto::mvccpb::KeyValue> {
    use proto::etcdserverpb::response_op::Response;
    match response.responses.get(op)?.response.as_ref()? {
        Response::ResponseRange(range) => range.kvs.first(),
        _ => None,
    }
}

pub(super) fn key_only(key: &Bytes) -> RangeRequest {
    RangeRequest { key: key.clone(), ..Default::default() }
}
