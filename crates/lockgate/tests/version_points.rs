//! Members ended at every point on the way down from 3.8 to 3.7, and on the way up: the dir starts again on the version it
//! should, nothing is lost, and a real etcd takes it.
//!
//! Needs `cargo test -p lockgate --features failpoints version_points::`; says so and passes otherwise.

use crate::common;

use std::time::{Duration, Instant};

use client::{Client, Get, Increment, Put};
use common::{Place, etcd, group::Group, wait_for_feature, wait_for_version};
use failpoint::{NAMES, Place as Point};
use proto::etcdserverpb::downgrade_request::DowngradeAction;

const KEYS: usize = 300;
const WAIT_MAX: Duration = Duration::from_secs(30);
const ON: &str = "--cluster-feature-gates=AtomicIncrement=true,PersistedLeaseCheckpoints=true";

fn enabled() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

/// Every point of the way down, on every member, while the other two go on.
#[tokio::test]
async fn ended_on_the_way_down() {
    if !enabled() {
        return;
    }
    let points: Vec<_> =
        NAMES.iter().filter(|(name, place)| *place == Point::Here && name.starts_with("lower")).collect();
    assert!(points.len() >= 4, "{points:?}");
    for (at, (point, _)) in points.iter().enumerate() {
        // The leader too: members take turns, and the first is not always it.
        down(point, at % 3).await;
        down(point, (at + 1) % 3).await;
    }
}

async fn down(point: &'static str, victim: usize) {
    let mut group = Group::start(3, &[ON]);
    let other = (victim + 1) % 3;
    let client = group.member(other).client().await;
    wait_for_version(&client, "3.8.0").await;
    wait_for_feature(&client, "AtomicIncrement", true).await;
    fill(&client).await;
    group.stop(victim);
    group.start_again(victim, &format!("{point}=panic"));
    client.downgrade(DowngradeAction::Enable, "3.7").await.expect("downgrade");
    let ended = group.wait_end(victim);
    assert!(ended.log.contains("failpoint panic"), "{point}: {}", ended.log);
    // What is written meanwhile is not lost either.
    client.put(Put::new("meanwhile", point)).await.expect("put");
    group.start_again(victim, "");
    for member in 0..3 {
        wait_for_storage_version(&group.member(member).client().await, "3.7.0").await;
    }
    let expected = contents(&client).await;
    assert_eq!(expected.len(), KEYS + 2, "{point}");
    for member in 0..3 {
        assert_eq!(contents(&group.member(member).client().await).await, expected, "{point}");
    }
    println!("{point} on m{victim}: well");
    let Some(etcd) = etcd::peer() else { return };
    group.stop(victim);
    group.start_as(victim, &etcd, "");
    assert_eq!(contents(&group.member(victim).client().await).await, expected, "{point}, etcd");
}

/// A member of 3.7 data that goes up, ended at every write of its log and every commit of its database.
#[tokio::test]
async fn ended_on_the_way_up() {
    if !enabled() {
        return;
    }
    for point in ["raftBeforeSave", "raftAfterSave", "beforeCommit", "afterCommit"] {
        let mut ends = 0;
        for passes in 0.. {
            if !up(point, passes).await {
                break;
            }
            ends += 1;
        }
        assert!(ends >= 2, "{point} is passed only {ends} times on the way up");
        println!("{point}: ended {ends} times");
    }
}

/// False if the way ended before the point was passed so often.
async fn up(point: &str, passes: usize) -> bool {
    let place = Place::new();
    let member = place.start(&["--initial-cluster-version=3.7"]);
    let client = member.client().await;
    // No later than this member's own decision to go up, which takes seconds.
    fill_plain(&client).await;
    let expected = contents(&client).await;
    drop(client);
    member.stop();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_lockgate"));
    command.env("GOFAIL_FAILPOINTS", format!("{point}={passes}*off->panic")).arg(ON);
    let mut member = place.spawn_command(command);
    let ended = wait_until_up_or_ended(&mut member).await;
    drop(member);
    let member = place.start(&[ON]);
    let client = member.client().await;
    assert_eq!(contents(&client).await, expected, "{point} after {passes}");
    wait_for_version(&client, "3.8.0").await;
    wait_for_storage_version(&client, "3.8.0").await;
    ended
}

async fn wait_until_up_or_ended(member: &mut common::Member) -> bool {
    let begin = Instant::now();
    loop {
        if member.has_ended() {
            return true;
        }
        if member.log().contains("\"to\":\"3.8") {
            // Whatever follows the decision is part of the way.
            tokio::time::sleep(Duration::from_millis(300)).await;
            return member.has_ended();
        }
        assert!(begin.elapsed() < WAIT_MAX, "neither up nor ended:\n{}", member.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn fill(client: &Client) {
    fill_plain(client).await;
    client.increment(Increment::new("counter", 7)).await.expect("increment");
}

async fn fill_plain(client: &Client) {
    let lease = client.lease_grant(600, 0).await.expect("lease").id;
    for i in 0..KEYS {
        let put = Put::new(format!("key-{i:04}"), format!("value-{i}"));
        client.put(if i % 3 == 0 { put.lease(lease) } else { put }).await.expect("put");
    }
}

/// All keys with values, revisions and leases.
async fn contents(client: &Client) -> Vec<(Vec<u8>, Vec<u8>, i64, i64)> {
    let kvs = client.get(Get::from_key("")).await.expect("get").kvs;
    kvs.into_iter().map(|kv| (kv.key.to_vec(), kv.value.to_vec(), kv.mod_revision, kv.lease)).collect()
}

async fn wait_for_storage_version(client: &Client, version: &str) {
    let begin = Instant::now();
    loop {
        let status = client.status().await.expect("status");
        if status.storage_version == version {
            return;
        }
        assert!(begin.elapsed() < WAIT_MAX, "the storage version is never {version}: {status:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
