//! Feature sets with real processes: an API server, controllers of two versions, and kubectl.

mod field_gates;
mod files;
mod names;
mod retire;
mod story;
mod world;

use std::{fs, process::Command};

use harness::{Output, until};
use serde_json::json;

use self::world::{GATE, LOCKGATE, OPERATOR, World, wait_seconds};

/// Upgrade and downgrade, with the controller first. Each version has its own row all the time.
#[test]
fn up_and_down() {
    let Some(world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let mut old = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.until_reported("1.4.0");

    // The next version has no registry yet: this is a condition, and the version is not reported.
    world.history(&["1.5.0", "1.4.0"]);
    world.until_condition(GATE, "DeterminationDegraded", "True RegistryMissing");
    assert_eq!((world.reported().as_str(), world.rows().as_str()), ("1.4.0", "1.4.0:"));

    // The new controller brings it. The old one, which holds the lease, writes the row; 1.5.0 is not reported yet.
    let mut new = world.controller("1.5.0");
    world.until_rows("1.4.0: 1.5.0:A");
    world.until_condition(GATE, "DeterminationDegraded", "False AsExpected");
    assert_eq!(world.reported(), "1.4.0");
    old.stop();
    world.until_reported("1.5.0");

    // All rows follow the set, each from its own registry. Then nothing is written any more.
    world.choose("DevPreviewNoUpgrade");
    world.until_rows("1.4.0:A 1.5.0:A,B");
    let why = "False FeatureGates_RestrictedFeatureGates_DevPreviewNoUpgrade";
    world.until_condition(OPERATOR, "Upgradeable", why);
    world.assert_no_needless_writes(&new, &[]);

    // Down again: the controller of 1.4.0 first.
    world.history(&["1.4.0", "1.5.0", "1.4.0"]);
    let mut old = world.controller("1.4.0");
    new.stop();
    world.until_reported("1.4.0");
    assert_eq!(world.rows(), "1.4.0:A 1.5.0:A,B");
    world.history(&["1.4.0"]);
    world.until_rows("1.4.0:A");
    old.stop();
}

/// The controller is killed before it sees a change, the API is stopped for a while, the object is deleted, rows are edited.
#[test]
fn faults() {
    let Some(mut world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let mut first = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    first.kill();
    world.choose("TechPreviewNoUpgrade");
    // The lease of the killed controller has to expire first.
    let mut second = world.controller("1.4.0");
    world.until_rows("1.4.0:A");

    // The API is stopped until the controller has lost its lease. A change after the restart is seen.
    world.stop_api();
    second.wait_log("does not hold the lease any more");
    world.start_api();
    let forged =
        "{\"status\":{\"featureGates\":[{\"version\":\"1.4.0\",\"enabled\":[{\"name\":\"B\"}],\"disabled\":[]}]}}";
    world.good(&["patch", "featuregate", "cluster", "--subresource=status", "--type=merge", "-p", forged]);
    world.until_rows("1.4.0:A");

    // Deleted and created again, the object shows Default. The rows stay, and a condition says why.
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_rows("1.4.0:A");
    world.until_condition(GATE, "DeterminationDegraded", "True OneWaySetLeft");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    // Neither another set nor a new definition is a way out.
    world.choose("OKD");
    world.until_observed();
    assert_eq!(world.rows(), "1.4.0:A");
    world.good(&["delete", "crd", "featuregates.config.openshift.io"]);
    world.good(&["apply", "-f", &world.path("1.4.0/manifests/0-crds.yaml").display().to_string()]);
    world.until_rows("1.4.0:A");
    world.choose("TechPreviewNoUpgrade");
    world.until_condition(GATE, "DeterminationDegraded", "False AsExpected");
    assert_eq!(world.rows(), "1.4.0:A");
    // Regression: in a definition without the subresource, forged rows stayed.
    let no_status = "[{\"op\":\"remove\",\"path\":\"/spec/versions/0/subresources\"}]";
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", no_status]);
    // The status is writable as soon as the API server has seen the definition.
    until("the rows are forged", || {
        world.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", forged]).contains("cluster patched\n")
    });
    world.until_rows("1.4.0:A");
    // Nor is an invalid spec a way out, in a definition that accepts anything.
    let loose = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", &loose.to_string()]);
    let no_spec = forged.replacen('{', "{\"spec\":{\"featureSet\":[\"x\"]},", 1);
    let forge = ["patch", "featuregate", "cluster", "--type=merge", "-p", &no_spec];
    until("the invalid spec is accepted", || world.kubectl(&forge).is_ok());
    world.until_condition(GATE, "DeterminationDegraded", "True SpecUnreadable");
    world.until_rows("1.4.0:A");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    second.stop();
}

/// Two controllers of one version: one writes, and when it is killed the other continues.
#[test]
fn two_at_once() {
    let Some(world) = World::new() else { return };
    // Controllers that start early wait for the definitions.
    let (mut one, mut other) = (world.controller("1.4.0"), world.controller("1.4.0"));
    world.install();
    world.history(&["1.4.0"]);
    world.until_rows("1.4.0:");
    let audit = world.good(&["get", "configmap", "gates-audit-1", "-n", "lockgate-gates", "-o", "jsonpath={.data}"]);
    assert_eq!(audit.matches("chosen").count(), 1, "{audit}");
    one.kill();
    world.choose("TechPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    other.stop();
}

/// Without a version operator, `begin` waits for the controller, sets block upgrades, and everything is recorded.
#[test]
fn versions_begin_with_the_controller() {
    let Some(world) = World::new() else { return };
    world.install();
    world.good(&["delete", "clusterversion", "version"]);
    let mut old = world.controller("1.4.0");
    world.until_condition(GATE, "DeterminationDegraded", "True NoClusterVersion");
    assert!(world.gates_fail(&["version", "complete", "1.4.0"]).contains("there is no ClusterVersion"));
    assert!(world.gates_fail(&["version", "begin", "1.4.0 "]).contains("is no version: it has spaces"));
    assert!(world.kubectl(&["get", "clusterversion", "version"]).is_err(), "a refused command creates nothing");
    world.gates(&["version", "begin", "1.4.0", "--wait-seconds", &wait_seconds()]).ok();
    assert_eq!(world.reported(), "1.4.0");
    world.gates(&["version", "complete", "1.4.0"]).ok();
    // There is no controller of 1.5.0: no success, and the reason.
    let begin = ["version", "begin", "1.5.0", "--wait-seconds", "1"];
    world.gates_fail(&begin);
    world.until_condition(GATE, "DeterminationDegraded", "True RegistryMissing");
    let said = world.gates_fail(&begin);
    assert!(said.contains("version 1.5.0 has no row: it left no registry in the cluster"), "{said}");
    let said = world.gates_fail(&["version", "begin", "1.6.0"]);
    assert!(said.contains("1.5.0 is under way; complete or abort it first"), "{said}");
    // Nor can it be completed: the error says what is missing and what to do.
    let history = || world.good(&["get", "clusterversion", "version", "-o", "jsonpath={.status.history}"]);
    let before = history();
    for more in [&[][..], &["--wait", "--wait-seconds", "1"]] {
        let said = world.gates_fail(&[&["version", "complete", "1.5.0"], more].concat());
        let missing = "FeatureGate cluster has no row of 1.5.0, but rows of 1.4.0, and ClusterOperator config-operator \
                       reports 1.4.0; version 1.5.0 has no row: it left no registry in the cluster";
        assert!(said.contains(missing) && said.contains("lockgate gates version abort 1.5.0"), "{said}");
    }
    assert_eq!(history(), before);
    let said = world.gates(&["version", "abort", "1.5.0", "--wait-seconds", &wait_seconds()]).ok();
    assert!(said.starts_with("1.4.0 has begun"), "{said}");
    world.gates(&["version", "complete", "1.4.0"]).ok();
    let mut new = world.controller("1.5.0");
    let said = world.gates_fail(&begin);
    assert!(said.contains("its controller has not arrived"), "{said}");
    // The row exists, and 1.4.0 is still in charge: a row alone is no arrival.
    world.until_rows("1.4.0: 1.5.0:A");
    let said = world.gates_fail(&["version", "complete", "1.5.0"]);
    assert!(said.contains("not arrived: ClusterOperator config-operator reports 1.4.0; "), "{said}");
    old.stop();
    let complete = ["version", "complete", "1.5.0", "--wait", "--wait-seconds", &wait_seconds()];
    world.gates(&complete).ok();
    assert_eq!(world.reported(), "1.5.0");
    assert!(world.gates_fail(&complete).contains("1.5.0 is completed"), "a second time");
    world.choose("TechPreviewNoUpgrade");
    let said = world.gates(&["status", "--wait", "--wait-seconds", &wait_seconds()]).ok();
    assert!(said.contains("set TechPreviewNoUpgrade\n") && said.contains("row 1.5.0: 1 on, 2 off"), "{said}");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    let said = world.gates_fail(&["version", "begin", "1.6.0", "--wait-seconds", "1"]);
    assert!(said.contains("\"TechPreviewNoUpgrade\" does not allow updates"), "{said}");
    let said = world.gates(&["history"]).ok();
    assert!(said.lines().count() == 2 && said.contains("TechPreviewNoUpgrade  chosen"), "{said}");
    new.stop();
}

#[test]
fn errors_name_the_invalid_option() {
    let dir = harness::tempdir();
    let gates = dir.path().join("gates.toml");
    let run = |toml: &str, more: &[&str]| {
        fs::write(&gates, toml).unwrap();
        let mut command = Command::new(LOCKGATE);
        command.arg("operator").arg("--gates").arg(&gates).args(more).env_remove("OPERATOR_IMAGE_VERSION");
        Output::of(&mut command).error()
    };
    let sound = "schema = 1\nversion = \"1.4.0\"\nprofiles = [\"P\", \"Q\"]\n";
    let version = ["--release-version", "1.4.0"];
    assert!(run(sound, &[]).contains("set OPERATOR_IMAGE_VERSION"));
    assert!(run(sound, &version).contains("choose one of the profiles P, Q"));
    assert!(
        run(sound, &[&version[..], &["--profile", "R"]].concat()).contains("unknown profile \"R\"; known are P, Q")
    );
    assert!(run("schema = 1\n", &version).contains("line 1: version: is missing"));
    let kubeconfig = [&version[..], &["--profile", "P", "--kubeconfig", "/nowhere/config"]].concat();
    assert!(run(sound, &kubeconfig).contains("failed to use kubeconfig /nowhere/config"));
}
