//! Manifests: definitions, policies, roles, and a FeatureGate for every set and profile.

use serde_json::Value;

use crate::{
    object::{FeatureGate, FeatureGateSpec, StatusRow},
    registry::{Registry, RegistryError},
    resolve::{Choice, resolve},
    set::Set,
};

/// The three kinds of `config.openshift.io/v1`, for clusters that are no OpenShift.
pub fn crds() -> String {
    [
        include_str!("manifest/featuregates.yaml"),
        include_str!("manifest/clusterversions.yaml"),
        include_str!("manifest/clusteroperators.yaml"),
    ]
    .join("---\n")
}

/// What the definitions cannot refuse: names, deletion, lists that contradict each other.
pub fn policies(namespace: &str) -> String {
    include_str!("manifest/policies.yaml").replace("NAMESPACE", namespace)
}

pub fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n")
}

pub fn rbac(namespace: &str) -> String {
    include_str!("manifest/rbac.yaml").replace("NAMESPACE", namespace)
}

/// FeatureGate `cluster` with the row of the registry's version, in the layout of OpenShift's payload.
pub fn feature_gate(registry: &Registry, profile: &str, set: Set) -> Result<Value, RegistryError> {
    let row = resolve(registry, profile, &Choice::of_set(set))?.row;
    let mut object = FeatureGate::new(FeatureGateSpec::of_set(set));
    object.metadata.annotations = [
        (format!("include.release.openshift.io/{}", cluster_profile(profile)), "false-except-for-the-config-operator"),
        ("release.openshift.io/feature-set".to_owned(), set.name()),
        ("release.openshift.io/major-version".to_owned(), registry.version.split('.').next().unwrap_or_default()),
    ]
    .map(|(key, value)| (key, value.to_owned()))
    .into();
    object.status.feature_gates = vec![StatusRow::of_row(&row)];
    Ok(serde_json::to_value(object).unwrap_or_default())
}

/// OpenShift's two profiles have longer names where manifests are chosen by them.
fn cluster_profile(profile: &str) -> &str {
    match profile {
        "SelfManagedHA" => "self-managed-high-availability",
        "Hypershift" => "ibm-cloud-managed",
        other => other,
    }
}
