//! The stories of `interop/kubectl/stories.txt` through kubectl of the versions that `interop/peers.txt` lists.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        peer::{self, Program},
        root,
    },
    api::Pair,
    script::{self, Step},
};

pub const SCENARIOS: &[Scenario] =
    &[Scenario { name: "kubectl: stories of field gates", short: true, run: every_version }];

/// Each version has a store and a server of its own; two run at a time, as each waits for the other side half of the time.
fn every_version(world: &World, base: &Path) -> Result<Ending> {
    let programs = peer::programs()?;
    let wanted = |program: &&Program| program.name == "kubectl" && (world.all || !program.only_all);
    let programs: Vec<&Program> = programs.iter().filter(wanted).collect();
    let steps = script::parse(&fs::read_to_string(root()?.join("interop/kubectl/stories.txt"))?)?;
    ensure!(!steps.is_empty() && !programs.is_empty(), "there are no stories, or no kubectl in interop/peers.txt");
    for some in programs.chunks(2) {
        thread::scope(|scope| {
            let tell = |program: &&Program| {
                let (dir, bin) = (base.join(program.dir), peer::find(&world.cache, program.dir, program.name));
                let (name, steps) = (program.dir, &steps);
                scope.spawn(move || one_version(world, &dir, &bin?, steps).context(name))
            };
            let told: Vec<_> = some.iter().map(tell).collect();
            told.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a story panicked")))
        })?;
    }
    let versions: Vec<_> = programs.iter().map(|program| program.version.replacen("v0.", "1.", 1)).collect();
    Ok(Ending::Well(format!("{} steps each with {}", steps.len(), versions.join(", "))))
}

fn one_version(world: &World, base: &Path, bin: &Path, steps: &[Step]) -> Result<()> {
    let files = base.join("files");
    fs::create_dir_all(&files)?;
    for entry in fs::read_dir(root()?.join("interop/kubectl"))? {
        let path = entry?.path();
        fs::copy(&path, files.join(path.file_name().unwrap_or_default()))?;
    }
    let mut pair = Pair::start(world, base, &world.ours)?;
    for step in steps {
        let bin = bin.parent().unwrap_or(bin);
        let (code, said) = bash(&files, bin, &pair.api.kubeconfig, &step.command)?;
        if let Err(missing) = step.check(code, &said) {
            bail!("line {}: $ {}\n{missing}; it ended with {code} and said:\n{said}", step.line, step.command);
        }
    }
    pair.api.check_well()
}

/// Exit code, and what was said on both channels.
fn bash(files: &Path, bin: &Path, kubeconfig: &Path, command: &str) -> Result<(i32, String)> {
    let mut path = OsString::from(bin);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &format!(". ./prelude.sh\nexec 2>&1\n{command}")])
        .current_dir(files)
        .env("PATH", path)
        .env("KUBECONFIG", kubeconfig)
        // The cache of discovery lives at home.
        .env("HOME", files)
        .stdin(Stdio::null())
        .output()
        .context("failed to run bash")?;
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned()))
}
