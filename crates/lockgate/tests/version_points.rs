//! Members that end at any point of a downgrade from 3.8 to 3.7, or of an upgrade: the data dir starts again with the right
//! version, nothing is lost, and a real etcd accepts it.
//!
//! Needs `cargo test -p lockgate --features failpoints version_points::`; otherwise each test is reported as skipped.

use crate::common::{BINARY, has_failpoints, place, start_group, wait_for_feature, wait_for_version};

use std::{path::Path, process::Command, time::Duration};

use client::{Client, Get, Increment, Put};
use failpoint::{NAMES, Place as Point};
use futures_util::future::join_all;
use harness::{ETCD, Place, asynchronous::until};
use proto::etcdserverpb::downgrade_request::DowngradeAction;

const KEYS: usize = 300;
/// Part of the log line about the upgrade.
const UPGRADED: &str = "\"to\":\"3.8";
/// How long a member is asked that may have ended.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const FEATURE: &str = "AtomicIncrement";
const ON: &str = "--cluster-feature-gates=AtomicIncrement=true,PersistedLeaseCheckpoints=true";

/// Every point of the downgrade, on every member, while the other two continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_on_the_way_down() {
    if !has_failpoints() {
        return;
    }
    let points: Vec<_> =
        NAMES.iter().filter(|(name, place)| *place == Point::Here && name.starts_with("lower")).collect();
    assert!(points.len() >= 4, "{points:?}");
    let etcd = harness::etcd_dir(ETCD).map(|dir| dir.join("etcd"));
    for (at, (point, _)) in points.iter().enumerate() {
        // Members take turns, so that the leader is among them.
        down(point, at % 3, etcd.as_deref()).await;
        down(point, (at + 1) % 3, etcd.as_deref()).await;
    }
}

/// A command for `program` that fails at these points.
fn failing(program: &Path, failpoints: &str) -> Command {
    let mut command = Command::new(program);
    command.env("GOFAIL_FAILPOINTS", failpoints);
    command
}

async fn down(point: &'static str, victim: usize, etcd: Option<&Path>) {
    let mut group = start_group(3, &[ON]);
    let other = (victim + 1) % 3;
    let client = group.member(other).client().await;
    wait_for_version(&client, "3.8.0").await;
    wait_for_feature(&client, FEATURE, true).await;
    fill(&client).await;
    group.stop(victim);
    group.start_command(victim, failing(Path::new(BINARY), &format!("{point}=panic")));
    client.downgrade(DowngradeAction::Enable, "3.7").await.expect("downgrade");
    let ended = group.wait_end(victim);
    assert!(ended.log.contains("failpoint panic"), "{point}: {}", ended.log);
    // A write while the member is down is not lost either. The first attempts fail if the member was the leader.
    until("a put succeeds", async || client.put(Put::new("meanwhile", point)).await.is_ok()).await;
    group.start_command(victim, Command::new(BINARY));
    for member in 0..3 {
        wait_for_storage_version(&group.member(member).client().await, "3.7.0").await;
    }
    let expected = contents(&client).await;
    assert_eq!(expected.len(), KEYS + 2, "{point}");
    for member in 0..3 {
        assert_eq!(contents(&group.member(member).client().await).await, expected, "{point}");
    }
    let Some(etcd) = etcd else { return };
    group.stop(victim);
    group.start_command(victim, Command::new(etcd));
    assert_eq!(contents(&group.member(victim).client().await).await, expected, "{point}, etcd");
}

/// A member with data of 3.7 that upgrades, ended at every write of its log and every commit of its database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_on_the_way_up() {
    if !has_failpoints() {
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
        assert!(ends >= 2, "{point} is passed only {ends} times during the upgrade");
    }
}

/// Returns false if the upgrade was complete before the member had passed the point this many times.
async fn up(point: &str, passes: usize) -> bool {
    let (place, expected) = filled_place().await;
    let mut command = failing(Path::new(BINARY), &format!("{point}={passes}*off->panic"));
    command.arg(ON);
    let mut member = place.spawn_command(command);
    let mut has_ended = member.wait_ready().is_err();
    if !has_ended {
        let client = member.client().await;
        until("the upgrade is complete, or the member has ended", async || {
            has_ended = member.has_ended();
            has_ended || is_upgraded(&client).await
        })
        .await;
    }
    // A stop passes points, too.
    has_ended = has_ended || member.stop().by_signal().is_none();
    let member = place.start(&[ON]);
    let client = member.client().await;
    assert_eq!(contents(&client).await, expected, "{point} after {passes}");
    wait_for_version(&client, "3.8.0").await;
    wait_for_storage_version(&client, "3.8.0").await;
    has_ended
}

/// A place with data of version 3.7, and the contents.
async fn filled_place() -> (Place, Vec<Contents>) {
    loop {
        let place = place();
        let member = place.start(&["--initial-cluster-version=3.7"]);
        let client = member.client().await;
        fill_plain(&client).await;
        let expected = contents(&client).await;
        // A member upgrades by itself after some seconds. On a loaded machine this may have been too slow.
        if !member.stop().log.contains(UPGRADED) {
            return (place, expected);
        }
    }
}

async fn is_upgraded(client: &Client) -> bool {
    // A member that has ended gives no answer.
    let client = client.with_timeout(ANSWER_MAX);
    let has_version = async || Some(client.status().await.ok()?.storage_version == "3.8.0");
    let has_feature = async || Some(client.feature_gate_status([FEATURE]).await.ok()?.features[0].enabled);
    has_version().await == Some(true) && has_feature().await == Some(true)
}

async fn fill(client: &Client) {
    fill_plain(client).await;
    client.increment(Increment::new("counter", 7)).await.expect("increment");
}

async fn fill_plain(client: &Client) {
    let lease = client.lease_grant(600, 0).await.expect("lease").id;
    let puts = (0..KEYS).map(|i| {
        let put = Put::new(format!("key-{i:04}"), format!("value-{i}"));
        client.put(if i % 3 == 0 { put.lease(lease) } else { put })
    });
    join_all(puts).await.into_iter().for_each(|put| drop(put.expect("put")));
}

/// A key with its value, revision and lease.
type Contents = (Vec<u8>, Vec<u8>, i64, i64);

async fn contents(client: &Client) -> Vec<Contents> {
    let kvs = client.get(Get::from_key("")).await.expect("get").kvs;
    kvs.into_iter().map(|kv| (kv.key.to_vec(), kv.value.to_vec(), kv.mod_revision, kv.lease)).collect()
}

async fn wait_for_storage_version(client: &Client, version: &str) {
    until(&format!("the storage version is {version}"), async || {
        client.status().await.expect("status").storage_version == version
    })
    .await;
}
