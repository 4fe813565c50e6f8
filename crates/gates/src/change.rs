//! `add`, `promote`, `demote`, `retire`: a planned change of `gates.toml`, and all that follows from it, written at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use featuregate::Version;
use featureset::{
    Gate, GatesFile, Set,
    change::{Changed, Flip, Proof, RetireFacts, apply_edits, plan_add, plan_demote, plan_promote, plan_retire},
    config_map::NAMESPACE,
    evidence::Evidence,
    file::Edit,
};
use serde_json::json;

use crate::{
    code,
    disk::{self, Source, targets},
    output::Output,
    plan_source,
};

#[derive(clap::Args, Debug)]
pub struct Add {
    name: String,
    #[arg(long)]
    description: String,
    #[arg(long)]
    owner: String,
    #[arg(long)]
    contact: String,
    /// The URL of the text that says why and how.
    #[arg(long)]
    enhancement: String,
    /// The first release that knows it; the one of gates.toml unless given.
    #[arg(long)]
    since: Option<Version>,
    /// The release by which it should be gone.
    #[arg(long)]
    expires: Option<Version>,
    #[arg(long, value_delimiter = ',')]
    depends_on: Vec<String>,
    /// Turning it off undoes what it did.
    #[arg(long)]
    reversible: bool,
    /// TechPreviewNoUpgrade (which is in DevPreviewNoUpgrade too) or DevPreviewNoUpgrade; off everywhere unless given.
    #[arg(long = "set")]
    to: Option<Set>,
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub struct Promote {
    name: String,
    #[arg(long)]
    to: Set,
    /// Only in this profile; may be given several times.
    #[arg(long = "profile")]
    profiles: Vec<String>,
    /// A folder of JUnit results: one folder in it for each profile, or the files themselves if there is one profile.
    #[arg(long)]
    evidence: Option<PathBuf>,
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub struct Demote {
    name: String,
    /// The furthest set it stays on in, or `none`.
    #[arg(long)]
    to: Furthest,
    #[arg(long = "profile")]
    profiles: Vec<String>,
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub struct Retire {
    name: String,
    /// Folders with code that must not ask for it; the folder of gates.toml unless given.
    #[arg(long)]
    code: Vec<PathBuf>,
    /// Registries of released and installed versions, as files or folders of ConfigMaps.
    #[arg(long)]
    registry: Vec<PathBuf>,
    /// Asks the cluster that kubectl would speak to for the versions that run there.
    #[arg(long)]
    cluster: bool,
    /// Asks the cluster of this file.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries and leases of the cluster are.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    #[arg(long)]
    dry_run: bool,
}

/// A set, or none.
#[derive(Clone, Debug)]
struct Furthest(Option<Set>);

impl std::str::FromStr for Furthest {
    type Err = featureset::set::UnknownSet;

    fn from_str(text: &str) -> Result<Furthest, Self::Err> {
        if text == "none" { Ok(Furthest(None)) } else { text.parse().map(|set| Furthest(Some(set))) }
    }
}

impl Add {
    pub fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let own: Version = source.file.version.parse()?;
        let gate = Gate {
            name: self.name,
            owner: self.owner,
            contact: self.contact,
            enhancement: self.enhancement,
            description: self.description,
            since: self.since.unwrap_or(own),
            expires: self.expires,
            depends_on: self.depends_on.into_iter().collect(),
            reversible: self.reversible,
            sets: self.to.map(Set::with_wider).unwrap_or_default().into_iter().collect(),
            profiles: BTreeMap::new(),
        };
        finish(&source, plan_add(&source.file, gate)?, self.dry_run)
    }
}

impl Promote {
    pub fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let by_profile = match &self.evidence {
            Some(dir) => evidence(dir, &source.file)?,
            None => BTreeMap::new(),
        };
        let proof = Proof { by_profile, exceptions: source.exceptions()? };
        let edits = plan_promote(&source.file, &self.name, self.to, &self.profiles, &proof)?;
        finish(&source, edits, self.dry_run)
    }
}

impl Demote {
    pub fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let edits = plan_demote(&source.file, &self.name, self.to.0, &self.profiles)?;
        finish(&source, edits, self.dry_run)
    }
}

impl Retire {
    pub fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let dirs = if self.code.is_empty() { vec![source.dir().to_owned()] } else { self.code };
        let generated: Vec<PathBuf> = targets(source.dir(), &source.file)?.into_iter().map(|t| t.path).collect();
        let names: BTreeSet<String> = [self.name.clone(), featureset::generate::ident(&self.name)].into();
        let names: Vec<String> = names.into_iter().collect();
        let mut references = Vec::new();
        for dir in &dirs {
            references.extend(code::references(dir, &names, &generated)?);
        }
        let mut facts =
            RetireFacts { references, registries: disk::registries(&self.registry)?, ..RetireFacts::default() };
        if self.cluster || self.kubeconfig.is_some() {
            let (there, unreadable) = plan_source::running(self.kubeconfig.as_deref(), &self.namespace)?;
            facts.registries.extend(there);
            facts.unreadable = unreadable;
        }
        finish(&source, plan_retire(&source.file, &self.name, &facts)?, self.dry_run)
    }
}

/// Results by profile. With one profile the files may lie in the folder itself.
fn evidence(dir: &Path, file: &GatesFile) -> Result<BTreeMap<String, Evidence>> {
    if !dir.is_dir() {
        bail!("{} is not a folder of JUnit results", dir.display());
    }
    let mut by_profile = BTreeMap::new();
    for profile in &file.profiles {
        let own = dir.join(profile);
        let from = match (own.is_dir(), file.profiles.len()) {
            (true, _) => own,
            (false, 1) => dir.to_owned(),
            (false, _) => continue,
        };
        let mut evidence = Evidence::default();
        for path in disk::files(&from)?.iter().filter(|path| path.extension().is_some_and(|e| e == "xml")) {
            evidence.add(&disk::read(path)?).with_context(|| path.display().to_string())?;
        }
        by_profile.insert(profile.clone(), evidence);
    }
    Ok(by_profile)
}

/// Everything is made before anything is written, so that a refusal leaves all files as they are.
fn finish(source: &Source, edits: Vec<Edit>, dry_run: bool) -> Result<Output> {
    let Changed { text, file, flips } = apply_edits(&source.text, &source.file, &edits)?;
    let targets = targets(source.dir(), &file)?;
    let stale: Vec<_> = targets.iter().filter(|target| !target.is_current()).collect();
    if !dry_run {
        disk::write(&source.path, &text)?;
        for target in &stale {
            disk::write(&target.path, &target.want)?;
        }
    }
    let paths: Vec<String> = std::iter::once(&source.path)
        .chain(stale.iter().map(|target| &target.path))
        .map(|path| path.display().to_string())
        .collect();
    let mut said = describe(&file, &flips);
    said += &format!("{} {}\n", if dry_run { "would write" } else { "wrote" }, paths.join(", "));
    let json = json!({
        "version": file.version, "dryRun": dry_run, "files": paths,
        "flips": flips.iter().map(|flip| json!({
            "gate": flip.gate, "profile": flip.profile, "set": flip.set.name(), "from": flip.from, "to": flip.to,
        })).collect::<Vec<_>>(),
    });
    Ok(Output::good(said, json))
}

/// The effective change for the version of the file; released versions keep what they have.
fn describe(file: &GatesFile, flips: &[Flip]) -> String {
    let say = |value: Option<bool>| value.map_or("unknown", |on| if on { "on" } else { "off" });
    let mut text = format!("in {}, and in no version before it:\n", file.version);
    for flip in flips {
        text += &format!("  {}  {}  {}: {} -> {}\n", flip.gate, flip.profile, flip.set, say(flip.from), say(flip.to));
    }
    text
}
