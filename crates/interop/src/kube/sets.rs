//! Feature sets as processes: releases with their gates, controllers, and kubectl as the one who judges.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use harness::Process;
use serde_json::Value;

use super::{
    super::{cluster::World, http::Http, server::endpoint, tool, wait::until_ok},
    kubectl::newest,
};

/// A port that the system chooses.
pub(super) const ANY: &str = "127.0.0.1:0";

/// Gates of a release: name, and the sets that it is on in.
pub(super) type Gates<'a> = &'a [(&'a str, &'a [&'a str])];

pub(super) const PREVIEWS: &[&str] = &["TechPreviewNoUpgrade", "DevPreviewNoUpgrade"];
pub(super) const EVERYWHERE: &[&str] = &["Default", "OKD", "TechPreviewNoUpgrade", "DevPreviewNoUpgrade"];

/// Status and reason of Upgradeable in TechPreviewNoUpgrade.
pub(super) const NO_UPGRADES: &str = "False FeatureGates_RestrictedFeatureGates_TechPreviewNoUpgrade";
/// The metrics of the controller of 1.5.0 then, where A is on everywhere and B in previews.
pub(super) const METRICS: &[&str] = &[
    r#"cluster_feature_set{name="TechPreviewNoUpgrade"} 0"#,
    r#"cluster_operator_conditions{condition="Available",name="config-operator",reason="AsExpected"} 1"#,
    r#"feature_enabled{name="A",stage="Default",version="1.5.0"} 1"#,
    r#"feature_enabled{name="B",stage="TechPreview",version="1.5.0"} 1"#,
    r#"feature_enabled{name="B",stage="Off",version="1.4.0"} 0"#,
    r#"lockgate_gates_condition{condition="DeterminationDegraded",reason="AsExpected"} 0"#,
    "lockgate_gates_rows 2",
];

/// A Lockgate command that runs. Dropping it kills it.
pub(super) struct Running {
    process: Process,
    ports_file: PathBuf,
}

impl Running {
    pub(super) fn start(world: &World, args: &[&str], log: &Path) -> Running {
        let ports_file = log.with_extension("ports");
        let mut command = Command::new(&world.ours.path);
        command.args(args).arg("--ports-file").arg(&ports_file).env_clear();
        Running { process: Process::start(command, log), ports_file }
    }

    /// `host:port` of the command's listener of a kind, once it listens.
    pub(super) fn endpoint(&mut self, kind: &str) -> Result<String> {
        endpoint(&mut self.process, &self.ports_file, kind)
    }

    pub(super) fn log_text(&self) -> String {
        self.process.log()
    }

    /// It must still run, and must not have panicked.
    pub(super) fn check_well(&mut self) -> Result<()> {
        if let Some(status) = self.process.status() {
            bail!("a process ended by itself with {status}:\n{}", self.log_text());
        }
        ensure!(!self.log_text().contains("panicked"), "a process panicked:\n{}", self.log_text());
        Ok(())
    }
}

/// An API with feature sets on it.
pub(super) struct Sets<'a> {
    world: &'a World,
    base: PathBuf,
    kubectl: PathBuf,
    /// Of somebody who may do all.
    pub kubeconfig: PathBuf,
}

impl<'a> Sets<'a> {
    pub(super) fn new(world: &'a World, base: &Path, kubeconfig: &Path) -> Result<Sets<'a>> {
        Ok(Sets { world, base: base.to_owned(), kubectl: newest(world)?, kubeconfig: kubeconfig.to_owned() })
    }

    /// `gates.toml` of a version, and all that is made from it.
    pub(super) fn release(&self, version: &str, gates: Gates<'_>) -> Result<()> {
        let mut toml = format!("schema = 1\nversion = \"{version}\"\n[output]\nmanifests = \"manifests\"\n");
        for (name, sets) in gates {
            toml += &format!(
                "[gate.{name}]\ndescription = \"d\"\nowner = \"net\"\ncontact = \"c\"\nenhancement = \"https://e\"\n\
                 since = \"1.4\"\nsets = {sets:?}\n"
            );
        }
        fs::create_dir_all(self.base.join(version))?;
        fs::write(self.base.join(version).join("gates.toml"), toml)?;
        self.ours(&["gates", "--file", &self.toml(version), "render"]).map(drop)
    }

    pub(super) fn toml(&self, version: &str) -> String {
        self.base.join(version).join("gates.toml").display().to_string()
    }

    pub(super) fn manifest(&self, version: &str, name: &str) -> String {
        self.base.join(version).join("manifests").join(name).display().to_string()
    }

    /// Returns the output of a Lockgate command that must succeed.
    pub(super) fn ours(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.world.ours.path);
        command.args(args).env_clear().env("KUBECONFIG", &self.kubeconfig);
        let said = tool::output(command)?;
        let (out, err) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        ensure!(said.status.success(), "lockgate {args:?} ended with {}: {out}{err}", said.status);
        Ok(out.into_owned())
    }

    pub(super) fn controller(&self, version: &str, kubeconfig: &Path, flags: &[&str]) -> Running {
        let (toml, config) = (self.toml(version), kubeconfig.display().to_string());
        let args = [
            "operator",
            "--gates",
            &toml,
            "--release-version",
            version,
            "--kubeconfig",
            &config,
            "--metrics-listen",
            ANY,
        ];
        Running::start(self.world, &[&args, flags].concat(), &self.base.join(format!("controller-{version}.log")))
    }

    /// The controller at `address` must be ready, lead, and tell these lines.
    pub(super) fn check_metrics(&self, address: &str, lines: &[&str]) -> Result<()> {
        let get = |path: &str| -> Result<_> { Http::connect(address)?.get(path) };
        for path in ["/healthz", "/readyz"] {
            let answer = get(path)?;
            ensure!(answer.status == 200 && answer.body == "ok", "{path} says {} {}", answer.status, answer.body);
        }
        let leads = r#"leader_election_master_status{name="lockgate-gates-controller"} 1"#;
        let said = until_ok("the metrics are as wanted", || {
            let said = get("/metrics")?.body;
            for want in [&[leads], lines].concat() {
                ensure!(said.lines().any(|line| line == want), "metrics lack {want}:\n{said}");
            }
            Ok(said)
        })?;
        ensure!(!said.contains(r#"lockgate_gates_sync_total{result="failed"}"#), "steps failed:\n{said}");
        Ok(())
    }

    /// Whether kubectl did it, and what it said on both channels.
    pub(super) fn kubectl_as(&self, kubeconfig: &Path, args: &[&str]) -> Result<(bool, String)> {
        let mut command = Command::new(&self.kubectl);
        // The cache of discovery lives at home.
        command.args(args).env("KUBECONFIG", kubeconfig).env("HOME", &self.base);
        let said = tool::output(command)?;
        let text = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
        Ok((said.status.success(), text))
    }

    pub(super) fn good(&self, args: &[&str]) -> Result<String> {
        let (well, said) = self.kubectl_as(&self.kubeconfig, args)?;
        ensure!(well, "kubectl {args:?} failed: {said}");
        Ok(said)
    }

    /// It must be refused, and for this reason.
    pub(super) fn refused(&self, args: &[&str], part: &str) -> Result<()> {
        let (well, said) = self.kubectl_as(&self.kubeconfig, args)?;
        ensure!(!well, "kubectl {args:?} should be refused: {said}");
        ensure!(said.contains(part), "kubectl {args:?} should be refused for {part:?}, and was for: {said}");
        Ok(())
    }

    pub(super) fn patch(spec: &Value) -> [String; 5] {
        let patch = serde_json::json!({"spec": spec}).to_string();
        ["patch", "featuregate", "cluster", "--type=merge", &format!("-p={patch}")].map(str::to_owned)
    }

    pub(super) fn choose(&self, set: &str) -> Result<String> {
        let args = Sets::patch(&serde_json::json!({"featureSet": set}));
        self.good(&args.each_ref().map(String::as_str))
    }

    pub(super) fn object(&self, kind: &str, name: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.good(&["get", kind, name, "-o", "json"])?)?)
    }

    /// `1.4.0:A,B` for each row, with the gates that are on.
    pub(super) fn rows(&self) -> Result<String> {
        let object = self.object("featuregate", "cluster")?;
        let mut rows: Vec<String> = Vec::new();
        for row in object["status"]["featureGates"].as_array().into_iter().flatten() {
            let on = row["enabled"].as_array().into_iter().flatten().filter_map(|gate| gate["name"].as_str());
            rows.push(format!("{}:{}", row["version"].as_str().unwrap_or("?"), on.collect::<Vec<_>>().join(",")));
        }
        rows.sort();
        Ok(rows.join(" "))
    }

    /// Status and reason of a condition.
    pub(super) fn condition(&self, kind: &str, name: &str, condition: &str) -> Result<String> {
        let object = self.object(kind, name)?;
        let mut found = object["status"]["conditions"].as_array().into_iter().flatten();
        let found = found.find(|found| found["type"] == condition);
        let text = |key: &str| found.and_then(|found| found[key].as_str()).unwrap_or("?").to_owned();
        Ok(format!("{} {}", text("status"), text("reason")))
    }

    pub(super) fn until_rows(&self, want: &str) -> Result<()> {
        self.until(want, || self.rows())
    }

    pub(super) fn until_condition(&self, kind: &str, name: &str, condition: &str, want: &str) -> Result<()> {
        self.until(want, || self.condition(kind, name, condition)).context(condition.to_owned())
    }

    /// Asks until the answer is this.
    pub(super) fn until(&self, want: &str, ask: impl Fn() -> Result<String>) -> Result<()> {
        until_ok(&format!("it is {want:?}"), || {
            let said = ask()?;
            ensure!(said == want, "it is {said:?}");
            Ok(())
        })
    }
}
