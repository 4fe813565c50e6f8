//! Flags that are refused at start, however they are given; the data dir is not touched.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use harness::Process;

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        wait::until_some,
    },
    gated::{Gated, INCREMENT, increment},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "bad starts: refused, dir untouched", short: true, run: refused }];

/// The flag, its value, and what must be said.
const CASES: &[(&str, &str, &str)] = &[
    ("cluster-feature-gates", "Nonsense=true", "unrecognized feature gate: Nonsense"),
    ("cluster-feature-gates", "LeaseCheckpoint=true", "it is a server-level feature: use --feature-gates"),
    ("feature-gates", "AtomicIncrement=true", "it is a cluster-level feature: use --cluster-feature-gates"),
    ("cluster-feature-gates", "AtomicIncrement=maybe", "AtomicIncrement"),
    ("cluster-feature-gates", "AtomicIncrement", "AtomicIncrement"),
];

#[derive(Clone, Copy, Debug)]
enum Way {
    Flag,
    Variable,
    File,
}

fn refused(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    increment(&gated.group.members[0], "counter")?;
    gated.wait_on(INCREMENT)?;
    for member in &mut gated.group.members {
        member.stop()?;
    }
    let used = gated.group.members[0].dir.clone();
    let mut tried = 0;
    for (flag, value, says) in CASES {
        for way in [Way::Flag, Way::Variable, Way::File] {
            for dir in [&used, &base.join("absent")] {
                let before = contents(dir)?;
                let said =
                    start(world, base, dir, way, flag, value).with_context(|| format!("{way:?} {flag}={value}"))?;
                ensure!(said.contains(says), "{way:?} {flag}={value}: it does not say {says:?}: {said}");
                ensure!(contents(dir)? == before, "{way:?} {flag}={value}: files in {} changed", dir.display());
                tried += 1;
            }
        }
    }
    for n in 0..3 {
        gated.group.restart(n);
    }
    gated.group.wait_ready()?;
    gated.wait_on(INCREMENT)?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    Ok(Ending::Well(format!("{tried} starts refused; {}", gated.finish()?)))
}

/// Starts with one bad value; all that is said until it ends.
fn start(world: &World, base: &Path, dir: &Path, way: Way, flag: &str, value: &str) -> Result<String> {
    let mut command = Command::new(&world.ours.path);
    let urls = ["listen-client-urls", "advertise-client-urls", "listen-peer-urls", "initial-advertise-peer-urls"];
    let url = "http://127.0.0.1:0";
    if let Way::File = way {
        let mut text = format!("name: m1\ndata-dir: {}\n{flag}: {value}\n", dir.display());
        urls.iter().for_each(|name| text.push_str(&format!("{name}: {url}\n")));
        let file = base.join("config.yaml");
        fs::write(&file, text)?;
        command.arg("--config-file").arg(file).env_clear();
    } else {
        command.args(["--name", "m1", "--data-dir"]).arg(dir).env_clear();
        command.args(urls.iter().map(|name| format!("--{name}={url}")));
    }
    match way {
        Way::Flag => command.arg(format!("--{flag}={value}")),
        Way::Variable => command.env(format!("ETCD_{}", flag.to_uppercase().replace('-', "_")), value),
        Way::File => &mut command,
    };
    let mut process = Process::start(command, &base.join("refused.log"));
    match until_some("it ends", || Ok(process.status()))? {
        status if status.success() => bail!("it ended with {status}"),
        _ => Ok(process.log()),
    }
}

/// Every file below a dir, byte for byte; none if there is no dir.
fn contents(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut all = BTreeMap::new();
    if !dir.exists() {
        return Ok(all);
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(contents(&path)?);
        } else {
            all.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(all)
}
