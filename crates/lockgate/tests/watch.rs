//! Abuse of watch streams: the member's memory stays bounded, and other clients are not affected.

use crate::common::{channel, place};

use bytes::Bytes;
use client::Put;
use futures_util::{StreamExt, stream::FuturesUnordered};
use harness::{Member, asynchronous::until};
use proto::etcdserverpb::{
    WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchResponse, watch_client::WatchClient,
    watch_request::RequestUnion,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

async fn stream(member: &Member) -> (mpsc::Sender<WatchRequest>, Streaming<WatchResponse>) {
    let (requests, receiver) = mpsc::channel(16);
    let mut client = WatchClient::new(channel(member).await).max_decoding_message_size(64 << 20);
    let answers = client.watch(ReceiverStream::new(receiver)).await.expect("watch");
    (requests, answers.into_inner())
}

fn create(key: &str, range_end: &str) -> WatchRequest {
    let (key, range_end) = (Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(range_end.as_bytes()));
    let create = WatchCreateRequest { key, range_end, ..Default::default() };
    WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }
}

fn cancel(watch_id: i64) -> WatchRequest {
    WatchRequest { request_union: Some(RequestUnion::CancelRequest(WatchCancelRequest { watch_id })) }
}

/// A client watches everything and reads nothing while 96 MB of events happen. Then it reads, and misses no event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_does_not_read() {
    const PUTS: usize = 6000;
    const VALUE: usize = 16 * 1024;
    let place = place();
    let member = place.start(&[]);
    let (requests, mut silent) = stream(&member).await;
    requests.send(create("k", "l")).await.expect("send");
    assert!(silent.message().await.expect("answer").expect("created").created);

    let client = member.client().await;
    let before = member.process().resident_bytes();
    let mut peak = 0;
    let mut under_way = FuturesUnordered::new();
    for i in 0..PUTS {
        under_way.push(client.put(Put::new(format!("k{:02}", i % 50), vec![i as u8; VALUE])));
        if under_way.len() >= 32 {
            under_way.next().await.expect("put").expect("put");
        }
        if i % 100 == 0 {
            peak = peak.max(member.process().resident_bytes());
        }
    }
    while let Some(done) = under_way.next().await {
        done.expect("put");
    }
    let grown = peak.saturating_sub(before) >> 20;
    assert!(grown < 80, "memory grew by {grown} MB for a client that does not read");

    let (mut events, mut revision) = (0, 0);
    while events < PUTS {
        let response = silent.message().await.expect("answer").expect("events");
        assert!(!response.canceled, "{response:?}");
        for event in &response.events {
            let at = event.kv.as_ref().expect("kv").mod_revision;
            assert!(at > revision, "revision {at} after {revision}");
            revision = at;
        }
        events += response.events.len();
    }
    assert_eq!(events, PUTS);
}

/// Ten thousand watchers on one stream all see a change. Other clients do not wait for the storm of cancellations at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_watchers_on_one_stream() {
    const WATCHERS: usize = 10_000;
    let place = place();
    let member = place.start(&[]);
    let (requests, mut answers) = stream(&member).await;
    let sender = requests.clone();
    let creating = tokio::spawn(async move {
        for _ in 0..WATCHERS {
            sender.send(create("key", "")).await.expect("send");
        }
    });
    let mut ids = Vec::new();
    while ids.len() < WATCHERS {
        let response = answers.message().await.expect("answer").expect("created");
        assert!(response.created && !response.canceled);
        ids.push(response.watch_id);
    }
    creating.await.expect("create");
    let client = member.client().await;
    client.put(Put::new("key", "value")).await.expect("put");
    for _ in 0..WATCHERS {
        let response = answers.message().await.expect("answer").expect("event");
        assert_eq!(response.events.len(), 1);
    }
    // Nobody reads while the cancellations are sent, so the unread answers stop the stream.
    let storm = tokio::spawn(async move {
        for id in ids {
            requests.send(cancel(id)).await.expect("send");
        }
        requests
    });
    client.put(Put::new("other", "value")).await.expect("put");
    let mut cancelled = 0;
    while cancelled < WATCHERS {
        let response = answers.message().await.expect("answer").expect("cancelled");
        cancelled += usize::from(response.canceled);
    }
    drop(storm.await.expect("storm"));
}

/// Streams that come and go leave nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn abandoned_streams() {
    let place = place();
    let member = place.start(&[]);
    for _ in 0..50 {
        let (requests, mut answers) = stream(&member).await;
        for _ in 0..20 {
            requests.send(create("a", "z")).await.expect("send");
        }
        answers.message().await.expect("answer").expect("created");
    }
    let client = member.client().await;
    client.put(Put::new("key", "value")).await.expect("put");
    until("no watchers are left", async || watchers(&member) == 0).await;
}

fn watchers(member: &Member) -> u64 {
    let page = member.request("GET", "/metrics", &[], "").body;
    let line = page.lines().find(|line| line.starts_with("etcd_debugging_mvcc_watcher_total ")).expect("metric");
    line.rsplit(' ').next().expect("value").parse().expect("number")
}
