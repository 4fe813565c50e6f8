//! The processes of these tests: an API server, controllers, and kubectl.

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

pub(super) const LOCKGATE: &str = env!("CARGO_BIN_EXE_lockgate");
pub(super) const GATE: &[&str] = &["featuregate", "cluster"];
pub(super) const OPERATOR: &[&str] = &["clusteroperator", "config-operator"];

/// A running controller.
pub(super) struct Controller {
    process: Process,
    /// The address of the metrics.
    metrics: String,
}

impl Controller {
    /// The number of steps that have ended with a result: `nothing`, `wrote` or `failed`.
    pub(super) fn steps(&self, result: &str) -> u64 {
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
pub(super) struct World {
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
    pub(super) fn new() -> Option<World> {
        let dir = harness::tempdir();
        let kubectl = Kubectl::new(&dir.path().join("api/admin.kubeconfig"), dir.path())?;
        let mut world = World { api: None, port: Port::reserve(), kubectl, count: Cell::new(0), dir };
        world.release("1.4.0", &[("A", "TechPreviewNoUpgrade"), ("B", "")]);
        world.release("1.5.0", &[("A", "Default"), ("B", "DevPreviewNoUpgrade"), ("C", "")]);
        world.start_api();
        Some(world)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(super) fn kubeconfig(&self) -> String {
        self.text("api/admin.kubeconfig")
    }

    /// A path that no other process uses.
    fn unused(&self, name: &str) -> PathBuf {
        self.count.set(self.count.get() + 1);
        self.path(&format!("{name}-{}", self.count.get()))
    }

    /// Creates a directory with `gates.toml` of a version and the manifests that are made from it.
    pub(super) fn release(&self, version: &str, gates: &[(&str, &str)]) {
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
    pub(super) fn spawn(&self, name: &str, args: &[&str]) -> Process {
        let mut command = Command::new(LOCKGATE);
        command.arg(name).args(args);
        Process::start(command, &self.unused(name))
    }

    /// Starts a subcommand that listens on one port, and waits until it has bound the port. Returns its address, too.
    #[track_caller]
    pub(super) fn serve(&self, name: &str, kind: &str, args: &[&str]) -> (Process, String) {
        let ports = self.unused("ports");
        let mut process = self.spawn(name, &[args, &["--ports-file", &ports.display().to_string()]].concat());
        let urls = process.wait_ports(&ports)[kind].clone();
        let url = urls[0].as_str().unwrap_or_else(|| panic!("no URL of {kind} in {urls}"));
        let address = url.split_once("://").map_or(url, |(_, address)| address).to_owned();
        (process, address)
    }

    #[track_caller]
    pub(super) fn start_api(&mut self) {
        let (api, _) =
            self.serve("apiserver", "api", &["--data-dir", &self.text("api"), "--listen", &self.port.address()]);
        self.api = Some(api);
        until("the API answers", || self.kubectl(&["get", "namespaces"]).is_ok());
    }

    pub(super) fn stop_api(&mut self) {
        self.api.take().unwrap().stop();
    }

    #[track_caller]
    pub(super) fn controller(&self, version: &str) -> Controller {
        self.controller_with(version, &[])
    }

    #[track_caller]
    pub(super) fn controller_with(&self, version: &str, more: &[&str]) -> Controller {
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
    pub(super) fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        let output = self.kubectl.run(args);
        if output.code == Some(0) { Ok(output.stdout) } else { Err(output.stderr) }
    }

    #[track_caller]
    pub(super) fn good(&self, args: &[&str]) -> String {
        self.kubectl(args).unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    /// Runs `lockgate gates` on this cluster.
    #[track_caller]
    pub(super) fn gates(&self, args: &[&str]) -> Output {
        Output::of(Command::new(LOCKGATE).arg("gates").args(args).env("KUBECONFIG", self.kubeconfig()))
    }

    /// Runs a command of `lockgate gates` that must fail. Returns everything that it has printed.
    #[track_caller]
    pub(super) fn gates_fail(&self, args: &[&str]) -> String {
        let output = self.gates(args);
        assert_ne!(output.code, Some(0), "gates {args:?} succeeded: {}", output.stdout);
        output.stdout + &output.stderr
    }

    #[track_caller]
    pub(super) fn install(&self) {
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
    pub(super) fn history(&self, versions: &[&str]) {
        let entry = |version: &&str| {
            json!({"state": "Completed", "version": version, "image": "", "verified": false,
                   "startedTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"})
        };
        let history: Vec<_> = versions.iter().map(entry).collect();
        let patch = json!({"status": {"desired": {"version": versions[0]}, "history": history}}).to_string();
        self.good(&["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p", &patch]);
    }

    #[track_caller]
    pub(super) fn choose(&self, set: &str) {
        let patch = format!("{{\"spec\":{{\"featureSet\":\"{set}\"}}}}");
        self.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", &patch]);
    }

    pub(super) fn feature_gate(&self) -> Value {
        let text = self.kubectl(&["get", "featuregate", "cluster", "-o", "json"]).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// `1.4.0:A,B` for each row, with the gates that are on.
    pub(super) fn rows(&self) -> String {
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

    pub(super) fn reported(&self) -> String {
        let path = "jsonpath={.status.versions[?(@.name==\"operator\")].version}";
        self.kubectl(&["get", "clusteroperator", "config-operator", "-o", path]).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn until_reported(&self, version: &str) {
        until(&format!("{version} is reported"), || self.reported() == version);
    }

    /// The status and the reason of a condition.
    pub(super) fn condition(&self, object: &[&str], kind: &str) -> String {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")]['status','reason']}}");
        self.kubectl(&[&["get"], object, &["-o", &path]].concat()).unwrap_or_default()
    }

    #[track_caller]
    pub(super) fn until_condition(&self, object: &[&str], kind: &str, want: &str) {
        until(&format!("{kind} of {object:?} is {want}"), || self.condition(object, kind).starts_with(want));
    }

    #[track_caller]
    pub(super) fn until_rows(&self, want: &str) {
        until(&format!("rows are {want:?}"), || self.rows() == want);
    }

    /// Waits until the controller has seen the present spec of the FeatureGate.
    #[track_caller]
    pub(super) fn until_observed(&self) {
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
    pub(super) fn look_again(&self, controller: &Controller) {
        let (before, note) = (controller.steps("nothing"), self.unused("look"));
        let note = format!("example.com/look={}", note.display());
        self.good(&["annotate", "clusterversion", "version", "--overwrite", &note]);
        until("the controller has looked again", || controller.steps("nothing") > before);
    }

    /// Asserts that a controller without a task writes nothing, neither to the objects of feature sets nor to the object
    /// `more`.
    #[track_caller]
    pub(super) fn assert_no_needless_writes(&self, controller: &Controller, more: &[&str]) {
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
pub(super) fn wait_seconds() -> String {
    wait_max().as_secs().to_string()
}
