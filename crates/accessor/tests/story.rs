//! Two operators as processes follow their own versions through a change of the set, an upgrade and back. Restarts are counted.

use crate::support;

use std::{path::PathBuf, time::Duration};

use accessor::Kube;
use featureset::{GatesFile, object::ClusterOperator};
use kubeapi::Place;
use playground::Playground;
use serde_json::{Value, json};
use support::Operator;

const CONFIG: &str = "/apis/config.openshift.io/v1";

struct World {
    kube: Kube,
    kubeconfig: PathBuf,
}

impl World {
    async fn install(&self) {
        let definitions = Place::cluster("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions");
        for object in featureset::yaml::objects(&featureset::generate::crds()).unwrap() {
            self.kube.create(&definitions, &object).await.unwrap();
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lockgate-gates"}});
        self.kube.create(&Place::cluster("/api/v1", "namespaces"), &namespace).await.unwrap();
        let version = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
                             "metadata": {"name": "version"}, "spec": {"clusterID": "x"}});
        for _ in 0..100 {
            if self.kube.create(&Place::cluster(CONFIG, "clusterversions"), &version).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the definitions are not served");
    }

    async fn change(&self, plural: &'static str, name: &str, change: impl Fn(&mut Value), status: bool) {
        let place = Place::cluster(CONFIG, plural);
        for _ in 0..20 {
            let mut object = self.kube.get(&place, name).await.unwrap().expect("it is there");
            change(&mut object);
            let written = match status {
                true => self.kube.update_status(&place, &object).await,
                false => self.kube.update(&place, &object).await,
            };
            match written {
                Ok(_) => return,
                Err(error) if error.cause() == kubeapi::Cause::Conflict => {}
                Err(error) => panic!("{error}"),
            }
        }
        panic!("conflicts without end");
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

    async fn reported(&self, version: &str) {
        for _ in 0..300 {
            let operator =
                self.kube.get(&Place::cluster(CONFIG, "clusteroperators"), ClusterOperator::NAME).await.unwrap();
            let operator: Option<ClusterOperator> = operator.map(|object| serde_json::from_value(object).unwrap());
            if operator.is_some_and(|operator| operator.version("operator") == Some(version)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{version} is not reported");
    }

    /// A controller of a version, until it is told to end.
    fn controller(&self, version: &'static str, fast_path: &str) -> Controller {
        let gate = |name: &str, sets: &str| {
            format!(
                "[gate.{name}]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\n\
                     since = \"1.4\"\nsets = [{sets}]\n"
            )
        };
        let text = format!("schema = 1\nversion = \"{version}\"\n{}{}", gate("FastPath", fast_path), gate("Other", ""));
        let mut options = operator::Options::new(&GatesFile::parse(&text).unwrap(), version, None).unwrap();
        options.kubeconfig = Some(self.kubeconfig.clone());
        options.timing.lease = Duration::from_secs(3);
        options.timing.retry = Duration::from_millis(300);
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move { operator::run(options, async { drop(stopped.await) }).await.unwrap() });
        Controller { stop, task }
    }
}

struct Controller {
    stop: tokio::sync::oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Controller {
    async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sees_the_row_of_its_own_version() {
    let playground = Playground::start().unwrap();
    let kubeconfig = playground.kubeconfig().to_owned();
    let world = World { kube: Kube::connect(Some(&kubeconfig)).await.unwrap(), kubeconfig: kubeconfig.clone() };
    world.install().await;

    // The operators are there before the controller: they wait.
    let one = Operator::start("restarts", "1.4.0", kubeconfig.clone());
    let hook = Operator::start("hook", "1.4.0", kubeconfig.clone());
    tokio::time::sleep(Duration::from_secs(1)).await;
    one.says(&[]).await;
    world.history(&["1.4.0"]).await;
    let old = world.controller("1.4.0", "\"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"");
    one.says(&["version 1.4.0: the slow path"]).await;
    hook.says(&["version 1.4.0: fast path false"]).await;

    // Upgrade: the controller first, then one operator. In 1.5.0 the gate is on by default, and 1.4.0 does not see that.
    world.history(&["1.5.0", "1.4.0"]).await;
    let new = world.controller("1.5.0", "\"Default\", \"OKD\", \"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"");
    old.stop().await;
    world.reported("1.5.0").await;
    let upgraded = Operator::start("restarts", "1.5.0", kubeconfig.clone());
    upgraded.says(&["version 1.5.0: the fast path"]).await;

    // Flips of a gate that nobody asks for, and lists in another order: nobody restarts.
    world.custom(&["Other"], &[]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reverse = |object: &mut Value| {
        object["status"]["featureGates"].as_array_mut().unwrap().reverse();
        for row in object["status"]["featureGates"].as_array_mut().unwrap() {
            row["enabled"].as_array_mut().unwrap().reverse();
        }
    };
    world.change("featuregates", "cluster", reverse, true).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    one.says(&["version 1.4.0: the slow path"]).await;
    hook.says(&["version 1.4.0: fast path false"]).await;
    upgraded.says(&["version 1.5.0: the fast path"]).await;

    // On for 1.4.0 too: the operator there restarts once, the hook takes it, 1.5.0 does not care.
    world.custom(&["Other", "FastPath"], &[]).await;
    let restarted =
        ["version 1.4.0: the slow path", "leaving: a gate has changed", "exit Some(0)", "version 1.4.0: the fast path"];
    one.says(&restarted).await;
    hook.says(&["version 1.4.0: fast path false", "switched: fast path true"]).await;
    upgraded.says(&["version 1.5.0: the fast path"]).await;

    // Off for all: the hook asks for a restart.
    world.custom(&[], &["FastPath"]).await;
    let again = ["leaving: a gate has changed", "exit Some(0)", "version 1.4.0: the slow path"];
    one.says(&[&restarted[..], &again].concat()).await;
    upgraded
        .says(&[
            "version 1.5.0: the fast path",
            "leaving: a gate has changed",
            "exit Some(0)",
            "version 1.5.0: the slow path",
        ])
        .await;
    let switched = ["version 1.4.0: fast path false", "switched: fast path true", "switched: fast path false"];
    hook.says(&[&switched[..], &["exit Some(0)", "version 1.4.0: fast path false"]].concat()).await;

    // Everyone has acknowledged the row it runs with.
    let leases = world
        .kube
        .list(&Place::namespaced("/apis/coordination.k8s.io/v1", "lockgate-gates", "leases"), None)
        .await
        .unwrap();
    let acks: Vec<_> =
        leases.iter().filter_map(|lease| featureset::ack::Ack::of_lease(lease, kubeapi::seconds_of)).collect();
    for (component, version) in [("restarts", "1.4.0"), ("restarts", "1.5.0"), ("hook", "1.4.0")] {
        assert!(
            acks.iter().any(|ack| ack.component == component && ack.version == version),
            "{component} {version}: {acks:?}"
        );
    }

    // Down again. 1.5.0 leaves the history, and its row stays while somebody runs with it.
    world.history(&["1.4.0"]).await;
    let old = world.controller("1.4.0", "\"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"");
    new.stop().await;
    world.reported("1.4.0").await;
    let object = world.kube.get(&Place::cluster(CONFIG, "featuregates"), "cluster").await.unwrap().unwrap();
    let versions: Vec<&str> = object["status"]["featureGates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["version"].as_str().unwrap())
        .collect();
    assert!(versions.contains(&"1.5.0"), "{versions:?}");
    assert_eq!(one.said.lock().unwrap().len(), 7, "nobody restarts for that");

    drop((one, hook, upgraded));
    old.stop().await;
}
