//! The life of one gate: added, previewed, on by default, retired. `gates.toml` is the only file that is edited, by commands.
//! Controllers and operators of each release use the files that are generated from it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use featuretest::Operator;
use harness::{Output, Signal, asynchronous::until, wait_max};
use kubeapi::{Kube, Place};
use serde_json::{Value, json};

use crate::controller::Controller;

const CONFIG: &str = "/apis/config.openshift.io/v1";

/// The directory of a product that has gates, and a cluster that it runs on.
struct World {
    dir: PathBuf,
    kubeconfig: PathBuf,
    kube: Kube,
}

impl World {
    /// Runs a command on `gates.toml` or on the cluster. Returns whether it succeeded, and its output.
    async fn gates(&self, line: &str) -> (bool, String) {
        let (dir, kubeconfig) = (self.dir.display().to_string(), self.kubeconfig.display().to_string());
        let line = line.replace("DIR", &dir).replace("CLUSTER", &format!("--kubeconfig {kubeconfig}"));
        let line = line.replace("WAIT", &format!("--wait-seconds {}", wait_max().as_secs()));
        let words: Vec<String> = line.split_whitespace().map(|word| word.replace('_', " ")).collect();
        let all = ["gates".to_owned(), "--file".to_owned(), format!("{dir}/gates.toml")].into_iter().chain(words);
        let all: Vec<String> = all.collect();
        // The command has a runtime of its own.
        let said = tokio::task::spawn_blocking(move || std::thread::spawn(move || gates::answer(all)).join());
        match said.await.unwrap().unwrap() {
            Ok((text, good)) => (good, text),
            Err(text) => (false, text),
        }
    }

    async fn good(&self, line: &str) -> String {
        let (good, text) = self.gates(line).await;
        assert!(good, "{line}: {text}");
        text
    }

    async fn bad(&self, line: &str, why: &str) {
        let (good, text) = self.gates(line).await;
        assert!(!good && text.contains(why), "{line}: {text}");
    }

    async fn add(&self, gate: &str) {
        let about = "--description d --owner us --contact us@example.com --enhancement https://example.com/1";
        self.good(&format!("add {gate} {about}")).await;
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes the results of 14 test runs.
    fn evidence(&self, gate: &str) {
        let cases: String = (0..5).map(|i| format!("<testcase name=\"{i} [FeatureGate:{gate}]\"/>")).collect();
        for run in 0..14 {
            self.write(&format!("junit/{gate}/{run}.xml"), &format!("<testsuite id=\"{run}\">{cases}</testsuite>"));
        }
    }

    /// Begins the next version in `gates.toml`.
    fn next(&self, from: &str, to: &str) {
        self.write("gates.toml", &self.read("gates.toml").replace(from, to));
    }

    /// Releases `gates.toml` and upgrades the cluster to it, the controller first.
    async fn release(&self, version: &str, before: Option<Controller>) -> Controller {
        self.good("verify").await;
        self.write(&format!("released/{version}.json"), &self.read("manifests/registry.json"));
        let controller = Controller::start(&self.read("gates.toml"), version, &self.kubeconfig);
        if let Some(before) = before {
            before.stop().await;
        }
        self.good(&format!("version begin {version} WAIT CLUSTER")).await;
        self.good(&format!("version complete {version} CLUSTER")).await;
        controller
    }

    /// `FastPath=true Quick=false` of a version.
    async fn row(&self, version: &str) -> String {
        let object = self.kube.get(&Place::cluster(CONFIG, "featuregates"), "cluster").await.unwrap().unwrap();
        let rows = object["status"]["featureGates"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["version"] == version).unwrap_or_default();
        let names = |list: &str, on: bool| -> Vec<String> {
            let list = row[list].as_array().into_iter().flatten();
            list.filter_map(|gate| gate["name"].as_str()).map(|name| format!("{name}={on}")).collect()
        };
        let mut all = [names("enabled", true), names("disabled", false)].concat();
        all.sort();
        all.join(" ")
    }
}

/// Creates the objects of the product's manifests, except for the roles.
async fn install(kube: &Kube, manifests: &Path) {
    for name in ["0-crds.yaml", "1-namespace.yaml", "2-policies.yaml"] {
        for object in featureset::yaml::objects(&fs::read_to_string(manifests.join(name)).unwrap()).unwrap() {
            const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
            let place = match object["kind"].as_str().unwrap() {
                "Namespace" => Place::cluster("/api/v1", "namespaces"),
                "ValidatingAdmissionPolicy" => Place::cluster(ADMISSION, "validatingadmissionpolicies"),
                "ValidatingAdmissionPolicyBinding" => Place::cluster(ADMISSION, "validatingadmissionpolicybindings"),
                _ => Place::cluster("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
            };
            kube.create(&place, &object).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn added_previewed_proven_retired() {
    let Some(program) = Operator::program("restarts") else { return };
    let api = apiworld::start();
    let kubeconfig = api.kubeconfig().to_owned();
    let kube = Kube::connect(Some(&kubeconfig)).await.unwrap();
    let world = World { dir: api.dir().join("product"), kubeconfig, kube };
    let operator = |version: &str| Operator::start(&program, version, &world.kubeconfig);
    world.write(
        "gates.toml",
        "schema = 1\nversion = \"1.4.0\"\n[output]\nrust = \"src/gates.rs\"\nmanifests = \"manifests\"\n",
    );

    // Added: known, and off everywhere.
    world.add("FastPath").await;
    install(&world.kube, &world.dir.join("manifests")).await;
    let controller = world.release("1.4.0", None).await;
    let first = operator("1.4.0");
    first.says(&["version 1.4.0: the slow path"]);

    // A preview, in the next release. This cluster has not chosen previews.
    world.next("1.4.0", "1.5.0");
    world.good("promote FastPath --to TechPreviewNoUpgrade").await;
    let controller = world.release("1.5.0", Some(controller)).await;
    let second = operator("1.5.0");
    second.says(&["version 1.5.0: the slow path"]);

    // Proven: on by default, from this release on. Quick is added and proven in one release.
    world.next("1.5.0", "1.6.0");
    world.bad("promote FastPath --to Default", "0 tests have [FeatureGate:FastPath] in their names").await;
    world.evidence("FastPath");
    world.good("promote FastPath --to Default --evidence DIR/junit/FastPath").await;
    world.add("Quick").await;
    world.evidence("Quick");
    world.good("promote Quick --to Default --evidence DIR/junit/Quick").await;
    let controller = world.release("1.6.0", Some(controller)).await;
    let third = operator("1.6.0");
    third.says(&["version 1.6.0: the fast path"]);
    let rows = [world.row("1.4.0").await, world.row("1.5.0").await, world.row("1.6.0").await];
    assert_eq!(rows, ["FastPath=false", "FastPath=false", "FastPath=true Quick=true"]);
    first.says(&["version 1.4.0: the slow path"]);

    // Retired, when neither code nor an installed release needs it any more.
    world.next("1.6.0", "1.7.0");
    world.write("src/main.rs", "fn main() { if on(Gate::FastPath) {} }\n");
    world.bad("retire FastPath --registry DIR/released/1.6.0.json", "main.rs:1").await;
    world.write("src/main.rs", "fn main() {}\n");
    world.bad("retire FastPath --registry DIR/released", "1.5.0").await;
    world.bad("retire FastPath --registry DIR/released/1.6.0.json CLUSTER", "version 1.5.0 still needs it").await;
    world.good("retire FastPath --registry DIR/released/1.6.0.json").await;
    assert!(!world.read("src/gates.rs").contains("FastPath"), "code that uses the gate does not compile");
    let controller = world.release("1.7.0", Some(controller)).await;
    assert_eq!(world.row("1.7.0").await, "Quick=true");
    third.says(&["version 1.6.0: the fast path"]);
    let late = Output::of(&mut Operator::command(&program, "1.7.0", &world.kubeconfig)).error();
    assert!(late.contains("FastPath"), "a retired gate is an error at start: {late}");

    // Previews are chosen: 1.5.0 has the gate there, 1.4.0 has it nowhere. An operator that lags is named and waited for.
    world.good("status --wait WAIT CLUSTER").await;
    second.signal(Signal::STOP);
    let place = Place::cluster(CONFIG, "featuregates");
    let mut gate: Value = world.kube.get(&place, "cluster").await.unwrap().unwrap();
    gate["spec"] = json!({"featureSet": "TechPreviewNoUpgrade"});
    world.kube.update(&place, &gate).await.unwrap();
    let lags = "restarts restarts-1.5.0 (1.5.0): runs with an older row\n";
    let follows = "restarts restarts-1.6.0 (1.6.0): runs with its row\n";
    until("only the stopped operator lags", async || {
        let (_, said) = world.gates("status CLUSTER").await;
        said.contains(lags) && said.contains(follows)
    })
    .await;
    let (good, said) = world.gates("status --wait --wait-seconds 1 CLUSTER").await;
    assert!(!good && said.contains(lags) && said.ends_with("not everyone runs with its row yet\n"), "{said}");
    let resume = async { second.signal(Signal::CONT) };
    let ((good, said), ()) = tokio::join!(world.gates("status --wait WAIT CLUSTER"), resume);
    assert!(good && said.contains("restarts restarts-1.5.0 (1.5.0): runs with its row\n"), "{said}");
    let restarted =
        ["version 1.5.0: the slow path", "leaving: a gate has changed", "exit 0", "version 1.5.0: the fast path"];
    second.says(&restarted);
    first.says(&["version 1.4.0: the slow path"]);
    third.says(&["version 1.6.0: the fast path"]);

    drop((first, second, third));
    controller.stop().await;
}
