//! Rules over the whole file: names, order of sets, dependencies.

use featuregate::Version;

use super::{GatesFile, read::Findings};
use crate::{
    gate::{Gate, STORE_PREFIX, is_name},
    set::{LISTED, ORDER, Set},
};

pub(super) fn check(file: &GatesFile, findings: &mut Findings) {
    if !file.version.is_empty()
        && let Err(error) = file.version.parse::<Version>()
    {
        findings.add("version", error.to_string());
    }
    for profile in file.profiles.iter().filter(|profile| !is_profile(profile)) {
        findings.add("profiles", format!("{profile:?} is not a name of letters, digits and dashes"));
    }
    for (key, path) in file.output.paths() {
        if path.is_empty() || path.starts_with('/') {
            findings.add(&format!("output.{key}"), format!("must be a path from the folder of this file, is {path:?}"));
        }
    }
    if let Some(package) = file.output.go_package.as_ref().filter(|package| !is_package(package)) {
        findings.add("output.go_package", format!("must be lower-case letters, digits and _, is {package:?}"));
    }
    for gate in file.gates.values() {
        check_gate(file, gate, findings);
        check_order(file, gate, findings);
        check_dependencies(file, gate, findings);
    }
    for name in file.retired.keys().filter(|name| file.gates.contains_key(*name)) {
        findings.add(&format!("gate.{name}"), "the name is retired and is never used again; choose another");
    }
}

fn is_profile(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Of Go, as its users write them.
fn is_package(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    text.bytes().all(plain) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

fn check_gate(file: &GatesFile, gate: &Gate, findings: &mut Findings) {
    let at = |key: &str| format!("gate.{}.{key}", gate.name);
    if !is_name(&gate.name) {
        let what = "a name has letters, digits and dashes, in parts separated by dots";
        findings.add(&format!("gate.{}", gate.name), what);
    }
    if gate.name.starts_with(STORE_PREFIX) {
        let what = format!("{STORE_PREFIX}NAME is a cluster feature of the store, for those who ask over OFREP");
        findings.add(&format!("gate.{}", gate.name), what);
    }
    if !gate.enhancement.is_empty() && !["https://", "http://"].iter().any(|p| gate.enhancement.starts_with(p)) {
        findings.add(&at("enhancement"), format!("must be a URL, is {:?}", gate.enhancement));
    }
    if gate.expires.is_some_and(|expires| expires <= gate.since) {
        findings.add(&at("expires"), format!("must be later than since ({})", gate.since));
    }
    for profile in gate.profiles.keys().filter(|profile| !file.profiles.contains(profile)) {
        findings.add(
            &at(&format!("profiles.{profile}")),
            format!("unknown profile; known are {}", file.profiles.join(", ")),
        );
    }
}

/// Where the sets of a gate in a profile are written down.
fn sets_key(gate: &Gate, profile: &str) -> String {
    if gate.profiles.contains_key(profile) {
        format!("gate.{}.profiles.{profile}", gate.name)
    } else {
        format!("gate.{}.sets", gate.name)
    }
}

fn check_order(file: &GatesFile, gate: &Gate, findings: &mut Findings) {
    let mut told: Vec<(String, Set)> = Vec::new();
    for profile in &file.profiles {
        for (small, wide) in ORDER {
            let key = sets_key(gate, profile);
            if gate.is_on(profile, small) && !gate.is_on(profile, wide) && !told.contains(&(key.clone(), wide)) {
                findings.add(
                    &key,
                    format!("is on in {small} and not in {wide}, which must hold all of {small}; add {wide}"),
                );
                told.push((key, wide));
            }
        }
    }
}

fn check_dependencies(file: &GatesFile, gate: &Gate, findings: &mut Findings) {
    let key = format!("gate.{}.depends_on", gate.name);
    for name in &gate.depends_on {
        match file.gates.get(name) {
            _ if *name == gate.name => findings.add(&key, "a gate cannot depend on itself"),
            None if file.retired.contains_key(name) => findings.add(&key, format!("{name} is retired; drop it here")),
            None => findings.add(&key, format!("unknown gate {name:?}")),
            Some(other) => {
                if let Some((profile, set)) = narrower(file, gate, other) {
                    let mend = format!("{name}, which it depends on, is off there");
                    findings.add(&sets_key(gate, profile), format!("is on in {set} (profile {profile}), but {mend}"));
                }
                if reaches(file, name, &gate.name) && gate.name < *name {
                    findings.add(&key, format!("{} and {name} depend on each other", gate.name));
                }
            }
        }
    }
}

/// Where the gate is on and what it depends on is not.
fn narrower<'a>(file: &'a GatesFile, gate: &Gate, dependency: &Gate) -> Option<(&'a str, Set)> {
    let places = file.profiles.iter().flat_map(|profile| LISTED.map(|set| (profile.as_str(), set)));
    places.into_iter().find(|(profile, set)| gate.is_on(profile, *set) && !dependency.is_on(profile, *set))
}

/// True if `from` depends on `to`, also through others.
fn reaches(file: &GatesFile, from: &str, to: &str) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(name) = seen.get(next).copied() {
        next += 1;
        let Some(gate) = file.gates.get(name) else { continue };
        if gate.depends_on.iter().any(|dependency| dependency == to) {
            return true;
        }
        let new: Vec<&str> = gate.depends_on.iter().map(String::as_str).filter(|d| !seen.contains(d)).collect();
        seen.extend(new);
    }
    false
}
