//! Requests that are too large, too many or malformed are refused with the codes and texts that etcd's clients know.

use crate::common::{channel, place};

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use client::{Get, Put, Txn};
use futures_util::StreamExt;
use harness::{Member, asynchronous::until, wait_max};
use prost::Message;
use proto::etcdserverpb::{
    PutRequest, RangeRequest, SnapshotRequest, WatchCreateRequest, WatchRequest, kv_client::KvClient,
    maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request::RequestUnion,
};
use tonic::{Code, Request, Status, codec::CompressionEncoding, metadata::MetadataValue};

async fn put_of(member: &Member, bytes: usize) -> (usize, Result<(), Status>) {
    let request = PutRequest { key: "k".into(), value: vec![7; bytes].into(), ..Default::default() };
    let encoded = request.encoded_len();
    let mut kv = KvClient::new(channel(member).await);
    (encoded, kv.put(request).await.map(drop))
}

fn is(status: Status, code: Code, text: &str) {
    assert_eq!((status.code(), status.message()), (code, text));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sizes() {
    let place = place();
    let member = place.start(&["--max-request-bytes=100000", "--max-txn-ops=2"]);
    put_of(&member, 99_000).await.1.expect("put");
    let (_, refused) = put_of(&member, 101_000).await;
    is(refused.unwrap_err(), Code::InvalidArgument, "etcdserver: request is too large");
    let max = 100_000 + 512 * 1024;
    for bytes in [max, 5_000_000] {
        let (found, refused) = put_of(&member, bytes).await;
        let text = format!("grpc: received message larger than max ({found} vs. {max})");
        is(refused.unwrap_err(), Code::ResourceExhausted, &text);
    }

    let client = member.client().await;
    let op = |i: i32| Put::new(format!("t{i}"), "v").into();
    client.txn(Txn::new().and_then([op(1), op(2)])).await.expect("txn");
    let error = client.txn(Txn::new().and_then([op(1), op(2), op(3)])).await.unwrap_err();
    assert_eq!(error.kind(), Some(client::Kind::TooManyOps), "{error}");
    assert_eq!(client.get(Get::prefix("t").count_only()).await.expect("get").count, 2);
}

/// An oversized message ends its stream and does not disturb other calls on the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oversized_message_on_a_stream() {
    let place = place();
    let member = place.start(&["--max-request-bytes=1000"]);
    let create = WatchCreateRequest { key: vec![b'k'; 700_000].into(), ..Default::default() };
    let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let found = request.encoded_len();
    let channel = channel(&member).await;
    let answers = WatchClient::new(channel.clone()).watch(tokio_stream::iter([request])).await;
    let refused = match answers {
        Ok(mut answers) => answers.get_mut().message().await.unwrap_err(),
        Err(status) => status,
    };
    let text = format!("grpc: received message larger than max ({found} vs. {})", 1000 + 512 * 1024);
    is(refused, Code::ResourceExhausted, &text);
    KvClient::new(channel).range(RangeRequest { key: "k".into(), ..Default::default() }).await.expect("range");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata() {
    let place = place();
    let member = place.start(&[]);
    let text = "etcdserver: invalid client api version";
    let range = RangeRequest { key: "k".into(), ..Default::default() };
    let mut request = Request::new(range.clone());
    let bad = MetadataValue::try_from(&[0xff, 0xfe][..]).expect("bytes");
    request.metadata_mut().insert("client-api-version", bad.clone());
    let mut kv = KvClient::new(channel(&member).await);
    is(kv.range(request).await.unwrap_err(), Code::InvalidArgument, text);

    let mut request = Request::new(tokio_stream::pending());
    request.metadata_mut().insert("client-api-version", bad);
    let refused = match WatchClient::new(channel(&member).await).watch(request).await {
        Ok(mut answers) => answers.get_mut().message().await.unwrap_err(),
        Err(status) => status,
    };
    is(refused, Code::InvalidArgument, text);

    let mut request = Request::new(range);
    request.metadata_mut().insert("client-api-version", "3.7".parse().expect("value"));
    request.metadata_mut().insert("hasleader", "true".parse().expect("value"));
    kv.range(request).await.expect("there is a leader");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_requests_are_logged() {
    let place = place();
    let member = place.start(&["--warning-unary-request-duration=1ns"]);
    member.client().await.put(Put::new("k", "v")).await.expect("put");
    let is_logged = |line: &str| ["request stats", "KV/Put", r#""time spent":"#].iter().all(|part| line.contains(part));
    until("the put is logged", async || member.log().lines().any(is_logged)).await;
    drop(member);
    // Longer than a put takes on any machine.
    let member = place.start(&["--warning-unary-request-duration=1h"]);
    member.client().await.put(Put::new("k", "v")).await.expect("put");
    // A stopped member has written its whole log.
    let ended = member.stop();
    assert!(!ended.log.contains("request stats"), "{}", ended.log);
}

/// More clients than there are threads request a snapshot and do not read it. Neither other requests nor the end of the
/// member wait for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_that_nobody_reads() {
    let place = place();
    let member = place.start(&[]);
    let client = member.client().await;
    for i in 0..5 {
        client.put(Put::new(format!("k{i}"), vec![7u8; 300_000])).await.expect("put");
    }
    let mut silent = Vec::new();
    for _ in 0..6 {
        let channel = channel(&member).await;
        for _ in 0..100 {
            let mut maintenance = MaintenanceClient::new(channel.clone());
            silent.push(maintenance.snapshot(SnapshotRequest::default()).await.expect("snapshot").into_inner());
        }
    }
    client.defragment().await.expect("defragment");
    client.hash_kv(0).await.expect("hash");
    let ended = member.stop();
    assert_eq!(ended.by_signal(), Some(15), "{}", ended.log);
    drop(silent);
}

/// The way out of a full quota that etcd documents, with a crash in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota() {
    let place = place();
    let flags = ["--quota-backend-bytes=8388608"];
    let member = place.start(&flags);
    let client = member.client().await;
    let mut error = None;
    for _ in 0..200 {
        if let Err(e) = client.put(Put::new("key", vec![7u8; 200_000])).await {
            error = Some(e);
            break;
        }
    }
    assert_eq!(error.and_then(|e| e.kind()), Some(client::Kind::NoSpace));
    until("the alarm is raised", async || client.alarms().await.expect("alarms").alarms.len() == 1).await;
    member.kill();

    let member = place.start(&flags);
    let client = member.client().await;
    assert_eq!(client.alarms().await.expect("alarms").alarms.len(), 1, "an alarm outlives a crash");
    let small = || Put::new("a", "b");
    assert_eq!(client.put(small()).await.unwrap_err().kind(), Some(client::Kind::NoSpace));
    assert_eq!(client.lease_grant(10, 0).await.unwrap_err().kind(), Some(client::Kind::NoSpace));
    client.delete("nothing").await.expect("deletes are allowed");
    let revision = client.get("key").await.expect("get").header.expect("header").revision;
    client.compact(revision, true).await.expect("compact");
    client.defragment().await.expect("defragment");
    assert_eq!(client.put(small()).await.unwrap_err().kind(), Some(client::Kind::NoSpace), "until disarmed");
    assert_eq!(client.disarm_all().await.expect("disarm").len(), 1);
    client.put(small()).await.expect("put");
}

/// The parts of an HTTP/2 frame that matter here.
struct Frame {
    kind: u8,
    flags: u8,
    payload: Vec<u8>,
}

fn read_frame(stream: &mut TcpStream) -> Frame {
    let mut header = [0; 9];
    stream.read_exact(&mut header).expect("a frame");
    let [a, b, c, kind, flags, ..] = header;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).expect("a frame");
    Frame { kind, flags, payload }
}

/// Raw HTTP/2: the connection of a client that pings without a call ends with the third ping after its first, with the
/// reason.
#[test]
fn too_many_pings() {
    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0pingping";
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const SETTINGS_KIND: u8 = 4;
    const PING_KIND: u8 = 6;
    const GOAWAY_KIND: u8 = 7;
    const ACK: u8 = 1;
    let place = place();
    let member = place.start(&[]);
    let mut stream = TcpStream::connect(member.address()).expect("connect");
    stream.set_read_timeout(Some(wait_max())).expect("timeout");
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("preface");
    stream.write_all(SETTINGS).expect("settings");
    for _ in 0..3 {
        stream.write_all(PING).expect("ping");
    }
    // The server acknowledges these settings after it has handled the pings.
    stream.write_all(SETTINGS).expect("settings");
    let (mut pings, mut settings) = (0, 0);
    while settings < 2 {
        let frame = read_frame(&mut stream);
        assert_ne!(frame.kind, GOAWAY_KIND, "the connection stays open: {:?}", frame.payload);
        pings += usize::from(frame.kind == PING_KIND && frame.flags == ACK);
        settings += usize::from(frame.kind == SETTINGS_KIND && frame.flags == ACK);
    }
    assert_eq!(pings, 3);
    stream.write_all(PING).expect("ping");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("the connection is closed");
    let reason = b"\0\0\0\x0btoo_many_pings";
    assert!(rest.ends_with(reason), "{rest:?}");
}

/// Compressed requests are accepted on every kind of call, as in etcd. A request that is too large once it is
/// decompressed is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_requests() {
    let place = place();
    let member = place.start(&["--max-request-bytes=100000"]);
    let channel = channel(&member).await;
    let gzip = CompressionEncoding::Gzip;
    let mut kv = KvClient::new(channel.clone()).send_compressed(gzip);
    let put = |bytes| PutRequest { key: "k".into(), value: vec![7; bytes].into(), ..Default::default() };
    kv.put(put(50_000)).await.expect("put");
    let got = kv.range(RangeRequest { key: "k".into(), ..Default::default() }).await.expect("range");
    assert_eq!(got.get_ref().kvs[0].value, vec![7; 50_000]);
    let refused = kv.put(put(50_000_000)).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains(&(100_000 + 512 * 1024).to_string()), "names the limit: {refused}");

    let mut watch = WatchClient::new(channel).send_compressed(gzip);
    let create = WatchCreateRequest { key: "k".into(), start_revision: 2, ..Default::default() };
    let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
    let open = tokio_stream::iter([create]).chain(tokio_stream::pending());
    let mut answers = watch.watch(open).await.expect("watch").into_inner();
    assert!(answers.message().await.expect("created").expect("a message").created);
    assert_eq!(answers.message().await.expect("event").expect("a message").events.len(), 1);
}
