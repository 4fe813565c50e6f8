//! Adding, promoting and demoting a gate: decided here, as edits of `gates.toml` and what they mean. Its end is in `retire`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    evidence::Evidence,
    exception::Exception,
    file::{Edit, FileErrors, GatesFile, edit},
    gate::Gate,
    set::{LISTED, Set},
};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    #[error("unknown gate {name:?}{}", did_you_mean(close))]
    UnknownGate { name: String, close: Option<String> },
    #[error("gate {0} is there already")]
    Exists(String),
    #[error(
        "{0} is made from Default and has no list; choose Default, OKD, TechPreviewNoUpgrade or DevPreviewNoUpgrade"
    )]
    NoList(Set),
    #[error("unknown profile {name:?}; known are {known}")]
    UnknownProfile { name: String, known: String },
    #[error(
        "a new gate is added to preview sets or to none; then promote it to {0} with evidence, also in the same release"
    )]
    AddedTooFar(Set),
    #[error("{gate} is on in {set} already, in {profiles}")]
    AlreadyOn { gate: String, set: Set, profiles: String },
    #[error("{gate} is nowhere on beyond {to}")]
    NotBeyond { gate: String, to: String },
    #[error("not enough evidence for {gate} in {set}:\n  {}\nor commit an exception with a reason", lacks.join("\n  "))]
    Evidence { gate: String, set: Set, lacks: Vec<String> },
    #[error("{gate} cannot be retired:\n  {}", reasons.join("\n  "))]
    NotRetirable { gate: String, reasons: Vec<String> },
    #[error("the change would leave gates.toml unsound:\n{0}")]
    Unsound(FileErrors),
    #[error("the version {0:?} of gates.toml is none")]
    Version(String),
}

fn did_you_mean(close: &Option<String>) -> String {
    close.as_ref().map_or(String::new(), |name| format!("; did you mean {name}?"))
}

/// One place where a gate is turned on or off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flip {
    pub gate: String,
    pub profile: String,
    pub set: Set,
    /// `None`: the gate is not known (any more).
    pub from: Option<bool>,
    pub to: Option<bool>,
}

/// The file after a change, and the difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    pub text: String,
    pub file: GatesFile,
    pub flips: Vec<Flip>,
}

/// Carries edits out on the text and holds the result to all rules.
pub fn apply_edits(text: &str, file: &GatesFile, edits: &[Edit]) -> Result<Changed, ChangeError> {
    let unsound = |what: String| {
        ChangeError::Unsound(FileErrors(vec![crate::file::FileError { line: 1, key: String::new(), what }]))
    };
    let text = edit(text, edits).map_err(|error| unsound(error.to_string()))?;
    let after = GatesFile::parse(&text).map_err(ChangeError::Unsound)?;
    let flips = flips(file, &after);
    Ok(Changed { text, file: after, flips })
}

/// What differs between two files, per profile and set.
pub fn flips(before: &GatesFile, after: &GatesFile) -> Vec<Flip> {
    let names: BTreeSet<&String> = before.gates.keys().chain(after.gates.keys()).collect();
    let profiles: BTreeSet<&String> = before.profiles.iter().chain(&after.profiles).collect();
    let mut flips = Vec::new();
    for (gate, profile) in names.iter().flat_map(|gate| profiles.iter().map(move |profile| (*gate, *profile))) {
        for set in LISTED {
            let value = |file: &GatesFile| {
                let known = file.profiles.contains(profile);
                file.gates.get(gate).filter(|_| known).map(|gate| gate.is_on(profile, set))
            };
            let (from, to) = (value(before), value(after));
            if from != to {
                flips.push(Flip { gate: gate.clone(), profile: profile.clone(), set, from, to });
            }
        }
    }
    flips
}

pub fn plan_add(file: &GatesFile, gate: Gate) -> Result<Vec<Edit>, ChangeError> {
    if file.gates.contains_key(&gate.name) {
        return Err(ChangeError::Exists(gate.name));
    }
    let sets = gate.sets.iter().chain(gate.profiles.values().flatten());
    match sets.into_iter().find(|set| set.allows_upgrades()) {
        Some(set) => Err(ChangeError::AddedTooFar(*set)),
        None => Ok(vec![Edit::Add(Box::new(gate))]),
    }
}

/// What speaks for a promotion, by profile, and what was let through.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    pub by_profile: BTreeMap<String, Evidence>,
    pub exceptions: Vec<Exception>,
}

pub fn plan_promote(
    file: &GatesFile,
    name: &str,
    to: Set,
    profiles: &[String],
    proof: &Proof,
) -> Result<Vec<Edit>, ChangeError> {
    let gate = find(file, name)?;
    if to == Set::Custom {
        return Err(ChangeError::NoList(to));
    }
    let profiles = chosen(file, profiles)?;
    let grown = |sets: &BTreeSet<Set>| sets.iter().copied().chain(to.with_wider()).collect::<BTreeSet<Set>>();
    let edits = edits_of(file, gate, &profiles, grown);
    if edits.is_empty() {
        return Err(ChangeError::AlreadyOn { gate: name.to_owned(), set: to, profiles: profiles.join(", ") });
    }
    check_proof(gate, to, &profiles, proof)?;
    Ok(edits)
}

/// Sets whose clusters are upgraded need evidence, in every profile where the gate turns on in them.
fn check_proof(gate: &Gate, to: Set, profiles: &[String], proof: &Proof) -> Result<(), ChangeError> {
    let mut lacks = Vec::new();
    for profile in profiles {
        let newly = to.with_wider().into_iter().filter(|set| set.allows_upgrades() && !gate.is_on(profile, *set));
        let unexcused: Vec<Set> = newly
            .filter(|set| {
                !proof
                    .exceptions
                    .iter()
                    .any(|e| e.covers(&gate.name, profile, *set) || e.covers(&gate.name, profile, to))
            })
            .collect();
        if !unexcused.is_empty() {
            let none = Evidence::default();
            let evidence = proof.by_profile.get(profile).unwrap_or(&none);
            lacks.extend(evidence.lacks(&gate.name).into_iter().map(|lack| format!("profile {profile}: {lack}")));
        }
    }
    if lacks.is_empty() { Ok(()) } else { Err(ChangeError::Evidence { gate: gate.name.clone(), set: to, lacks }) }
}

/// `to` is the furthest set the gate stays on in; `None` turns it off everywhere.
pub fn plan_demote(
    file: &GatesFile,
    name: &str,
    to: Option<Set>,
    profiles: &[String],
) -> Result<Vec<Edit>, ChangeError> {
    let gate = find(file, name)?;
    if to == Some(Set::Custom) {
        return Err(ChangeError::NoList(Set::Custom));
    }
    let profiles = chosen(file, profiles)?;
    let kept = |sets: &BTreeSet<Set>| sets.iter().copied().filter(|set| reach(Some(*set)) <= reach(to)).collect();
    let edits = edits_of(file, gate, &profiles, kept);
    let to = to.map_or("none", Set::name).to_owned();
    if edits.is_empty() { Err(ChangeError::NotBeyond { gate: name.to_owned(), to }) } else { Ok(edits) }
}

/// How far a set reaches among users.
fn reach(set: Option<Set>) -> u8 {
    match set {
        None | Some(Set::Custom) => 0,
        Some(Set::DevPreview) => 1,
        Some(Set::TechPreview) => 2,
        Some(Set::Okd) => 3,
        Some(Set::Default) => 4,
    }
}

pub(crate) fn find<'a>(file: &'a GatesFile, name: &str) -> Result<&'a Gate, ChangeError> {
    file.gates.get(name).ok_or_else(|| {
        let close = file.gates.keys().find(|other| other.eq_ignore_ascii_case(name)).cloned();
        ChangeError::UnknownGate { name: name.to_owned(), close }
    })
}

/// The profiles asked for; all if none is.
fn chosen(file: &GatesFile, profiles: &[String]) -> Result<Vec<String>, ChangeError> {
    if let Some(name) = profiles.iter().find(|profile| !file.profiles.contains(profile)) {
        return Err(ChangeError::UnknownProfile { name: name.clone(), known: file.profiles.join(", ") });
    }
    Ok(if profiles.is_empty() { file.profiles.clone() } else { profiles.to_vec() })
}

/// The lists that have to change. A change for all profiles is made to the common list and to lists of single profiles;
/// one for some profiles gives these lists of their own.
fn edits_of(
    file: &GatesFile,
    gate: &Gate,
    profiles: &[String],
    new: impl Fn(&BTreeSet<Set>) -> BTreeSet<Set>,
) -> Vec<Edit> {
    let all = file.profiles.iter().all(|profile| profiles.contains(profile));
    let mut edits = Vec::new();
    let mut change = |profile: Option<&String>, old: &BTreeSet<Set>| {
        let sets = new(old);
        if sets != *old {
            edits.push(Edit::Sets { gate: gate.name.clone(), profile: profile.cloned(), sets });
        }
    };
    if all {
        let uses_common = file.profiles.iter().any(|profile| !gate.profiles.contains_key(profile));
        if uses_common {
            change(None, &gate.sets);
        }
        gate.profiles.iter().for_each(|(profile, sets)| change(Some(profile), sets));
    } else {
        profiles.iter().for_each(|profile| change(Some(profile), gate.sets_in(profile)));
    }
    edits
}
