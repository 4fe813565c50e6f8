//! Two transports on loopback: every way a message can take, and what is refused on the way.

use crate::support;

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use membership::{ClusterId, MemberId};
use peer::Database;
use proto::raftpb::{Entry, Message, MessageType, Snapshot, SnapshotMetadata};
use support::{CLUSTER, Node, message, pair, start, start_with, until};

fn append(from: u64, to: u64, index: u64, data: &[u8]) -> Message {
    let entry =
        Entry { r#type: Some(0), term: Some(1), index: Some(index + 1), data: Some(Bytes::copy_from_slice(data)) };
    Message {
        log_term: Some(1),
        commit: Some(index),
        entries: vec![entry],
        ..message(MessageType::MsgApp, from, to, index)
    }
}

fn snapshot(from: u64, to: u64, index: u64) -> Message {
    let metadata = SnapshotMetadata { index: Some(index), term: Some(1), ..Default::default() };
    let snapshot = Some(Snapshot { data: None, metadata: Some(metadata) });
    Message { snapshot, ..message(MessageType::MsgSnap, from, to, 0) }
}

fn database(bytes: Vec<u8>) -> Database {
    Database { len: bytes.len() as u64, reader: Box::new(std::io::Cursor::new(bytes)) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_both_ways_in_order() {
    let (mut a, mut b) = pair().await;
    let sent: Vec<_> = (0..5000).map(|i| append(1, 2, i, &i.to_be_bytes())).collect();
    // A window is smaller than the queue of the stream, which drops messages when it is full.
    for window in sent.chunks(2000) {
        window.chunks(50).for_each(|batch| a.transport.send(batch.to_vec()));
        for expected in window {
            assert_eq!(b.next().await, *expected);
        }
    }
    let answer = message(MessageType::MsgHeartbeatResp, 2, 1, 0);
    b.transport.send(vec![answer.clone(), message(MessageType::MsgProp, 2, 1, 7)]);
    let mut kinds = vec![a.next().await.r#type(), a.next().await.r#type()];
    kinds.sort();
    assert_eq!(kinds, [MessageType::MsgProp, MessageType::MsgHeartbeatResp]);
    assert!(a.transport.active_since(b.id).is_some());
    assert_eq!((a.transport.active_peers(), a.member.told.lock().unreachable.len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_message_arrives_whole() {
    let (a, mut b) = pair().await;
    let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
    let sent = append(1, 2, 1, &data);
    a.transport.send(vec![sent.clone(), append(1, 2, 2, b"next")]);
    assert_eq!(b.next().await, sent);
    assert_eq!(b.next().await, append(1, 2, 2, b"next"));
}

#[tokio::test]
async fn without_streams_messages_are_posted() {
    // `b` does not know `a`, so its streams are refused; `a` introduces itself by its posts.
    let (mut a, mut b) = (start(1).await, start(2).await);
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    for i in 0..20 {
        a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, i)]);
        assert_eq!(b.next().await.index(), i);
    }
    b.transport.send(vec![message(MessageType::MsgHeartbeatResp, 2, 1, 9)]);
    assert_eq!(a.next().await.index(), 9, "`b` answers where `a` said it is");
    assert_eq!(a.transport.streams_up(b.id), (false, false));
}

#[tokio::test]
async fn the_second_url_is_used_when_the_first_is_dead() {
    let (a, mut b) = (start(1).await, start(2).await);
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    a.transport.add_peer(b.id, &[&dead, &b.url]).unwrap();
    b.transport.add_peer(a.id, &[&dead, &a.url]).unwrap();
    until("the stream is up", || b.transport.streams_up(a.id).1 && a.transport.streams_up(b.id).1).await;
    a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, 3)]);
    assert_eq!(b.next().await.index(), 3);
}

#[tokio::test]
async fn a_dead_peer_is_reported() {
    let (a, b) = pair().await;
    drop(b);
    until("the loss is noticed", || a.transport.active_since(MemberId(2)).is_none()).await;
    a.member.told.lock().unreachable.clear();
    a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, 1)]);
    until("it is reported", || a.member.told.lock().unreachable.contains(&MemberId(2))).await;
    for i in 0..200 {
        a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, i)]);
    }
    assert!(a.member.told.lock().unreachable.len() > 50, "what finds no room is reported at once");
}

#[tokio::test]
async fn streams_come_back() {
    let (a, mut b) = pair().await;
    b.transport.remove_peer(a.id);
    until("the streams are gone", || a.transport.streams_up(b.id) == (false, false)).await;
    b.transport.add_peer(a.id, &[&a.url]).unwrap();
    until("they are back", || a.transport.streams_up(b.id) == (true, true)).await;
    a.transport.send(vec![append(1, 2, 4, b"x")]);
    assert_eq!(b.next().await, append(1, 2, 4, b"x"));
}

#[tokio::test]
async fn messages_to_others_and_local_ones_are_dropped() {
    let (a, mut b) = pair().await;
    let mut to_another = message(MessageType::MsgHeartbeat, 1, 2, 1);
    b.transport.send(vec![message(MessageType::MsgHeartbeat, 2, 0, 1)]);
    a.transport.send(vec![message(MessageType::MsgHup, 1, 2, 1), message(MessageType::MsgHeartbeat, 1, 2, 2)]);
    assert_eq!(b.next().await.index(), 2);
    to_another.to = Some(77);
    a.transport.send(vec![to_another]);
    b.member.told.lock().removed.insert(MemberId(9));
    a.transport.send(vec![message(MessageType::MsgHeartbeat, 9, 2, 3), message(MessageType::MsgHeartbeat, 1, 2, 4)]);
    assert_eq!(b.next().await.index(), 4);
}

async fn sent_snapshot(a: &Node, message: Message, database: Database) -> bool {
    a.member.told.lock().snapshots.clear();
    a.transport.send_snapshot(message, database);
    until("the snapshot's fate is known", || !a.member.told.lock().snapshots.is_empty()).await;
    a.member.told.lock().snapshots[0].1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_arrives_before_its_message() {
    let (a, mut b) = pair().await;
    let db: Vec<u8> = (0..5_000_000_u32).map(|i| (i / 3) as u8).collect();
    assert!(sent_snapshot(&a, snapshot(1, 2, 0x1234), database(db.clone())).await);
    assert_eq!(b.next().await, snapshot(1, 2, 0x1234));
    assert_eq!(b.member.files(), ["0000000000001234.snap.db"]);
    assert!(std::fs::read(b.member.dir.path().join("0000000000001234.snap.db")).unwrap() == db);
    assert!(sent_snapshot(&a, snapshot(1, 2, 0x1234), database(vec![])).await, "the same index again");
    assert_eq!(b.member.files(), ["0000000000001234.snap.db"]);
}

struct Broken(usize);

impl Read for Broken {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return Err(std::io::Error::other("broken"));
        }
        let len = buf.len().min(self.0);
        self.0 -= len;
        Ok(len)
    }
}

#[tokio::test]
async fn a_broken_snapshot_leaves_nothing() {
    let (a, mut b) = pair().await;
    let broken = Database { len: 3_000_000, reader: Box::new(Broken(1_000_000)) };
    assert!(!sent_snapshot(&a, snapshot(1, 2, 5), broken).await);
    until("the file is gone", || b.member.files().is_empty()).await;
    assert!(!sent_snapshot(&a, snapshot(1, 3, 5), database(vec![1])).await, "nobody there");
    let mut wrong = message(MessageType::MsgApp, 1, 2, 5);
    assert!(!sent_snapshot(&a, wrong.clone(), database(vec![1])).await, "not a snapshot");
    wrong.r#type = Some(MessageType::MsgHeartbeat as i32);
    a.transport.send(vec![wrong]);
    assert_eq!(b.next().await.index(), 5, "raft heard of none of them");
    b.member.told.lock().refuse = true;
    assert!(!sent_snapshot(&a, snapshot(1, 2, 6), database(vec![1])).await, "raft refuses");
}

/// Says that it has been read, and has no end.
struct Endless(Arc<AtomicBool>);

impl Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.0.store(true, Ordering::Relaxed);
        Ok(buf.len())
    }
}

/// A member that is removed takes its transfer with it. Raft must hear of that, because it keeps its log in memory
/// while a transfer is under way.
#[tokio::test]
async fn a_snapshot_to_a_removed_member_is_reported() {
    let a = start(1).await;
    // The receiver accepts the connection, but never reads from it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let is_reported = || a.member.told.lock().snapshots == [(MemberId(2), false)];
    for wait_until_read in [false, true] {
        a.transport.add_peer(MemberId(2), &[&url]).unwrap();
        let read = Arc::new(AtomicBool::new(false));
        let database = Database { len: 1 << 40, reader: Box::new(Endless(read.clone())) };
        a.transport.send_snapshot(snapshot(1, 2, 5), database);
        if wait_until_read {
            until("the database is read", || read.load(Ordering::Relaxed)).await;
        }
        assert!(a.member.told.lock().snapshots.is_empty(), "the transfer is under way");
        a.transport.remove_peer(MemberId(2));
        until("the end of the transfer is reported", is_reported).await;
        a.member.told.lock().snapshots.clear();
    }
}

#[tokio::test]
async fn an_oversize_snapshot_is_refused() {
    let a = start(1).await;
    let b = start_with(2, CLUSTER, |options| {
        options.database_bytes_max = 1000;
        options.snapshot_message_bytes_max = 100;
    })
    .await;
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    assert!(sent_snapshot(&a, snapshot(1, 2, 5), database(vec![0; 1000])).await);
    assert!(!sent_snapshot(&a, snapshot(1, 2, 6), database(vec![0; 1001])).await);
    let mut large = snapshot(1, 2, 7);
    large.snapshot.as_mut().unwrap().data = Some(vec![0; 200].into());
    assert!(!sent_snapshot(&a, large, database(vec![0; 10])).await);
    assert_eq!(b.member.files(), ["0000000000000005.snap.db"]);
}

#[tokio::test]
async fn another_cluster_is_kept_out() {
    let a = start(1).await;
    let mut b = start_with(2, ClusterId(0xbad), |_| {}).await;
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    b.transport.add_peer(a.id, &[&a.url]).unwrap();
    a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, 1)]);
    until("the post fails", || a.member.told.lock().unreachable.contains(&MemberId(2))).await;
    assert!(!sent_snapshot(&a, snapshot(1, 2, 6), database(vec![1])).await);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(a.transport.streams_up(b.id), (false, false));
    assert!(b.messages.try_recv().is_err() && b.member.files().is_empty());
    assert_eq!(a.member.told.lock().removed_from_cluster, 0);
}

#[tokio::test]
async fn an_incompatible_version_is_kept_out() {
    let mut a = start(1).await;
    let b = start_with(2, CLUSTER, |options| options.identity.min_cluster_version = "3.9.0".into()).await;
    b.transport.add_peer(a.id, &[&a.url]).unwrap();
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    b.transport.send(vec![message(MessageType::MsgHeartbeat, 2, 1, 1)]);
    until("the post fails", || b.member.told.lock().unreachable.contains(&MemberId(1))).await;
    assert!(a.messages.try_recv().is_err());
}

#[tokio::test]
async fn a_removed_member_is_told() {
    let (a, b) = (start(1).await, start(2).await);
    b.member.told.lock().removed.insert(a.id);
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    until("the stream's refusal says it", || a.member.told.lock().removed_from_cluster >= 2).await;
    let (a, b) = pair().await;
    b.member.told.lock().removed.insert(a.id);
    assert!(!sent_snapshot(&a, snapshot(1, 2, 6), database(vec![1])).await);
    until("the post's refusal says it", || a.member.told.lock().removed_from_cluster >= 1).await;
    assert!(b.member.files().is_empty());
}

#[tokio::test]
async fn stop_ends_everything() {
    let (a, b) = pair().await;
    a.transport.stop();
    until("`b` notices", || b.transport.streams_up(a.id) == (false, false)).await;
    a.transport.add_peer(b.id, &[&b.url]).unwrap();
    a.transport.send(vec![message(MessageType::MsgHeartbeat, 1, 2, 1)]);
    assert_eq!(a.transport.active_peers(), 0);
    until("the port is closed", || std::net::TcpStream::connect(a.address).is_err()).await;
}
