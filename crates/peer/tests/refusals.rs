//! The peer port as others see it: status codes, texts and headers of etcd's, limits on every body, garbage.

use crate::support;

use std::time::Duration;

use bytes::BytesMut;
use membership::{ClusterId, MemberId};
use peer::{Control, ControlError, codec::encode_framed};
use prost::Message as _;
use proto::{etcdserverpb::LeaseTimeToLiveRequest, raftpb::MessageType};
use support::{CLUSTER, Node, message, start, start_with};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A time limit of calls that a loaded machine does not reach.
const TIMEOUT: Duration = Duration::from_secs(60);
const GOOD: &str = "X-Server-Version: 3.7.3\r\nX-Min-Cluster-Version: 3.0.0\r\nX-Etcd-Cluster-ID: c1\r\n";

/// Sends bytes and reads the answer to the end; empty if the connection was just closed.
async fn raw(node: &Node, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(node.address).await.expect("connect");
    // A refusal may come, and the connection end, before all was sent.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("an answer in time");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn request(node: &Node, method: &str, path: &str, headers: &str, body: &[u8]) -> String {
    let len = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {len}\r\n\r\n");
    raw(node, &[head.as_bytes(), body].concat()).await
}

/// Status and body.
fn parts(answer: &str) -> (u16, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    (head.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0), body)
}

#[tokio::test]
async fn paths_and_methods() {
    let node = start(1).await;
    let cases = [
        ("GET", "/", 404, "404 page not found\n"),
        ("GET", "/health", 404, "404 page not found\n"),
        ("GET", "/metrics", 404, "404 page not found\n"),
        ("GET", "/raft/x", 404, "404 page not found\n"),
        ("GET", "/raft", 405, "Method Not Allowed\n"),
        ("GET", "/raft/snapshot", 405, "Method Not Allowed\n"),
        ("POST", "/raft/stream/message/1", 405, "Method Not Allowed\n"),
        ("POST", "/members", 405, "Method Not Allowed\n"),
        ("POST", "/version", 405, "Method Not Allowed\n"),
        ("GET", "/members/promote/1", 405, "Method Not Allowed\n"),
        ("POST", "/members/promote/x", 404, "member x not found in cluster\n"),
        ("POST", "/members/promote/1", 500, r#"{"message":"Internal Server Error"}"#),
        ("POST", "/members/hashkv", 405, "Method Not Allowed\n"),
        ("GET", "/leases", 405, "Method Not Allowed\n"),
        ("POST", "/downgrade/enabled", 405, "Method Not Allowed\n"),
        ("GET", "/downgrade/enabled", 200, "true"),
        (
            "GET",
            "/version",
            200,
            r#"{"etcdserver":"3.8.0","etcdcluster":"not_decided","storage":"unknown","lockgate":"3.8.0"}"#,
        ),
    ];
    for (method, path, status, body) in cases {
        let answer = request(&node, method, path, "", b"").await;
        assert_eq!(parts(&answer), (status, body), "{method} {path}");
        assert!(answer.contains("x-lockgate-version: 3.8.0"), "{method} {path}");
        assert_eq!(answer.contains("\r\nallow: "), status == 405 && path != "/leases", "{method} {path}");
    }
    let answer = request(&node, "GET", "/members", "", b"").await;
    let expected = format!("[{{\"id\":1,\"peerURLs\":[\"{}\"]}}]\n", node.url);
    assert_eq!(parts(&answer), (200, expected.as_str()));
    assert!(answer.contains("x-etcd-cluster-id: c1\r\n") && answer.contains("content-type: application/json\r\n"));
    let probe = request(&node, "GET", "/raft/probing", "", b"").await;
    assert!(parts(&probe).1.starts_with("{\"OK\":true,\"Now\":\"20"), "{probe}");
}

#[tokio::test]
async fn streams_are_refused_as_etcd_does() {
    let node = start(1).await;
    node.transport.add_peer(MemberId(2), &["http://127.0.0.1:1"]).unwrap();
    node.member.told.lock().removed.insert(MemberId(9));
    let good = |extra: &str| format!("{GOOD}{extra}");
    let cases = [
        ("/raft/stream/message/2", String::new(), 412, "incompatible version\n"),
        ("/raft/stream/message/2", good("").replace("c1", "c2"), 412, "cluster ID mismatch\n"),
        ("/raft/stream/message/2", good("").replace("3.7.3", "2.9.9"), 412, "incompatible version\n"),
        ("/raft/stream/message/2", good("").replace("3.7.3", "new"), 412, "incompatible version\n"),
        ("/raft/stream/msgappv3/2", good(""), 404, "invalid path\n"),
        ("/raft/stream/message/2/3", good(""), 404, "invalid path\n"),
        ("/raft/stream/message/zz", good(""), 404, "invalid from\n"),
        ("/raft/stream/message/9", good(""), 410, "removed member\n"),
        ("/raft/stream/message/3", good("X-PeerURLs: nonsense,,\r\n"), 404, "error sender not found\n"),
        ("/raft/stream/msgapp/2", good(""), 412, "to field mismatch\n"),
        ("/raft/stream/msgapp/2", good("X-Raft-To: 7\r\n"), 412, "to field mismatch\n"),
    ];
    for (path, headers, status, body) in cases {
        let answer = request(&node, "GET", path, &headers, b"").await;
        assert_eq!(parts(&answer), (status, body), "{path} {headers}");
        assert!(answer.contains("x-etcd-cluster-id: c1\r\n") && answer.contains("x-server-version: 3.8.0\r\n"));
    }
}

#[tokio::test]
async fn posts_are_refused_as_etcd_does() {
    let mut node = start(1).await;
    node.member.told.lock().removed.insert(MemberId(9));
    let post = |kind, from, to| message(kind, from, to, 1).encode_to_vec();
    let heartbeat = MessageType::MsgHeartbeat;
    let cases = [
        (GOOD.to_string(), b"garbage".to_vec(), 400, "error unmarshalling raft message\n"),
        (GOOD.replace("c1", "c2"), post(heartbeat, 2, 1), 412, "cluster ID mismatch\n"),
        (String::new(), post(heartbeat, 2, 1), 412, "incompatible version\n"),
        (GOOD.to_string(), post(heartbeat, 9, 1), 403, r#"{"message":"cannot process message from removed member"}"#),
        (GOOD.to_string(), post(heartbeat, 2, 3), 403, r#"{"message":"cannot process message to mismatch member"}"#),
        (GOOD.to_string(), post(MessageType::MsgHup, 2, 1), 204, ""),
        (GOOD.to_string(), post(heartbeat, 2, 1), 204, ""),
    ];
    for (headers, body, status, text) in cases {
        let answer = request(&node, "POST", "/raft", &headers, &body).await;
        assert_eq!(parts(&answer), (status, text));
        assert!(answer.contains("x-etcd-cluster-id: c1\r\n"));
    }
    assert_eq!(node.next().await.from(), 2);
    assert!(node.messages.try_recv().is_err(), "one of them was good");
    node.member.told.lock().refuse = true;
    let answer = request(&node, "POST", "/raft", GOOD, &post(heartbeat, 2, 1)).await;
    assert_eq!(parts(&answer), (500, "error processing raft message\n"));
}

/// From cluster version 3.8 on a member must say that it is ours; what it is called or numbered does not matter.
#[tokio::test]
async fn others_are_refused_where_they_cannot_follow() {
    let node = start(1).await;
    node.transport.add_peer(MemberId(2), &["http://127.0.0.1:1"]).unwrap();
    let ours = format!("{GOOD}X-Lockgate-Version: 3.8.0\r\n");
    let post = message(MessageType::MsgHeartbeat, 2, 1, 1).encode_to_vec();
    for (alone, headers, allowed) in [(false, GOOD, true), (true, GOOD, false), (true, &*ours, true)] {
        node.member.told.lock().ours_alone = alone;
        let requests =
            [("POST", "/raft", &post[..]), ("POST", "/raft/snapshot", b""), ("GET", "/raft/stream/message/2", b"")];
        for (method, path, body) in requests {
            let answer = request(&node, method, path, headers, body).await;
            let (status, text) = parts(&answer);
            assert_eq!(status != 412 || text == "to field mismatch\n", allowed, "{method} {path}: {answer}");
            assert_eq!(text.contains("only lockgate members can follow"), !allowed, "{method} {path}: {answer}");
        }
    }
}

#[tokio::test]
async fn bodies_are_bounded() {
    let mut node = start_with(1, CLUSTER, |options| options.message_bytes_max = 100_000).await;
    let large = vec![0; 200_000];
    let answer = request(&node, "POST", "/raft", GOOD, &large).await;
    assert!([0, 413].contains(&parts(&answer).0), "{answer}");
    for path in ["/leases", "/leases/internal"] {
        let answer = request(&node, "POST", path, "", &large).await;
        assert!([0, 413].contains(&parts(&answer).0), "{answer}");
    }
    assert!([0, 413].contains(&parts(&request(&node, "GET", "/members/hashkv", "", &large).await).0));
    // Within the limit, but the head of a snapshot promises more than there may be.
    let promised = [&u64::MAX.to_be_bytes()[..], &[0; 100]].concat();
    let answer = request(&node, "POST", "/raft/snapshot", GOOD, &promised).await;
    assert_eq!(parts(&answer).0, 400, "{answer}");
    let mut cut = BytesMut::new();
    encode_framed(&message(MessageType::MsgSnap, 2, 1, 1), &mut cut);
    let answer = request(&node, "POST", "/raft/snapshot", GOOD, &cut[..10]).await;
    assert!(parts(&answer).1.starts_with("failed to decode raft message (the request ends before"), "{answer}");
    assert!(node.member.files().is_empty() && node.messages.try_recv().is_err());
    let next = request(&node, "GET", "/version", "", b"").await;
    assert_eq!(parts(&next).0, 200, "the port goes on");
}

#[tokio::test]
async fn silence_and_noise_end_a_connection() {
    let node = start_with(1, CLUSTER, |options| options.read_timeout = Duration::from_millis(200)).await;
    assert!(
        ["", "HTTP/1.1 400 Bad Request"].contains(&raw(&node, b"\x16\x03\x01\x02").await.lines().next().unwrap_or(""))
    );
    assert_eq!(parts(&raw(&node, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await).1, "");
    raw(&node, b"GET /version HT").await;
    let head = format!("POST /raft HTTP/1.1\r\nHost: x\r\n{GOOD}Content-Length: 10\r\n\r\n12");
    assert_eq!(parts(&raw(&node, head.as_bytes()).await), (400, "error reading raft message\n"));
    let mut head =
        format!("POST /raft/snapshot HTTP/1.1\r\nHost: x\r\n{GOOD}Content-Length: 5000\r\n\r\n").into_bytes();
    let mut framed = BytesMut::new();
    encode_framed(&message(MessageType::MsgSnap, 2, 1, 1), &mut framed);
    head.extend_from_slice(&framed);
    head.extend_from_slice(b"the first bytes of a database");
    let answer = raw(&node, &head).await;
    assert!(parts(&answer).1.starts_with("failed to save KV snapshot ("), "{answer}");
    assert!(node.member.files().is_empty());
}

/// A stream that sends garbage is given up, and dialled again.
#[tokio::test]
async fn garbage_on_a_stream_is_survived() {
    let liar = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", liar.local_addr().unwrap());
    let mut node = start(1).await;
    node.transport.add_peer(MemberId(2), &[url]).unwrap();
    for garbage in [&[7; 50][..], &[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], &[1; 3]] {
        let mut dials = 0;
        while dials < 4 {
            let (mut stream, _) = liar.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let len = stream.read(&mut head).await.unwrap();
            if !head[..len].starts_with(b"GET /raft/stream/") {
                continue;
            }
            dials += 1;
            let answer =
                format!("HTTP/1.1 200 OK\r\nX-Server-Version: 3.7.3\r\nContent-Length: {}\r\n\r\n", garbage.len());
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.write_all(garbage).await.unwrap();
        }
    }
    assert!(node.messages.try_recv().is_err());
    assert_eq!(node.member.told.lock().removed_from_cluster, 0);
}

#[tokio::test]
async fn control_requests_reach_the_member() {
    let node = start(7).await;
    let (control, url) = (Control::new("3.8.0", None, TIMEOUT), node.url.as_str());
    let cluster = control.fetch_members(&["http://127.0.0.1:1", url], TIMEOUT).await.unwrap();
    assert_eq!((cluster.id, cluster.members, cluster.lockgate), (CLUSTER, node.member.members.clone(), true));
    let versions = control.fetch_version(&[url], TIMEOUT).await.unwrap();
    assert_eq!((versions.cluster.as_str(), versions.lockgate.as_deref()), ("not_decided", Some("3.8.0")));
    assert!(control.downgrade_enabled(&[url], TIMEOUT).await.unwrap());
    assert!(matches!(
        control.fetch_version(&["http://127.0.0.1:1"], TIMEOUT).await,
        Err(ControlError::Unreachable { .. })
    ));
    assert!(control.fetch_version::<&str>(&[], TIMEOUT).await.is_err());
    assert!(control.fetch_version(&["ftp://a:1"], TIMEOUT).await.is_err());

    let promote = |id, token| control.promote(url, MemberId(id), token, TIMEOUT);
    assert_eq!(promote(1, Some("secret")).await.unwrap(), node.member.members);
    assert!(matches!(promote(1, None).await, Err(ControlError::Other(_))));
    assert!(matches!(promote(2, None).await, Err(ControlError::NotLearner)));
    assert!(matches!(promote(3, None).await, Err(ControlError::LearnerNotReady)));
    assert!(matches!(promote(4, None).await, Err(ControlError::MemberNotFound)));
    let features = promote(5, None).await;
    assert!(
        matches!(&features, Err(ControlError::LearnerFeatures(text)) if text == "member 5 says off for a cluster feature")
    );

    let hash = |cluster, revision| control.hash_kv(url, cluster, revision, TIMEOUT);
    assert_eq!(hash(CLUSTER, 5).await.unwrap().hash, 4_000_000_000);
    assert!(matches!(hash(CLUSTER, 1).await, Err(ControlError::Compacted)));
    assert!(matches!(hash(CLUSTER, 99).await, Err(ControlError::FutureRevision)));
    assert!(matches!(hash(ClusterId(5), 5).await, Err(ControlError::ClusterIdMismatch)));

    let renew = |id| control.renew_lease(url, id, TIMEOUT);
    assert_eq!(renew(1).await.unwrap(), 60);
    assert!(matches!(renew(2).await, Err(ControlError::LeaseTimeout)));
    assert!(matches!(renew(3).await, Err(ControlError::NotPrimary)));
    assert!(matches!(renew(4).await, Err(ControlError::LeaseNotFound)));
    let left = |id| control.lease_time_to_live(url, LeaseTimeToLiveRequest { id, keys: true }, TIMEOUT);
    assert_eq!(left(1).await.unwrap().granted_ttl, 9);
    assert!(matches!(left(2).await, Err(ControlError::LeaseNotFound)));
}
