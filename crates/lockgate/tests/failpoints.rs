//! Failpoints of the running server, driven as fault tools drive a real etcd built with gofail: over `GOFAIL_HTTP`.
//!
//! Needs `cargo test -p lockgate --features failpoints failpoints::`; says so and passes otherwise.

use crate::common;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use client::{Client, Get, Put};
use common::{BINARY, Member, Place, free_port, plain_http};

/// Points that a member with one voter comes by in what [`work`] does, each of which must end it when it panics.
const ON_THE_WAY: &[&str] = &[
    "afterCommit",
    "afterStartDBTxn",
    "beforeApplyOneEntryNormal",
    "beforeBucketPut",
    "beforeCommit",
    "beforeLookupWhenLeaseTimeToLive",
    "beforeStartDBTxn",
    "beforeSyncDataPages",
    "beforeSyncMetaPage",
    "compactAfterAcquiredBatchTxLock",
    "compactAfterCommitBatch",
    "compactAfterCommitScheduledCompact",
    "compactAfterSetFinishedCompact",
    "compactBeforeCommitBatch",
    "compactBeforeCommitScheduledCompact",
    "compactBeforeSetFinishedCompact",
    "defragBeforeCopy",
    "defragBeforeRename",
    "raftAfterSave",
    "raftBeforeAdvance",
    "raftBeforeLeaderSend",
    "raftBeforeSave",
    "walAfterSync",
    "walBeforeSync",
];

fn is_possible() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

/// A member and the address where its points are set.
fn start(place: &Place) -> (Member, u16) {
    let port = free_port();
    let mut command = Command::new(BINARY);
    command.env("GOFAIL_HTTP", format!("127.0.0.1:{port}"));
    // So that a compaction has more than one batch.
    command.arg("--compaction-batch-limit=5");
    let mut member = place.spawn_command(command);
    member.wait_ready().unwrap_or_else(|ended| panic!("{}", ended.log));
    (member, port)
}

fn set(port: u16, point: &str, terms: &str) {
    let answer = plain_http::send(port, "PUT", &format!("/{point}"), terms);
    assert_eq!(answer.0, 204, "{point}: {answer:?}");
}

/// A little of everything that writes.
async fn work(client: &Client, round: usize) -> Result<(), client::Error> {
    for i in 0..20 {
        client.put(Put::new(format!("work/{round}/{i}"), "v")).await?;
    }
    let lease = client.lease_grant(600, 0).await?.id;
    client.lease_time_to_live(lease, false).await?;
    let revision = client.get("work").await?.header.map_or(1, |header| header.revision);
    client.compact(revision - 1, true).await?;
    client.defragment().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn points_are_listed_slowed_counted_and_taken_back() {
    if !is_possible() {
        return;
    }
    let place = Place::new();
    let (member, port) = start(&place);
    let (code, list) = plain_http::send(port, "GET", "/", "");
    let placed = failpoint::NAMES.iter().filter(|(_, place)| *place == failpoint::Place::Here);
    assert_eq!(code, 200);
    for (name, _) in placed {
        assert!(list.lines().any(|line| line.split('=').next() == Some(*name)), "{name} is not in:\n{list}");
    }
    let client = member.client().await;
    set(port, "raftBeforeSave", "sleep(400)");
    let begin = Instant::now();
    client.put(Put::new("k", "slow")).await.expect("put");
    assert!(begin.elapsed() >= Duration::from_millis(400), "{:?}", begin.elapsed());
    assert_eq!(plain_http::send(port, "GET", "/raftBeforeSave", "").1.trim(), "sleep(400)");
    let count: u64 = plain_http::send(port, "GET", "/raftBeforeSave/count", "").1.trim().parse().expect("a count");
    assert!(count >= 1);
    assert_eq!(plain_http::send(port, "DELETE", "/raftBeforeSave", "").0, 204);
    // What sleeps already sleeps on, and a busy machine may be slow for a moment.
    let mut took = Vec::new();
    while took.iter().all(|took| *took >= Duration::from_millis(400)) {
        assert!(took.len() < 10, "{took:?}");
        let begin = Instant::now();
        client.put(Put::new("k", "fast")).await.expect("put");
        took.push(begin.elapsed());
    }
}

/// The member ends as a Go program that panics, and comes back with all that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_at_any_point_on_the_way_loses_nothing() {
    if !is_possible() {
        return;
    }
    let place = Place::new();
    place.start(&[]).stop();
    for (round, point) in ON_THE_WAY.iter().enumerate() {
        let (mut member, port) = start(&place);
        let client = member.client().await;
        client.put(Put::new(format!("kept/{round}"), *point)).await.expect("put");
        set(port, point, "panic(\"on purpose\")");
        let begin = Instant::now();
        while !member.has_ended() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{point} is never come by");
            let _ = tokio::time::timeout(Duration::from_secs(2), work(&client, round)).await;
        }
        let ended = member.wait_end();
        assert_eq!(ended.status.code(), Some(2), "{point}: {}", ended.log);
        assert!(ended.log.contains("on purpose"), "{point}: {}", ended.log);
    }
    let member = place.start(&[]);
    let kept = member.client().await.get(Get::prefix("kept/")).await.expect("get");
    assert_eq!(kept.kvs.len(), ON_THE_WAY.len());
}
