//! The decision after each look, without a cluster.

use std::time::Duration;

use accessor::{BuildError, Follower, Gates, Kube, NotReady, Observed, Snapshot, Source};
use featureset::object::{ClusterVersion, FeatureGate};
use harness::{Port, asynchronous::finish};
use serde_json::{Value, json};

/// Rows such as `1.4.0 +A -B`.
fn object(rows: &[&str]) -> FeatureGate {
    let row = |row: &&str| {
        let mut words = row.split(' ');
        let version = words.next().unwrap();
        let with = |mark: char| -> Vec<Value> {
            row.split(' ').filter_map(|word| word.strip_prefix(mark)).map(|name| json!({"name": name})).collect()
        };
        json!({"version": version, "enabled": with('+'), "disabled": with('-')})
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    serde_json::from_value(json!({"metadata": {"name": "cluster"}, "spec": {}, "status": {"featureGates": rows}}))
        .unwrap()
}

fn cluster_version(desired: &str, history: &[&str]) -> ClusterVersion {
    let entry = |version: &&str| json!({"state": "Completed", "version": version});
    let history: Vec<Value> = history.iter().map(entry).collect();
    serde_json::from_value(json!({"status": {"desired": {"version": desired}, "history": history}})).unwrap()
}

fn follower(version: &str) -> Follower {
    Follower::new(Some(version.to_owned()))
}

fn first(follower: &mut Follower, rows: &[&str]) {
    assert!(matches!(follower.observe(Some(&object(rows)), None), Observed::First(_)));
}

#[test]
fn waiting_has_a_reason() {
    let mut follower = follower("1.4.0");
    assert_eq!(follower.observe(None, None), Observed::Waiting(NotReady::NoFeatureGate));
    let Observed::Waiting(why) = follower.observe(Some(&object(&["1.3.0 +A", "1.5.0 -A"])), None) else { panic!() };
    assert_eq!(why.to_string(), r#"there is no row for version "1.4.0"; there are rows for ["1.3.0", "1.5.0"]"#);
    first(&mut follower, &["1.4.0 +A"]);
}

#[test]
fn order_other_rows_and_repeated_looks_do_not_matter() {
    let mut follower = follower("1.4.0");
    first(&mut follower, &["1.4.0 +A +B -C -D"]);
    for rows in [&["1.4.0 +A +B -C -D"][..], &["1.5.0 +Z", "1.4.0 +B +A -D -C"], &["1.4.0 -D +B -C +A", "1.3.0 -A"]] {
        assert!(matches!(follower.observe(Some(&object(rows)), None), Observed::Same(_)), "{rows:?}");
    }
}

#[test]
fn a_change_is_reported_once_with_its_difference() {
    let mut follower = follower("1.4.0");
    first(&mut follower, &["1.4.0 +A -B -C"]);
    let changed = object(&["1.4.0 +B -A -C"]);
    let Observed::Changed(change) = follower.observe(Some(&changed), None) else { panic!() };
    assert_eq!((change.turned_on.len(), change.turned_off.len()), (1, 1));
    assert!(change.previous.is_enabled("A") && !change.current.is_enabled("A") && change.current.is_enabled("B"));
    assert!(matches!(follower.observe(Some(&changed), None), Observed::Same(_)));
}

#[test]
fn gates_that_are_not_followed_are_visible_and_are_no_change() {
    let mut follower = follower("1.4.0");
    follower.followed = Some(["A".to_owned()].into());
    first(&mut follower, &["1.4.0 +A -B"]);
    let Observed::Same(now) = follower.observe(Some(&object(&["1.4.0 +A +B"])), None) else { panic!() };
    assert!(now.is_enabled("B"));
    assert!(matches!(follower.observe(Some(&object(&["1.4.0 -A +B"])), None), Observed::Changed(_)));
}

#[test]
fn a_removed_row_leaves_the_last_snapshot_in_force() {
    let mut follower = follower("1.4.0");
    first(&mut follower, &["1.4.0 +A"]);
    for gone in [None, Some(object(&["1.5.0 -A"]))] {
        let Observed::Stale(kept, _) = follower.observe(gone.as_ref(), None) else { panic!() };
        assert!(kept.is_enabled("A"));
    }
    assert!(
        matches!(follower.observe(Some(&object(&["1.4.0 +A"])), None), Observed::Same(_)),
        "an equal row is no change"
    );
}

#[test]
fn unknown_gates_are_an_error_at_start_and_never_later() {
    let mut follower = follower("1.4.0");
    follower.needed = ["A".to_owned(), "Typo".to_owned()].into();
    let Observed::Waiting(why) = follower.observe(Some(&object(&["1.4.0 +A"])), None) else { panic!() };
    assert!(matches!(&why, NotReady::UnknownGates { gates, .. } if *gates == ["Typo"]), "{why}");
    first(&mut follower, &["1.4.0 +A -Typo"]);
    assert!(matches!(follower.observe(Some(&object(&["1.4.0 +A"])), None), Observed::Stale(..)));
}

#[test]
fn a_development_build_uses_the_newest_row() {
    let rows = object(&["1.4.0 -A", "1.5.0 +A"]);
    let mut follower = Follower::new(None);
    assert_eq!(follower.observe(Some(&rows), None), Observed::Waiting(NotReady::NoClusterVersion));
    let Observed::First(now) = follower.observe(Some(&rows), Some(&cluster_version("1.5.0", &["1.4.0"]))) else {
        panic!()
    };
    assert_eq!(now.row.version, "1.5.0");
    let mut follower = Follower::new(None);
    let Observed::First(now) = follower.observe(Some(&rows), Some(&cluster_version("", &["1.4.0"]))) else { panic!() };
    assert_eq!(now.row.version, "1.4.0");
}

#[test]
fn defaults_hold_until_there_is_a_row() {
    let mut follower = follower("1.5.0");
    follower.defaults = Some(Snapshot::fixed([], ["A"]).row);
    let Observed::First(now) = follower.observe(Some(&object(&["1.4.0 +A"])), None) else { panic!() };
    assert_eq!((now.source, now.get("A")), (Source::Defaults, Some(false)));
    assert!(matches!(follower.observe(Some(&object(&["1.5.0 +A"])), None), Observed::Changed(_)));
}

#[test]
fn a_snapshot_can_come_from_a_manifest() {
    let manifest = serde_json::to_string(&object(&["1.4.0 +A -B"])).unwrap();
    let snapshot = Snapshot::of_manifest(&manifest, "1.4.0").unwrap();
    assert_eq!((snapshot.get("A"), snapshot.get("B"), snapshot.get("C")), (Some(true), Some(false), None));
    let error = Snapshot::of_manifest(&manifest, "1.5.0").unwrap_err().to_string();
    assert!(error.contains("no row for version \"1.5.0\"; there are rows for [\"1.4.0\"]"), "{error}");
    assert!(Snapshot::of_manifest("kind: Other", "1.4.0").is_err());
}

#[tokio::test]
async fn fixed_gates_are_ready() {
    let gates = Gates::fixed(Snapshot::fixed(["A"], ["B"]));
    let snapshot = gates.ready(Duration::ZERO).await.unwrap();
    assert!(snapshot.is_enabled("A") && !snapshot.is_enabled("B") && !snapshot.is_enabled("C"));
}

#[tokio::test]
async fn an_empty_version_is_an_error_at_start() {
    let dir = harness::tempdir();
    let path = dir.path().join("config");
    let nobody = Port::reserve();
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": nobody.url()}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]});
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let kube = Kube::connect(Some(&path)).await.unwrap();
    assert_eq!(Gates::builder(" ").start(kube.clone()).err(), Some(BuildError::NoVersion));
    // Nobody listens on the port: the reason says so, and nothing panics.
    let gates = Gates::builder("1.4.0").start(kube).unwrap();
    let mut states = gates.subscribe();
    finish("the API was asked", states.wait_for(|state| *state != Err(NotReady::NotAsked))).await.unwrap();
    let why = gates.ready(Duration::ZERO).await.unwrap_err();
    assert!(matches!(why, NotReady::NoApi(_)), "{why}");
    assert_eq!(gates.current(), None);
}

#[test]
fn a_cache_holds_only_until_the_api_has_answered() {
    let cached = |on: &[&str]| Snapshot { source: Source::Cache, ..Snapshot::fixed(on.iter().copied(), ["Z"]) };
    let mut follower = follower("1.4.0");
    assert!(matches!(follower.no_api("refused"), Observed::Waiting(NotReady::NoApi(_))), "there is no cache yet");
    follower.cached = Some(cached(&["A"]));
    let Observed::Stale(now, NotReady::NoApi(why)) = follower.no_api("refused") else { panic!() };
    assert_eq!((now.source, now.is_enabled("A"), why.as_str()), (Source::Cache, true, "refused"));
    // The API is back with an equal row, which is no change. Another row is one.
    let Observed::Same(now) = follower.observe(Some(&object(&["1.4.0 +A -Z"])), None) else { panic!() };
    assert_eq!(now.source, Source::Cluster);
    assert!(matches!(follower.observe(Some(&object(&["1.4.0 -A -Z"])), None), Observed::Changed(_)));
    // After an answer of the cluster, the cache is not used any more.
    let Observed::Stale(now, _) = follower.no_api("refused") else { panic!() };
    assert_eq!((now.source, now.is_enabled("A")), (Source::Cluster, false));
}

#[test]
fn a_cache_that_lacks_a_needed_gate_is_not_used() {
    let mut follower = follower("1.4.0");
    follower.needed = ["New".to_owned()].into();
    follower.cached = Some(Snapshot { source: Source::Cache, ..Snapshot::fixed(["A"], []) });
    assert!(matches!(follower.no_api("refused"), Observed::Waiting(NotReady::NoApi(_))));
}
