//! Versions of a kind: converted by a webhook, with the real kubectl, and without a webhook.

use crate::common;

use common::{
    World,
    http::{Events, Http},
    webhook::Webhook,
};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(webhook: &Webhook, storage: &str) -> String {
    let stores = |version: &str| version == storage;
    format!(
        r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: links.stable.example.com}}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {{plural: links, kind: Link}}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {{url: {url:?}, caBundle: {bundle}}}
  versions:
  - name: v1
    served: true
    storage: {v1}
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{hostPort: {{type: string}}}}}}}}}}}}
  - name: v2
    served: true
    storage: {v2}
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{host: {{type: string}}, port: {{type: string}}}}}}}}}}}}
"#,
        url = webhook.url,
        bundle = webhook.bundle,
        v1 = stores("v1"),
        v2 = stores("v2"),
    )
}

fn world_with_links() -> (World, Webhook) {
    let world = World::start();
    let webhook = world.run(Webhook::start());
    world.kubectl_with(&["apply", "-f", "-"], &definition(&webhook, "v1")).ok();
    world.kubectl_wait(&["--for=condition=Established", "crd/links.stable.example.com"]).ok();
    for name in ["a", "b", "c"] {
        let link = format!(
            "apiVersion: stable.example.com/v1\nkind: Link\nmetadata: {{name: {name}}}\nspec: {{hostPort: '{name}.example:80'}}\n"
        );
        world.kubectl_with(&["create", "-f", "-"], &link).ok();
    }
    (world, webhook)
}

const V1: &str = "links.v1.stable.example.com";
const V2: &str = "links.v2.stable.example.com";

#[test]
fn each_version_sees_its_own_form() {
    if harness::kubectl().is_none() {
        return;
    }
    let (world, webhook) = world_with_links();
    assert_eq!(webhook.calls(), 0, "objects in the storage version need no conversion");
    assert_eq!(world.kubectl(&["get", V2, "a", "-o", "jsonpath={.spec}"]).ok(), r#"{"host":"a.example","port":"80"}"#);
    let calls = webhook.calls();
    let hosts = world.kubectl(&["get", V2, "-o", "jsonpath={.items[*].spec.host}"]).ok();
    assert_eq!(hosts, "a.example b.example c.example");
    assert_eq!(webhook.calls(), calls + 1, "a list is converted in one call");

    world.kubectl(&["patch", V2, "a", "--type=merge", "-p", r#"{"spec":{"port":"81"}}"#]).ok();
    let said = world.kubectl(&["get", V1, "a", "-o", "jsonpath={.spec.hostPort} {.metadata.generation}"]).ok();
    assert_eq!(said, "a.example:81 2");
    let said = world.kubectl(&["patch", V2, "a", "--type=merge", "-p", r#"{"spec":{"port":"81"}}"#]).ok();
    assert!(said.contains("(no change)"), "{said}");
    let refused = world.kubectl(&["patch", V2, "a", "--type=merge", "-p", r#"{"spec":{"host":5}}"#]).error();
    assert!(refused.contains("spec.host: Invalid value: \"integer\""), "{refused}");

    let path = "/apis/stable.example.com/v2/namespaces/default/links?watch=1&timeoutSeconds=3600";
    let events = world.run(async { Events::open(world.api(), path).await.take(3).await });
    for (event, name) in events.iter().zip(["a", "b", "c"]) {
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!("ADDED"), &json!(name)));
        let spec = &event["object"]["spec"];
        assert_eq!((&spec["host"], &spec["hostPort"]), (&json!(format!("{name}.example")), &Value::Null), "{event}");
    }
}

/// After a change of the storage version, objects remain in the old one until they are written, and all are served.
#[test]
fn objects_of_an_older_storage_version_are_served_and_rewritten() {
    if harness::kubectl().is_none() {
        return;
    }
    let (world, webhook) = world_with_links();
    world.kubectl_with(&["apply", "-f", "-"], &definition(&webhook, "v2")).ok();
    let stored =
        || world.kubectl(&["get", "crd", "links.stable.example.com", "-o", "jsonpath={.status.storedVersions}"]).ok();
    assert_eq!(stored(), r#"["v1","v2"]"#);
    let calls = webhook.calls();
    assert_eq!(world.kubectl(&["get", V1, "b", "-o", "jsonpath={.spec.hostPort}"]).ok(), "b.example:80");
    assert_eq!(webhook.calls(), calls, "b is still stored as v1");
    // Writing each object as it is brings it to the storage version.
    for name in ["a", "b", "c"] {
        let object = world.kubectl(&["get", V2, name, "-o", "json"]).ok();
        world.kubectl_with(&["replace", "-f", "-"], &object).ok();
    }
    let calls = webhook.calls();
    assert_eq!(world.kubectl(&["get", V2, "b", "-o", "jsonpath={.spec.host}"]).ok(), "b.example");
    assert_eq!(webhook.calls(), calls, "b is stored as v2 now");
    let patch = r#"{"status":{"storedVersions":["v2"]}}"#;
    world
        .kubectl(&["patch", "crd", "links.stable.example.com", "--subresource=status", "--type=merge", "-p", patch])
        .ok();
    assert_eq!(stored(), r#"["v2"]"#);
}

#[test]
fn a_failing_webhook_is_named_and_objects_can_be_deleted() {
    if harness::kubectl().is_none() {
        return;
    }
    let (world, webhook) = world_with_links();
    let link = "apiVersion: stable.example.com/v2\nkind: Link\nmetadata: {name: r}\nspec: {host: refuse, port: '1'}\n";
    let words = "conversion webhook for stable.example.com/v1, Kind=Link failed: the host refuses";
    let refused = world.kubectl_with(&["create", "-f", "-"], link).error();
    assert!(refused.contains(words), "{refused}");
    assert!(
        world.kubectl(&["get", V1, "r"]).error().contains("not found"),
        "an object that cannot be converted is not stored"
    );
    let link = "apiVersion: stable.example.com/v1\nkind: Link\nmetadata: {name: r}\nspec: {hostPort: 'refuse:1'}\n";
    world.kubectl_with(&["create", "-f", "-"], link).ok();
    let refused = world.kubectl(&["get", V2, "r"]).error();
    assert!(refused.contains(words), "{refused}");
    world.run(webhook.stop());
    let refused = world.kubectl(&["get", V2, "a"]).error();
    assert!(
        refused.contains("conversion webhook for stable.example.com/v1, Kind=Link failed: Post \"https://127.0.0.1:"),
        "{refused}"
    );
    assert_eq!(world.kubectl(&["get", V1, "a", "-o", "jsonpath={.spec.hostPort}"]).ok(), "a.example:80");
    world.kubectl(&["delete", V1, "a"]).ok();
    world.kubectl_delete(&["crd", "links.stable.example.com"]).ok();
}

/// Objects written through another version are pruned by the schema of the storage version, as in Kubernetes.
#[test]
fn without_a_webhook_the_storage_version_prunes() {
    let world = World::start();
    let version = |name: &str, storage: bool, field: &str| {
        let spec = json!({"type": "object", "properties": {"name": {"type": "string"}, field: {"type": "string"}}});
        json!({"name": name, "served": true, "storage": storage,
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "many.g.example.com"},
        "spec": {"group": "g.example.com", "scope": "Namespaced", "names": {"plural": "many", "kind": "Many"},
            "versions": [version("v1", true, "old"), version("v2", false, "new")]}});
    let path = |version: &str| format!("/apis/g.example.com/{version}/namespaces/default/many");
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        assert_eq!(http.json("POST", CRDS, definition).await.code, 201);
        let object = json!({"apiVersion": "g.example.com/v2", "kind": "Many", "metadata": {"name": "a"},
            "spec": {"name": "x", "new": "y"}});
        let made = http.json("POST", &path("v2"), object).await;
        assert_eq!((made.code, &made.body["spec"]), (201, &json!({"name": "x"})), "{}", made.body);
        let patched = http.merge(&format!("{}/a", path("v2")), json!({"spec": {"name": "z", "new": "y"}})).await;
        assert_eq!((patched.code, &patched.body["spec"]), (200, &json!({"name": "z"})), "{}", patched.body);
        let patched = http.merge(&format!("{}/a", path("v1")), json!({"spec": {"old": "o"}})).await;
        assert_eq!(patched.body["spec"], json!({"name": "z", "old": "o"}));
        let storage =
            |second: bool| json!({"spec": {"versions": [version("v1", !second, "old"), version("v2", second, "new")]}});
        assert_eq!(http.merge(&format!("{CRDS}/many.g.example.com"), storage(true)).await.code, 200);
        let patched = http.merge(&format!("{}/a", path("v2")), json!({"spec": {"new": "y"}})).await;
        assert_eq!(patched.body["spec"], json!({"name": "z", "new": "y"}));
    });
}
