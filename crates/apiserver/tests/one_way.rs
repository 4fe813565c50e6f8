//! While the audit trail exists, no change of FeatureGate, its definition or its policies moves the rows away from a
//! one-way set. Random calls from a seed, with the controller running.

mod loosened;

use crate::common;

use std::{path::Path, time::Duration};

use common::{World, http::Http};
use featureset::GatesFile;
use harness::asynchronous;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const CONFIG: &str = "/apis/config.openshift.io/v1";
const NAMESPACE: &str = "lockgate-gates";
const CALLS: usize = 60;
const SETS: [Option<&str>; 6] =
    [None, Some(""), Some("TechPreviewNoUpgrade"), Some("DevPreviewNoUpgrade"), Some("CustomNoUpgrade"), Some("OKD")];
const GATES_TOML: &str = r#"
schema = 1
version = "1.4.0"
[gate.Preview]
description = "d"
owner = "o"
contact = "c"
enhancement = "https://e"
since = "1.4"
sets = ["TechPreviewNoUpgrade", "DevPreviewNoUpgrade"]
[gate.Early]
description = "d"
owner = "o"
contact = "c"
enhancement = "https://e"
since = "1.4"
sets = ["DevPreviewNoUpgrade"]
[gate.Proven]
description = "d"
owner = "o"
contact = "c"
enhancement = "https://e"
since = "1.4"
sets = ["Default", "OKD", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade"]
"#;

/// The generator xorshift64*, whose numbers are the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn spec(&mut self) -> Value {
        let mut spec = match SETS[self.below(SETS.len())] {
            Some(set) => json!({"featureSet": set}),
            None => json!({}),
        };
        if self.below(3) == 0 {
            spec["customNoUpgrade"] = json!({"enabled": ["Early"], "disabled": ["Preview"]});
        }
        spec
    }
}

fn gate(spec: Value) -> Value {
    json!({"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "metadata": {"name": "cluster"}, "spec": spec})
}

async fn put(http: &mut Http, path: &str, object: &Value) -> u16 {
    let path = format!("{path}?fieldManager=chaos&force=true");
    http.send("PATCH", &path, "application/apply-patch+yaml", object.to_string()).await.code
}

/// Applies the objects of a manifest, ignoring those that are refused.
async fn install(http: &mut Http, manifest: &str) {
    for object in featureset::yaml::objects(manifest).unwrap() {
        let plural = match object["kind"].as_str().unwrap() {
            "Namespace" => "/api/v1/namespaces",
            "CustomResourceDefinition" => DEFINITIONS,
            "ValidatingAdmissionPolicy" => POLICIES,
            _ => BINDINGS,
        };
        put(http, &format!("{plural}/{}", object["metadata"]["name"].as_str().unwrap()), &object).await;
    }
}

/// Makes a random call and describes it with its answer.
async fn call(http: &mut Http, random: &mut Random) -> String {
    let (cluster, definition) =
        (format!("{CONFIG}/featuregates/cluster"), format!("{DEFINITIONS}/featuregates.config.openshift.io"));
    let names = ["feature-gate", "keep", "records"].map(|name| format!("{name}.gates.lockgate.io"));
    let name = &names[random.below(names.len())];
    let spec = random.spec();
    let (what, answer) = match random.below(19) {
        0 | 1 => ("merge", http.merge(&cluster, json!({"spec": spec})).await.code),
        2 => ("apply", put(http, &cluster, &gate(spec.clone())).await),
        3 => {
            let mut found = http.json("GET", &cluster, Value::Null).await.body;
            found["spec"] = spec.clone();
            ("update", http.json("PUT", &cluster, found).await.code)
        }
        4 => {
            let remove = json!([{"op": "remove", "path": "/spec/featureSet"}]).to_string();
            ("remove the set", http.send("PATCH", &cluster, "application/json-patch+json", remove).await.code)
        }
        5 => {
            let rows = json!({"status": loosened::forged()});
            ("other rows", http.merge(&format!("{cluster}/status"), rows).await.code)
        }
        6 => ("delete", http.send("DELETE", &cluster, "application/json", "").await.code),
        7 => ("delete all", http.send("DELETE", &format!("{CONFIG}/featuregates"), "application/json", "").await.code),
        8 => ("create", http.json("POST", &format!("{CONFIG}/featuregates"), gate(spec.clone())).await.code),
        9 => {
            ("delete a binding", http.send("DELETE", &format!("{BINDINGS}/{name}"), "application/json", "").await.code)
        }
        10 => {
            ("delete a policy", http.send("DELETE", &format!("{POLICIES}/{name}"), "application/json", "").await.code)
        }
        11 => {
            let rules = json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"},
                {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/featureSet/x-kubernetes-validations"}]);
            let code = http.send("PATCH", &definition, "application/json-patch+json", rules.to_string()).await.code;
            ("take the rules out of the definition", code)
        }
        13 => {
            // The trail is still there without its label, and still counts.
            let trail = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/gates-audit-1");
            ("take the label off the audit trail", http.merge(&trail, json!({"metadata": {"labels": null}})).await.code)
        }
        14 => {
            let path = "/spec/versions/0/subresources";
            let remove = json!([{"op": "remove", "path": path}]).to_string();
            let code = http.send("PATCH", &definition, "application/json-patch+json", remove).await.code;
            ("take the subresource out of the definition", code)
        }
        15 => {
            let rows = json!({"status": loosened::forged()});
            ("other rows in the object itself", http.merge(&cluster, rows).await.code)
        }
        16 | 17 => {
            let specs = loosened::bad_specs();
            let spec = &specs[random.below(specs.len())];
            ("forge with a loosened definition", loosened::forge(http, spec, loosened::forged()).await)
        }
        12 => ("delete the definition", http.send("DELETE", &definition, "application/json", "").await.code),
        _ => {
            install(http, &featureset::generate::crds()).await;
            install(http, &featureset::generate::policies(NAMESPACE)).await;
            ("install all again", 0)
        }
    };
    format!("{what} {spec} {name}: {answer}")
}

/// Gates that are on in the row of 1.4.0, or why there is none.
async fn on(http: &mut Http) -> String {
    let found = http.json("GET", &format!("{CONFIG}/featuregates/cluster"), Value::Null).await.body;
    let rows = found["status"]["featureGates"].as_array().cloned().unwrap_or_default();
    let row = rows.iter().find(|row| row["version"] == "1.4.0");
    let names =
        row.and_then(|row| row["enabled"].as_array()).into_iter().flatten().filter_map(|gate| gate["name"].as_str());
    if row.is_some() { names.collect::<Vec<_>>().join(",") } else { "no row".to_owned() }
}

async fn until(http: &mut Http, want: &str, log: &[String]) {
    let what = format!("rows are {want:?} after\n{}", log.join("\n"));
    let mut last = String::new();
    asynchronous::until(&what, async || {
        let found = on(http).await;
        if found != last {
            println!("rows: {found}");
            last.clone_from(&found);
        }
        if found != want {
            // A definition that was being deleted when it was applied has to be applied again.
            install(http, &featureset::generate::crds()).await;
        }
        found == want
    })
    .await;
}

/// A running controller. It releases its lease when it is stopped, so that the next one need not wait.
struct Controller {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Controller {
    fn start(kubeconfig: &Path) -> Controller {
        let mut options = operator::Options::new(&GatesFile::parse(GATES_TOML).unwrap(), "1.4.0", None).unwrap();
        options.kubeconfig = Some(kubeconfig.to_owned());
        options.timing.resync = Duration::from_millis(500);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let run = async move { operator::run(options, async { drop(stopped.await) }).await.unwrap() };
        Controller { stop, task: tokio::spawn(run) }
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap();
    }
}

/// Installs definitions, policies and a version.
async fn prepare(http: &mut Http) {
    install(http, &featureset::generate::crds()).await;
    install(http, &featureset::generate::namespace(NAMESPACE)).await;
    install(http, &featureset::generate::policies(NAMESPACE)).await;
    let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
        "metadata": {"name": "version"}, "spec": {"clusterID": "x"}});
    assert_eq!(http.json("POST", &format!("{CONFIG}/clusterversions"), version).await.code, 201);
    let status = json!({"status": {"desired": {"version": "1.4.0"}, "history": []}});
    http.merge(&format!("{CONFIG}/clusterversions/version/status"), status).await;
}

fn run(set: &str, want: &str, seed: u64) {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let mut random = Random(seed | 1);
        prepare(&mut http).await;
        let _controller = Controller::start(world.api().kubeconfig());
        until(&mut http, "Proven", &[]).await;
        let chosen = http.merge(&format!("{CONFIG}/featuregates/cluster"), json!({"spec": {"featureSet": set}})).await;
        assert_eq!(chosen.code, 200, "{}", chosen.body);
        until(&mut http, want, &[]).await;

        let mut log = vec![format!("SEED {seed} {set}")];
        for _ in 0..CALLS {
            log.push(call(&mut http, &mut random).await);
            // Some calls follow each other at once; others leave the controller time for some reads.
            if random.below(3) > 0 {
                for _ in 0..random.below(20) {
                    on(&mut http).await;
                }
            }
            if random.below(5) == 0 {
                install(&mut http, &featureset::generate::crds()).await;
                log.push(format!("-- rows: {}", on(&mut http).await));
                until(&mut http, want, &log).await;
            }
        }
        install(&mut http, &featureset::generate::crds()).await;
        install(&mut http, &featureset::generate::policies(NAMESPACE)).await;
        until(&mut http, want, &log).await;
        let taken = log.iter().filter(|line| line.ends_with(": 200") || line.ends_with(": 201")).count();
        assert!(taken > CALLS / 6, "too few calls succeeded to prove anything\n{}", log.join("\n"));
        println!("{taken} of {CALLS} calls were taken; SEED {seed}");
    });
}

#[test]
fn tech_preview_is_permanent() {
    run("TechPreviewNoUpgrade", "Preview,Proven", harness::seed());
}

#[test]
fn dev_preview_is_permanent() {
    run("DevPreviewNoUpgrade", "Early,Preview,Proven", harness::seed());
}
