//! Boards, which a webhook converts. The first version has the gated `spec.replicas` and `spec.size`, and `spec.tag`; the
//! second calls them `spec.count`, `spec.dims.size` and `spec.mark`.

use serde_json::{Value, json};

use super::{
    World,
    http::{Answer, Http},
    webhook::{self, Webhook},
};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const NAME: &str = "boards.stable.example.com";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) fn convert(object: Value, desired: &str) -> Value {
    let places = [
        ("/spec/replicas", "/spec/count"),
        ("/spec/size", "/spec/dims/size"),
        ("/spec/tag", "/spec/mark"),
        ("/status/phase", "/status/state"),
    ];
    webhook::moved(object, desired, &places)
}

/// The properties in which the tests differ.
pub(crate) struct Board {
    pub storage: &'static str,
    pub on: bool,
    /// The default of `count`.
    pub count: Option<i64>,
}

impl Board {
    pub(crate) fn first(on: bool) -> Board {
        Board { storage: "v1", on, count: None }
    }

    pub(crate) fn definition(&self, webhook: &Webhook) -> Value {
        let integer = json!({"type": "integer"});
        let mut count = json!({"type": "integer", "maximum": 50});
        if let Some(default) = self.count {
            count["default"] = default.into();
        }
        let color = json!({"type": "string"});
        let first = json!({"color": color, "tag": color, "replicas": integer, "size": integer});
        let second = json!({"color": color, "mark": color, "count": count, "dims": {"type": "object", "properties": {"size": integer}}});
        let version = |name: &str, spec: Value, status: &str, replicas: &str| {
            // A field with a default may be required.
            let required = if name == "v2" && self.count.is_some() { vec!["count"] } else { Vec::new() };
            let schema = json!({"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec, "required": required},
                "status": {"type": "object", "properties": {status: {"type": "string"}, "replicas": {"type": "integer"}}}}});
            json!({"name": name, "served": true, "storage": name == self.storage, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": replicas, "statusReplicasPath": ".status.replicas"}}})
        };
        let paths = match self.storage {
            "v1" => [".spec.replicas", ".spec.size", ".status.phase"],
            _ => [".spec.count", ".spec.dims.size", ".status.state"],
        };
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
            "spec": {"group": "stable.example.com", "scope": "Namespaced", "names": {"plural": "boards", "kind": "Board"},
                "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": webhook.url, "caBundle": webhook.bundle}}},
                "versions": [version("v1", first, "phase", ".spec.replicas"), version("v2", second, "state", ".spec.count")],
                "customFeatureGates": {"featureGates": [
                    {"name": "Scaling", "preRelease": "alpha", "enabled": self.on, "fieldPaths": paths}]}}})
    }
}

pub(crate) fn world() -> (World, Webhook) {
    let world = World::start();
    let webhook = world.run(Webhook::start_with(convert));
    (world, webhook)
}

pub(crate) async fn define(http: &mut Http, board: Board, webhook: &Webhook) -> Answer {
    let path = format!("{DEFINITIONS}/{NAME}?fieldManager=admin&force=true");
    let answer = http.send("PATCH", &path, APPLY, board.definition(webhook).to_string()).await;
    assert!(matches!(answer.code, 200 | 201), "{}", answer.body);
    answer
}

pub(crate) fn all(version: &str) -> String {
    format!("/apis/stable.example.com/{version}/namespaces/default/boards")
}

pub(crate) fn one(version: &str) -> String {
    format!("{}/b", all(version))
}

pub(crate) fn board(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("stable.example.com/{version}"), "kind": "Board", "metadata": {"name": "b"}, "spec": spec})
}

pub(crate) async fn apply(http: &mut Http, version: &str, manager: &str, spec: Value) -> Answer {
    let path = format!("{}?fieldManager={manager}", one(version));
    http.send("PATCH", &path, APPLY, board(version, spec).to_string()).await
}

pub(crate) fn entry<'a>(answer: &'a Answer, manager: &str) -> &'a Value {
    let entries = answer.body["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().find(|entry| entry["manager"] == manager).unwrap_or(&Value::Null)
}

pub(crate) fn meta<'a>(answer: &'a Answer, key: &str) -> &'a Value {
    &answer.body["metadata"][key]
}

/// The warnings about gates, without the frame of the header.
pub(crate) fn told(answer: &Answer) -> Vec<String> {
    let text = |text: &String| text.replace("299 - \"", "").replace(", feature gate \\\"Scaling\\\" is disabled\"", "");
    answer.warnings.iter().map(text).collect()
}
