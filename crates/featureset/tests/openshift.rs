//! Objects as a real OpenShift has them are read, resolved, and written again without loss.

use std::{fs, path::Path};

use featureset::{
    Choice, Set,
    object::{ClusterOperator, ClusterVersion, FeatureGate},
};
use serde_json::{Value, json};

fn dump(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/openshift").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Nothing of `old` is lost; nulls may have become empty, and nothing else may have come.
fn same(old: &Value, new: &Value, at: &str) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old.iter().filter(|(_, value)| !value.is_null()) {
                same(value, new.get(key).unwrap_or_else(|| panic!("{at}.{key} is lost")), &format!("{at}.{key}"));
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            assert_eq!(old.len(), new.len(), "{at}");
            old.iter().zip(new).for_each(|(old, new)| same(old, new, at));
        }
        _ => assert_eq!(old, new, "{at}"),
    }
}

#[test]
fn a_feature_gate_is_kept_whole() {
    let old = dump("featuregate.json");
    let object: FeatureGate = serde_json::from_value(old.clone()).unwrap();
    same(&old, &serde_json::to_value(&object).unwrap(), "");
    let choice = Choice::of_spec(&object.spec).unwrap();
    assert_eq!((choice.set, choice.enabled.len(), choice.disabled.len()), (Set::Custom, 1, 0));
    assert_eq!(object.versions(), ["4.20.1", "4.19.9"]);
    assert_eq!(object.row("4.20.1").unwrap().get("MetricsServer"), Some(true));
    assert_eq!(object.row("4.19.9").unwrap().get("GatewayAPI"), Some(false));
    assert_eq!(object.row("4.18.0"), None);
}

#[test]
fn a_cluster_version_is_kept_whole() {
    let old = dump("clusterversion.json");
    let object: ClusterVersion = serde_json::from_value(old.clone()).unwrap();
    let new = serde_json::to_value(&object).unwrap();
    same(&old, &new, "");
    assert!(new["status"]["history"][0]["completionTime"].is_null());
    assert!(new["status"]["history"][0].as_object().unwrap().contains_key("completionTime"));
    assert_eq!((object.versions(), object.latest()), (vec!["4.20.1", "4.19.9"], Some("4.20.1")));
}

#[test]
fn a_cluster_operator_is_kept_whole() {
    let old = dump("clusteroperator.json");
    let object: ClusterOperator = serde_json::from_value(old.clone()).unwrap();
    same(&old, &serde_json::to_value(&object).unwrap(), "");
    assert_eq!(object.version("feature-gates"), Some("4.20.1"));
}

/// A folder of payload manifests of openshift/api, if there is one: `LOCKGATE_OPENSHIFT_MANIFESTS`.
#[test]
fn payload_manifests_of_openshift_are_read() {
    let Some(dir) = std::env::var_os("LOCKGATE_OPENSHIFT_MANIFESTS") else {
        eprintln!("SKIPPED: LOCKGATE_OPENSHIFT_MANIFESTS names no folder");
        return;
    };
    let mut read = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let object: FeatureGate = serde_saphyr::from_str(&text).unwrap();
        Choice::of_spec(&object.spec).unwrap();
        let row = object.status.feature_gates[0].to_row();
        assert!(row.enabled.len() + row.disabled.len() > 100 && row.enabled.is_disjoint(&row.disabled));
        read += 1;
    }
    assert!(read >= 4, "{read} manifests");
}

/// The definitions take any text there, so one that nobody knows must be read, and kept.
#[test]
fn texts_that_nobody_knows_are_kept() {
    let entry = json!({"state": "Weird", "startedTime": null, "completionTime": null, "version": "1.4.0", "image": "", "verified": false});
    let condition = json!({"type": "Odd", "status": "Perhaps", "lastTransitionTime": "", "reason": "", "message": ""});
    let status = json!({"desired": {"version": "1.4.0", "image": ""}, "history": [entry], "conditions": [condition]});
    let old = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"},
        "spec": {}, "status": status});
    let read: ClusterVersion = serde_json::from_value(old.clone()).unwrap();
    assert_eq!(read.versions(), ["1.4.0"]);
    same(&old, &serde_json::to_value(read).unwrap(), "");
}
