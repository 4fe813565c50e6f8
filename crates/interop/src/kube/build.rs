//! Builds Kubernetes' own programs from their Go modules.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::{
    fetch::{go, run_command, with_tries},
    peer::Program,
};

/// `k8s.io/kubectl` is a library: the program is these lines.
const KUBECTL: &str = r#"package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
"#;

pub(crate) fn is_ours(program: &Program) -> bool {
    matches!(program.name, "kubectl" | "kube-apiserver")
}

pub(crate) fn program(into: &Path, program: &Program) -> Result<()> {
    match program.name {
        "kubectl" => kubectl(into, program),
        "kube-apiserver" => kube_apiserver(into, program),
        other => bail!("{other} is none of Kubernetes' programs"),
    }
}

/// v0.29.6 of the library is kubectl 1.29.6.
fn kubectl(into: &Path, program: &Program) -> Result<()> {
    let module = module(into, "module kubectl\n\ngo 1.24\n")?;
    fs::write(module.join("main.go"), KUBECTL)?;
    with_tries("download", || {
        run_command(go(&module).args(["get", &format!("{}@{}", program.module, program.version)]))
    })?;
    let version = program.version.replacen("v0.", "v1.", 1);
    build(&module, &into.join("kubectl"), &version, ".")
}

/// `k8s.io/kubernetes` replaces its staging modules by directories that its own module does not carry; each is published as a module of
/// the same release.
fn kube_apiserver(into: &Path, program: &Program) -> Result<()> {
    let staging = program.version.replacen("v1.", "v0.", 1);
    let requires = fs::read_to_string(go_mod(into, program)?)?;
    let replaced = requires.lines().filter_map(|line| line.trim().strip_suffix(" v0.0.0"));
    let replaced: String = replaced.map(|name| format!("replace {name} => {name} {staging}\n")).collect();
    let require = format!("require {} {}\n", program.module, program.version);
    let module = module(into, &format!("module kubernetes\n\ngo 1.26.0\n\n{require}\n{replaced}"))?;
    fs::write(
        module.join("peers.go"),
        format!("//go:build peers\n\npackage peers\n\nimport _ \"{}/app\"\n", program.import_path()),
    )?;
    let wanted = format!("{}@{}", program.module, program.version);
    with_tries("download", || run_command(go(&module).args(["get", &wanted])))?;
    build(&module, &into.join("kube-apiserver"), program.version, &program.import_path())
}

fn go_mod(into: &Path, program: &Program) -> Result<PathBuf> {
    let wanted = format!("{}@{}", program.module, program.version);
    let output = go(into).args(["mod", "download", "-json", &wanted]).output().context("failed to run go")?;
    let said: Value = serde_json::from_slice(&output.stdout).context("`go mod download` did not answer with JSON")?;
    let path = said["GoMod"].as_str().with_context(|| format!("{wanted} cannot be had: {}", said["Error"]))?;
    Ok(PathBuf::from(path))
}

fn module(into: &Path, text: &str) -> Result<PathBuf> {
    let module = into.join("module");
    fs::create_dir_all(&module)?;
    fs::write(module.join("go.mod"), text)?;
    Ok(module)
}

/// The release is stamped in, as Kubernetes' own builds do; without symbols, as these programs are large.
fn build(module: &Path, output: &Path, version: &str, package: &str) -> Result<()> {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let place = "k8s.io/component-base/version";
    let flags =
        format!("-s -w -X {place}.gitVersion={version} -X {place}.gitMajor={major} -X {place}.gitMinor={minor}");
    with_tries("build", || {
        run_command(go(module).args(["build", "-mod=mod", "-ldflags", &flags, "-o"]).arg(output).arg(package))
    })?;
    let word: &[&str] = if output.ends_with("kubectl") { &["version", "--client"] } else { &["--version"] };
    let said =
        Command::new(output).args(word).output().with_context(|| format!("failed to run {}", output.display()))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    if said.contains(version) { Ok(()) } else { bail!("{} should be {version} but says: {said}", output.display()) }
}
