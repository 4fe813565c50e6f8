//! Gates on fields, with the real kubectl.

use crate::common;

use common::{World, data};

const GATE: &str = r#"[{"op":"add","path":"/spec/customFeatureGates","value":{"featureGates":[
    {"name":"Scaling","preRelease":"alpha","fieldPaths":[".spec.replicas"]}]}}]"#;

fn world() -> World {
    let world = World::start();
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).ok();
    world.kubectl(&["patch", "crd", "crontabs.stable.example.com", "--type=json", "-p", GATE]).ok();
    world
}

fn switch(world: &World, api: &apiserver::Server, on: bool) {
    let patch = format!(r#"[{{"op":"add","path":"/spec/customFeatureGates/featureGates/0/enabled","value":{on}}}]"#);
    world.kubectl_on(api).run(&["patch", "crd", "crontabs.stable.example.com", "--type=json", "-p", &patch]).ok();
}

fn field(world: &World, path: &str) -> String {
    world.kubectl(&["get", "ct", "my-cron", "-o", &format!("jsonpath={{{path}}}")]).ok()
}

#[test]
fn a_disabled_field_is_dropped_frozen_and_kept() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let created = world.kubectl(&["create", "-f", &data("my-cron.yaml")]);
    assert!(created.code == Some(0));
    assert_eq!(created.stderr, "Warning: spec.replicas: dropped, feature gate \"Scaling\" is disabled\n");
    assert_eq!((field(&world, ".spec.replicas"), field(&world, ".metadata.generation")), (String::new(), "1".into()));

    let version = field(&world, ".metadata.resourceVersion");
    let patched = world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":5}}"#]);
    assert!(patched.code == Some(0) && patched.stderr.contains("spec.replicas: dropped"), "{}", patched.stderr);
    assert_eq!(field(&world, ".metadata.resourceVersion"), version, "nothing was written");

    switch(&world, world.api(), true);
    world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":5}}"#]).ok();
    assert_eq!((field(&world, ".spec.replicas"), field(&world, ".metadata.generation")), ("5".into(), "2".into()));

    switch(&world, world.api(), false);
    let version = field(&world, ".metadata.resourceVersion");
    let patched = world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":7}}"#]);
    assert!(
        patched.stderr.contains("spec.replicas: not updated, feature gate \"Scaling\" is disabled"),
        "{}",
        patched.stderr
    );
    let removed = world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":null}}"#]);
    assert!(removed.stderr.contains("spec.replicas: not removed"), "{}", removed.stderr);
    assert_eq!((field(&world, ".spec.replicas"), field(&world, ".metadata.resourceVersion")), ("5".into(), version));
    // Another change in the same request is written without it.
    world
        .kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":7,"image":"alpine"}}"#])
        .ok();
    assert_eq!(
        (field(&world, ".spec.replicas"), field(&world, ".spec.image"), field(&world, ".metadata.generation")),
        ("5".into(), "alpine".into(), "3".into())
    );
}

#[test]
fn warnings_as_errors_apply_and_diff() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let applied = world.kubectl(&["apply", "--warnings-as-errors", "-f", &data("my-cron.yaml")]);
    assert!(applied.stderr.contains("1 warning received"), "{}", applied.stderr);
    let version = field(&world, ".metadata.resourceVersion");
    let again = world.kubectl(&["apply", "-f", &data("my-cron.yaml")]);
    assert!(again.code == Some(0) && again.stderr.contains("dropped"), "{}", again.stderr);
    assert_eq!(field(&world, ".metadata.resourceVersion"), version);
    assert!(world.kubectl(&["diff", "-f", &data("my-cron.yaml")]).code == Some(0), "there is nothing to change");
    let metrics = world.kubectl(&["get", "--raw", "/metrics"]).ok();
    assert!(
        metrics.contains(r#"fieldgate_enabled{crd="crontabs.stable.example.com",name="Scaling",stage="alpha"} 0"#),
        "{metrics}"
    );
    assert!(
        metrics.contains(r#"fieldgate_suppressed_total{crd="crontabs.stable.example.com",name="Scaling",op="create"}"#)
    );
}

#[test]
fn explain_and_status_show_the_gate() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let text = world.kubectl(&["explain", "crontab.spec.replicas"]).ok();
    assert!(text.contains("[alpha, gate Scaling: off]") && text.contains("How many run at once."), "{text}");
    let state = |world: &World| {
        world
            .kubectl(&[
                "get",
                "crd",
                "crontabs.stable.example.com",
                "-o",
                "jsonpath={.status.customFeatureGates.featureGates[0].enabled}",
            ])
            .ok()
    };
    assert_eq!(state(&world), "false");
    switch(&world, world.api(), true);
    assert_eq!(state(&world), "true");
    assert!(world.kubectl(&["explain", "crontab.spec.replicas"]).ok().contains("[alpha, gate Scaling: on]"));
}

#[test]
fn the_published_schema_has_the_state_and_the_defaults_in_force() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let default = r#"[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/default","value":3}]"#;
    world.kubectl(&["patch", "crd", "crontabs.stable.example.com", "--type=json", "-p", default]).ok();
    let published = || {
        let spec = world.kubectl(&["get", "--raw", "/openapi/v3/apis/stable.example.com/v1"]).ok();
        let spec: serde_json::Value = serde_json::from_str(&spec).unwrap();
        let schemas = &spec["components"]["schemas"];
        schemas["com.example.stable.v1.CronTab"]["properties"]["spec"]["properties"]["replicas"].clone()
    };
    let enabled = |field: &serde_json::Value| {
        field["x-kubernetes-api-lifecycle"]["stable.example.com"]["enabled"].as_bool().expect("the state")
    };
    let off = published();
    assert!(!enabled(&off) && off.get("default").is_none(), "{off}");
    switch(&world, world.api(), true);
    let on = published();
    assert!(enabled(&on) && on["default"] == 3, "{on}");
}

#[test]
fn rejects_invalid_gates_and_keeps_them_in_a_put_without_gates() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let bad = r#"{"spec":{"customFeatureGates":{"featureGates":[{"name":"X","preRelease":"alpha","fieldPaths":[".spec.nothing"]}]}}}"#;
    let refused = world.kubectl(&["patch", "crd", "crontabs.stable.example.com", "--type=merge", "-p", bad]).error();
    assert!(refused.contains("spec.customFeatureGates.featureGates[0].fieldPaths[0]"), "{refused}");
    let stored = world.kubectl(&["get", "crd", "crontabs.stable.example.com", "-o", "json"]).ok();
    let mut object: serde_json::Value = serde_json::from_str(&stored).unwrap();
    object["spec"].as_object_mut().unwrap().remove("customFeatureGates");
    let replaced = world.kubectl_with(&["replace", "-f", "-"], &object.to_string());
    assert!(
        replaced.code == Some(0) && replaced.stderr.contains("spec.customFeatureGates: kept"),
        "{}",
        replaced.stderr
    );
    let gate = "jsonpath={.spec.customFeatureGates.featureGates[0].name}";
    assert_eq!(world.kubectl(&["get", "crd", "crontabs.stable.example.com", "-o", gate]).ok(), "Scaling");
}

#[test]
fn a_gate_changed_on_one_server_applies_to_writes_on_another() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let other = world.another();
    world.kubectl(&["create", "-f", &data("my-cron.yaml")]).ok();
    for round in 1..=8 {
        let on = round % 2 == 1;
        switch(&world, world.api(), on);
        let before = field(&world, ".spec.replicas");
        let patch = format!(r#"{{"spec":{{"replicas":{round}}}}}"#);
        world.kubectl_on(&other).run(&["patch", "ct", "my-cron", "--type=merge", "-p", &patch]).ok();
        let after = field(&world, ".spec.replicas");
        assert_eq!(after, if on { round.to_string() } else { before }, "round {round}");
    }
    world.run(other.stop());
}

#[test]
fn without_the_feature_gates_are_not_accepted() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start_with(|options| options.feature_gates = "CRDFieldLevelVersioning=false".into());
    world.kubectl(&["apply", "-f", &data("crontabs.yaml")]).ok();
    let patched = world.kubectl(&["patch", "crd", "crontabs.stable.example.com", "--type=json", "-p", GATE]);
    assert!(patched.code == Some(0) && patched.stderr.contains("CRDFieldLevelVersioning"), "{}", patched.stderr);
    world.kubectl(&["create", "-f", &data("my-cron.yaml")]).ok();
    assert_eq!(field(&world, ".spec.replicas"), "2");
}

/// Gates that another server stored are kept, and neither enforced nor reported as disabled.
#[test]
fn without_the_feature_stored_gates_are_kept() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let other = world.another_with(|options| options.feature_gates = "CRDFieldLevelVersioning=false".into());
    let metrics = |api| world.kubectl_on(api).run(&["get", "--raw", "/metrics"]).ok();
    let series = r#"fieldgate_enabled{crd="crontabs.stable.example.com",name="Scaling",stage="alpha"} 0"#;
    assert!(metrics(world.api()).contains(series));
    assert!(!metrics(&other).contains("fieldgate_enabled{"), "{}", metrics(&other));
    world.kubectl_on(&other).run(&["create", "-f", &data("my-cron.yaml")]).ok();
    assert_eq!(field(&world, ".spec.replicas"), "2");
    world.kubectl_on(&other).run(&["label", "crd", "crontabs.stable.example.com", "a=b"]).ok();
    let kept = world.kubectl(&["patch", "ct", "my-cron", "--type=merge", "-p", r#"{"spec":{"replicas":7}}"#]);
    assert!(kept.stderr.contains("spec.replicas: not updated"), "{}", kept.stderr);
}
