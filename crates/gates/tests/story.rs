//! The life of gates by commands alone, in a directory of its own.

use std::{fs, path::Path, process::Command};

use harness::{Output, TempDir};

const START: &str = r#"# A comment.
schema = 1
version = "1.4.0"

[output]
rust = "src/gates.rs"
go = "gates/gates.go"
manifests = "manifests"
docs = "docs/gates.md"
"#;

struct World {
    dir: TempDir,
}

impl World {
    fn new() -> World {
        let world = World { dir: harness::tempdir() };
        world.write("gates.toml", START);
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn run(&self, line: &str) -> Result<(String, bool), String> {
        let dir = self.dir.path().display().to_string();
        let words = line.split_whitespace().map(|word| word.replace("DIR", &dir).replace('_', " "));
        gates::answer(["gates".to_owned(), "--file".to_owned(), format!("{dir}/gates.toml")].into_iter().chain(words))
    }

    #[track_caller]
    fn good(&self, line: &str) -> String {
        let (text, good) = self.run(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(good, "{line}: {text}");
        text
    }

    #[track_caller]
    fn bad(&self, line: &str) -> String {
        match self.run(line) {
            Err(error) => error,
            Ok((text, good)) => {
                assert!(!good, "{line} should have failed: {text}");
                text
            }
        }
    }

    fn add(&self, name: &str, more: &str) -> String {
        let url = "https://example.com/1";
        format!("add {name} --description Does_{name}. --owner us --contact us@example.com --enhancement {url} {more}")
    }

    fn evidence(&self, gate: &str) {
        let cases: String = (0..5).map(|i| format!("<testcase name=\"{i} [FeatureGate:{gate}]\"/>")).collect();
        for run in 0..14 {
            self.write(&format!("junit/{run}.xml"), &format!("<testsuite id=\"{run}\">{cases}</testsuite>"));
        }
    }

    /// Every file with its content, for comparisons.
    fn all(&self) -> Vec<(String, String)> {
        fn walk(dir: &Path, all: &mut Vec<(String, String)>) {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, all)
                } else {
                    all.push((path.display().to_string(), fs::read_to_string(&path).unwrap()))
                }
            }
        }
        let mut all = Vec::new();
        walk(self.dir.path(), &mut all);
        all.sort();
        all
    }
}

fn enabled(world: &World, set: &str) -> Vec<String> {
    let text = world.read(&format!("manifests/featuregates/featureGate-1-default-{set}.yaml"));
    let object = &featureset::yaml::objects(&text).unwrap()[0];
    let gates = object["status"]["featureGates"][0]["enabled"].as_array().unwrap();
    gates.iter().map(|gate| gate["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_gate_is_added_promoted_and_retired() {
    let world = World::new();
    world.good(&world.add("FastPath", ""));
    assert_eq!(enabled(&world, "DevPreviewNoUpgrade"), [""; 0]);
    world.good("promote FastPath --to TechPreviewNoUpgrade");
    assert_eq!(enabled(&world, "TechPreviewNoUpgrade"), ["FastPath"]);
    assert_eq!(enabled(&world, "Default"), [""; 0]);

    let error = world.bad("promote FastPath --to Default");
    assert!(error.contains("0 tests have [FeatureGate:FastPath] in their names, 5 are needed"), "{error}");
    world.evidence("FastPath");
    let said = world.good("promote FastPath --to Default --evidence DIR/junit");
    assert!(
        said.contains("in 1.4.0, and in no version before it:\n  FastPath  default  Default: off -> on\n"),
        "{said}"
    );
    assert_eq!(enabled(&world, "Default"), ["FastPath"]);
    assert!(world.read("gates.toml").starts_with("# A comment.\n"));

    world.write("src/main.rs", "fn main() { if on(Gate::FastPath) {} }\n");
    let error = world.bad("retire FastPath");
    assert!(error.contains("main.rs:1") && error.contains("no released version is known"), "{error}");
    world.write("src/main.rs", "fn main() {}\n");
    fs::copy(world.path("manifests/registry.json"), world.path("1.4.0.json")).unwrap();
    let next = world.read("gates.toml").replace("1.4.0", "1.5.0");
    world.write("gates.toml", &next);
    world.good("retire FastPath --registry DIR/1.4.0.json");
    assert!(world.read("gates.toml").contains("[retired]\nFastPath = \"1.5\""));
    assert!(!world.read("src/gates.rs").contains("FastPath"));
    let error = world.bad(&world.add("FastPath", ""));
    assert!(error.contains("never used again"), "{error}");
}

#[test]
fn verify_finds_drift_and_render_fixes_it() {
    let world = World::new();
    let said = world.bad("verify");
    assert!(said.contains("gates.rs is missing"), "{said}");
    world.good(&world.add("A", "--set DevPreviewNoUpgrade"));
    world.good("verify");
    for (name, word) in [
        ("src/gates.rs", "Does A"),
        ("gates/gates.go", "Does A"),
        ("docs/gates.md", "Does A"),
        ("manifests/registry.json", "Does A"),
        ("manifests/2-policies.yaml", "Deny"),
    ] {
        let sound = world.read(name);
        world.write(name, &sound.replacen(word, "X", 1));
        let broken = world.all();
        let said = world.bad("verify");
        assert!(said.contains(name) && said.contains("run lockgate gates render"), "{said}");
        assert_eq!(world.all(), broken, "verify writes nothing");
        world.good("render");
        assert_eq!(world.read(name), sound, "{name}");
    }
    let sound = world.read("docs/gates.md");
    world.write("docs/gates.md", "no marks");
    assert!(world.bad("render").contains("add them where the table should be"));
    world.write("docs/gates.md", &sound);
    assert_eq!(world.good("render"), "12 of 12 files were up to date\n");
    let before = world.all();
    world.good("render");
    assert_eq!(world.all(), before, "render is idempotent");
    let edited = world.read("gates.toml").replace("DevPreviewNoUpgrade", "OKD");
    world.write("gates.toml", &edited);
    world.bad("verify");
}

#[test]
fn text_around_the_table_is_kept() {
    let world = World::new();
    world.good(&world.add("A", ""));
    let text = world.read("docs/gates.md").replace("# Gates\n", "# Our gates\n\nRead this.\n") + "\nMore.\n";
    world.write("docs/gates.md", &text);
    world.good(&world.add("B", ""));
    let now = world.read("docs/gates.md");
    assert!(now.starts_with("# Our gates\n\nRead this.\n") && now.ends_with("\nMore.\n"), "{now}");
    assert!(now.contains("| `A` |") && now.contains("| `B` | – | – | – | – | 1.4 | – | us | Does B."), "{now}");
}

#[test]
fn a_dry_run_and_a_refusal_change_nothing() {
    let world = World::new();
    world.good(&world.add("A", "--set TechPreviewNoUpgrade"));
    world.good(&world.add("B", "--depends-on A"));
    let before = world.all();
    world.good(&world.add("C", "--dry-run"));
    world.good("demote A --to none --dry-run");
    for line in [
        "promote A --to Default",
        "promote Nope --to Default",
        "promote A --to CustomNoUpgrade",
        "promote A --to Sometimes",
        "demote A --to DevPreviewNoUpgrade --profile Moon",
        "retire A",
        "promote A --to Default --evidence DIR/nowhere",
        "plan --to TechPreviewNoUpgrade --profile Moon",
        "retire A --registry DIR/gates.toml",
        "render --payload-version 1.4.0 --manifest DIR/nowhere.yaml",
    ] {
        assert!(!world.bad(line).is_empty());
    }
    assert_eq!(world.all(), before);
}

/// After the end of a profile or of a major release, its manifests must not stay in the directory.
#[test]
fn obsolete_manifests_are_found_and_removed() {
    let world = World::new();
    world.write("gates.toml", &START.replace("\"1.4.0\"", "\"1.4.0\"\nprofiles = [\"a\", \"b\"]"));
    world.good("render");
    world.write("manifests/featuregates/README.md", "Mine.\n");
    world.write("gates.toml", &START.replace("\"1.4.0\"", "\"2.0.0\"\nprofiles = [\"a\"]"));
    let said = world.bad("verify");
    for name in ["featureGate-1-a-Default.yaml", "featureGate-1-b-OKD.yaml"] {
        assert!(said.contains(&format!("{name} is made no more")), "{said}");
    }
    let said = world.good("render");
    assert_eq!(said.matches("removed ").count(), 8, "{said}");
    world.good("verify");
    assert_eq!(world.read("manifests/featuregates/README.md"), "Mine.\n");
    world.good("render");
}

/// A typo in [output] must not overwrite a file.
#[test]
fn outputs_do_not_overwrite_other_files() {
    let world = World::new();
    world.good("render");
    let mine = "fn main() {}\n";
    world.write("src/main.rs", mine);
    for (path, why) in [
        ("gates.toml", "over"),
        ("./gates.toml", "over"),
        ("src/../gates.toml", "over"),
        ("gate-exceptions.toml", "over"),
        ("gates/gates.go", "name another file"),
        ("src/main.rs", "was not made by render"),
    ] {
        world.write("gates.toml", &START.replace("src/gates.rs", path));
        let before = world.all();
        for line in ["render", "verify", &world.add("A", "")] {
            let error = world.bad(line);
            assert!(error.contains(why), "{path}, {line}: {error}");
        }
        assert_eq!(world.all(), before, "{path}");
    }
}

#[test]
fn line_endings_are_kept() {
    let world = World::new();
    world.write("gates.toml", &START.replace('\n', "\r\n"));
    world.good(&world.add("A", ""));
    let text = world.read("gates.toml");
    assert!(text.contains("[gate.A]\r\n") && text.matches('\n').count() == text.matches("\r\n").count(), "{text:?}");
}

/// Regression: in a checkout with CRLF, all generated files were out of date: "has 34 lines, should have 34".
#[test]
fn a_checkout_with_crlf_is_up_to_date() {
    let world = World::new();
    world.good(&world.add("A", ""));
    for (path, text) in world.all() {
        fs::write(path, text.replace('\n', "\r\n")).unwrap();
    }
    let before = world.all();
    world.good("verify");
    world.good("render");
    assert_eq!(world.all(), before);
    world.good(&world.add("B", ""));
    world.good("verify");
    for (path, text) in world.all() {
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "{path}");
    }
}

/// Regression: gates.toml already had the change when a generated file could not be written.
#[test]
fn a_failed_write_changes_nothing() {
    let world = World::new();
    world.write("gates", "a file in the place of a folder");
    let before = world.all();
    let error = world.bad(&world.add("A", ""));
    assert!(error.contains("failed to write") && error.contains("gates.go"), "{error}");
    assert_eq!(world.all(), before);
    assert!(world.bad("render").contains("gates.go"));
    assert_eq!(world.all(), before);
}

#[test]
fn a_missing_gates_file_is_explained() {
    let world = World::new();
    fs::remove_file(world.path("gates.toml")).unwrap();
    for line in [&world.add("A", ""), "list", "verify", "render", "plan --to OKD", "promote A --to Default"] {
        let error = world.bad(line);
        assert!(error.contains("schema = 1\n  version = ") && error.contains("--file"), "{line}: {error}");
    }
    world.write("gates.toml", "schema = 1\nversion = \"1.0.0\"   # what this will be released as\n");
    world.good(&world.add("A", ""));
}

/// Evidence is required for Default. For a preview it is only reported.
#[test]
fn evidence_is_reported_for_every_set() {
    let world = World::new();
    world.good(&world.add("A", ""));
    world.write("few/1.XML", "<testsuite><testcase name=\"[FeatureGate:A] one\"/></testsuite>");
    let said = world.good("promote A --to TechPreviewNoUpgrade --evidence DIR/few --dry-run");
    let want = "evidence for A in profile default: 1 tests in 1 files, not enough for Default\n  \
                1 tests have [FeatureGate:A] in their names, 5 are needed; 1 files were read\n";
    assert!(said.starts_with(want), "{said}");
    let said = world.bad("promote A --to Default --evidence DIR/few");
    assert!(said.contains("\"[FeatureGate:A] one\" has 1 runs, 14 are needed"), "{said}");
    world.evidence("A");
    let said = world.good("promote A --to Default --evidence DIR/junit --dry-run");
    assert!(said.starts_with("evidence for A in profile default: 5 tests in 14 files, enough for Default\n"), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&world.good("promote A --to DevPreviewNoUpgrade --evidence DIR/junit -w json")).unwrap();
    let report = &json["evidence"]["default"];
    assert_eq!((&report["files"], &report["lacks"]), (&14.into(), &serde_json::json!([])));
    assert_eq!(report["tests"]["0 [FeatureGate:A]"], serde_json::json!({"runs": 14, "passed": 14}));
    let json: serde_json::Value =
        serde_json::from_str(&world.good("promote A --to TechPreviewNoUpgrade -w json")).unwrap();
    assert_eq!(json["evidence"], serde_json::json!({}));
    world.write("few/broken.xml", "<testsuite>");
    assert!(world.bad("promote A --to OKD --evidence DIR/few").contains("broken.xml: it is not XML"));
}

#[test]
fn exceptions_replace_evidence_and_are_listed() {
    let world = World::new();
    world.good(&world.add("A", ""));
    world.write("gate-exceptions.toml", "[[exception]]\ngate = \"A\"\nset = \"Default\"\n");
    assert!(world.bad("promote A --to Default").contains("line 1: exception.reason: is missing"));
    world.write("gate-exceptions.toml", "[[exception]]\ngate = \"A\"\nset = \"Default\"\nreason = \"No farm yet.\"\n");
    world.good("promote A --to Default");
    let sound = world.read("gate-exceptions.toml");
    world.write("gate-exceptions.toml", &sound.replace("\"A\"", "\"Z\""));
    let said = world.bad("verify");
    assert_eq!(said, "an exception is for Z, which is no gate\n1 to mend in gate-exceptions.toml\n");
    world.write("gate-exceptions.toml", &sound);
    let said = world.good("list");
    assert!(said.contains("exception: A to Default in all profiles: No farm yet.\n"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&world.good("list -w json")).unwrap();
    assert_eq!(json["exceptions"][0]["reason"], "No farm yet.");
    assert_eq!(json["gates"][0]["stage"], "Default");
}

#[test]
fn plans_show_the_result() {
    let world = World::new();
    world.good(&world.add("A", "--set TechPreviewNoUpgrade"));
    world.good(&world.add("B", "--set DevPreviewNoUpgrade --reversible --depends-on A"));
    let said = world.good("plan --to DevPreviewNoUpgrade");
    for part in ["turned on: A, B\n", "cannot be undone: A\n", "there is no way back", "cannot be upgraded any more"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let said = world.good("plan --to CustomNoUpgrade --enable B,Other");
    assert!(said.contains("B will be on without A") && said.contains("no version knows Other"), "{said}");
    world.write("now.yaml", "kind: FeatureGate\nmetadata: {name: cluster}\nspec: {featureSet: TechPreviewNoUpgrade}\n");
    let said = world.bad("plan --to Default --manifest DIR/now.yaml");
    assert!(said.contains("the API refuses this: TechPreviewNoUpgrade may not be changed"), "{said}");
    let said = world.bad("plan --to CustomNoUpgrade --enable A --disable A");
    assert!(said.contains("trying to enable and disable \"A\""), "{said}");
}

const DEFINITION: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: jobs.example.com
  annotations: {gates.lockgate.io/follow: feature-sets}
spec:
  customFeatureGates:
    featureGates:
    - {name: A, preRelease: alpha, fieldPaths: [.spec.a, .spec.list]}
    - {name: B, preRelease: stable, fieldPaths: [.spec.b]}
    - {name: Other, preRelease: alpha, fieldPaths: [.spec.o]}
"#;

#[test]
fn plans_list_fields_that_follow() {
    let world = World::new();
    world.good(&world.add("A", "--set TechPreviewNoUpgrade"));
    world.good(&world.add("B", "--set DevPreviewNoUpgrade"));
    world.write("crds/jobs.yaml", DEFINITION);
    let said = world.good("plan --to TechPreviewNoUpgrade --crd DIR/crds");
    let want = "fields, which follow the row of 1.4.0:\n  jobs.example.com A (.spec.a, .spec.list): off -> on\n  \
                jobs.example.com B (.spec.b): stays on\ndoes not follow: jobs.example.com: gate B is stable and stays on\n";
    assert!(said.contains(want), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&world.good("plan --to TechPreviewNoUpgrade --crd DIR/crds/jobs.yaml -w json")).unwrap();
    assert_eq!(json["fields"][0]["fields"], serde_json::json!([".spec.a", ".spec.list"]));
    assert_eq!((&json["fields"][0]["before"], &json["fields"][0]["after"]), (&false.into(), &true.into()));
    // Bad input.
    assert!(world.bad("plan --to OKD --crd DIR/gates.toml").contains("gates.toml"));
    world.write("crds/none.yaml", "kind: ConfigMap\n");
    assert!(world.bad("plan --to OKD --crd DIR/crds/none.yaml").contains("none.yaml has no CustomResourceDefinition"));
    let said = world.bad("plan --to OKD --crd DIR/crds --desired-version 9.9.9");
    assert!(said.contains("there is no registry of version 9.9.9; there are 1.4.0"), "{said}");
    world.write("crds/jobs.yaml", &DEFINITION.replace("feature-sets", "sets"));
    let said = world.good("plan --to TechPreviewNoUpgrade --crd DIR/crds");
    assert!(
        said.contains("does not follow: jobs.example.com: annotation gates.lockgate.io/follow is \"sets\""),
        "{said}"
    );
    assert!(world.bad("plan --to OKD --cluster --crd DIR/crds").contains("cannot be used with"));
}

#[test]
fn a_gate_that_fields_follow_is_not_retired() {
    let world = World::new();
    world.good(&world.add("A", ""));
    world.write("crds/jobs.yaml", DEFINITION);
    let said = world.bad("retire A");
    assert!(said.contains("crds/jobs.yaml (jobs.example.com)"), "{said}");
    world.write("crds/jobs.yaml", &DEFINITION.replace("name: A, preRelease: alpha", "name: A, preRelease: stable"));
    world.good("retire A");
}

#[test]
fn bootstrap_renders_one_row_for_the_payload() {
    let world = World::new();
    world.good(&world.add("A", "--set TechPreviewNoUpgrade"));
    let manifest = "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster, labels: {a: b}}\n\
                    spec: {featureSet: TechPreviewNoUpgrade}\n";
    world.write("fg.yaml", manifest);
    world.good("render --payload-version 1.4.1 --manifest DIR/fg.yaml");
    let object = featureset::yaml::objects(&world.read("fg.yaml")).unwrap().remove(0);
    assert_eq!(object["metadata"]["labels"]["a"], "b");
    assert_eq!(object["status"]["featureGates"][0]["version"], "1.4.1");
    assert_eq!(object["status"]["featureGates"][0]["enabled"][0]["name"], "A");
    let said = world.good("render --payload-version 1.4.1 --manifest DIR/fg.yaml");
    assert!(said.starts_with("unchanged: "), "{said}");
    for (text, why) in [
        (manifest.replace("TechPreviewNoUpgrade", "Latency"), "unknown feature set \"Latency\""),
        (manifest.replace("name: cluster", "name: other"), "must be named \"cluster\""),
        (format!("{manifest}---\n{manifest}"), "has 2 FeatureGates"),
        (format!("kind: Secret\n---\n{manifest}"), "has 1 other objects, which would be gone"),
        (
            manifest.replace("TechPreviewNoUpgrade", "CustomNoUpgrade, customNoUpgrade: {enabled: [Z]}"),
            "does not know Z",
        ),
        (
            manifest.replace("TechPreviewNoUpgrade", "TechPreviewNoUpgrade, customNoUpgrade: {enabled: [A]}"),
            "spec.customNoUpgrade is allowed only with featureSet CustomNoUpgrade",
        ),
        (
            manifest.replace("spec:", "spec: {}\nspec:"),
            "bad.yaml: it is not YAML: line 5 column 1: duplicate mapping key: spec",
        ),
    ] {
        world.write("bad.yaml", &text);
        let error = world.bad("render --payload-version 1.4.1 --manifest DIR/bad.yaml");
        assert!(error.contains(why), "{why} in {error}");
        assert_eq!(world.read("bad.yaml"), text);
    }
    // Custom without lists is Default, not a crash.
    world.write("bad.yaml", &manifest.replace("TechPreviewNoUpgrade", "CustomNoUpgrade"));
    world.good("render --payload-version 1.4.1 --manifest DIR/bad.yaml");
    assert!(world.bad("render --payload-version= --manifest DIR/fg.yaml").contains("the version is empty"));
    assert!(world.bad("render --payload-version 1.4.1_ --manifest DIR/fg.yaml").contains("\"1.4.1 \" is no version"));
    let said = world.good("render --payload-version 1.4.1 --manifest DIR/fg.yaml --output -");
    assert!(said.starts_with('{') && !world.path("-").exists(), "{said}");
}

/// Generated code is accepted by the compilers of its languages.
#[test]
fn generated_code_compiles() {
    let world = World::new();
    for name in ["FastPath", "net.slow-path", "4K", "Self", "ALL", "All", "Name", "-"] {
        world.good(&world.add(name, ""));
    }
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "lib", "-D", "warnings", "--emit", "metadata", "-o"]);
    Output::of(rustc.arg(world.path("gates.rmeta")).arg(world.path("src/gates.rs"))).ok();
    match Command::new("gofmt").arg("-l").arg(world.path("gates/gates.go")).output() {
        Ok(gofmt) => {
            let said = String::from_utf8_lossy(&gofmt.stdout).into_owned() + &String::from_utf8_lossy(&gofmt.stderr);
            assert!(gofmt.status.success() && said.is_empty(), "{said}\n{}", world.read("gates/gates.go"));
        }
        Err(error) => harness::skip(&format!("gofmt is missing: {error}")),
    }
}
