//! A member that is asked to stop ends its calls in flight first.

use crate::common::start_group;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use client::{Client, Get, Put};
use harness::{Group, asynchronous::until};
use tokio::sync::watch;

const WRITERS: usize = 100;

/// Writes until there is an error or the member has stopped. Returns the key whose write was not answered.
async fn write(
    client: Client,
    writer: usize,
    answered: Arc<AtomicUsize>,
    mut stopped: watch::Receiver<bool>,
) -> String {
    for n in 0.. {
        let key = format!("{writer}/{n}");
        tokio::select! {
            put = client.put(Put::new(key.clone(), "")) => if put.is_err() { return key },
            _ = stopped.changed() => return key,
        }
        answered.fetch_add(1, Relaxed);
    }
    unreachable!("the member is stopped before")
}

async fn follower(group: &Group) -> usize {
    let status = group.member(0).client().await.status().await.expect("a status");
    usize::from(status.header.expect("a header").member_id == status.leader)
}

/// A follower needs the leader until its writes have ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_that_a_stopping_member_did_not_answer_was_not_committed() {
    let mut group = start_group(3, &[]);
    let at = follower(&group).await;
    let client = group.member(at).client().await;
    let (answered, (stop, stopped)) = (Arc::new(AtomicUsize::new(0)), watch::channel(false));
    let spawn = |writer| tokio::spawn(write(client.clone(), writer, answered.clone(), stopped.clone()));
    let writers: Vec<_> = (0..WRITERS).map(spawn).collect();
    until("writes are in flight", async || answered.load(Relaxed) > 10 * WRITERS).await;
    group.stop(at);
    stop.send(true).expect("the writers listen");
    let other = group.member((at + 1) % 3).client().await;
    let mut committed = Vec::new();
    for writer in writers {
        let key = writer.await.expect("a writer");
        if !other.get(Get::key(key.clone())).await.expect("get").kvs.is_empty() {
            committed.push(key);
        }
    }
    assert!(committed.is_empty(), "{} writes without an answer are committed: {committed:?}", committed.len());
}
