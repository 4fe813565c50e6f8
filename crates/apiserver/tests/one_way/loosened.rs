//! The definition is loosened, the object gets content that the strict definition would refuse, and the strict definition is
//! restored before the controller has read either. The stored object may then block every other write to it.

use harness::asynchronous;
use serde_json::{Value, json};

use super::{BINDINGS, CONFIG, Controller, DEFINITIONS, World, common::http::Http, install, prepare, until};

const CLUSTER: &str = "featuregates/cluster";

fn definition() -> String {
    format!("{DEFINITIONS}/featuregates.config.openshift.io")
}

fn schema(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Changes the definition, unless it has been deleted, and returns it as it was before.
async fn define(http: &mut Http, change: impl FnOnce(&mut Value)) -> Value {
    let before = http.json("GET", &definition(), Value::Null).await.body;
    let mut after = before.clone();
    if before["spec"].is_object() {
        change(&mut after);
        http.json("PUT", &definition(), after).await;
    }
    before
}

async fn put_back(http: &mut Http, before: &Value) {
    define(http, |now| now["spec"] = before["spec"].clone()).await;
    install(http, &featureset::generate::policies(super::NAMESPACE)).await;
}

fn loosen(definition: &mut Value) {
    *schema(definition) = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition["spec"]["versions"][0]["subresources"] = Value::Null;
}

pub(super) fn forged() -> Value {
    json!({"featureGates": [{"version": "1.4.0", "enabled": [{"name": "Early"}], "disabled": []}]})
}

/// Loosens the definition, writes the object and restores the definition. Returns the code of the write to the object.
pub(super) async fn forge(http: &mut Http, spec: &Value, status: Value) -> u16 {
    let cluster = format!("{CONFIG}/{CLUSTER}");
    http.send("DELETE", &format!("{BINDINGS}/feature-gate.gates.lockgate.io"), "application/json", "").await;
    let strict = define(http, loosen).await;
    let mut object = http.json("GET", &cluster, Value::Null).await.body;
    object["status"] = status;
    match spec {
        Value::Null => drop(object.as_object_mut().map(|object| object.remove("spec"))),
        spec => object["spec"] = spec.clone(),
    }
    let code = http.json("PUT", &cluster, object).await.code;
    put_back(http, &strict).await;
    code
}

/// The spec of the object, and the reason of its condition about the set in force.
async fn shown(http: &mut Http) -> [Value; 2] {
    let object = http.json("GET", &format!("{CONFIG}/{CLUSTER}"), Value::Null).await.body;
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let in_force = conditions.iter().find(|condition| condition["type"] == "FeatureSetInForce");
    [object["spec"].clone(), in_force.map(|condition| condition["reason"].clone()).unwrap_or_default()]
}

/// Specs that only a definition without a schema accepts.
pub(super) fn bad_specs() -> Vec<Value> {
    vec![
        json!({"featureSet": 3}),
        json!({"featureSet": ["OKD"], "customNoUpgrade": {"enabled": 5}}),
        json!({"featureSet": {"a": true}}),
        json!("x"),
        Value::Null,
        json!({"featureSet": "Other"}),
        json!({"featureSet": "OKD", "customNoUpgrade": "x"}),
        json!({"featureSet": "DevPreviewNoUpgrade", "customNoUpgrade": {"enabled": ["no name!"]}}),
    ]
}

fn forged_rows_never_stay(chosen: Option<&str>, want: &str, specs: Vec<Value>) {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        prepare(&mut http).await;
        let kubeconfig = world.api().kubeconfig().to_owned();
        let mut controller = Controller::start(&kubeconfig);
        until(&mut http, "Proven", &[]).await;
        if let Some(set) = chosen {
            http.merge(&format!("{CONFIG}/{CLUSTER}"), json!({"spec": {"featureSet": set}})).await;
            until(&mut http, want, &[]).await;
        }
        for spec in specs {
            for status in
                [forged(), json!({"featureGates": forged()["featureGates"], "conditions": [{"type": "no type!"}, 7]})]
            {
                controller.stop().await;
                assert_eq!(forge(&mut http, &spec, status).await, 200, "{spec}");
                controller = Controller::start(&kubeconfig);
                until(&mut http, want, &[format!("{spec}")]).await;
                let name = chosen.unwrap_or("Default");
                assert_eq!(shown(&mut http).await[1], name, "{spec}");
            }
        }
        controller.stop().await;
    });
}

/// Some of these specs block writes of the rows. As in Kubernetes, the schema validates the status alone, so that a missing spec
/// does not block; rules, which need values of the declared types, validate the whole object.
#[test]
fn some_specs_block_writes_of_the_status() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        prepare(&mut http).await;
        http.json("POST", &format!("{CONFIG}/featuregates"), super::gate(json!({}))).await;
        let mut codes = Vec::new();
        for spec in bad_specs() {
            assert_eq!(forge(&mut http, &spec, forged()).await, 200, "{spec}");
            let (status, none) = (format!("{CONFIG}/{CLUSTER}/status"), json!({"status": {"featureGates": []}}));
            codes.push(http.merge(&format!("{status}?dryRun=All"), none).await.code);
        }
        assert_eq!(codes, [422, 422, 422, 422, 200, 200, 200, 200]);
    });
}

#[test]
fn forged_rows_do_not_stay_in_a_one_way_set() {
    forged_rows_never_stay(Some("TechPreviewNoUpgrade"), "Preview,Proven", bad_specs());
}

/// An invalid set is ignored: the rows are those of the last valid one.
#[test]
fn forged_rows_do_not_stay_in_default() {
    let readable = |spec: &Value| spec["customNoUpgrade"]["enabled"][0].is_string();
    forged_rows_never_stay(None, "Proven", bad_specs().into_iter().filter(|spec| !readable(spec)).collect());
}

/// How many writes to the object the server has answered, of the test and of the controller.
async fn writes(http: &mut Http) -> u64 {
    let metrics = http.metrics().await;
    let is_write = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains(r#"resource="featuregates""#)
            && ["PUT", "PATCH", "APPLY", "POST"].iter().any(|verb| line.contains(&format!(r#"verb="{verb}""#)))
    };
    metrics.lines().filter(is_write).filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

/// The controller restores rows that a changed definition has pruned, as soon as the strict definition is back.
#[test]
fn pruned_rows_are_restored() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        prepare(&mut http).await;
        let controller = Controller::start(world.api().kubeconfig());
        until(&mut http, "Proven", &[]).await;
        let choice = json!({"spec": {"featureSet": "TechPreviewNoUpgrade"}});
        http.merge(&format!("{CONFIG}/{CLUSTER}"), choice).await;
        until(&mut http, "Preview,Proven", &[]).await;
        let row = "/properties/status/properties/featureGates/items/properties";
        for (at, key) in [
            (row, "enabled"),
            (&format!("{row}/enabled/items/properties"), "name"),
            ("/properties/status/properties", "featureGates"),
            ("/properties", "status"),
            ("/properties", "spec"),
        ] {
            let strict = define(&mut http, |definition| {
                let place = schema(definition);
                place.as_object_mut().unwrap().remove("required");
                place.pointer_mut(&format!("{row}/enabled/items")).unwrap().as_object_mut().unwrap().remove("required");
                let place = place.pointer_mut(at).unwrap().as_object_mut().unwrap();
                place.remove(key);
            })
            .await;
            // Any write stores the pruned object.
            http.merge(&format!("{CONFIG}/{CLUSTER}"), json!({"metadata": {"labels": {"pruned": key}}})).await;
            let before = writes(&mut http).await;
            asynchronous::until(&format!("the controller tries to restore {key}"), async || {
                writes(&mut http).await > before
            })
            .await;
            put_back(&mut http, &strict).await;
            until(&mut http, "Preview,Proven", &[key.to_owned()]).await;
        }
        controller.stop().await;
    });
}
