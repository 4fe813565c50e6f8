//! The manifests of feature sets and policies with the real kubectl.

use crate::common;

use common::World;

const NAMESPACE: &str = "lockgate-gates";
const SMALL: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: small}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}
  variables:
  - {name: size, expression: 'has(object.data) ? object.data.size() : 0'}
  validations:
  - {expression: variables.size < 2, messageExpression: \"'too many entries: ' + string(variables.size)\"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: small}
spec: {policyName: small, validationActions: [Warn]}
";

fn files(world: &World) -> Vec<String> {
    let manifests = [
        ("0-crds.yaml", featureset::generate::crds()),
        ("1-namespace.yaml", featureset::generate::namespace(NAMESPACE)),
        ("2-policies.yaml", featureset::generate::policies(NAMESPACE)),
    ];
    let write = |(name, text): (&str, String)| {
        let path = world.dir().join(name);
        std::fs::write(&path, text).expect("a file");
        format!("--filename={}", path.display())
    };
    manifests.into_iter().map(write).collect()
}

/// The number of lines with this end.
#[track_caller]
fn all_end(said: &str, end: &str) {
    assert!(said.lines().count() == 10 && said.lines().all(|line| line.ends_with(end)), "{end}: {said}");
}

#[test]
fn the_manifests_are_applied_and_enforced() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    let files = files(&world);
    let apply = |more: &[&str]| {
        let files = files.iter().map(String::as_str);
        world.kubectl(&["apply"].into_iter().chain(files).chain(more.iter().copied()).collect::<Vec<_>>()).ok()
    };
    all_end(&apply(&[]), " created");
    all_end(&apply(&[]), " unchanged");
    all_end(&apply(&["--server-side"]), " serverside-applied");
    all_end(&apply(&["--server-side", "--dry-run=server"]), " serverside-applied (server dry run)");

    let table = world.kubectl(&["get", "validatingadmissionpolicies,validatingadmissionpolicybindings"]).ok();
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[0], ["NAME", "VALIDATIONS", "PARAMKIND", "AGE"]);
    let policy = "validatingadmissionpolicy.admissionregistration.k8s.io/feature-gate.gates.lockgate.io";
    assert_eq!(words[1][..3], [policy, "3", "<unset>"]);
    assert_eq!(words[5], ["NAME", "POLICYNAME", "PARAMREF", "AGE"]);
    let bound = "validatingadmissionpolicybinding.admissionregistration.k8s.io/keep.gates.lockgate.io";
    assert_eq!(words[7][..3], [bound, "keep.gates.lockgate.io", "<unset>"]);
    let explained = world.kubectl(&["explain", "validatingadmissionpolicy.spec.validations"]).ok();
    assert!(
        explained.contains("FIELD: validations <[]Object>") && explained.contains("messageExpression"),
        "{explained}"
    );

    // Older clients parse a text that begins with a brace as JSON.
    let gate = "---\n{apiVersion: config.openshift.io/v1, kind: FeatureGate, metadata: {name: cluster}, spec: {featureSet: TechPreviewNoUpgrade}}";
    world.kubectl_with(&["apply", "-f", "-"], gate).ok();
    let kept = |resource: &str, name: &str| {
        format!(
            "Error from server (Forbidden): {resource} {name:?} is forbidden: ValidatingAdmissionPolicy 'keep.gates.lockgate.io' \
             with binding 'keep.gates.lockgate.io' denied request: feature sets are kept in this object, it cannot be deleted"
        )
    };
    assert_eq!(
        world.kubectl(&["delete", "featuregate", "cluster"]).error(),
        kept("featuregates.config.openshift.io", "cluster")
    );
    let name = "featuregates.config.openshift.io";
    let said = world.kubectl(&["delete", "crd", name]).error();
    assert_eq!(said, kept("customresourcedefinitions.apiextensions.k8s.io", name));
    let said = world
        .kubectl(&["patch", "featuregate", "cluster", "--type=merge", "-p", r#"{"spec":{"featureSet":""}}"#])
        .error();
    assert_eq!(
        said,
        "The FeatureGate \"cluster\" is invalid: spec.featureSet: Invalid value: \"\": TechPreviewNoUpgrade may not be changed"
    );
    let other = gate.replace("name: cluster", "name: other");
    let said = world.kubectl_with(&["apply", "-f", "-"], &other).error();
    assert!(said.contains("denied request: the only FeatureGate is named cluster"), "{said}");
}

#[test]
fn a_policy_is_changed_and_warns() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    world.kubectl_with(&["apply", "-f", "-"], SMALL).ok();
    let create = |name: &str| world.kubectl(&["create", "configmap", name, "--from-literal=a=1", "--from-literal=b=2"]);
    let said = create("one");
    assert!(said.code == Some(0), "{}", said.stderr);
    assert_eq!(
        said.stderr,
        "Warning: Validation failed for ValidatingAdmissionPolicy 'small' with binding 'small': too many entries: 2\n"
    );
    // The patch that kubectl sends puts a variable before the one that uses it.
    let changed = SMALL
        .replace("  variables:\n", "  variables:\n  - {name: least, expression: '2'}\n")
        .replace("variables.size < 2", "variables.size < variables.least")
        .replace("? object.data.size()", "? variables.least - variables.least + object.data.size()")
        .replace("[Warn]", "[Deny]");
    let said = world.kubectl_with(&["apply", "-f", "-"], &changed).ok();
    assert_eq!(said.matches(" configured").count(), 2, "{said}");
    let said = create("two").error();
    assert_eq!(
        said,
        "error: failed to create configmap: configmaps \"two\" is forbidden: ValidatingAdmissionPolicy 'small' with binding \
         'small' denied request: too many entries: 2"
    );
    // kubectl has its own text for this reason.
    let map = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: two}, data: {a: '1', b: '2'}}";
    let said = world.kubectl_with(&["apply", "-f", "-"], map).error();
    let why = "ValidatingAdmissionPolicy 'small' with binding 'small' denied request: too many entries: 2";
    assert_eq!(said, format!("The configmaps \"two\" is invalid: : {why}"));
    let said =
        world.kubectl_with(&["apply", "-f", "-"], &changed.replace("< variables.least", "< variables.last")).error();
    let begin = "The ValidatingAdmissionPolicy \"small\" is invalid: spec.validations[0].expression: Invalid value: \
        \"variables.size < variables.last\": compilation failed: ERROR: <input>:1:27: undefined field 'last'";
    assert!(said.starts_with(begin), "{said}");
    world.kubectl(&["delete", "validatingadmissionpolicy", "small"]).ok();
    create("two").ok();
}
