//! What a member counts of what it did, as `/metrics` shows it.

mod common;

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use client::{Delete, Get, Put, Txn};
use common::{Member, Place};

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
    assert_eq!(value(&text, "etcd_mvcc_hash_duration_seconds_count"), 1.0);
    assert_eq!(value(&text, "etcd_mvcc_hash_rev_duration_seconds_count"), 1.0);
    assert_eq!(value(&text, "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds_count"), 1.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds_count") >= 1.0);
    assert!(value(&text, "etcd_debugging_mvcc_db_compaction_last") > 1e9);
}
