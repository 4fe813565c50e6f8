//! Calls over one connection, many at once.

use futures_util::{StreamExt, stream};
use proto::etcdserverpb::{
    Compare, PutRequest, RangeRequest, RequestOp, TxnRequest, WatchCreateRequest, WatchRequest, WatchResponse, compare,
    kv_client::KvClient, request_op, watch_client::WatchClient, watch_request,
};
use tokio::task::JoinHandle;
use tonic::{Request, Status, Streaming, metadata::MetadataValue, transport::Channel};

use crate::Outcome;

const AT_ONCE: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Put,
    Range,
    SerializableRange,
    /// One comparison and one put, as in a compare-and-swap.
    Txn,
}

pub(crate) async fn send(channel: &Channel, call: Call, required: bool, count: usize) -> Outcome<()> {
    let calls = stream::iter(0..count).map(|i| one(channel.clone(), call, required, i));
    let mut calls = calls.buffer_unordered(AT_ONCE);
    while let Some(done) = calls.next().await {
        done?;
    }
    Ok(())
}

async fn one(channel: Channel, call: Call, required: bool, i: usize) -> Result<(), Status> {
    let mut kv = KvClient::new(channel);
    let key = format!("key-{}", i % 100).into();
    match call {
        Call::Put => kv.put(request(put(key), required)).await.map(drop),
        Call::Txn => {
            let exists = Compare {
                result: compare::CompareResult::Greater as i32,
                target: compare::CompareTarget::Version as i32,
                key: key.clone(),
                target_union: Some(compare::TargetUnion::Version(0)),
                ..Default::default()
            };
            let success = RequestOp { request: Some(request_op::Request::RequestPut(put(key))) };
            let txn = TxnRequest { compare: vec![exists], success: vec![success], failure: vec![] };
            kv.txn(request(txn, required)).await.map(drop)
        }
        Call::Range | Call::SerializableRange => {
            let serializable = matches!(call, Call::SerializableRange);
            let range = RangeRequest { key, serializable, ..Default::default() };
            kv.range(request(range, required)).await.map(drop)
        }
    }
}

fn put(key: bytes::Bytes) -> PutRequest {
    PutRequest { key, value: vec![b'v'; 256].into(), ..Default::default() }
}

/// Watch streams on all keys that [`send`] writes, each received by a task of its own.
pub(crate) struct Watchers(Vec<JoinHandle<Result<(), String>>>);

impl Watchers {
    /// Starts `count` streams, each of which has to deliver so many events.
    pub(crate) async fn start(channel: &Channel, count: usize, events: usize) -> Outcome<Watchers> {
        let mut tasks = Vec::new();
        for _ in 0..count {
            let watch = WatchCreateRequest { key: "key-".into(), range_end: "key.".into(), ..Default::default() };
            let create = WatchRequest { request_union: Some(watch_request::RequestUnion::CreateRequest(watch)) };
            // The request stream stays open: its end would cancel the watch.
            let requests = stream::once(async { create }).chain(stream::pending());
            let mut answers = WatchClient::new(channel.clone()).watch(requests).await?.into_inner();
            answers.message().await?.filter(|answer| answer.created).ok_or("the watch was not created")?;
            tasks.push(tokio::spawn(receive(answers, events)));
        }
        Ok(Watchers(tasks))
    }

    /// Waits until every stream has delivered its events.
    pub(crate) async fn finish(self) -> Outcome<()> {
        for task in self.0 {
            task.await??;
        }
        Ok(())
    }
}

async fn receive(mut answers: Streaming<WatchResponse>, events: usize) -> Result<(), String> {
    let mut received = 0;
    while received < events {
        let answer = answers.message().await.map_err(|status| status.to_string())?;
        received += answer.ok_or("the server closed a watch stream")?.events.len();
    }
    Ok(())
}

fn request<T>(message: T, required: bool) -> Request<T> {
    let mut request = Request::new(message);
    if required {
        request.metadata_mut().insert("require-feature", MetadataValue::from_static("AtomicIncrement"));
    }
    request
}
