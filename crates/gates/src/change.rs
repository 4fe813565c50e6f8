//! `add`, `promote`, `demote`: a planned change of `gates.toml`, and all that follows from it, written at once.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use featuregate::Version;
use featureset::{
    Gate, GatesFile, Set,
    change::{Changed, Flip, Proof, apply_edits, plan_add, plan_demote, plan_promote},
    file::Edit,
};
use serde_json::json;

use crate::{
    disk::{Source, targets, write_targets},
    evidence,
    output::Output,
    stray::{self, strays},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Add {
    /// The gate.
    name: String,
    /// What it does, in a sentence.
    #[arg(long)]
    description: String,
    /// Who answers for it, such as a team.
    #[arg(long)]
    owner: String,
    /// Where the owner is reached.
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
    /// Gates that must be on wherever this one is.
    #[arg(long, value_delimiter = ',')]
    depends_on: Vec<String>,
    /// Turning it off undoes what it did.
    #[arg(long)]
    reversible: bool,
    /// TechPreviewNoUpgrade (which is in DevPreviewNoUpgrade too) or DevPreviewNoUpgrade; off everywhere unless given.
    #[arg(long = "set")]
    to: Option<Set>,
    /// Says what it would do, and writes nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Promote {
    /// The gate.
    name: String,
    /// Default, OKD, TechPreviewNoUpgrade or DevPreviewNoUpgrade; it turns on in all wider sets too.
    #[arg(long)]
    to: Set,
    /// Only in this profile; may be given several times.
    #[arg(long = "profile")]
    profiles: Vec<String>,
    /// A folder of JUnit results: one folder in it for each profile, or the files themselves if there is one profile. It is
    /// needed for Default and OKD; wherever it is given it is read, and what it has is said.
    #[arg(long)]
    evidence: Option<PathBuf>,
    /// Says what it would do, and writes nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Demote {
    /// The gate.
    name: String,
    /// The furthest set it stays on in, or `none`.
    #[arg(long)]
    to: Furthest,
    /// Only in this profile; may be given several times.
    #[arg(long = "profile")]
    profiles: Vec<String>,
    /// Says what it would do, and writes nothing.
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
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
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
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let by_profile = match &self.evidence {
            Some(dir) => evidence::read(dir, &source.file)?,
            None => BTreeMap::new(),
        };
        let proof = Proof { by_profile, exceptions: source.exceptions()? };
        let edits = plan_promote(&source.file, &self.name, self.to, &self.profiles, &proof)?;
        let wanted = |profile: &&String| self.profiles.is_empty() || self.profiles.contains(profile);
        let reports = evidence::report(&proof.by_profile, &self.name, wanted);
        let mut output = finish(&source, edits, self.dry_run)?;
        output.text = evidence::describe(&self.name, &reports) + &output.text;
        output.json["evidence"] = serde_json::to_value(&reports)?;
        Ok(output)
    }
}

impl Demote {
    pub(crate) fn run(self, path: &Path) -> Result<Output> {
        let source = Source::read(path)?;
        let edits = plan_demote(&source.file, &self.name, self.to.0, &self.profiles)?;
        finish(&source, edits, self.dry_run)
    }
}

/// Everything is made before anything is written, so that a refusal leaves all files as they are.
pub(crate) fn finish(source: &Source, edits: Vec<Edit>, dry_run: bool) -> Result<Output> {
    let Changed { text, file, flips } = apply_edits(&source.text, &source.file, &edits)?;
    let targets = targets(source, &file)?;
    let stale: Vec<_> = targets.iter().filter(|target| !target.is_current()).collect();
    if !dry_run {
        write_targets(stale.iter().copied(), Some((&source.path, &text)))?;
        for path in strays(&targets)? {
            stray::remove(&path)?;
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
