//! The programs that cargo has built of our tests, and how one is run.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::interop::root;

/// A program of tests, and where it is run.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// `crate`, or `crate/test`.
    pub name: String,
    path: PathBuf,
    arguments: Vec<String>,
    dir: Option<PathBuf>,
}

/// How a program ended.
pub struct Outcome {
    pub well: bool,
    pub output: String,
}

impl Program {
    pub fn new(name: &str, path: &str, arguments: &[&str]) -> Program {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        Program { name: name.to_owned(), path: path.into(), arguments, dir: None }
    }

    pub fn run(&self) -> Outcome {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        if let Some(dir) = &self.dir {
            // As cargo does it.
            command.current_dir(dir).env("CARGO_MANIFEST_DIR", dir);
        }
        match command.output() {
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                Outcome { well: output.status.success(), output: String::from_utf8_lossy(&text).into_owned() }
            }
            Err(error) => Outcome { well: false, output: format!("failed to run {}: {error}", self.path.display()) },
        }
    }
}

/// Builds all tests of the workspace, and lists them.
pub fn list() -> Result<Vec<Program>> {
    let mut cargo = Command::new(cargo());
    cargo.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]).current_dir(root()?);
    let built = cargo.stderr(std::process::Stdio::inherit()).output().context("failed to run cargo")?;
    ensure!(built.status.success(), "the tests cannot be built");
    let lines = String::from_utf8(built.stdout)?;
    Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).filter_map(|line| program(&line)).collect())
}

/// Examples in documentation, which are no programs of their own.
pub fn doc_tests() -> Program {
    let arguments = ["test", "--workspace", "--doc", "--no-fail-fast", "--quiet"];
    Program { dir: root().ok(), ..Program::new("examples in documentation", &cargo(), &arguments) }
}

fn cargo() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

/// One line of what cargo says about what it has built.
fn program(line: &Value) -> Option<Program> {
    let path = line["executable"].as_str().filter(|_| line["profile"]["test"] == true)?;
    let dir = Path::new(line["manifest_path"].as_str()?).parent()?;
    let package = dir.file_name()?.to_str()?;
    let name = match line["target"]["kind"][0].as_str()? {
        "test" => format!("{package}/{}", line["target"]["name"].as_str()?),
        _ => package.to_owned(),
    };
    Some(Program { name, path: path.into(), arguments: Vec::new(), dir: Some(dir.to_owned()) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn programs_are_found_in_what_cargo_says() {
        let line = |kind: &str, test: bool| {
            json!({
                "reason": "compiler-artifact", "manifest_path": "/w/crates/node/Cargo.toml",
                "target": {"kind": [kind], "name": "points"}, "profile": {"test": test}, "executable": "/t/points-1",
            })
        };
        let found = program(&line("test", true)).expect("a program");
        assert_eq!((found.name.as_str(), found.dir), ("node/points", Some("/w/crates/node".into())));
        assert_eq!(program(&line("lib", true)).expect("unit tests").name, "node");
        assert_eq!(program(&line("bin", false)), None, "what is no test");
        assert_eq!(program(&json!({"reason": "build-finished", "success": true})), None);
    }
}
