//! `list`: all gates, where they are on, what was let through without evidence, and what is past its time.

use std::path::Path;

use anyhow::Result;
use featureset::{
    Gate, GatesFile,
    set::{LISTED, Set},
};
use serde_json::{Value, json};

use crate::{disk::Source, output::Output};

pub(crate) fn run(path: &Path) -> Result<Output> {
    let source = Source::read(path)?;
    let (file, exceptions) = (&source.file, source.exceptions()?);
    let expired: Vec<&str> = file.expired().iter().map(|gate| gate.name.as_str()).collect();
    let width = file.gates.keys().map(String::len).max().unwrap_or(0).max("GATE".len());
    let mut text = format!("{:width$}  {:<11}  {:<7}  {:<12}  ON IN\n", "GATE", "STAGE", "SINCE", "OWNER");
    for gate in file.gates.values() {
        let stage = gate.stage(&file.profiles).name();
        let since = gate.since.to_string();
        text += &format!("{:width$}  {stage:<11}  {since:<7}  {:<12}  {}\n", gate.name, gate.owner, places(file, gate));
    }
    for exception in &exceptions {
        let profile = exception.profile.as_deref().unwrap_or("all profiles");
        text += &format!("exception: {} to {} in {profile}: {}\n", exception.gate, exception.set, exception.reason);
    }
    for gate in file.expired() {
        let expires = gate.expires.map(|version| version.to_string()).unwrap_or_default();
        text += &format!("expired: {} was to be gone in {expires}; ask {} ({})\n", gate.name, gate.owner, gate.contact);
    }
    let gates: Vec<Value> =
        file.gates.values().map(|gate| as_json(file, gate, expired.contains(&&*gate.name))).collect();
    let json = json!({
        "version": file.version, "profiles": file.profiles, "gates": gates, "exceptions": exceptions,
        "retired": file.retired.iter().map(|(name, version)| (name.clone(), version.to_string().into())).collect::<serde_json::Map<_, Value>>(),
    });
    Ok(Output::good(text, json))
}

fn places(file: &GatesFile, gate: &Gate) -> String {
    let place = |set: Set| {
        let on: Vec<&str> = file.profiles.iter().map(String::as_str).filter(|p| gate.is_on(p, set)).collect();
        match on.len() {
            0 => None,
            n if n == file.profiles.len() => Some(set.name().to_owned()),
            _ => Some(format!("{set} ({})", on.join(" "))),
        }
    };
    let places: Vec<String> = LISTED.into_iter().filter_map(place).collect();
    if places.is_empty() { "nothing".to_owned() } else { places.join(", ") }
}

fn as_json(file: &GatesFile, gate: &Gate, expired: bool) -> Value {
    let sets = |profile: &String| gate.sets_in(profile).iter().map(|set| set.name()).collect::<Vec<_>>();
    json!({
        "name": gate.name, "stage": gate.stage(&file.profiles).name(), "owner": gate.owner, "contact": gate.contact,
        "enhancement": gate.enhancement, "description": gate.description, "since": gate.since.to_string(),
        "expires": gate.expires.map(|version| version.to_string()), "expired": expired,
        "dependsOn": gate.depends_on, "reversible": gate.reversible,
        "sets": file.profiles.iter().map(|profile| (profile.clone(), json!(sets(profile)))).collect::<serde_json::Map<_, _>>(),
    })
}
