//! Feature sets with real processes: an API server, controllers of two versions, and kubectl.

mod field_gates;
mod files;
mod names;
mod retire;
mod story;

use std::{
    cell::Cell,
    fs,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use harness::{Kubectl, Output, Port, Process, TempDir, request, until, wait_max};
use serde_json::{Value, json};

const LOCKGATE: &str = env!("CARGO_BIN_EXE_lockgate");
const GATE: &[&str] = &["featuregate", "cluster"];
const OPERATOR: &[&str] = &["clusteroperator", "config-operator"];

/// A running controller.
struct Controller {
    process: Process,
    /// The address of the metrics.
    metrics: String,
}

impl Controller {
    /// The number of steps that have ended with a result: `nothing`, `wrote` or `failed`.
    fn steps(&self, result: &str) -> u64 {
        let reply = request(&self.metrics, "GET", "/metrics", &[], "").unwrap();
        let name = format!("lockgate_gates_sync_total{{result=\"{result}\"}} ");
        let line = reply.body.lines().find_map(|line| line.strip_prefix(&name));
        line.map_or(0, |count| count.parse().unwrap())
    }
}

impl Deref for Controller {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Controller {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// An API server with an embedded store, and the files of the versions 1.4.0 and 1.5.0.
struct World {
    api: Option<Process>,
    /// Controllers and kubectl know the API server by this port, also after a restart.
    port: Port,
    kubectl: Kubectl,
    /// The number of files that [`World::unused`] has named.
    count: Cell<u32>,
    dir: TempDir,
}

impl World {
    /// Returns `None`, and reports the test as skipped, if there is no kubectl.
    #[track_caller]
    fn new() -> Option<World> {
        let dir = harness::tempdir();
        let kubectl = Kubectl::new(&dir.path().join("api/admin.kubeconfig"), dir.path())?;
        let mut world = World { api: None, port: Port::reserve(), kubectl, count: Cell::new(0), dir };
        world.release("1.4.0", &[("A", "TechPreviewNoUpgrade"), ("B", "")]);
        world.release("1.5.0", &[("A", "Default"), ("B", "DevPreviewNoUpgrade"), ("C", "")]);
        world.start_api();
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn kubeconfig(&self) -> String {
        self.text("api/admin.kubeconfig")
    }

    /// A path that no other process uses.
    fn unused(&self, name: &str) -> PathBuf {
        self.count.set(self.count.get() + 1);
        self.path(&format!("{name}-{}", self.count.get()))
    }

    /// Creates a directory with `gates.toml` of a version and the manifests that are made from it.
    fn release(&self, version: &str, gates: &[(&str, &str)]) {
        let mut toml = format!("schema = 1\nversion = \"{version}\"\n[output]\nmanifests = \"manifests\"\n");
        for (name, set) in gates {
            let sets = match *set {
                "Default" => "\"Default\", \"OKD\", \"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"",
                "TechPreviewNoUpgrade" => "\"TechPreviewNoUpgrade\", \"DevPreviewNoUpgrade\"",
                "DevPreviewNoUpgrade" => "\"DevPreviewNoUpgrade\"",
                "OKD" => "\"OKD\"",
                _ => "",
            };
            toml += &format!(
                "[gate.{name}]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\n\
                 since = \"1.4\"\nsets = [{sets}]\n"
            );
        }
        fs::create_dir_all(self.path(version)).unwrap();
        fs::write(self.path(version).join("gates.toml"), toml).unwrap();
        let file = format!("{}/gates.toml", self.text(version));
        harness::run(Path::new(LOCKGATE), ["gates", "--file", &file, "render"]).ok();
    }

    /// Starts a subcommand without waiting.
    #[track_caller]
    fn spawn(&self, name: &str, args: &[&str]) -> Process {
        let mut command = Command::new(LOCKGATE);
        command.arg(name).args(args);
        Process::start(command, &self.unused(name))
    }

    /// Starts a subcommand that listens on one port, and waits until it has bound the port. Returns its address, too.
    #[track_caller]
    fn serve(&self, name: &str, kind: &str, args: &[&str]) -> (Process, String) {
        let ports = self.unused("ports");
        let mut process = self.spawn(name, &[args, &["--ports-file", &ports.display().to_string()]].concat());
        let urls = process.wait_ports(&ports)[kind].clone();
        let url = urls[0].as_str().unwrap_or_else(|| panic!("no URL of {kind} in {urls}"));
        let address = url.split_once("://").map_or(url, |(_, address)| address).to_owned();
        (process, address)
    }

    #[track_caller]
    fn start_api(&mut self) {
        let (api, _) =
            self.serve("apiserver", "api", &["--data-dir", &self.text("api"), "--listen", &self.port.address()]);
        self.api = Some(api);
        until("the API answers", || self.kubectl(&["get", "namespaces"]).is_ok());
    }

    fn stop_api(&mut self) {
        self.api.take().unwrap().stop();
    }

    #[track_caller]
    fn controller(&self, version: &str) -> Controller {
        self.controller_with(version, &[])
    }

    #[track_caller]
    fn controller_with(&self, version: &str, more: &[&str]) -> Controller {
        let (gates, kubeconfig) = (format!("{}/gates.toml", self.text(version)), self.kubeconfig());
        let args = [
            &["--gates", &gates, "--release-version", version, "--kubeconfig", &kubeconfig][..],
            &["--lease-seconds", "3", "--metrics-listen", "127.0.0.1:0"],
            more,
        ];
        let (process, metrics) = self.serve("operator", "metrics", &args.concat());
        Controller { process, metrics }
    }

    /// Standard output of kubectl, or the error that it has printed.
    #[track_caller]
    fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        let output = self.kubectl.run(args);
        if output.code == Some(0) { Ok(output.stdout) } else { Err(output.stderr) }
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        self.kubectl(args).unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    /// Runs `lockgate gates` on this cluster.
    #[track_caller]
    fn gates(&self, args: &[&str]) -> Output {
        Output::of(Command::new(LOCKGATE).arg("gates").args(args).env("KUBECONFIG", self.kubeconfig()))
    }

    /// Runs a command of `lockgate gates` that must fail. Returns everything that it has printed.
    #[track_caller]
    fn gates_fail(&self, args: &[&str]) -> String {
        let output = self.gates(args);
        assert_ne!(output.code, Some(0), "gates {args:?} succeeded: {}", output.stdout);
        output.stdout + &output.stderr
    }

    #[track_caller]
    fn install(&self) {
        let manifests = self.path("1.4.0/manifests");
        for name in ["0-crds.yaml", "1-namespace.yaml"] {
            self.good(&["apply", "-f", &manifests.join(name).display().to_string()]);
        }
        until("definitions are served", || self.kubectl(&["get", "clusterversions,featuregates"]).is_ok());
        fs::write(
            self.path("version.yaml"),
            "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x}\n",
        )
        .unwrap();
        self.good(&["create", "-f", &self.text("version.yaml")]);
    }

    #[track_caller]
    fn history(&self, versions: &[&str]) {
        let entry = |version: &&str| {
            json!({"state": "Completed", "version": version, "image": "", "verified": false,
                   "startedTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"})
        };
        let history: Vec<_> = versions.iter().map(entry).collect();
        let patch = json!({"status": {"desired": {"version": versions[0]}, "history": history}}).to_string();
        self.good(&["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p", &patch]);
    }

    #[track_caller]
    fn choose(&self, set: &str) {
        let patch = format!("{{\"spec\":{{\"featureSet\":\"{set}\"}}}}");
        self.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", &patch]);
    }

    fn feature_gate(&self) -> Value {
        let text = self.kubectl(&["get", "featuregate", "cluster", "-o", "json"]).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `1.4.0:A,B` for each row, with the gates that are on.
    fn rows(&self) -> String {
        let object = self.feature_gate();
        let mut rows: Vec<String> = Vec::new();
        for row in object["status"]["featureGates"].as_array().into_iter().flatten() {
            let on: Vec<&str> =
                row["enabled"].as_array().unwrap().iter().map(|gate| gate["name"].as_str().unwrap()).collect();
            rows.push(format!("{}:{}", row["version"].as_str().unwrap(), on.join(",")));
        }
        rows.sort();
        rows.join(" ")
    }

    fn reported(&self) -> String {
        let path = "jsonpath={.status.versions[?(@.name==\"operator\")].version}";
        self.kubectl(&["get", "clusteroperator", "config-operator", "-o", path]).unwrap_or_default()
    }

    #[track_caller]
    fn until_reported(&self, version: &str) {
        until(&format!("{version} is reported"), || self.reported() == version);
    }

    /// The status and the reason of a condition.
    fn condition(&self, object: &[&str], kind: &str) -> String {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")]['status','reason']}}");
        self.kubectl(&[&["get"], object, &["-o", &path]].concat()).unwrap_or_default()
    }

    #[track_caller]
    fn until_condition(&self, object: &[&str], kind: &str, want: &str) {
        until(&format!("{kind} of {object:?} is {want}"), || self.condition(object, kind).starts_with(want));
    }

    #[track_caller]
    fn until_rows(&self, want: &str) {
        until(&format!("rows are {want:?}"), || self.rows() == want);
    }

    /// Waits until the controller has seen the present spec of the FeatureGate.
    #[track_caller]
    fn until_observed(&self) {
        until("the controller has seen the spec", || {
            let object = self.feature_gate();
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let generation = &object["metadata"]["generation"];
            let mut determined = conditions.iter().filter(|condition| condition["type"] == "DeterminationDegraded");
            determined.any(|condition| condition["observedGeneration"] == *generation)
        });
    }

    /// Causes a step of the controller, and waits for the end of a step that finds nothing to write.
    #[track_caller]
    fn look_again(&self, controller: &Controller) {
        let (before, note) = (controller.steps("nothing"), self.unused("look"));
        let note = format!("example.com/look={}", note.display());
        self.good(&["annotate", "clusterversion", "version", "--overwrite", &note]);
        until("the controller has looked again", || controller.steps("nothing") > before);
    }

    /// Asserts that a controller without a task writes nothing, neither to the objects of feature sets nor to the object
    /// `more`.
    #[track_caller]
    fn assert_no_needless_writes(&self, controller: &Controller, more: &[&str]) {
        self.look_again(controller);
        let writes = || (controller.steps("wrote"), self.versions_of_objects(more));
        let before = writes();
        (0..3).for_each(|_| self.look_again(controller));
        assert_eq!(writes(), before, "needless writes");
    }

    /// The versions of all objects that controllers write, except for the lease.
    #[track_caller]
    fn versions_of_objects(&self, more: &[&str]) -> String {
        let kinds = "featuregates,clusteroperators,configmaps";
        let path = "jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}";
        let one = "jsonpath={.metadata.resourceVersion}";
        let more = if more.is_empty() { String::new() } else { self.good(&[&["get"], more, &["-o", one]].concat()) };
        self.good(&["get", kinds, "-n", "lockgate-gates", "-o", path]) + &more
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if thread::panicking() {
            let shown = self.kubectl.run(&["get", "featuregate", "cluster", "-o", "yaml", "--request-timeout=10s"]);
            eprintln!("{}{}", shown.stdout, shown.stderr);
        }
    }
}

/// The limit that all waits share, as the value of `--wait-seconds`.
fn wait_seconds() -> String {
    wait_max().as_secs().to_string()
}

/// Upgrade and downgrade, with the controller first. Each version has its own row all the time.
#[test]
fn up_and_down() {
    let Some(world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let mut old = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.until_reported("1.4.0");

    // The next version has no registry yet: this is a condition, and the version is not reported.
    world.history(&["1.5.0", "1.4.0"]);
    world.until_condition(GATE, "DeterminationDegraded", "True RegistryMissing");
    assert_eq!((world.reported().as_str(), world.rows().as_str()), ("1.4.0", "1.4.0:"));

    // The new controller brings it. The old one, which holds the lease, writes the row; 1.5.0 is not reported yet.
    let mut new = world.controller("1.5.0");
    world.until_rows("1.4.0: 1.5.0:A");
    world.until_condition(GATE, "DeterminationDegraded", "False AsExpected");
    assert_eq!(world.reported(), "1.4.0");
    old.stop();
    world.until_reported("1.5.0");

    // All rows follow the set, each from its own registry. Then nothing is written any more.
    world.choose("DevPreviewNoUpgrade");
    world.until_rows("1.4.0:A 1.5.0:A,B");
    let why = "False FeatureGates_RestrictedFeatureGates_DevPreviewNoUpgrade";
    world.until_condition(OPERATOR, "Upgradeable", why);
    world.assert_no_needless_writes(&new, &[]);

    // Down again: the controller of 1.4.0 first.
    world.history(&["1.4.0", "1.5.0", "1.4.0"]);
    let mut old = world.controller("1.4.0");
    new.stop();
    world.until_reported("1.4.0");
    assert_eq!(world.rows(), "1.4.0:A 1.5.0:A,B");
    world.history(&["1.4.0"]);
    world.until_rows("1.4.0:A");
    old.stop();
}

/// The controller is killed before it sees a change, the API is stopped for a while, the object is deleted, rows are edited.
#[test]
fn faults() {
    let Some(mut world) = World::new() else { return };
    world.install();
    world.history(&["1.4.0"]);
    let mut first = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    first.kill();
    world.choose("TechPreviewNoUpgrade");
    // The lease of the killed controller has to expire first.
    let mut second = world.controller("1.4.0");
    world.until_rows("1.4.0:A");

    // The API is stopped until the controller has lost its lease. A change after the restart is seen.
    world.stop_api();
    second.wait_log("does not hold the lease any more");
    world.start_api();
    let forged =
        "{\"status\":{\"featureGates\":[{\"version\":\"1.4.0\",\"enabled\":[{\"name\":\"B\"}],\"disabled\":[]}]}}";
    world.good(&["patch", "featuregate", "cluster", "--subresource=status", "--type=merge", "-p", forged]);
    world.until_rows("1.4.0:A");

    // Deleted and created again, the object shows Default. The rows stay, and a condition says why.
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_rows("1.4.0:A");
    world.until_condition(GATE, "DeterminationDegraded", "True OneWaySetLeft");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    // Neither another set nor a new definition is a way out.
    world.choose("OKD");
    world.until_observed();
    assert_eq!(world.rows(), "1.4.0:A");
    world.good(&["delete", "crd", "featuregates.config.openshift.io"]);
    world.good(&["apply", "-f", &world.path("1.4.0/manifests/0-crds.yaml").display().to_string()]);
    world.until_rows("1.4.0:A");
    world.choose("TechPreviewNoUpgrade");
    world.until_condition(GATE, "DeterminationDegraded", "False AsExpected");
    assert_eq!(world.rows(), "1.4.0:A");
    // Regression: in a definition without the subresource, forged rows stayed.
    let no_status = "[{\"op\":\"remove\",\"path\":\"/spec/versions/0/subresources\"}]";
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", no_status]);
    // The status is writable as soon as the API server has seen the definition.
    until("the rows are forged", || {
        world.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", forged]).contains("cluster patched\n")
    });
    world.until_rows("1.4.0:A");
    // Nor is an invalid spec a way out, in a definition that accepts anything.
    let loose = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", &loose.to_string()]);
    let no_spec = forged.replacen('{', "{\"spec\":{\"featureSet\":[\"x\"]},", 1);
    let forge = ["patch", "featuregate", "cluster", "--type=merge", "-p", &no_spec];
    until("the invalid spec is accepted", || world.kubectl(&forge).is_ok());
    world.until_condition(GATE, "DeterminationDegraded", "True SpecUnreadable");
    world.until_rows("1.4.0:A");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    second.stop();
}

/// Two controllers of one version: one writes, and when it is killed the other continues.
#[test]
fn two_at_once() {
    let Some(world) = World::new() else { return };
    // Controllers that start early wait for the definitions.
    let (mut one, mut other) = (world.controller("1.4.0"), world.controller("1.4.0"));
    world.install();
    world.history(&["1.4.0"]);
    world.until_rows("1.4.0:");
    let audit = world.good(&["get", "configmap", "gates-audit-1", "-n", "lockgate-gates", "-o", "jsonpath={.data}"]);
    assert_eq!(audit.matches("chosen").count(), 1, "{audit}");
    one.kill();
    world.choose("TechPreviewNoUpgrade");
    world.until_rows("1.4.0:A");
    other.stop();
}

/// Without a version operator, `begin` waits for the controller, sets block upgrades, and everything is recorded.
#[test]
fn versions_begin_with_the_controller() {
    let Some(world) = World::new() else { return };
    world.install();
    world.good(&["delete", "clusterversion", "version"]);
    let mut old = world.controller("1.4.0");
    world.until_condition(GATE, "DeterminationDegraded", "True NoClusterVersion");
    assert!(world.gates_fail(&["version", "complete", "1.4.0"]).contains("there is no ClusterVersion"));
    assert!(world.gates_fail(&["version", "begin", "1.4.0 "]).contains("is no version: it has spaces"));
    assert!(world.kubectl(&["get", "clusterversion", "version"]).is_err(), "a refused command creates nothing");
    world.gates(&["version", "begin", "1.4.0", "--wait-seconds", &wait_seconds()]).ok();
    assert_eq!(world.reported(), "1.4.0");
    world.gates(&["version", "complete", "1.4.0"]).ok();
    // There is no controller of 1.5.0: no success, and the reason.
    let begin = ["version", "begin", "1.5.0", "--wait-seconds", "1"];
    world.gates_fail(&begin);
    world.until_condition(GATE, "DeterminationDegraded", "True RegistryMissing");
    let said = world.gates_fail(&begin);
    assert!(said.contains("version 1.5.0 has no row: it left no registry in the cluster"), "{said}");
    let said = world.gates_fail(&["version", "begin", "1.6.0"]);
    assert!(said.contains("1.5.0 is under way; complete or abort it first"), "{said}");
    // Nor can it be completed: the error says what is missing and what to do.
    let history = || world.good(&["get", "clusterversion", "version", "-o", "jsonpath={.status.history}"]);
    let before = history();
    for more in [&[][..], &["--wait", "--wait-seconds", "1"]] {
        let said = world.gates_fail(&[&["version", "complete", "1.5.0"], more].concat());
        let missing = "FeatureGate cluster has no row of 1.5.0, but rows of 1.4.0, and ClusterOperator config-operator \
                       reports 1.4.0; version 1.5.0 has no row: it left no registry in the cluster";
        assert!(said.contains(missing) && said.contains("lockgate gates version abort 1.5.0"), "{said}");
    }
    assert_eq!(history(), before);
    let said = world.gates(&["version", "abort", "1.5.0", "--wait-seconds", &wait_seconds()]).ok();
    assert!(said.starts_with("1.4.0 has begun"), "{said}");
    world.gates(&["version", "complete", "1.4.0"]).ok();
    let mut new = world.controller("1.5.0");
    let said = world.gates_fail(&begin);
    assert!(said.contains("its controller has not arrived"), "{said}");
    // The row exists, and 1.4.0 is still in charge: a row alone is no arrival.
    world.until_rows("1.4.0: 1.5.0:A");
    let said = world.gates_fail(&["version", "complete", "1.5.0"]);
    assert!(said.contains("not arrived: ClusterOperator config-operator reports 1.4.0; "), "{said}");
    old.stop();
    let complete = ["version", "complete", "1.5.0", "--wait", "--wait-seconds", &wait_seconds()];
    world.gates(&complete).ok();
    assert_eq!(world.reported(), "1.5.0");
    assert!(world.gates_fail(&complete).contains("1.5.0 is completed"), "a second time");
    world.choose("TechPreviewNoUpgrade");
    let said = world.gates(&["status", "--wait", "--wait-seconds", &wait_seconds()]).ok();
    assert!(said.contains("set TechPreviewNoUpgrade\n") && said.contains("row 1.5.0: 1 on, 2 off"), "{said}");
    world.until_condition(OPERATOR, "Upgradeable", "False");
    let said = world.gates_fail(&["version", "begin", "1.6.0", "--wait-seconds", "1"]);
    assert!(said.contains("\"TechPreviewNoUpgrade\" does not allow updates"), "{said}");
    let said = world.gates(&["history"]).ok();
    assert!(said.lines().count() == 2 && said.contains("TechPreviewNoUpgrade  chosen"), "{said}");
    new.stop();
}

#[test]
fn errors_name_the_invalid_option() {
    let dir = harness::tempdir();
    let gates = dir.path().join("gates.toml");
    let run = |toml: &str, more: &[&str]| {
        fs::write(&gates, toml).unwrap();
        let mut command = Command::new(LOCKGATE);
        command.arg("operator").arg("--gates").arg(&gates).args(more).env_remove("OPERATOR_IMAGE_VERSION");
        Output::of(&mut command).error()
    };
    let sound = "schema = 1\nversion = \"1.4.0\"\nprofiles = [\"P\", \"Q\"]\n";
    let version = ["--release-version", "1.4.0"];
    assert!(run(sound, &[]).contains("set OPERATOR_IMAGE_VERSION"));
    assert!(run(sound, &version).contains("choose one of the profiles P, Q"));
    assert!(
        run(sound, &[&version[..], &["--profile", "R"]].concat()).contains("unknown profile \"R\"; known are P, Q")
    );
    assert!(run("schema = 1\n", &version).contains("line 1: version: is missing"));
    let kubeconfig = [&version[..], &["--profile", "P", "--kubeconfig", "/nowhere/config"]].concat();
    assert!(run(sound, &kubeconfig).contains("failed to use kubeconfig /nowhere/config"));
}
