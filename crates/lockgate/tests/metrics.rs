//! Counts and durations of a member's work, as `/metrics` shows them.

use crate::common::{channel, place};

use client::{Delete, Get, Put, Txn, Watch};
use futures_util::StreamExt;
use harness::{Member, asynchronous::until};
use proto::etcdserverpb::{WatchCreateRequest, WatchRequest, watch_client::WatchClient, watch_request::RequestUnion};

fn scrape(member: &Member) -> String {
    member.request("GET", "/metrics", &[], "").body
}

fn value(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

/// Waits until `name` counts `count` more than in `before`: some counts are made after the client has its answer.
async fn wait_for_count(member: &Member, before: &str, name: &str, count: f64) {
    let prefix = format!("{name} ");
    let find = |text: &str| text.lines().find_map(|line| line.strip_prefix(&prefix)?.trim().parse::<f64>().ok());
    let begin = find(before).unwrap_or(0.0);
    let mut counted = 0.0;
    until(&format!("{name} has counted {count}"), async || {
        counted = find(&scrape(member)).unwrap_or(0.0) - begin;
        counted >= count
    })
    .await;
    assert_eq!(counted, count, "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn durations_are_observed() {
    let place = place();
    let member = place.start(&[]);
    let client = member.client().await;
    // The harness may have asked for the member's health, which is a range.
    let before = scrape(&member);
    for _ in 0..3 {
        client.put(Put::new("k", "v")).await.expect("put");
    }
    client.delete(Delete::key("k")).await.expect("delete");
    client.txn(Txn::new().and_then([Put::new("t", "v").into()])).await.expect("txn");
    client.txn(Txn::new().and_then([Get::key("t").into()])).await.expect("reading txn");
    client.get(Get::key("t")).await.expect("range");
    client.get(Get::key("t").revision(100)).await.expect_err("a future revision");
    client.lease_revoke(12345).await.expect_err("no such lease");
    client.compact(3, true).await.expect("compact");
    client.hash_kv(0).await.expect("hash of keys");
    client.hash().await.expect("hash");

    for (op, success, count) in [
        ("Put", true, 3.0),
        ("DeleteRange", true, 1.0),
        ("Txn", true, 1.0),
        ("Compaction", true, 1.0),
        ("LeaseRevoke", false, 1.0),
    ] {
        let labels = format!("{{op=\"{op}\",success=\"{success}\",version=\"v3\"}}");
        wait_for_count(&member, &before, &format!("etcd_server_apply_duration_seconds_count{labels}"), count).await;
        // A request is a success also if apply returns an error to the client.
        let labels = format!("{{success=\"true\",type=\"{op}\"}}");
        wait_for_count(&member, &before, &format!("etcd_server_request_duration_seconds_count{labels}"), count).await;
    }
    let read_only = "etcd_server_request_duration_seconds_count{success=\"true\",type=\"ReadonlyTxn\"}";
    wait_for_count(&member, &before, read_only, 1.0).await;
    for success in [true, false] {
        let labels = format!("{{success=\"{success}\",type=\"Range\"}}");
        wait_for_count(&member, &before, &format!("etcd_server_request_duration_seconds_count{labels}"), 1.0).await;
        let labels = format!("{{success=\"{success}\"}}");
        wait_for_count(&member, &before, &format!("etcd_server_range_duration_seconds_count{labels}"), 1.0).await;
    }
    for name in [
        "etcd_mvcc_hash_duration_seconds_count",
        "etcd_mvcc_hash_rev_duration_seconds_count",
        "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds_count",
    ] {
        wait_for_count(&member, &before, name, 1.0).await;
    }
    let text = scrape(&member);
    // Six entries at least, each with its record.
    assert!(value(&text, "etcd_disk_wal_write_bytes_total") > 6.0 * 30.0);
    assert!(value(&text, "etcd_disk_wal_write_duration_seconds_count") >= 6.0);
    assert!(value(&text, "etcd_disk_wal_fsync_duration_seconds_count") >= 6.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds_count") >= 1.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_last") > 1e9);
}

/// The time that a stream spends on sending is observed for events, for answers to requests, and for reports of progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watch_streams_are_timed_and_their_failures_counted() {
    let place = place();
    let member = place.start(&["--watch-progress-notify-interval=100ms", "--max-request-bytes=1000"]);
    let client = member.client().await;
    let before = scrape(&member);
    let mut watch = client.watch(Watch::key("k").progress_notify());
    let first = watch.next().await.expect("open").expect("an answer");
    assert!(first.events.is_empty(), "progress: {first:?}");
    client.put(Put::new("k", "v")).await.expect("put");
    while watch.next().await.expect("open").expect("an answer").events.is_empty() {}
    let loops = |text: &str, which: &str| {
        value(text, &format!("etcd_debugging_server_watch_send_loop_{which}_duration_seconds_count"))
    };
    let per_event = "etcd_debugging_server_watch_send_loop_watch_stream_duration_per_event_seconds_count";
    until("events and progress are observed", async || {
        let text = scrape(&member);
        [loops(&text, "watch_stream"), loops(&text, "progress"), value(&text, per_event)].iter().all(|n| *n >= 1.0)
    })
    .await;
    let answers = "etcd_debugging_server_watch_send_loop_control_stream_duration_seconds_count";
    wait_for_count(&member, &before, answers, 1.0).await;
    assert!(!scrape(&member).contains("etcd_network_server_stream_failures_total{"), "no stream has failed");
    break_a_stream(&member).await;
    let failures = "etcd_network_server_stream_failures_total{API=\"watch\",Type=\"receive\"}";
    wait_for_count(&member, &before, failures, 1.0).await;
}

/// Sends a message that is too large.
async fn break_a_stream(member: &Member) {
    let create = WatchCreateRequest { key: vec![b'k'; 700_000].into(), ..Default::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let answers = WatchClient::new(channel(member).await).watch(tokio_stream::iter([request])).await;
    match answers {
        Ok(mut answers) => answers.get_mut().message().await.expect_err("too large"),
        Err(status) => status,
    };
}
