//! Two operators as processes follow their own versions through a change of the set, an upgrade and a downgrade. Every line that
//! they print is compared, so that a superfluous restart is found.

use std::path::Path;

use accessor::{Gates, Kube, NotReady};
use apiworld::Scratch;
use featureset::{
    ack::Ack,
    object::{ClusterOperator, FeatureGate},
};
use featuretest::Operator;
use harness::asynchronous::{finish, until};
use kubeapi::Place;
use serde_json::{Value, json};

use crate::controller::Controller;

const CONFIG: &str = "/apis/config.openshift.io/v1";
const COORDINATION: &str = "/apis/coordination.k8s.io/v1";

struct World {
    kube: Kube,
    api: Scratch,
}

impl World {
    async fn start() -> World {
        let api = apiworld::start();
        World { kube: Kube::connect(Some(api.kubeconfig())).await.unwrap(), api }
    }

    fn kubeconfig(&self) -> &Path {
        self.api.kubeconfig()
    }

    async fn install(&self) {
        let definitions = Place::cluster("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions");
        for object in featureset::yaml::objects(&featureset::generate::crds()).unwrap() {
            self.kube.create(&definitions, &object).await.unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lockgate-gates"}});
        self.kube.create(&Place::cluster("/api/v1", "namespaces"), &namespace).await.unwrap();
        let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
                             "metadata": {"name": "version"}, "spec": {"clusterID": "x"}});
        let place = Place::cluster(CONFIG, "clusterversions");
        until("ClusterVersion is served", async || self.kube.create(&place, &version).await.is_ok()).await;
        let gates = Place::cluster(CONFIG, "featuregates");
        until("FeatureGate is served", async || self.kube.list(&gates, None).await.is_ok()).await;
    }

    /// Changes an object, again after each conflict with the controller.
    async fn change(&self, plural: &'static str, name: &str, change: impl Fn(&mut Value), status: bool) {
        let place = Place::cluster(CONFIG, plural);
        until(&format!("{plural}/{name} is changed without a conflict"), async || {
            let mut object = self.kube.get(&place, name).await.unwrap().expect("the object exists");
            change(&mut object);
            let written = if status {
                self.kube.update_status(&place, &object).await
            } else {
                self.kube.update(&place, &object).await
            };
            match written {
                Ok(_) => true,
                Err(error) if error.cause() == kubeapi::Cause::Conflict => false,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    async fn history(&self, versions: &[&str]) {
        let time = "2026-01-01T00:00:00Z";
        let entry = |version: &&str| {
            json!({"state": "Completed", "version": version, "image": "", "verified": false,
                                            "startedTime": time, "completionTime": time})
        };
        let history: Vec<Value> = versions.iter().map(entry).collect();
        let status = json!({"desired": {"version": versions[0]}, "history": history});
        self.change("clusterversions", "version", |object| object["status"] = status.clone(), true).await;
    }

    async fn custom(&self, enabled: &[&str], disabled: &[&str]) {
        let spec =
            json!({"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": enabled, "disabled": disabled}});
        self.change("featuregates", "cluster", |object| object["spec"] = spec.clone(), false).await;
    }

    async fn feature_gate(&self) -> FeatureGate {
        let object = self.kube.get(&Place::cluster(CONFIG, "featuregates"), "cluster").await.unwrap();
        serde_json::from_value(object.expect("FeatureGate cluster exists")).unwrap()
    }

    async fn reported(&self, version: &str) {
        let place = Place::cluster(CONFIG, "clusteroperators");
        until(&format!("{version} is reported"), async || {
            let operator = self.kube.get(&place, ClusterOperator::NAME).await.unwrap();
            let operator: Option<ClusterOperator> = operator.map(|object| serde_json::from_value(object).unwrap());
            operator.is_some_and(|operator| operator.version("operator") == Some(version))
        })
        .await;
    }

    /// Waits until the rows have a gate on, or off, in all versions.
    async fn until_gate(&self, gate: &str, on: bool) {
        until(&format!("{gate} is {on} in all rows"), async || {
            let object = self.feature_gate().await;
            let mut rows = object.versions().into_iter().filter_map(|version| object.row(version));
            rows.all(|row| row.enabled.contains(gate) == on)
        })
        .await;
    }

    /// Waits until each operator has acknowledged the present row of its version, and so has seen it.
    async fn until_acknowledged(&self, operators: &[(&str, &str)]) {
        let place = Place::namespaced(COORDINATION, "lockgate-gates", "leases");
        until(&format!("{operators:?} run with their rows"), async || {
            let (object, leases) = (self.feature_gate().await, self.kube.list(&place, None).await.unwrap());
            let acks: Vec<Ack> = leases.iter().filter_map(|lease| Ack::of_lease(lease, kubeapi::seconds_of)).collect();
            let has_acknowledged = |(component, version): &(&str, &str)| {
                let digest = object.row(version).map(|row| row.digest());
                let mut own = acks.iter().filter(|ack| ack.component == *component && ack.version == *version);
                own.any(|ack| Some(&ack.digest) == digest.as_ref())
            };
            operators.iter().all(has_acknowledged)
        })
        .await;
    }
}

/// The text of a `gates.toml` with FastPath in some sets, and with Other in none.
fn gates_file(version: &str, fast_path: &str) -> String {
    let gate = |name: &str, sets: &str| {
        format!(
            "[gate.{name}]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\n\
             since = \"1.4\"\nsets = [{sets}]\n"
        )
    };
    format!("schema = 1\nversion = \"{version}\"\n{}{}", gate("FastPath", fast_path), gate("Other", ""))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sees_the_row_of_its_own_version() {
    let (Some(restarts), Some(hook)) = (Operator::program("restarts"), Operator::program("hook")) else { return };
    let world = World::start().await;
    world.install().await;

    // Operators that start before the controller wait, as a follower in this process does.
    let one = Operator::start(&restarts, "1.4.0", world.kubeconfig());
    let hook = Operator::start(&hook, "1.4.0", world.kubeconfig());
    let early = Gates::builder("1.4.0").need(["FastPath"]).notify().start(world.kube.clone()).unwrap();
    let mut states = early.subscribe();
    let waits = states.wait_for(|state| matches!(state, Err(NotReady::NoFeatureGate)));
    drop(finish("the follower has seen that there are no rows", waits).await.unwrap());
    one.says(&[]);
    hook.says(&[]);
    world.history(&["1.4.0"]).await;
    let old = gates_file("1.4.0", "\"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"");
    let controller = Controller::start(&old, "1.4.0", world.kubeconfig());
    one.says(&["version 1.4.0: the slow path"]);
    hook.says(&["version 1.4.0: fast path false"]);

    // Upgrade: the controller first, then one operator. In 1.5.0 the gate is on by default, and 1.4.0 does not see that.
    world.history(&["1.5.0", "1.4.0"]).await;
    let new = gates_file("1.5.0", "\"Default\", \"OKD\", \"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"");
    let new = Controller::start(&new, "1.5.0", world.kubeconfig());
    controller.stop().await;
    world.reported("1.5.0").await;
    let upgraded = Operator::start(&restarts, "1.5.0", world.kubeconfig());
    upgraded.says(&["version 1.5.0: the fast path"]);

    // Changes of a gate that no operator asks for, and lists in another order: no operator restarts. The operators have
    // acknowledged rows from before and after the reordering, and what they print later shows no other restart.
    let all = [("restarts", "1.4.0"), ("restarts", "1.5.0"), ("hook", "1.4.0")];
    world.custom(&["Other"], &[]).await;
    world.until_gate("Other", true).await;
    world.until_acknowledged(&all).await;
    let reverse = |object: &mut Value| {
        object["status"]["featureGates"].as_array_mut().unwrap().reverse();
        for row in object["status"]["featureGates"].as_array_mut().unwrap() {
            row["enabled"].as_array_mut().unwrap().reverse();
        }
    };
    world.change("featuregates", "cluster", reverse, true).await;
    world.custom(&[], &[]).await;
    world.until_gate("Other", false).await;
    world.until_acknowledged(&all).await;
    one.says(&["version 1.4.0: the slow path"]);
    hook.says(&["version 1.4.0: fast path false"]);
    upgraded.says(&["version 1.5.0: the fast path"]);

    // FastPath on for 1.4.0 too: the operator there restarts once, the hook handles it, 1.5.0 is not affected.
    world.custom(&["Other", "FastPath"], &[]).await;
    let restarted =
        ["version 1.4.0: the slow path", "leaving: a gate has changed", "exit 0", "version 1.4.0: the fast path"];
    one.says(&restarted);
    hook.says(&["version 1.4.0: fast path false", "switched: fast path true"]);
    world.until_acknowledged(&all).await;
    upgraded.says(&["version 1.5.0: the fast path"]);

    // FastPath off for all: the hook asks for a restart.
    world.custom(&[], &["FastPath"]).await;
    let again = ["leaving: a gate has changed", "exit 0", "version 1.4.0: the slow path"];
    let twice_restarted = [&restarted[..], &again].concat();
    one.says(&twice_restarted);
    let slow_again = ["leaving: a gate has changed", "exit 0", "version 1.5.0: the slow path"];
    upgraded.says(&[&["version 1.5.0: the fast path"][..], &slow_again].concat());
    let switched = ["version 1.4.0: fast path false", "switched: fast path true", "switched: fast path false"];
    hook.says(&[&switched[..], &["exit 0", "version 1.4.0: fast path false"]].concat());
    world.until_acknowledged(&all).await;

    // Downgrade. 1.5.0 leaves the history, and its row stays while an operator runs with it.
    world.history(&["1.4.0"]).await;
    let old = Controller::start(&old, "1.4.0", world.kubeconfig());
    new.stop().await;
    world.reported("1.4.0").await;
    let object = world.feature_gate().await;
    assert!(object.versions().contains(&"1.5.0"), "{:?}", object.versions());
    one.says(&twice_restarted);

    drop((one, hook, upgraded));
    old.stop().await;
}
