//! Who wrote what: `managedFields` of every object of feature sets, and the audit trail.

use std::{collections::BTreeSet, process::Command};

use serde_json::Value;

use super::{Process, World, has_kubectl};

/// Managers of all objects of a kind.
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
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    world.install();
    let _controller = world.controller("1.4.0");
    world.command(&["version", "begin", "1.4.0"]).unwrap();
    world.command(&["version", "complete", "1.4.0"]).unwrap();
    world.choose("OKD");
    world.until("the choice is recorded", || world.command(&["history"]).unwrap().contains("OKD"));

    assert_eq!(managers(&world, &["clusterversions"]), names(&["kubectl-create", "lockgate-cli"]));
    assert_eq!(managers(&world, &["clusteroperators"]), names(&["lockgate-operator"]));
    assert_eq!(managers(&world, &["featuregates"]), names(&["kubectl-patch", "lockgate-operator"]));
    assert_eq!(managers(&world, &["-n", "lockgate-gates", "configmaps"]), names(&["lockgate-operator"]));
    assert_eq!(managers(&world, &["-n", "lockgate-gates", "leases"]), names(&["lockgate-operator"]));

    let history = world.command(&["history"]).unwrap();
    let lines: Vec<&str> = history.lines().filter_map(|line| line.split_once("Z  ").map(|(_, rest)| rest)).collect();
    assert_eq!(lines, ["Default  chosen by lockgate-operator", "OKD  chosen by kubectl-patch"]);
}

/// The object was deleted and made again: it shows another set than the one that the rows are made from, and so does nobody else.
#[test]
fn rows_of_a_set_that_was_left_say_so() {
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    world.install();
    world.history(&["1.4.0"]);
    let _controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.choose("TechPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_rows("1.4.0:A");
    let said = world.command(&["status"]).unwrap();
    assert!(said.starts_with("set Default\nrows are made from TechPreviewNoUpgrade\n"), "{said}");
    let json: Value = serde_json::from_str(&world.command(&["status", "-w", "json"]).unwrap()).unwrap();
    assert_eq!((&json["featureSet"], &json["rowsMadeFrom"]), (&"Default".into(), &"TechPreviewNoUpgrade".into()));
    assert_eq!(json["conditions"][0]["reason"], "OneWaySetLeft", "{json}");
    let error = world.command(&["status", "--wait", "--wait-seconds", "1"]);
    assert!(error.is_err(), "what was chosen is not what anyone runs with: {error:?}");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (listen, kubeconfig) = (format!("127.0.0.1:{port}"), world.text("api/admin.kubeconfig"));
    let _ofrep = Process::start(&["ofrep", "--listen", &listen, "--kubeconfig", &kubeconfig], &world.path("ofrep.log"));
    let url = format!("http://{listen}/ofrep/v1/evaluate/flags/A");
    let ask = || Command::new("curl").args(["-s", "-X", "POST", &url]).output().unwrap().stdout;
    world.until("OFREP tells the set of the rows", || {
        let said: Value = serde_json::from_slice(&ask()).unwrap_or_default();
        said["metadata"]["featureSet"] == "TechPreviewNoUpgrade" && said["value"] == true
    });
}
