//! Programs that run to their end. They end with this program, however it ends.

use std::{
    path::Path,
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result, bail};

/// The standard output of a program that succeeds.
pub(crate) fn run(program: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(words).env_clear();
    let output = output(command)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("{} {} ended with {}: {stdout}{stderr}", program.display(), words.join(" "), output.status);
    }
    Ok(stdout.into_owned())
}

/// Runs a command without input.
pub(crate) fn output(mut command: Command) -> Result<Output> {
    let failed = format!("failed to run {}", command.get_program().display());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = harness::spawn_child(command).with_context(|| failed.clone())?;
    child.wait_with_output().context(failed)
}
