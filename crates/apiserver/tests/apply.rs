//! Server-side apply with the real kubectl.

use crate::common;

use common::{World, data};
use harness::Output;
use serde_json::{Value, json};

const BOARD: &str = "apiVersion: example.com/v1\nkind: Board\nmetadata: {name: b}\n";

fn world() -> World {
    let world = World::start();
    let said = world.kubectl(&["apply", "--server-side", "-f", &data("boards.yaml")]).ok();
    assert_eq!(said, "customresourcedefinition.apiextensions.k8s.io/boards.example.com serverside-applied\n");
    world.kubectl_wait(&["--for=condition=Established", "crd/boards.example.com"]).ok();
    world
}

fn apply(world: &World, spec: &str, flags: &[&str]) -> Output {
    let args = [&["apply", "--server-side", "-f", "-"], flags].concat();
    world.kubectl_with(&args, &format!("{BOARD}spec: {spec}\n"))
}

fn get(world: &World, what: &[&str]) -> Value {
    let args = [&["get", "-o", "json", "--show-managed-fields"], what].concat();
    serde_json::from_str(&world.kubectl(&args).ok()).unwrap()
}

fn board(world: &World) -> Value {
    get(world, &["board", "b"])
}

/// `manager/operation` with its fields.
fn owned(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let pair = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        assert_eq!(text("fieldsType"), "FieldsV1", "{entry}");
        (format!("{}/{}", text("manager"), text("operation")), entry["fieldsV1"].clone())
    };
    Value::Object(entries.iter().map(pair).collect())
}

#[test]
fn a_configuration_is_applied_changed_and_reverted() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let said = apply(&world, "{color: red, tags: [a]}", &[]).ok();
    assert_eq!(said, "board.example.com/b serverside-applied\n");
    let first = board(&world);
    assert_eq!(first["spec"], json!({"color": "red", "tags": ["a"], "size": 3}));
    // The default has no manager.
    assert_eq!(owned(&first), json!({"kubectl/Apply": {"f:spec": {"f:color": {}, "f:tags": {"v:\"a\"": {}}}}}));
    apply(&world, "{color: red, tags: [a]}", &[]).ok();
    assert_eq!(board(&world), first, "a repeated apply changes neither version nor time");

    apply(&world, "{tags: [b]}", &[]).ok();
    let second = board(&world);
    assert_eq!(second["spec"], json!({"tags": ["b"], "size": 3}), "a field that is no longer applied is removed");
    assert_eq!(second["metadata"]["generation"], 2);
    assert!(world.kubectl(&["get", "board", "b", "-o", "yaml"]).ok().find("managedFields").is_none());

    let dry = apply(&world, "{tags: [c]}", &["--dry-run=server"]).ok();
    assert_eq!(dry, "board.example.com/b serverside-applied (server dry run)\n");
    assert_eq!(board(&world), second, "a dry run writes nothing");
    let differs = world.kubectl_with(&["diff", "--server-side", "-f", "-"], &format!("{BOARD}spec: {{tags: [c]}}\n"));
    assert!(differs.code != Some(0) && differs.stdout.contains("+  - c"), "{}{}", differs.stdout, differs.stderr);
    let told = world.kubectl(&["explain", "board.metadata.managedFields.operation"]).ok();
    assert!(told.contains("Apply or Update."), "{told}");
}

#[test]
fn conflicts_are_reported_forced_and_shared() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    apply(&world, "{color: red, size: 5}", &["--field-manager=painter"]).ok();
    let refused = apply(&world, "{color: blue, tags: [x]}", &["--field-manager=other"]).error();
    let wanted = "error: Apply failed with 1 conflict: conflict with \"painter\": .spec.color\n\
                  Please review the fields above--they currently have other managers.";
    assert!(refused.starts_with(wanted), "{refused}");
    assert_eq!(board(&world)["spec"], json!({"color": "red", "size": 5}), "nothing of it was taken");
    let refused = apply(&world, "{color: blue, size: 6}", &["--field-manager=other"]).error();
    let wanted = "error: Apply failed with 2 conflicts: conflicts with \"painter\":\n- .spec.color\n- .spec.size\n";
    assert!(refused.starts_with(wanted), "{refused}");

    apply(&world, "{size: 5}", &["--field-manager=other"]).ok();
    apply(&world, "{color: blue, size: 5}", &["--field-manager=other", "--force-conflicts"]).ok();
    let forced = board(&world);
    assert_eq!(forced["spec"], json!({"color": "blue", "size": 5}));
    let spec = |fields: Value| json!({ "f:spec": fields });
    let wanted = json!({"other/Apply": spec(json!({"f:color": {}, "f:size": {}})), "painter/Apply": spec(json!({"f:size": {}}))});
    assert_eq!(owned(&forced), wanted);
    // A field that one of two owners omits stays with the other.
    apply(&world, "{}", &["--field-manager=other"]).ok();
    assert_eq!(board(&world)["spec"], json!({"size": 5}));

    world.kubectl(&["patch", "board", "b", "--type=merge", "-p", r#"{"spec":{"size":9}}"#]).ok();
    let refused = apply(&world, "{size: 5}", &["--field-manager=painter"]).error();
    assert!(refused.contains("conflict with \"kubectl-patch\" using example.com/v2: .spec.size"), "{refused}");
}

#[test]
fn two_managers_share_a_list() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    apply(&world, "{pins: [{name: a, level: 1}]}", &["--field-manager=one"]).ok();
    apply(&world, "{pins: [{name: b, level: 2}]}", &["--field-manager=two"]).ok();
    apply(&world, "{pins: [{name: a, note: hi}, {name: b, level: 2}]}", &["--field-manager=two"]).ok();
    let both = board(&world);
    assert_eq!(both["spec"]["pins"], json!([{"name": "a", "level": 1, "note": "hi"}, {"name": "b", "level": 2}]));
    let item = |fields: &[&str]| {
        let mut item: serde_json::Map<String, Value> =
            fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
        item.insert(".".into(), json!({}));
        item
    };
    let pins = |pins: Value| json!({"f:spec": {"f:pins": pins}});
    let one = pins(json!({r#"k:{"name":"a"}"#: item(&["name", "level"])}));
    let two =
        pins(json!({r#"k:{"name":"a"}"#: item(&["name", "note"]), r#"k:{"name":"b"}"#: item(&["name", "level"])}));
    assert_eq!(owned(&both), json!({"one/Apply": one, "two/Apply": two}));
    // The item keeps the fields of the other manager.
    apply(&world, "{}", &["--field-manager=one"]).ok();
    assert_eq!(board(&world)["spec"]["pins"], json!([{"name": "a", "note": "hi"}, {"name": "b", "level": 2}]));
    apply(&world, "{pins: [{name: b, level: 2}]}", &["--field-manager=two"]).ok();
    assert_eq!(board(&world)["spec"]["pins"], json!([{"name": "b", "level": 2}]));
}

#[test]
fn from_apply_on_the_client_to_apply_on_the_server() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    let client = |spec: &str| world.kubectl_with(&["apply", "-f", "-"], &format!("{BOARD}spec: {spec}\n")).ok();
    client("{color: red, size: 5}");
    let made = owned(&board(&world));
    assert!(made["kubectl-client-side-apply/Update"]["f:spec"]["f:color"].is_object(), "{made}");
    apply(&world, "{color: green}", &[]).ok();
    let object = board(&world);
    assert_eq!(object["spec"], json!({"color": "green", "size": 3}), "no conflict, and what was left out is gone");
    assert_eq!(
        owned(&object).as_object().unwrap().keys().collect::<Vec<_>>(),
        ["kubectl-last-applied/Apply", "kubectl/Apply"]
    );
    let annotation = &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    assert!(annotation.as_str().unwrap().contains(r#""spec":{"color":"green"}"#), "{annotation}");
    // Back to apply on the client.
    client("{color: red}");
    assert_eq!(board(&world)["spec"]["color"], "red");
}

#[test]
fn parts_and_built_in_kinds() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = world();
    apply(&world, "{color: red}", &[]).ok();
    let status = format!("{BOARD}status: {{lit: 4}}\nspec: {{color: blue}}\n");
    let on = |flags: &[&str]| {
        world.kubectl_with(&[&["apply", "--server-side", "--subresource=status", "-f", "-"], flags].concat(), &status)
    };
    if !world.kubectl(&["apply", "--help"]).ok().contains("--subresource") {
        eprintln!("SKIPPED in part: this kubectl applies whole objects only");
        return;
    }
    on(&["--field-manager=lamp"]).ok();
    let object = board(&world);
    assert_eq!((&object["spec"]["color"], &object["status"]), (&json!("red"), &json!({"lit": 4})));
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let lamp = entries.iter().find(|entry| entry["manager"] == "lamp").unwrap();
    assert_eq!((&lamp["subresource"], &lamp["fieldsV1"]), (&json!("status"), &json!({"f:status": {"f:lit": {}}})));

    let map = |text: &str, flags: &[&str]| {
        let args = [&["apply", "--server-side", "-f", "-"], flags].concat();
        world.kubectl_with(&args, &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {text}\n"))
    };
    map("{a: '1', b: '2'}", &[]).ok();
    map("{c: '3'}", &["--field-manager=two"]).ok();
    map("{b: '2'}", &[]).ok();
    let object = get(&world, &["configmap", "m"]);
    assert_eq!(object["data"], json!({"b": "2", "c": "3"}));
    let wanted = json!({"kubectl/Apply": {"f:data": {"f:b": {}}}, "two/Apply": {"f:data": {"f:c": {}}}});
    assert_eq!(owned(&object), wanted);

    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: v}\n";
    world.kubectl_with(&["apply", "--server-side", "-f", "-"], secret).ok();
    world.kubectl_with(&["apply", "--server-side", "-f", "-"], &secret.replace("k: v", "l: w")).ok();
    assert_eq!(get(&world, &["secret", "s"])["data"], json!({"l": "dw=="}));
    let space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: room, labels: {a: b}}\n";
    world.kubectl_with(&["apply", "--server-side", "-f", "-"], space).ok();
    let object = get(&world, &["namespace", "room"]);
    assert_eq!(owned(&object), json!({"kubectl/Apply": {"f:metadata": {"f:labels": {"f:a": {}}}}}));

    world.kubectl(&["create", "configmap", "plain", "--from-literal=a=1"]).ok();
    let wanted = json!({"kubectl-create/Update": {"f:data": {".": {}, "f:a": {}}}});
    assert_eq!(owned(&get(&world, &["configmap", "plain"])), wanted);
    let before = get(&world, &["crd", "boards.example.com"]);
    world.kubectl(&["apply", "--server-side", "-f", &data("boards.yaml")]).ok();
    assert_eq!(get(&world, &["crd", "boards.example.com"]), before, "the same definition again is no change");
    let definition = owned(&before);
    assert!(definition["kubectl/Apply"]["f:spec"]["f:versions"] == json!({}), "{definition}");
}
