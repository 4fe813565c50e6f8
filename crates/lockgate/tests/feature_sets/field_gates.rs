//! Gates of fields that follow feature sets: an API server, a controller, and kubectl for all other clients.

use std::fs;

use harness::until;
use serde_json::{Value, json};

use super::world::{GATE, World};

const NAME: &str = "jobs.example.com";
const FOLLOW: &str = "gates.lockgate.io/follow";

/// A definition with gates for fields. Two have the names of gates of 1.4.0, and Z is in no version.
fn definition(name: &str, gates: Value) -> Value {
    let (plural, _) = name.split_once('.').unwrap();
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": text, "b": text, "z": text}},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {FOLLOW: "feature-sets"}},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": plural},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            "customFeatureGates": {"featureGates": gates},
        },
    })
}

fn gates() -> Value {
    json!([
        {"name": "A", "preRelease": "alpha", "fieldPaths": [".spec.a"]},
        {"name": "B", "preRelease": "beta", "fieldPaths": [".spec.b"]},
        {"name": "Z", "preRelease": "alpha", "fieldPaths": [".spec.z"]},
    ])
}

impl World {
    /// Runs kubectl with the object as its file.
    fn with_file(&self, args: &[&str], object: &Value) -> Result<String, String> {
        fs::write(self.path("object.json"), object.to_string()).unwrap();
        self.kubectl(&[args, &["-f", &self.text("object.json")]].concat())
    }

    fn definition(&self, name: &str) -> Value {
        let text = self.kubectl(&["get", "crd", name, "-o", "json", "--show-managed-fields"]).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// The field `enabled` of each gate: `A=true B=unset`.
    fn enabled(&self) -> String {
        let object = self.definition(NAME);
        let gates = object["spec"]["customFeatureGates"]["featureGates"].as_array().cloned().unwrap_or_default();
        let one = |gate: &Value| {
            let on = gate.get("enabled").map_or("unset".to_owned(), Value::to_string);
            format!("{}={on}", gate["name"].as_str().unwrap_or_default())
        };
        gates.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn until_enabled(&self, want: &str) {
        until(&format!("the gates of fields are {want:?}"), || self.enabled() == want);
    }

    fn message(&self, kind: &str) -> String {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")].message}}");
        self.kubectl(&["get", "featuregate", "cluster", "-o", &path]).unwrap_or_default()
    }

    /// Creates objects of the definition until the API server keeps `want` of their fields: it sees a change of the
    /// definition after a moment.
    #[track_caller]
    fn until_fields(&self, want: &str) {
        let mut count = 0;
        until(&format!("the API server keeps {want}"), || {
            count += 1;
            let (name, spec) = (format!("job-{count}"), json!({"a": "1", "b": "2", "z": "3"}));
            let job = json!({"apiVersion": "example.com/v1", "kind": "jobs", "metadata": {"name": name}, "spec": spec});
            self.with_file(&["create"], &job).unwrap();
            let kept = self.good(&["get", "jobs.example.com", &name, "-o", "jsonpath={.spec}"]);
            self.good(&["delete", "jobs.example.com", &name]);
            kept == want
        });
    }
}

#[track_caller]
fn ready() -> Option<World> {
    let world = World::new()?;
    world.install();
    world.history(&["1.4.0"]);
    Some(world)
}

/// Fields follow a change of the set. A definition that stops following gets its defaults back.
#[test]
fn fields_follow_the_set() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let mut controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    world.until_fields("{}");

    world.choose("TechPreviewNoUpgrade");
    world.until_enabled("A=true B=false Z=unset");
    world.until_fields(r#"{"a":"1"}"#);
    world.until_condition(GATE, "FieldGatesStale", "False AsExpected");
    world.assert_no_needless_writes(&controller, &["crd", NAME]);

    // A definition that is created later follows, too.
    world.with_file(&["create"], &definition("tasks.example.com", gates())).unwrap();
    let of_tasks =
        || world.definition("tasks.example.com")["spec"]["customFeatureGates"]["featureGates"][0]["enabled"].clone();
    until("the new definition follows", || of_tasks() == true);

    world.good(&["annotate", "crd", NAME, &format!("{FOLLOW}-")]);
    world.until_enabled("A=unset B=unset Z=unset");
    assert!(
        !world.definition(NAME).to_string().contains("\"lockgate-gates\""),
        "the controller owns no field any more"
    );
    assert_eq!(of_tasks(), true);
    controller.stop();
}

/// Values of other managers are taken over, and logged. A manager that changes a value back is named and not overruled.
#[test]
fn conflicts_with_other_managers_are_reported() {
    let Some(world) = ready() else { return };
    let mut set = gates();
    set[0]["enabled"] = true.into();
    world.with_file(&["create", "--field-manager=author"], &definition(NAME, set)).unwrap();
    let mut controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    controller.wait_log("took enabled over");
    let log = controller.log();
    let line = log.lines().find(|line| line.contains("took enabled over")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains(NAME) && line.contains("\"A\"") && line.contains("author"), "{line}");

    let patch = r#"[{"op":"replace","path":"/spec/customFeatureGates/featureGates/0/enabled","value":true}]"#;
    world.good(&["patch", "crd", NAME, "--type=json", "-p", patch]);
    world.until_condition(GATE, "FieldGatesStale", "True Contested");
    let message = world.message("FieldGatesStale");
    assert!(
        message
            .contains("jobs.example.com: gate A is set by kubectl-patch, and gates of it were taken over once lately"),
        "{message}"
    );
    assert_eq!(world.enabled(), "A=true B=false Z=unset", "the value is not overruled");
    // The rows and the other gates still follow the set.
    world.choose("DevPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    world.until_condition(GATE, "FieldGatesStale", "False AsExpected");
    assert_eq!(world.enabled(), "A=true B=false Z=unset");
    controller.stop();
}

/// An author who applies server-side cannot remove a gate while the controller owns a part of it. The test shows the way out.
#[test]
fn an_author_removes_a_gate() {
    let Some(world) = ready() else { return };
    let apply: &[&str] = &["apply", "--server-side", "--field-manager=author"];
    let mut object = definition(NAME, gates());
    world.with_file(apply, &object).unwrap();
    let mut controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    object["spec"]["customFeatureGates"]["featureGates"] = json!([gates()[1]]);
    let refused = world.with_file(apply, &object).unwrap_err();
    assert!(refused.contains("preRelease"), "{refused}");
    let mut free = definition(NAME, gates());
    free["metadata"]["annotations"] = json!({});
    world.with_file(apply, &free).unwrap();
    world.until_enabled("A=unset B=unset Z=unset");
    world.with_file(apply, &object).unwrap();
    world.until_enabled("B=false");
    controller.stop();
}

/// Definitions that cannot follow are named, and do not delay others.
#[test]
fn definitions_that_cannot_follow_are_named() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let mut plain = definition("plain.example.com", json!([]));
    plain["spec"].as_object_mut().unwrap().remove("customFeatureGates");
    world.with_file(&["create"], &plain).unwrap();
    let mut typo = definition("typos.example.com", gates());
    typo["metadata"]["annotations"][FOLLOW] = "featuresets".into();
    world.with_file(&["create"], &typo).unwrap();
    let mut controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.until_enabled("A=false B=false Z=unset");
    world.until_condition(GATE, "FieldGatesStale", "True");
    let message = world.message("FieldGatesStale");
    for part in
        ["plain.example.com: it is to follow and has no spec.customFeatureGates", "typos.example.com: annotation"]
    {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(world.condition(GATE, "DeterminationDegraded"), "False AsExpected");
    controller.stop();
}

/// `plan` with a cluster: rows, fields, restarts, and the recorded sets.
#[test]
fn a_plan_of_a_cluster() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let mut controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    let now = kubeapi::micro_time();
    let lease = |component: &str, gates: &str| {
        let key = |name: &str| format!("gates.lockgate.io/{name}");
        let annotations =
            json!({key("component"): component, key("version"): "1.4.0", key("row-digest"): "d", key("gates"): gates});
        let spec = json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 600, "renewTime": now});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec, "metadata": {
            "name": component, "namespace": "lockgate-gates", "labels": {key("kind"): "ack"}, "annotations": annotations}})
    };
    world.with_file(&["create"], &lease("router", "A,B")).unwrap();
    world.with_file(&["create"], &lease("clock", "B")).unwrap();

    let kubeconfig = world.kubeconfig();
    let plan = |to: &'static str| ["plan", "--kubeconfig", &kubeconfig, "--to", to];
    let said = world.gates(&plan("TechPreviewNoUpgrade")).ok();
    let want = "Default -> TechPreviewNoUpgrade\nversion 1.4.0:\n  turned on: A\n  cannot be undone: A\n\
                fields, which follow the row of 1.4.0:\n  jobs.example.com A (.spec.a): off -> on\n  \
                jobs.example.com B (.spec.b): stays off\nTechPreviewNoUpgrade is for ever: there is no way back\n\
                the cluster cannot be upgraded any more: TechPreviewNoUpgrade says Upgradeable=False\n\
                restarts: router pod-1 (1.4.0)\n";
    assert_eq!(said, want);
    let said = world.gates(&[&plan("TechPreviewNoUpgrade")[..], &["-w", "json"]].concat()).ok();
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["fields"][0]["after"], &json["restarts"][0]["component"]), (&json!(true), &json!("router")));

    // The plan comes true. The recorded set stays in force permanently, whatever the object shows.
    world.choose("TechPreviewNoUpgrade");
    world.until_enabled("A=true B=false Z=unset");
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_condition(GATE, "DeterminationDegraded", "True OneWaySetLeft");
    let said = world.gates_fail(&plan("Default"));
    let why = "the API refuses this: the audit trail says that the cluster was in TechPreviewNoUpgrade once";
    assert!(said.contains(why) && said.contains("nothing changes"), "{said}");
    controller.stop();
}

/// Registries that no version needs are removed in two steps, also while policies guard the records.
#[test]
fn registries_of_old_versions_are_removed() {
    let Some(world) = ready() else { return };
    world.good(&["apply", "-f", &world.path("1.4.0/manifests/2-policies.yaml").display().to_string()]);
    let mut old = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    old.stop();
    world.history(&["1.5.0", "1.4.0"]);
    let mut new = world.controller_with("1.5.0", &["--keep-registries-days", "0"]);
    world.until_rows("1.4.0: 1.5.0:A");
    let registries = || {
        let path = "jsonpath={.items[*].metadata.name}";
        let label = "gates.lockgate.io/kind=registry";
        world.good(&["get", "configmaps", "-n", "lockgate-gates", "-l", label, "-o", path])
    };
    assert_eq!(registries(), "gates-1.4.0 gates-1.5.0");
    let refused = world.kubectl(&["delete", "configmap", "gates-1.4.0", "-n", "lockgate-gates"]).unwrap_err();
    assert!(refused.contains("they cannot be deleted"), "{refused}");
    world.history(&["1.5.0"]);
    world.until_rows("1.5.0:A");
    until("the registry is removed", || registries() == "gates-1.5.0");
    assert_eq!(world.condition(GATE, "DeterminationDegraded"), "False AsExpected");
    new.stop();
}
