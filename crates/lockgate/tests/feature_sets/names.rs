//! The authors of changes: `managedFields` of every object of feature sets, and the audit trail.

use std::collections::BTreeSet;

use harness::{request, until};
use serde_json::Value;

use super::world::{World, wait_seconds};

/// The managers of all objects of a kind.
fn managers(world: &World, kind: &[&str]) -> BTreeSet<String> {
    let said = world.kubectl(&[&["get", "-o", "json", "--show-managed-fields"], kind].concat()).unwrap();
    let list: Value = serde_json::from_str(&said).unwrap();
    let one = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        assert!(!entries.is_empty(), "{object}");
        entries.into_iter().map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    list["items"].as_array().unwrap().iter().flat_map(one).collect()
}

fn names(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn everyone_writes_under_a_name() {
    let Some(world) = World::new() else { return };
    world.install();
    let _controller = world.controller("1.4.0");
    world.gates(&["version", "begin", "1.4.0", "--wait-seconds", &wait_seconds()]).ok();
    world.gates(&["version", "complete", "1.4.0"]).ok();
    world.choose("OKD");
    until("the choice is recorded", || world.gates(&["history"]).ok().contains("OKD"));

    assert_eq!(managers(&world, &["clusterversions"]), names(&["kubectl-create", "lockgate-cli"]));
    assert_eq!(managers(&world, &["clusteroperators"]), names(&["lockgate-operator"]));
    assert_eq!(managers(&world, &["featuregates"]), names(&["kubectl-patch", "lockgate-operator"]));
    assert_eq!(managers(&world, &["-n", "lockgate-gates", "configmaps"]), names(&["lockgate-operator"]));
    assert_eq!(managers(&world, &["-n", "lockgate-gates", "leases"]), names(&["lockgate-operator"]));

    let history = world.gates(&["history"]).ok();
    let lines: Vec<&str> = history.lines().filter_map(|line| line.split_once("Z  ").map(|(_, rest)| rest)).collect();
    assert_eq!(lines, ["Default  chosen by lockgate-operator", "OKD  chosen by kubectl-patch"]);
}

/// The object was deleted and created again, so that it shows another set than the one that rows are made from.
#[test]
fn the_set_that_rows_are_made_from_is_shown() {
    let Some(world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let _controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.choose("TechPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_rows("1.4.0:A");
    let said = world.gates(&["status"]).ok();
    assert!(said.starts_with("set Default\nrows are made from TechPreviewNoUpgrade\n"), "{said}");
    let json: Value = serde_json::from_str(&world.gates(&["status", "-w", "json"]).ok()).unwrap();
    assert_eq!((&json["featureSet"], &json["rowsMadeFrom"]), (&"Default".into(), &"TechPreviewNoUpgrade".into()));
    assert_eq!(json["conditions"][0]["reason"], "OneWaySetLeft", "{json}");
    // Nobody runs with the chosen set, so a wait for it fails.
    world.gates_fail(&["status", "--wait", "--wait-seconds", "1"]);
    let flags = ["--listen", "127.0.0.1:0", "--kubeconfig", &world.kubeconfig()];
    let (_ofrep, address) = world.serve("ofrep", "ofrep", &flags);
    until("OFREP shows the set of the rows", || {
        let reply = request(&address, "POST", "/ofrep/v1/evaluate/flags/A", &[], "").unwrap();
        let said: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        said["metadata"]["featureSet"] == "TechPreviewNoUpgrade" && said["value"] == true
    });
}
