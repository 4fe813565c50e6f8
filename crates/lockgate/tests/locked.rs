//! Features that are locked to their default: it holds though nobody agreed, and no flag says otherwise.
//!
//! The table has none yet; builds with failpoints have samples. Needs `cargo test -p lockgate --features failpoints --test
//! locked`; says so and passes otherwise.

use crate::common;

use client::{Client, Error, Put};
use common::{Place, group::Group, wait_for_feature, wait_for_version};
use tonic::Code;

/// Locked from 3.8 on, to on and to off.
const ON: &str = "SampleLockedOn";
const OFF: &str = "SampleLockedOff";
/// The same, but it could still be chosen in 3.7.
const LATER: &str = "SampleLockedLater";

fn enabled() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: samples of locked features are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

fn flag(values: &[(&str, bool)]) -> String {
    let values: Vec<_> = values.iter().map(|(name, on)| format!("{name}={on}")).collect();
    format!("--cluster-feature-gates={}", values.join(","))
}

async fn check(client: &Client) {
    wait_for_feature(client, ON, true).await;
    wait_for_feature(client, OFF, false).await;
    client.require_feature(ON).put(Put::new("k", "v")).await.expect("it is on");
    match client.require_feature(OFF).put(Put::new("k", "v")).await {
        Err(Error::Etcd { code: Code::FailedPrecondition, message }) if message.contains(OFF) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn contrary_flags_are_refused() {
    if !enabled() {
        return;
    }
    for (name, value) in [(ON, false), (OFF, true)] {
        let place = Place::new();
        let ended = place.try_start(&[&flag(&[(name, value)])]).err().expect("refused");
        let text = format!("cannot set feature gate {name} to {value}, feature is locked to {}", !value);
        assert!(ended.log.contains(&text), "{}", ended.log);
        assert!(!place.data().exists(), "nothing was written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_holds_with_an_empty_gate() {
    if !enabled() {
        return;
    }
    let agreeing = flag(&[(ON, true), (OFF, false)]);
    let mut group = Group::start(3, &[&agreeing]);
    for member in 0..3 {
        check(&group.member(member).client().await).await;
    }
    let client = group.member(1).client().await;
    let status = client.feature_gate_status([ON]).await.expect("status");
    assert!(status.features[0].locked, "{status:?}");
    let history = client.feature_gate_status([""; 0]).await.expect("status");
    assert!(history.features.iter().all(|f| f.locked || !f.enabled), "nothing else is on: {history:?}");
    // A member that says nothing of it, and another leader, change nothing.
    group.restart(0, &[]);
    for member in 0..3 {
        check(&group.member(member).client().await).await;
    }
}

/// Start asks the lock of the version in the file, or of its own if there is no file. What the version brings later wins over the flag, and is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_comes_with_the_version() {
    if !enabled() {
        return;
    }
    let place = Place::new();
    let contrary = flag(&[(LATER, false)]);
    let member = place.start(&["--initial-cluster-version=3.7"]);
    let client = member.client().await;
    wait_for_version(&client, "3.7.0").await;
    match client.require_feature(LATER).put(Put::new("k", "v")).await {
        Err(Error::Etcd { code: Code::FailedPrecondition, message }) => assert!(message.contains("3.8"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert!(member.stop().by_signal());
    let member = place.start(&[&contrary]);
    let client = member.client().await;
    wait_for_version(&client, "3.8.0").await;
    wait_for_feature(&client, LATER, true).await;
    client.require_feature(LATER).put(Put::new("k", "v")).await.expect("it is on");
    assert!(member.log().contains(LATER), "the flag that lost is told: {}", member.log());
    // With the file at 3.8 the same flag is refused.
    drop(member.stop());
    let ended = place.try_start(&[&contrary]).err().expect("refused");
    assert!(ended.log.contains("locked to true"), "{}", ended.log);
}
