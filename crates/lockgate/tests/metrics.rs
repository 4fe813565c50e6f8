//! What a member counts of what it did, as `/metrics` shows it.

use crate::common;

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use client::{Delete, Get, Put, Txn, Watch};
use common::{Member, Place};
use futures_util::StreamExt;
use proto::etcdserverpb::{WatchCreateRequest, WatchRequest, watch_client::WatchClient, watch_request::RequestUnion};
use tonic::transport::Channel;

fn scrape(member: &Member) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", member.port)).expect("connect");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("ask");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answer");
    text
}

fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durations_are_fed() {
    let place = Place::new();
    let member = place.start(&[]);
    let client = member.client().await;
    for _ in 0..3 {
        client.put(Put::new("k", "v")).await.expect("put");
    }
    client.delete(Delete::key("k")).await.expect("delete");
    client.txn(Txn::new().and_then([Put::new("t", "v").into()])).await.expect("txn");
    client.txn(Txn::new().and_then([Get::key("t").into()])).await.expect("reading txn");
    client.get(Get::key("t")).await.expect("range");
    client.get(Get::key("t").revision(100)).await.expect_err("a revision to come");
    client.lease_revoke(12345).await.expect_err("no such lease");
    client.compact(3, true).await.expect("compact");
    client.hash_kv(0).await.expect("hash of keys");
    client.hash().await.expect("hash");

    let text = scrape(&member);
    for (op, success, count) in [
        ("Put", true, 3.0),
        ("DeleteRange", true, 1.0),
        ("Txn", true, 1.0),
        ("Compaction", true, 1.0),
        ("LeaseRevoke", false, 1.0),
    ] {
        let labels = format!("{{op=\"{op}\",success=\"{success}\",version=\"v3\"}}");
        assert_eq!(value(&text, &format!("etcd_server_apply_duration_seconds_count{labels}")), count, "{op}");
        // An error that apply answers is an answer.
        let labels = format!("{{success=\"true\",type=\"{op}\"}}");
        assert_eq!(value(&text, &format!("etcd_server_request_duration_seconds_count{labels}")), count, "{op}");
    }
    let read_only = "etcd_server_request_duration_seconds_count{success=\"true\",type=\"ReadonlyTxn\"}";
    assert_eq!(value(&text, read_only), 1.0);
    for success in [true, false] {
        let labels = format!("{{success=\"{success}\",type=\"Range\"}}");
        assert_eq!(value(&text, &format!("etcd_server_request_duration_seconds_count{labels}")), 1.0);
        let labels = format!("{{success=\"{success}\"}}");
        assert_eq!(value(&text, &format!("etcd_server_range_duration_seconds_count{labels}")), 1.0);
    }
    // Six entries at least, each with its record.
    assert!(value(&text, "etcd_disk_wal_write_bytes_total") > 6.0 * 30.0);
    assert!(value(&text, "etcd_disk_wal_write_duration_seconds_count") >= 6.0);
    assert!(value(&text, "etcd_disk_wal_fsync_duration_seconds_count") >= 6.0);
    assert_eq!(value(&text, "etcd_mvcc_hash_duration_seconds_count"), 1.0);
    assert_eq!(value(&text, "etcd_mvcc_hash_rev_duration_seconds_count"), 1.0);
    assert_eq!(value(&text, "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds_count"), 1.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds_count") >= 1.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_last") > 1e9);
}

/// How long a stream sends is told for events, for answers to requests, and for reports of progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_streams_are_timed_and_their_failures_counted() {
    let place = Place::new();
    let member = place.start(&["--watch-progress-notify-interval=100ms", "--max-request-bytes=1000"]);
    let client = member.client().await;
    let mut watch = client.watch(Watch::key("k").progress_notify());
    let first = watch.next().await.expect("open").expect("an answer");
    assert!(first.events.is_empty(), "progress: {first:?}");
    client.put(Put::new("k", "v")).await.expect("put");
    while watch.next().await.expect("open").expect("an answer").events.is_empty() {}
    let loops = |text: &str, which: &str| {
        value(text, &format!("etcd_debugging_server_watch_send_loop_{which}_duration_seconds_count"))
    };
    let text = scrape(&member);
    assert!(loops(&text, "watch_stream") >= 1.0 && loops(&text, "progress") >= 1.0);
    assert_eq!(loops(&text, "control_stream"), 1.0);
    let per_event = "etcd_debugging_server_watch_send_loop_watch_stream_duration_per_event_seconds_count";
    assert!(value(&text, per_event) >= 1.0);
    assert!(!text.contains("etcd_network_server_stream_failures_total{"), "all is well");
    break_a_stream(&member).await;
    let failures = "etcd_network_server_stream_failures_total{API=\"watch\",Type=\"receive\"}";
    assert_eq!(value(&scrape(&member), failures), 1.0);
}

/// Sends more than a message may hold.
async fn break_a_stream(member: &Member) {
    let create = WatchCreateRequest { key: vec![b'k'; 700_000].into(), ..Default::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let channel = Channel::from_shared(member.url()).expect("url").connect().await.expect("connect");
    let answers = WatchClient::new(channel).watch(tokio_stream::iter([request])).await;
    match answers {
        Ok(mut answers) => answers.get_mut().message().await.expect_err("too large"),
        Err(status) => status,
    };
}
