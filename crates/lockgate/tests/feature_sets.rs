//! Feature sets with real processes: an API server, controllers of two versions, and kubectl as the one who judges.

#[path = "feature_sets/field_gates.rs"]
mod field_gates;
#[path = "feature_sets/files.rs"]
mod files;
#[path = "feature_sets/names.rs"]
mod names;
#[path = "feature_sets/retire.rs"]
mod retire;
#[path = "feature_sets/story.rs"]
mod story;

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

const LOCKGATE: &str = env!("CARGO_BIN_EXE_lockgate");

/// True if kubectl is there. A test without it says so and ends; where peers are required it fails.
fn has_kubectl() -> bool {
    let found = Command::new("kubectl").args(["version", "--client"]).output().is_ok_and(|said| said.status.success());
    assert!(found || std::env::var("LOCKGATE_REQUIRE_PEERS").is_err(), "kubectl is required and was not found");
    if !found {
        eprintln!("SKIPPED: kubectl was not found");
    }
    found
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(args: &[&str], log: &PathBuf) -> Process {
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = Command::new(LOCKGATE).args(args).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Process(child)
    }

    /// Asks it to end, and waits.
    fn stop(mut self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        self.0.wait().unwrap();
    }

    /// kill -9.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct World {
    dir: TempDir,
    port: u16,
    api: Option<Process>,
}

impl World {
    fn new() -> World {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut world = World { dir: tempfile::tempdir().unwrap(), port, api: None };
        world.release("1.4.0", &[("A", "TechPreviewNoUpgrade"), ("B", "")]);
        world.release("1.5.0", &[("A", "Default"), ("B", "DevPreviewNoUpgrade"), ("C", "")]);
        world.start_api();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A folder with `gates.toml` of a version, and manifests made from it.
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
        let said = Command::new(LOCKGATE).args(["gates", "--file", &file, "render"]).output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    fn start_api(&mut self) {
        let (dir, listen) = (self.text("api"), format!("127.0.0.1:{}", self.port));
        self.api = Some(Process::start(&["apiserver", "--data-dir", &dir, "--listen", &listen], &self.path("api.log")));
    }

    fn controller(&self, version: &str) -> Process {
        self.controller_with(version, &[])
    }

    fn controller_with(&self, version: &str, more: &[&str]) -> Process {
        let (gates, kubeconfig) = (format!("{}/gates.toml", self.text(version)), self.text("api/admin.kubeconfig"));
        let args = [
            "operator",
            "--gates",
            &gates,
            "--release-version",
            version,
            "--kubeconfig",
            &kubeconfig,
            "--lease-seconds",
            "3",
        ];
        Process::start(&[&args[..], more].concat(), &self.path(&format!("{version}.log")))
    }

    fn kubectl(&self, args: &[&str]) -> Result<String, String> {
        let said = Command::new("kubectl")
            .args(args)
            .env("KUBECONFIG", self.path("api/admin.kubeconfig"))
            .env("HOME", self.dir.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if said.status.success() { Ok(text(&said.stdout)) } else { Err(text(&said.stderr)) }
    }

    /// `lockgate gates` with the cluster of this world.
    fn command(&self, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(LOCKGATE);
        command.arg("gates").args(args).env("KUBECONFIG", self.path("api/admin.kubeconfig"));
        let said = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if said.status.success() { Ok(text(&said.stdout)) } else { Err(text(&said.stderr)) }
    }

    fn good(&self, args: &[&str]) -> String {
        self.kubectl(args).unwrap_or_else(|error| panic!("kubectl {args:?}: {error}"))
    }

    fn ready(&self) {
        self.until("the API answers", || self.kubectl(&["get", "namespaces"]).is_ok());
    }

    fn install(&self) {
        self.ready();
        let manifests = self.path("1.4.0/manifests");
        for name in ["0-crds.yaml", "1-namespace.yaml"] {
            self.good(&["apply", "-f", &manifests.join(name).display().to_string()]);
        }
        self.until("definitions are served", || self.kubectl(&["get", "clusterversions,featuregates"]).is_ok());
        fs::write(
            self.path("version.yaml"),
            "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {clusterID: x}\n",
        )
        .unwrap();
        self.good(&["create", "-f", &self.text("version.yaml")]);
    }

    fn history(&self, versions: &[&str]) {
        let entry = |version: &&str| {
            serde_json::json!({"state": "Completed", "version": version, "image": "", "verified": false,
                   "startedTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z"})
        };
        let history: Vec<_> = versions.iter().map(entry).collect();
        let patch =
            serde_json::json!({"status": {"desired": {"version": versions[0]}, "history": history}}).to_string();
        self.good(&["patch", "clusterversion", "version", "--subresource=status", "--type=merge", "-p", &patch]);
    }

    fn choose(&self, set: &str) {
        let patch = format!("{{\"spec\":{{\"featureSet\":\"{set}\"}}}}");
        self.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", &patch]);
    }

    /// `1.4.0:A,B` for each row, with the gates that are on.
    fn rows(&self) -> String {
        let text = self.kubectl(&["get", "featuregate", "cluster", "-o", "json"]).unwrap_or_default();
        let object: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
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

    fn condition(&self, object: &[&str], kind: &str) -> String {
        let path = format!("jsonpath={{.status.conditions[?(@.type==\"{kind}\")]['status','reason']}}");
        self.kubectl(&[&["get"], object, &["-o", &path]].concat()).unwrap_or_default()
    }

    #[track_caller]
    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(120);
        while !holds() {
            assert!(Instant::now() < end, "waited too long until {what}; rows {}; {}", self.rows(), self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    #[track_caller]
    fn until_rows(&self, want: &str) {
        self.until(&format!("rows are {want}"), || self.rows() == want);
    }

    fn logs(&self) -> String {
        ["1.4.0.log", "1.5.0.log"].map(|name| fs::read_to_string(self.path(name)).unwrap_or_default()).join("\n")
    }

    /// Everything that a needless write would change.
    fn versions_of_objects(&self) -> String {
        let kinds = "featuregates,clusteroperators,clusterversions,configmaps";
        let path = "jsonpath={range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}";
        self.good(&["get", kinds, "-n", "lockgate-gates", "-o", path])
    }
}

/// Upgrade and downgrade, with the controller first; each version has its own row all the time.
#[test]
fn up_and_down() {
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    world.install();
    world.history(&["1.4.0"]);
    let old = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    world.until("1.4.0 is reported", || world.reported() == "1.4.0");

    // What is to come has no registry yet: said, and not reported.
    world.history(&["1.5.0", "1.4.0"]);
    let gate: &[&str] = &["featuregate", "cluster"];
    world.until("the missing row is told", || world.condition(gate, "DeterminationDegraded") == "True RegistryMissing");
    assert_eq!((world.reported().as_str(), world.rows().as_str()), ("1.4.0", "1.4.0:"));

    // The new controller brings it; the old one, which holds the lease, writes the row; nobody reports 1.5.0 yet.
    let new = world.controller("1.5.0");
    world.until_rows("1.4.0: 1.5.0:A");
    world.until("all is determined", || world.condition(gate, "DeterminationDegraded") == "False AsExpected");
    assert_eq!(world.reported(), "1.4.0");
    old.stop();
    world.until("1.5.0 is reported", || world.reported() == "1.5.0");

    // All rows follow the set, each from its own registry; and then nothing is written any more.
    world.choose("DevPreviewNoUpgrade");
    world.until_rows("1.4.0:A 1.5.0:A,B");
    let operator: &[&str] = &["clusteroperator", "config-operator"];
    let why = "False FeatureGates_RestrictedFeatureGates_DevPreviewNoUpgrade";
    world.until("upgrades are blocked", || world.condition(operator, "Upgradeable") == why);
    let before = world.versions_of_objects();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(world.versions_of_objects(), before, "needless writes");

    // Down again: the controller of 1.4.0 first.
    world.history(&["1.4.0", "1.5.0", "1.4.0"]);
    let old = world.controller("1.4.0");
    new.stop();
    world.until("1.4.0 is reported", || world.reported() == "1.4.0");
    assert_eq!(world.rows(), "1.4.0:A 1.5.0:A,B");
    world.history(&["1.4.0"]);
    world.until_rows("1.4.0:A");
    old.stop();
}

/// The controller dies before it sees a change, the API is gone for a while, the object is deleted, rows are edited.
#[test]
fn faults() {
    if !has_kubectl() {
        return;
    }
    let mut world = World::new();
    world.install();
    world.history(&["1.4.0"]);
    let first = world.controller("1.4.0");
    world.until_rows("1.4.0:");
    first.kill();
    world.choose("TechPreviewNoUpgrade");
    // The lease of the dead one has to end first.
    let second = world.controller("1.4.0");
    world.until_rows("1.4.0:A");

    // The API goes and comes; what is changed afterwards is seen.
    world.api.take().unwrap().stop();
    std::thread::sleep(Duration::from_secs(1));
    world.start_api();
    world.ready();
    let forged =
        "{\"status\":{\"featureGates\":[{\"version\":\"1.4.0\",\"enabled\":[{\"name\":\"B\"}],\"disabled\":[]}]}}";
    world.good(&["patch", "featuregate", "cluster", "--subresource=status", "--type=merge", "-p", forged]);
    world.until_rows("1.4.0:A");

    // Deleted and made again, it shows Default; the rows stay, and it is told.
    world.good(&["delete", "featuregate", "cluster"]);
    world.until_rows("1.4.0:A");
    let gate: &[&str] = &["featuregate", "cluster"];
    world.until("it is told", || world.condition(gate, "DeterminationDegraded") == "True OneWaySetLeft");
    let operator: &[&str] = &["clusteroperator", "config-operator"];
    assert!(world.condition(operator, "Upgradeable").starts_with("False"));
    // Any other set, and the definition itself: no way out.
    world.choose("OKD");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(world.rows(), "1.4.0:A");
    world.good(&["delete", "crd", "featuregates.config.openshift.io"]);
    world.good(&["apply", "-f", &world.path("1.4.0/manifests/0-crds.yaml").display().to_string()]);
    world.until_rows("1.4.0:A");
    world.choose("TechPreviewNoUpgrade");
    world.until("all is well", || world.condition(gate, "DeterminationDegraded") == "False AsExpected");
    assert_eq!(world.rows(), "1.4.0:A");
    // A bug: in a definition without the subresource, rows of whoever wrote them stayed.
    let no_status = "[{\"op\":\"remove\",\"path\":\"/spec/versions/0/subresources\"}]";
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", no_status]);
    // It is open to all as soon as the API server has seen the definition.
    world.until("somebody forges it", || {
        world.good(&["patch", "featuregate", "cluster", "--type=merge", "-p", forged]).contains("cluster patched\n")
    });
    world.until_rows("1.4.0:A");
    // Nor is a spec that is none a way out, in a definition that lets anything in.
    let loose = serde_json::json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    world.good(&["patch", "crd", "featuregates.config.openshift.io", "--type=json", "-p", &loose.to_string()]);
    let no_spec = forged.replacen('{', "{\"spec\":{\"featureSet\":[\"x\"]},", 1);
    let forge = ["patch", "featuregate", "cluster", "--type=merge", "-p", &no_spec];
    world.until("it lets anything in", || world.kubectl(&forge).is_ok());
    world.until("it is told", || world.condition(gate, "DeterminationDegraded") == "True SpecUnreadable");
    world.until_rows("1.4.0:A");
    assert!(world.condition(operator, "Upgradeable").starts_with("False"));
    second.stop();
}

/// Two of one version at once: one writes, and when it dies the other goes on.
#[test]
fn two_at_once() {
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    // Before anything is there: controllers wait for the API's definitions.
    world.ready();
    let (one, other) = (world.controller("1.4.0"), world.controller("1.4.0"));
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

/// Without a version operator: the controller goes first because `begin` waits for it; sets block upgrades; all is on record.
#[test]
fn versions_begin_with_the_controller() {
    if !has_kubectl() {
        return;
    }
    let world = World::new();
    world.install();
    world.good(&["delete", "clusterversion", "version"]);
    let gates = |args: &[&str]| {
        let kubeconfig = world.text("api/admin.kubeconfig");
        let said = Command::new(LOCKGATE).arg("gates").args(args).args(["--kubeconfig", &kubeconfig]).output().unwrap();
        let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        (said.status.success(), text)
    };
    let old = world.controller("1.4.0");
    world.until("it is told", || {
        world.condition(&["featuregate", "cluster"], "DeterminationDegraded") == "True NoClusterVersion"
    });
    assert!(gates(&["version", "complete", "1.4.0"]).1.contains("there is no ClusterVersion"));
    assert!(gates(&["version", "begin", "1.4.0 "]).1.contains("is no version: it has spaces"));
    assert!(world.kubectl(&["get", "clusterversion", "version"]).is_err(), "what was refused left nothing behind");
    let (ok, said) = gates(&["version", "begin", "1.4.0"]);
    assert!(ok && world.reported() == "1.4.0", "{said}");
    assert!(gates(&["version", "complete", "1.4.0"]).0);
    // Nobody brings 1.5.0: no success, and the reason.
    let (ok, said) = gates(&["version", "begin", "1.5.0", "--wait-seconds", "3"]);
    assert!(!ok && said.contains("version 1.5.0 has no row: it left no registry in the cluster"), "{said}");
    assert!(gates(&["version", "begin", "1.6.0"]).1.contains("1.5.0 is under way; complete or abort it first"));
    // Nor can it be completed: what is missing, and what to do.
    let history = || world.good(&["get", "clusterversion", "version", "-o", "jsonpath={.status.history}"]);
    let before = history();
    for more in [&[][..], &["--wait", "--wait-seconds", "1"]] {
        let (ok, said) = gates(&[&["version", "complete", "1.5.0"], more].concat());
        let missing = "FeatureGate cluster has no row of 1.5.0, but rows of 1.4.0, and ClusterOperator config-operator \
                       reports 1.4.0; version 1.5.0 has no row: it left no registry in the cluster";
        assert!(!ok && said.contains(missing) && said.contains("lockgate gates version abort 1.5.0"), "{said}");
    }
    assert_eq!(history(), before);
    let (ok, said) = gates(&["version", "abort", "1.5.0"]);
    assert!(ok && said.starts_with("1.4.0 has begun"), "{said}");
    assert!(gates(&["version", "complete", "1.4.0"]).0);
    let new = world.controller("1.5.0");
    let (ok, said) = gates(&["version", "begin", "1.5.0", "--wait-seconds", "1"]);
    assert!(!ok && said.contains("its controller has not arrived"), "{said}");
    // The row is there, and 1.4.0 is in charge still: a row alone is no arrival.
    world.until_rows("1.4.0: 1.5.0:A");
    let (ok, said) = gates(&["version", "complete", "1.5.0"]);
    assert!(!ok && said.contains("not arrived: ClusterOperator config-operator reports 1.4.0; "), "{said}");
    old.stop();
    let (ok, said) = gates(&["version", "complete", "1.5.0", "--wait"]);
    assert!(ok && world.reported() == "1.5.0", "{said}");
    assert!(gates(&["version", "complete", "1.5.0", "--wait"]).1.contains("1.5.0 is completed"), "at once");
    world.choose("TechPreviewNoUpgrade");
    let (ok, said) = gates(&["status", "--wait", "--wait-seconds", "20"]);
    assert!(ok && said.contains("set TechPreviewNoUpgrade\n") && said.contains("row 1.5.0: 1 on, 2 off"), "{said}");
    let (ok, said) = gates(&["version", "begin", "1.6.0", "--wait-seconds", "1"]);
    assert!(!ok && said.contains("\"TechPreviewNoUpgrade\" does not allow updates"), "{said}");
    let (ok, said) = gates(&["history"]);
    assert!(ok && said.lines().count() == 2 && said.contains("TechPreviewNoUpgrade  chosen"), "{said}");
    new.stop();
}

#[test]
fn bad_options_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let gates = dir.path().join("gates.toml");
    let run = |toml: &str, more: &[&str]| {
        fs::write(&gates, toml).unwrap();
        let file = gates.display().to_string();
        let said = Command::new(LOCKGATE)
            .args([&["operator", "--gates", &file], more].concat())
            .env_remove("OPERATOR_IMAGE_VERSION")
            .output()
            .unwrap();
        assert!(!said.status.success());
        String::from_utf8_lossy(&said.stderr).into_owned()
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
