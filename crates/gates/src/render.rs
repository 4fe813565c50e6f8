//! `render` and `verify`: what follows from `gates.toml`, written or compared; and the FeatureGate for bootstrap.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use featureset::{
    Choice, Registry, exception,
    object::{FEATURE_SET_IN_FORCE, FeatureGate, FeatureGateSpec, StatusRow},
    resolve,
    transition::check_lists,
    yaml::objects,
};
use serde_json::json;

use crate::{
    disk::{self, Source, Target, targets, write_targets},
    output::Output,
    stray::{self, strays},
    write::write,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Render {
    /// Writes FeatureGate `cluster` with the status row of this payload version instead.
    #[arg(long)]
    payload_version: Option<String>,
    /// The profile of the row; needed where gates.toml has several.
    #[arg(long, requires = "payload_version")]
    profile: Option<String>,
    /// A FeatureGate manifest to take the choice from, and to write the row into; Default unless given.
    #[arg(long, requires = "payload_version")]
    manifest: Option<PathBuf>,
    /// Where to write it, `-` for standard output; the manifest itself, or standard output, unless given.
    #[arg(long, requires = "payload_version")]
    output: Option<PathBuf>,
}

impl Render {
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        match &self.payload_version {
            Some(version) => self.bootstrap(&source, version),
            None => write_all(&source),
        }
    }

    fn bootstrap(&self, source: &Source, version: &str) -> Result<Output> {
        let registry = Registry::of_file(&source.file, version)?;
        let profile = self.profile(source)?;
        let mut object = match &self.manifest {
            Some(path) => read_manifest(path)?,
            None => FeatureGate::new(FeatureGateSpec::default()),
        };
        let choice = Choice::of_spec(&object.spec)?;
        // What the API would not take must not be what a cluster begins with.
        check_lists(&object.spec)?;
        let resolved = resolve(&registry, profile, &choice)?;
        if !resolved.unknown.is_empty() {
            let names: Vec<String> = resolved.unknown.into_iter().collect();
            bail!("version {version} does not know {}, which the custom lists name", names.join(", "));
        }
        // The row is made from the choice of the manifest, whatever a cluster said that it was taken from.
        object.status.conditions.retain(|condition| condition.kind != FEATURE_SET_IN_FORCE);
        object.status.feature_gates.retain(|row| row.version != version);
        object.status.feature_gates.insert(0, StatusRow::of_row(&resolved.row));
        let json = serde_json::to_value(&object)?;
        let text = serde_json::to_string_pretty(&json)? + "\n";
        let path = self.output.as_ref().or(self.manifest.as_ref()).filter(|path| path.as_os_str() != "-");
        let Some(path) = path else { return Ok(Output::good(text, json)) };
        check_alone(path)?;
        let known = path.exists() && disk::read(path)? == text;
        if !known {
            write(path, &text)?;
        }
        let said = format!("{} {}\n", if known { "unchanged:" } else { "wrote" }, path.display());
        Ok(Output::good(
            said,
            json!({"file": path.display().to_string(), "written": !known, "row": resolved.row.version}),
        ))
    }

    fn profile<'a>(&'a self, source: &'a Source) -> Result<&'a str> {
        let known = &source.file.profiles;
        match (&self.profile, known.as_slice()) {
            (Some(profile), _) if known.contains(profile) => Ok(profile),
            (Some(profile), _) => bail!("unknown profile {profile:?}; known are {}", known.join(", ")),
            (None, [only]) => Ok(only),
            (None, _) => bail!("choose one of the profiles {} with --profile", known.join(", ")),
        }
    }
}

/// The one FeatureGate of a manifest.
pub(crate) fn read_manifest(path: &Path) -> Result<FeatureGate> {
    let objects = objects(&disk::read(path)?).with_context(|| path.display().to_string())?;
    let is_gate = |object: &&serde_json::Value| object["kind"] == FeatureGate::KIND;
    let found: Vec<_> = objects.iter().filter(is_gate).collect();
    let [object] = found.as_slice() else {
        bail!("{} has {} FeatureGates, and one is needed", path.display(), found.len());
    };
    if object["metadata"]["name"] != FeatureGate::NAME {
        bail!(
            "{}: the FeatureGate must be named {:?}, not {}",
            path.display(),
            FeatureGate::NAME,
            object["metadata"]["name"]
        );
    }
    serde_json::from_value((*object).clone()).with_context(|| format!("{} has no sound FeatureGate", path.display()))
}

/// What else a file has would be gone.
fn check_alone(path: &Path) -> Result<()> {
    let there = if path.exists() { objects(&disk::read(path)?).unwrap_or_default() } else { Vec::new() };
    let others = there.iter().filter(|object| object["kind"] != FeatureGate::KIND).count();
    match others {
        0 => Ok(()),
        n => bail!("{} has {n} other objects, which would be gone; name another file with --output", path.display()),
    }
}

fn write_all(source: &Source) -> Result<Output> {
    let targets = targets(source, &source.file)?;
    if targets.is_empty() {
        bail!("{} has no [output]: name at least one of rust, go, manifests, docs", source.path.display());
    }
    let mut text = String::new();
    let mut written = Vec::new();
    let stale = || targets.iter().filter(|target| !target.is_current());
    write_targets(stale(), None)?;
    for target in stale() {
        text += &format!("wrote {}\n", target.path.display());
        written.push(target.path.display().to_string());
    }
    let mut removed = Vec::new();
    for path in strays(&targets)? {
        stray::remove(&path)?;
        text += &format!("removed {}, which is made no more\n", path.display());
        removed.push(path.display().to_string());
    }
    text += &format!("{} of {} files were up to date\n", targets.len() - written.len(), targets.len());
    Ok(Output::good(text, json!({"written": written, "removed": removed, "files": targets.len()})))
}

/// Regenerates and compares; writes nothing.
pub(crate) fn verify(path: &Path) -> Result<Output> {
    let source = Source::read(path)?;
    let exceptions = source.exceptions()?;
    let targets = targets(&source, &source.file)?;
    let mut problems: Vec<String> = targets.iter().filter(|target| !target.is_current()).map(drift).collect();
    problems.extend(strays(&targets)?.iter().map(|path| format!("{} is made no more", path.display())));
    let strangers = exceptions
        .iter()
        .filter(|e| !source.file.gates.contains_key(&e.gate) && !source.file.retired.contains_key(&e.gate));
    let made = problems.len();
    problems.extend(strangers.map(|e| format!("an exception is for {}, which is no gate", e.gate)));
    let by_hand = problems.len() - made;
    let expired: Vec<String> = source.file.expired().iter().map(|gate| gate.name.clone()).collect();
    let mut text: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    text += &expired.iter().map(|gate| format!("warning: {gate} is past its time\n")).collect::<String>();
    let (gates, files) = (source.file.gates.len(), targets.len());
    text += &match problems.len() {
        0 => format!("{gates} gates are sound, {files} files are up to date\n"),
        n if n > by_hand => format!("{n} to mend; run lockgate gates render\n"),
        n => format!("{n} to mend in {}\n", exception::FILE_NAME),
    };
    let json = json!({"gates": gates, "files": files, "problems": problems, "expired": expired});
    Ok(Output { text, json, good: problems.is_empty() })
}

/// Where the file first differs.
fn drift(target: &Target) -> String {
    let path = target.path.display();
    let Some(have) = &target.have else { return format!("{path} is missing") };
    let mut lines = have.lines().zip(target.want.lines()).enumerate();
    match lines.find(|(_, (have, want))| have != want) {
        Some((i, (have, want))) => format!("{path}:{}: has {have:?}, should have {want:?}", i + 1),
        None => format!("{path} has {} lines, should have {}", have.lines().count(), target.want.lines().count()),
    }
}
