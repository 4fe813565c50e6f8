//! Gates of fields that follow feature sets: an API server, a controller, and kubectl as everyone else.

use std::{fs, process::Command, time::Duration};

use serde_json::{Value, json};

use super::{LOCKGATE, World, has_kubectl};

const NAME: &str = "jobs.example.com";
const FOLLOW: &str = "gates.lockgate.io/follow";
const GATE: &[&str] = &["featuregate", "cluster"];

/// A definition with a gate for `.spec.a`, by the name of a gate of 1.4.0, and one for `.spec.z`, whose name no version has.
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
    /// Writes the object to a file and hands it to kubectl.
    fn with_file(&self, args: &[&str], object: &Value) -> Result<String, String> {
        fs::write(self.path("object.json"), object.to_string()).unwrap();
        self.kubectl(&[args, &["-f", &self.text("object.json")]].concat())
    }

    fn definition(&self, name: &str) -> Value {
        let text = self.kubectl(&["get", "crd", name, "-o", "json", "--show-managed-fields"]).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `A=true B=unset`: what `enabled` says of each.
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
        self.until(&format!("{want}, now {}", self.enabled()), || self.enabled() == want);
    }

    fn message(&self, kind: &str) -> String {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")].message}}");
        self.kubectl(&["get", "featuregate", "cluster", "-o", &path]).unwrap_or_default()
    }

    fn version_of(&self, name: &str) -> Value {
        self.definition(name)["metadata"]["resourceVersion"].clone()
    }

    fn lockgate_gates(&self, args: &[&str]) -> (bool, String) {
        let kubeconfig = self.text("api/admin.kubeconfig");
        let said = Command::new(LOCKGATE).arg("gates").args(args).args(["--kubeconfig", &kubeconfig]).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        (said.status.success(), text)
    }
}

fn ready() -> Option<World> {
    if !has_kubectl() {
        return None;
    }
    let world = World::new();
    world.install();
    world.history(&["1.4.0"]);
    Some(world)
}

/// The set is changed and fields follow; who follows no more gets its defaults back.
#[test]
fn fields_follow_the_set() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    let job = |name: &str| {
        let spec = json!({"a": "1", "b": "2", "z": "3"});
        json!({"apiVersion": "example.com/v1", "kind": "jobs", "metadata": {"name": name}, "spec": spec})
    };
    let kept = |name: &str| world.good(&["get", "jobs.example.com", name, "-o", "jsonpath={.spec}"]);
    world.with_file(&["create"], &job("early")).unwrap();
    assert_eq!(kept("early"), "{}");

    world.choose("TechPreviewNoUpgrade");
    world.until_enabled("A=true B=false Z=unset");
    world.with_file(&["create"], &job("late")).unwrap();
    assert_eq!(kept("late"), r#"{"a":"1"}"#);
    assert_eq!(world.condition(GATE, "FieldGatesStale"), "False AsExpected");
    let before = (world.version_of(NAME), world.versions_of_objects());
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!((world.version_of(NAME), world.versions_of_objects()), before, "needless writes");

    // A definition that comes later is seen without waiting for anything.
    world.with_file(&["create"], &definition("tasks.example.com", gates())).unwrap();
    let of_tasks =
        || world.definition("tasks.example.com")["spec"]["customFeatureGates"]["featureGates"][0]["enabled"].clone();
    world.until("the new definition follows", || of_tasks() == true);

    world.good(&["annotate", "crd", NAME, &format!("{FOLLOW}-")]);
    world.until_enabled("A=unset B=unset Z=unset");
    assert!(!world.definition(NAME).to_string().contains("\"lockgate-gates\""), "it owns nothing any more");
    assert_eq!(of_tasks(), true);
    controller.stop();
}

/// What others set is taken from them, and that is said; who takes it back is named, and no fight breaks out.
#[test]
fn others_are_told() {
    let Some(world) = ready() else { return };
    let mut set = gates();
    set[0]["enabled"] = true.into();
    world.with_file(&["create", "--field-manager=author"], &definition(NAME, set)).unwrap();
    let controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    let log = fs::read_to_string(world.path("1.4.0.log")).unwrap();
    let line = log.lines().find(|line| line.contains("took enabled over")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains(NAME) && line.contains("\"A\"") && line.contains("author"), "{line}");

    let patch = r#"[{"op":"replace","path":"/spec/customFeatureGates/featureGates/0/enabled","value":true}]"#;
    world.good(&["patch", "crd", NAME, "--type=json", "-p", patch]);
    world.until("it is told", || world.condition(GATE, "FieldGatesStale") == "True Contested");
    let message = world.message("FieldGatesStale");
    assert!(
        message
            .contains("jobs.example.com: gate A is set by kubectl-patch, and gates of it were taken over once lately"),
        "{message}"
    );
    assert_eq!(world.enabled(), "A=true B=false Z=unset", "no fight");
    // Rows go on, and so do the other gates.
    world.choose("DevPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    world.until("nobody disagrees any more", || world.condition(GATE, "FieldGatesStale") == "False AsExpected");
    assert_eq!(world.enabled(), "A=true B=false Z=unset");
    controller.stop();
}

/// An author who applies server-side and takes a gate out: refused while the controller has a share in it, with a way out.
#[test]
fn an_author_takes_a_gate_out() {
    let Some(world) = ready() else { return };
    let apply: &[&str] = &["apply", "--server-side", "--field-manager=author"];
    let mut object = definition(NAME, gates());
    world.with_file(apply, &object).unwrap();
    let controller = world.controller("1.4.0");
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

/// Definitions that cannot follow are named, and hold up nobody.
#[test]
fn what_cannot_follow_is_named() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let mut plain = definition("plain.example.com", json!([]));
    plain["spec"].as_object_mut().unwrap().remove("customFeatureGates");
    world.with_file(&["create"], &plain).unwrap();
    let mut typo = definition("typos.example.com", gates());
    typo["metadata"]["annotations"][FOLLOW] = "featuresets".into();
    world.with_file(&["create"], &typo).unwrap();
    let controller = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.until_enabled("A=false B=false Z=unset");
    world.until("it is told", || world.condition(GATE, "FieldGatesStale").starts_with("True"));
    let message = world.message("FieldGatesStale");
    for part in
        ["plain.example.com: it is to follow and has no spec.customFeatureGates", "typos.example.com: annotation"]
    {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert_eq!(world.condition(GATE, "DeterminationDegraded"), "False AsExpected");
    controller.stop();
}

/// `plan` with a cluster: rows, fields, who restarts, and what is on record.
#[test]
fn a_plan_of_a_cluster() {
    let Some(world) = ready() else { return };
    world.with_file(&["create"], &definition(NAME, gates())).unwrap();
    let controller = world.controller("1.4.0");
    world.until_enabled("A=false B=false Z=unset");
    let now = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S.%6NZ"]).output().unwrap().stdout;
    let lease = |component: &str, gates: &str| {
        let key = |name: &str| format!("gates.lockgate.io/{name}");
        let annotations =
            json!({key("component"): component, key("version"): "1.4.0", key("row-digest"): "d", key("gates"): gates});
        let spec = json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 600, "renewTime": String::from_utf8_lossy(&now).trim()});
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec, "metadata": {
            "name": component, "namespace": "lockgate-gates", "labels": {key("kind"): "ack"}, "annotations": annotations}})
    };
    world.with_file(&["create"], &lease("router", "A,B")).unwrap();
    world.with_file(&["create"], &lease("clock", "B")).unwrap();

    let (ok, said) = world.lockgate_gates(&["plan", "--to", "TechPreviewNoUpgrade"]);
    let want = "Default -> TechPreviewNoUpgrade\nversion 1.4.0:\n  turned on: A\n  cannot be undone: A\n\
                fields, which follow the row of 1.4.0:\n  jobs.example.com A (.spec.a): off -> on\n  \
                jobs.example.com B (.spec.b): stays off\nTechPreviewNoUpgrade is for ever: there is no way back\n\
                the cluster cannot be upgraded any more: TechPreviewNoUpgrade says Upgradeable=False\n\
                restarts: router pod-1 (1.4.0)\n";
    assert_eq!((ok, said.as_str()), (true, want));
    let (_, said) = world.lockgate_gates(&["plan", "--to", "TechPreviewNoUpgrade", "-w", "json"]);
    let json: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&json["fields"][0]["after"], &json["restarts"][0]["component"]), (&json!(true), &json!("router")));

    // What was planned happens; and on record the set is for ever, whatever the object shows.
    world.choose("TechPreviewNoUpgrade");
    world.until_enabled("A=true B=false Z=unset");
    world.good(&["delete", "featuregate", "cluster"]);
    world.until("it is told", || world.condition(GATE, "DeterminationDegraded") == "True OneWaySetLeft");
    let (ok, said) = world.lockgate_gates(&["plan", "--to", "Default"]);
    let why = "the API refuses this: the audit trail says that the cluster was in TechPreviewNoUpgrade once";
    assert!(!ok && said.contains(why) && said.contains("nothing changes"), "{said}");
    controller.stop();
}

/// Registries that nobody needs go, in two steps, and with the policies that guard records in force.
#[test]
fn registries_of_versions_long_gone() {
    let Some(world) = ready() else { return };
    world.good(&["apply", "-f", &world.path("1.4.0/manifests/2-policies.yaml").display().to_string()]);
    let old = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    old.stop();
    world.history(&["1.5.0", "1.4.0"]);
    let new = world.controller_with("1.5.0", &["--keep-registries-days", "0"]);
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
    world.until("the registry is gone", || registries() == "gates-1.5.0");
    assert_eq!(world.condition(GATE, "DeterminationDegraded"), "False AsExpected");
    new.stop();
}
