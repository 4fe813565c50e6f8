//! The stories of `interop/kubectl/stories.txt` through kubectl of the versions that `interop/peers.txt` lists.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    super::{
        cluster::{Ending, Scenario, World},
        peer::{self, Program},
        root, tool,
    },
    api::Pair,
    script::{self, Step},
};

pub(super) const SCENARIOS: &[Scenario] =
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

fn one_version(world: &World, base: &Path, kubectl: &Path, steps: &[Step]) -> Result<()> {
    fs::create_dir_all(base)?;
    let mut pair = Pair::start(world, base, &world.ours)?;
    let mut shell = Shell::new(base, kubectl)?;
    shell.env.push(("KUBECONFIG", pair.api.kubeconfig.clone()));
    shell.run(steps)?;
    pair.api.check_well()
}

/// The newest kubectl that is built by default.
pub(super) fn newest(world: &World) -> Result<PathBuf> {
    let programs = peer::programs()?;
    let last = programs.iter().rfind(|program| program.name == "kubectl" && !program.only_all);
    peer::find(&world.cache, last.context("interop/peers.txt lists no kubectl")?.dir, "kubectl")
}

/// The place of stories: a copy of `interop/kubectl`, with one kubectl first in the path.
pub(super) struct Shell {
    files: PathBuf,
    path: OsString,
    pub env: Vec<(&'static str, PathBuf)>,
}

impl Shell {
    pub(super) fn new(base: &Path, kubectl: &Path) -> Result<Shell> {
        let files = base.join("files");
        fs::create_dir_all(&files)?;
        for entry in fs::read_dir(root()?.join("interop/kubectl"))? {
            let path = entry?.path();
            fs::copy(&path, files.join(path.file_name().unwrap_or_default()))?;
        }
        let mut path = OsString::from(kubectl.parent().unwrap_or(kubectl));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        Ok(Shell { files, path, env: Vec::new() })
    }

    /// Fails at the first step that is not as expected.
    pub(super) fn run(&self, steps: &[Step]) -> Result<()> {
        for step in steps {
            let (code, said) = self.bash(&step.command)?;
            if let Err(missing) = step.check(code, &said) {
                bail!("line {}: $ {}\n{missing}; it ended with {code} and said:\n{said}", step.line, step.command);
            }
        }
        Ok(())
    }

    /// Exit code, and what was said on both channels.
    fn bash(&self, command: &str) -> Result<(i32, String)> {
        let (code, said, _) = self.channels(&format!("exec 2>&1\n{command}"))?;
        Ok((code, said))
    }

    /// Exit code, and what was said on either channel.
    pub(super) fn channels(&self, command: &str) -> Result<(i32, String, String)> {
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!(". ./prelude.sh\n{command}")]).current_dir(&self.files).env("PATH", &self.path);
        // The cache of discovery lives at home.
        bash.env("HOME", &self.files).envs(self.env.iter().map(|(name, value)| (name, value)));
        let output = tool::output(bash)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr)))
    }
}
