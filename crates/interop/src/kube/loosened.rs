//! The definition of FeatureGate is loosened, the object filled with what the strict one would not take and with rows of nobody, and
//! the strict one put back before a controller looks. The controller has the shipped roles.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::sets::Sets;

const DEFINITION: &str = "featuregates.config.openshift.io";
/// Of TechPreviewNoUpgrade.
const ROWS: &str = "1.4.0:A 1.5.0:A,B";

/// The controller's words where it could not just write the rows.
const RESTORED: &str = "it is the choice on record again";
const REPLACED: &str = "it was deleted, to be made anew";

/// Of how many specs rows were put right, and by which way.
pub(super) fn forged_rows(sets: &Sets<'_>, controller: &Path) -> Result<String> {
    let specs = [
        (json!({"featureSet": 3}), Some(REPLACED)),
        (json!("x"), Some(REPLACED)),
        // The schema is asked about the status alone.
        (Value::Null, None),
        (json!({"featureSet": "Other", "customNoUpgrade": 7}), None),
    ];
    for (spec, way) in &specs {
        forge(sets, spec).with_context(|| format!("forging {spec}"))?;
        let mut running = sets.controller("1.5.0", controller, &["--lease-seconds", "3"]);
        sets.until_rows(ROWS).with_context(|| format!("{spec}: {}", running.log_text()))?;
        sets.until_condition("featuregate", "cluster", "FeatureSetInForce", "True TechPreviewNoUpgrade")?;
        running.check_well()?;
        let log = running.log_text();
        ensure!(!log.contains("forbidden"), "the controller lacks a role:\n{log}");
        let found = [RESTORED, REPLACED].into_iter().find(|text| log.contains(text));
        ensure!(found == *way, "{spec} should be put right with {way:?}:\n{log}");
    }
    let replaced = specs.iter().filter(|(_, way)| way.is_some()).count();
    Ok(format!("{} forged specs, {replaced} of them replaced", specs.len()))
}

fn forge(sets: &Sets<'_>, spec: &Value) -> Result<()> {
    let strict = sets.object("crd", DEFINITION)?;
    sets.good(&["delete", "validatingadmissionpolicybinding", "feature-gate.gates.lockgate.io"])?;
    let at = "/spec/versions/0";
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    define(
        sets,
        &json!([{"op": "remove", "path": format!("{at}/subresources")},
        {"op": "replace", "path": format!("{at}/schema/openAPIV3Schema"), "value": anything}]),
    )?;
    let rows =
        json!([{"version": "1.4.0", "enabled": [{"name": "C"}]}, {"version": "1.5.0", "enabled": [{"name": "C"}]}]);
    let forged = json!({"spec": spec, "status": {"featureGates": rows}});
    // A definition and a binding are in force a moment after they were written.
    sets.until("1.4.0:C 1.5.0:C", || {
        patch(sets, &forged, &[])?;
        sets.rows()
    })?;
    define(sets, &json!([{"op": "replace", "path": "/spec", "value": strict["spec"]}]))?;
    sets.good(&["apply", "-f", &sets.manifest("1.5.0", "2-policies.yaml")])?;
    sets.until("refused", || {
        let (well, said) = patch(sets, &json!({"status": {"featureGates": "x"}}), &["--subresource=status"])?;
        Ok(if well { said } else { "refused".to_owned() })
    })
}

fn define(sets: &Sets<'_>, patch: &Value) -> Result<String> {
    sets.good(&["patch", "crd", DEFINITION, "--type=json", "-p", &patch.to_string()])
}

fn patch(sets: &Sets<'_>, patch: &Value, more: &[&str]) -> Result<(bool, String)> {
    let patch = patch.to_string();
    let args = ["patch", "featuregate", "cluster", "--type=merge", "-p", &patch];
    sets.kubectl_as(&sets.kubeconfig, &[&args, more].concat())
}
