//! The program under test, and what a cluster of it has decided.

use std::{
    io::{Write, stderr},
    path::Path,
};

use client::{Client, Kind, Put};
use harness::{Group, Member, Place, asynchronous::until};
use tonic::transport::Channel;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_lockgate");

/// Whether failpoints are compiled in. A test that needs them ends at once without them, and counts as passed.
pub(crate) fn has_failpoints() -> bool {
    if !failpoint::ENABLED {
        // Unlike `eprintln!`, this is shown for a test that passes.
        let _ = writeln!(stderr(), "\nSKIPPED: failpoints are not compiled in; add --features failpoints");
    }
    failpoint::ENABLED
}

/// A place for a cluster of one.
pub(crate) fn place() -> Place {
    Place::new(BINARY)
}

/// Starts a new cluster and waits until all members serve.
#[track_caller]
pub(crate) fn start_group(count: usize, flags: &[&str]) -> Group {
    Group::start(Path::new(BINARY), count, flags)
}

/// Adds a learner and waits until it serves. Returns its number.
pub(crate) async fn add_learner(group: &mut Group, flags: &[&str]) -> usize {
    let at = group.add_place();
    let url = group.place(at).peer_url();
    group.member(0).client().await.member_add(vec![url], true).await.expect("member add");
    group.start_member(at, &[flags, &["--initial-cluster-state=existing"]].concat());
    at
}

/// A connection for calls that the client does not make.
pub(crate) async fn channel(member: &Member) -> Channel {
    Channel::from_shared(member.url()).expect("a URL").connect().await.expect("connect")
}

/// Waits until a feature is on or off. Members propose features, and the leader decides, after the start.
pub(crate) async fn wait_for_feature(client: &Client, feature: &str, on: bool) {
    until(&format!("{feature} is {}", if on { "on" } else { "off" }), async || {
        match client.feature_gate_status([feature]).await {
            Ok(status) => status.features[0].enabled == on,
            Err(error) if error.is_unavailable() => false,
            Err(error) => panic!("the status of {feature}: {error}"),
        }
    })
    .await;
}

/// Waits until the leader has decided on a cluster version.
pub(crate) async fn wait_for_version(client: &Client, version: &str) {
    until(&format!("the cluster version is {version}"), async || match client.feature_gate_status([""; 0]).await {
        Ok(status) => status.cluster_version == version,
        Err(error) if error.is_unavailable() => false,
        Err(error) => panic!("the cluster version: {error}"),
    })
    .await;
}

/// Writes until the quota for the database is full and the alarm about it is raised.
pub(crate) async fn fill_quota(client: &Client) {
    until("the quota is full", async || {
        let put = client.put(Put::new("fill", vec![b'v'; 90_000])).await;
        put.is_err_and(|error| error.kind() == Some(Kind::NoSpace))
    })
    .await;
    until("the alarm is raised", async || !client.alarms().await.expect("alarms").alarms.is_empty()).await;
}
