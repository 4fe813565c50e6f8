//! Servers and the tool itself killed with SIGKILL.

use std::{
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use random::Random;
use serde_json::Value;

use super::{
    super::{
        report::{Step, pair},
        server::End,
        tool,
    },
    Release, Tools,
    fill::{Wish, fill},
    trip::{look, named},
};

/// The server was killed, so the end of its writes is in the log alone: the tool applies what is committed there.
pub(super) fn server(tools: &Tools, from: &Release, to: &Release, base: &Path) -> Result<Vec<Step>> {
    let dir = base.join("data");
    let wish = Wish { end: End::Kill, ..Wish::plain() };
    let before = fill(from, &dir, tools.seed + 2, wish)?;
    let plan = tools.migrate(&dir, to.version, &[])?;
    let waited = plan.lines().find(|line| line.contains("are applied")).unwrap_or("nothing waited in the log");
    println!("   {}", waited.trim());
    let found = look(&to.server, &dir)?;
    let mut steps = named(&format!("seen by {}", to.version), pair(before.clone(), found));
    tools.migrate(&dir, from.version, &[])?;
    let found = look(&from.server, &dir)?;
    steps.extend(named(&format!("seen by {} again", from.version), pair(before, found)));
    Ok(steps)
}

/// The tool is killed at random moments, on its way up and down. Each time the dir is at the one version or the other.
pub(super) fn migration(tools: &Tools, release: &Release, rounds: u64, base: &Path) -> Result<Vec<Step>> {
    let dir = base.join("data");
    let before = fill(release, &dir, tools.seed + 3, Wish::plain())?;
    let (hash, path) = (tools.hash(&dir)?, dir.to_string_lossy().into_owned());
    let mut rng = Random::new(tools.seed);
    // How long it takes here, so that most of the kills come before its end.
    let begin = Instant::now();
    tools.migrate(&dir, "3.8", &[])?;
    tools.migrate(&dir, release.version, &[])?;
    let whole_ms = (begin.elapsed().as_millis() as u64 / 2).max(10);
    let (mut steps, mut killed, mut at) = (Vec::new(), 0, release.version.to_owned());
    for round in 0..rounds {
        let target = if at == "3.8" { release.version } else { "3.8" };
        let mut command = Command::new(&tools.utl);
        command.args(["migrate", "-y", "--data-dir", &path, "--target-version", target]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = harness::spawn_child(command).context("failed to start the tool")?;
        thread::sleep(Duration::from_millis(rng.below(whole_ms)));
        child.kill()?;
        killed += u64::from(!child.wait()?.success());
        let version: Value =
            serde_json::from_str(&tool::run(&tools.utl, &["version", "--data-dir", &path, "-w", "json"])?)?;
        let now = version["atVersion"].as_str().unwrap_or_default().to_owned();
        let is_whole = (now == at || now == target) && version["clusterVersion"] == now.as_str();
        steps.push(Step::new(format!("round {round}: {at} or {target}, whole"), "true", is_whole.to_string()));
        steps.push(Step::new(format!("round {round}: hashkv"), hash.clone(), tools.hash(&dir)?));
        at = now;
    }
    println!("   killed {killed} of {rounds} times before it had ended");
    tools.migrate(&dir, release.version, &[])?;
    steps.extend(named("seen at the end", pair(before, look(&release.server, &dir)?)));
    Ok(steps)
}
