//! Features that are locked to their default: the default holds although no member proposed it, and no flag can change it.
//!
//! The table has no such feature yet; builds with failpoints have samples. Needs `cargo test -p lockgate --features
//! failpoints locked::`; otherwise each test is reported as skipped.

use crate::common::{has_failpoints, place, start_group, wait_for_feature, wait_for_version};

use client::{Client, Error, Put};
use tonic::Code;

/// Locked to on from 3.8 on.
const ON: &str = "SampleLockedOn";
/// Locked to off from 3.8 on.
const OFF: &str = "SampleLockedOff";
/// Locked to on from 3.8 on, and open to choice in 3.7.
const LATER: &str = "SampleLockedLater";

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
    if !has_failpoints() {
        return;
    }
    for (name, value) in [(ON, false), (OFF, true)] {
        let place = place();
        let ended = place.try_start(&[&flag(&[(name, value)])]).expect_err("refused");
        let text = format!("cannot set feature gate {name} to {value}, feature is locked to {}", !value);
        assert!(ended.log.contains(&text), "{}", ended.log);
        assert!(!place.data().exists(), "nothing was written");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_default_holds_with_an_empty_gate() {
    if !has_failpoints() {
        return;
    }
    let agreeing = flag(&[(ON, true), (OFF, false)]);
    let mut group = start_group(3, &[&agreeing]);
    for member in 0..3 {
        check(&group.member(member).client().await).await;
    }
    let client = group.member(1).client().await;
    let status = client.feature_gate_status([ON]).await.expect("status");
    assert!(status.features[0].locked, "{status:?}");
    let history = client.feature_gate_status([""; 0]).await.expect("status");
    assert!(history.features.iter().all(|f| f.locked || !f.enabled), "nothing else is on: {history:?}");
    // Neither a member without the flag nor another leader changes anything.
    group.restart(0, &[]);
    for member in 0..3 {
        check(&group.member(member).client().await).await;
    }
}

/// A start checks flags against the locks of the version in the data dir, or of its own version if there is no data dir.
/// A lock that comes with a later version overrides the flag, and the member logs that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_comes_with_the_version() {
    if !has_failpoints() {
        return;
    }
    let place = place();
    let contrary = flag(&[(LATER, false)]);
    let member = place.start(&["--initial-cluster-version=3.7"]);
    let client = member.client().await;
    wait_for_version(&client, "3.7.0").await;
    match client.require_feature(LATER).put(Put::new("k", "v")).await {
        Err(Error::Etcd { code: Code::FailedPrecondition, message }) => assert!(message.contains("3.8"), "{message}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(member.stop().by_signal(), Some(15));
    let mut member = place.start(&[&contrary]);
    let client = member.client().await;
    wait_for_version(&client, "3.8.0").await;
    wait_for_feature(&client, LATER, true).await;
    client.require_feature(LATER).put(Put::new("k", "v")).await.expect("it is on");
    member.wait_log(LATER);
    // Once the data dir is at 3.8, the flag is refused.
    member.stop();
    let ended = place.try_start(&[&contrary]).expect_err("refused");
    assert!(ended.log.contains("locked to true"), "{}", ended.log);
}
