//! Failpoints of the running server, driven over `GOFAIL_HTTP`, as fault tools drive a real etcd that was built with gofail.
//!
//! Needs `cargo test -p lockgate --features failpoints failpoints::`; otherwise each test is reported as skipped.

use crate::common::{BINARY, has_failpoints, place, start_group};

use std::process::Command;

use client::{Client, ConnectOptions, Get, Kind, Permission, Put};
use harness::{
    Member, Place, Reply,
    asynchronous::{finish, until},
    request, wait_max,
};

/// Points that a member with one voter passes in [`work`]. A panic at each of them must end the member.
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

const QUICK: &str = "--bcrypt-cost=4";

/// A member and the address where its points are set, as `host:port`.
fn start(place: &Place) -> (Member, String) {
    let ports_file = place.dir().join("ports");
    let mut command = Command::new(BINARY);
    command.env("GOFAIL_HTTP", "127.0.0.1:0").arg("--ports-file").arg(&ports_file);
    // With this limit, a compaction has more than one batch.
    command.arg("--compaction-batch-limit=5");
    let mut member = place.spawn_command(command).ready();
    let ports = member.wait_ports(&ports_file);
    let url = ports["failpoint"][0].as_str().expect("a URL");
    (member, url.strip_prefix("http://").expect("a plain URL").to_owned())
}

fn send(address: &str, method: &str, path: &str, body: &str) -> Reply {
    request(address, method, path, &[], body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

fn set(address: &str, point: &str, terms: &str) {
    let reply = send(address, "PUT", &format!("/{point}"), terms);
    assert_eq!(reply.status, 204, "{point}: {reply:?}");
}

/// How often a term of the point has acted; `None` if no terms are set.
fn count(address: &str, point: &str) -> Option<u64> {
    send(address, "GET", &format!("/{point}/count"), "").body.trim().parse().ok()
}

/// Writes of every kind.
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
async fn points_are_listed_counted_slowed_and_removed() {
    if !has_failpoints() {
        return;
    }
    let place = place();
    let (member, address) = start(&place);
    let list = send(&address, "GET", "/", "");
    let placed = failpoint::NAMES.iter().filter(|(_, place)| *place == failpoint::Place::Here);
    assert_eq!(list.status, 200);
    for (name, _) in placed {
        assert!(list.body.lines().any(|line| line.split('=').next() == Some(*name)), "{name} is not in {list:?}");
    }
    let client = member.client().await;
    set(&address, "raftBeforeSave", "sleep(1)");
    client.put(Put::new("k", "1")).await.expect("put");
    assert_eq!(send(&address, "GET", "/raftBeforeSave", "").body.trim(), "sleep(1)");
    assert!(count(&address, "raftBeforeSave").is_some_and(|count| count >= 1));
    assert_eq!(send(&address, "DELETE", "/raftBeforeSave", "").status, 204);
    assert_eq!(count(&address, "raftBeforeSave"), None);

    // A sleep that was removed delays nothing. One that was not removed delays its own thread only.
    let point = "defragBeforeCopy";
    set(&address, point, "sleep(3600000)");
    assert_eq!(send(&address, "DELETE", &format!("/{point}"), "").status, 204);
    client.defragment().await.expect("defragment");
    set(&address, point, "sleep(3600000)");
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.defragment().await }
    });
    until("the point is reached", async || count(&address, point) == Some(1)).await;
    client.put(Put::new("k", "2")).await.expect("put");
    assert!(!slow.is_finished());
    member.kill();
    finish("the call ends with the member", slow).await.expect("task").expect_err("no answer");
}

/// The member ends like a Go program that panics, and starts again with everything that was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_at_any_point_on_the_way_loses_nothing() {
    if !has_failpoints() {
        return;
    }
    let place = place();
    place.start(&[]).stop();
    for (round, point) in ON_THE_WAY.iter().enumerate() {
        let (mut member, address) = start(&place);
        let client = member.client().await;
        client.put(Put::new(format!("kept/{round}"), *point)).await.expect("put");
        set(&address, point, "panic(\"on purpose\")");
        let working = async {
            loop {
                let _ = work(&client, round).await;
            }
        };
        let what = format!("the member ends at {point}");
        tokio::select! {
            () = until(&what, async || member.has_ended()) => {}
            never = working => never,
        }
        let ended = member.wait_end();
        assert_eq!(ended.status.code(), Some(2), "{point}: {}", ended.log);
        assert!(ended.log.contains("on purpose"), "{point}: {}", ended.log);
    }
    let member = place.start(&[]);
    let kept = member.client().await.get(Get::prefix("kept/")).await.expect("get");
    assert_eq!(kept.kvs.len(), ON_THE_WAY.len());
}

/// The leader names the keys of a lease, and a member that lags behind judges these and not the keys that it knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lags_behind_shows_no_forbidden_key_of_a_lease() {
    if !has_failpoints() {
        return;
    }
    let mut group = start_group(3, &[QUICK]);
    group.stop(2);
    let ports_file = group.place(2).dir().join("ports");
    let mut command = Command::new(BINARY);
    command.env("GOFAIL_HTTP", "127.0.0.1:0").arg(QUICK).arg("--ports-file").arg(&ports_file);
    group.start_command(2, command);
    let address = failpoint_address(&ports_file);

    let root = group.member(0).client().await;
    add_root_and_alice(&root).await;
    let as_user = async |at: usize, user: &str| {
        let options = ConnectOptions::new().request_timeout(wait_max()).user(client::User::new(user, user));
        Client::connect([group.member(at).url()], options).await.expect("log in")
    };
    let (root, alice) = (as_user(0, "root").await, as_user(2, "alice").await);
    let lease = root.lease_grant(600, 0).await.expect("grant").id;
    root.put(Put::new("n", "x").lease(lease)).await.expect("put");
    until("the lagging member knows the lease", async || {
        let found = alice.lease_time_to_live(lease, true).await.expect("a lease with a readable key");
        found.keys == ["n"]
    })
    .await;

    set(&address, "beforeApplyOneEntryNormal", "sleep(3600000)");
    root.put(Put::new("secret", "x").lease(lease)).await.expect("put");
    let refused = alice.lease_time_to_live(lease, true).await.expect_err("alice may not read secret");
    assert_eq!(refused.kind(), Some(Kind::PermissionDenied), "{refused}");
}

fn failpoint_address(ports_file: &std::path::Path) -> String {
    let text = std::fs::read_to_string(ports_file).expect("the ports");
    let ports: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let url = ports["failpoint"][0].as_str().expect("a URL");
    url.strip_prefix("http://").expect("a plain URL").to_owned()
}

/// Adds root, and alice who may read `n`.
async fn add_root_and_alice(client: &Client) {
    for (user, role) in [("root", "root"), ("alice", "readers")] {
        client.user_add(user, user).await.expect("user add");
        client.role_add(role).await.expect("role add");
        client.user_grant_role(user, role).await.expect("grant role");
    }
    client.role_grant_permission("readers", Permission::key("n").read()).await.expect("grant");
    client.auth_enable().await.expect("enable");
}
