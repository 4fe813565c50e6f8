//! The registry of one version: every gate with what is known of it, and for every set and profile the resolved lists.
//!
//! Invariants: lists are data, not rules, so that every controller gives the same row from them; in each list pair every
//! gate is in exactly one; the digest is over all other content, also over what this reader does not know.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    canonical::digest_of,
    file::GatesFile,
    set::{LISTED, ORDER, Set},
};

/// The number of the layout below. A reader takes no other.
pub const SCHEMA: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateInfo {
    pub name: String,
    pub owner: String,
    pub contact: String,
    pub enhancement: String,
    pub stage: String,
    pub description: String,
    pub since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    #[serde(default)]
    pub reversible: bool,
}

/// What is on and off in one set of one profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    pub profile: String,
    pub set: String,
    pub enabled: BTreeSet<String>,
    pub disabled: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    pub version: String,
    pub profiles: Vec<String>,
    pub gates: BTreeMap<String, GateInfo>,
    pub lists: BTreeMap<(String, Set), Lists>,
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("the version is empty")]
    NoVersion,
    #[error("{0:?} is no version: it has spaces or control characters in it")]
    OddVersion(String),
    #[error("it is not a registry: {0}")]
    Malformed(String),
    #[error("its schema is {0}, and this program reads {SCHEMA} alone")]
    Schema(String),
    #[error("its digest is {found}, and its content has {computed}: it was changed after it was written")]
    Digest { found: String, computed: String },
    #[error("its content is of version {found:?}, and its annotation says {wanted:?}")]
    OtherVersion { found: String, wanted: String },
    #[error("the registry of version {version:?} is named {wanted}, and this is named {found:?}")]
    Name { version: String, found: String, wanted: String },
    #[error("set {set} of profile {profile}: gate {gate} is in {place} of the two lists")]
    NotDisjoint { profile: String, set: String, gate: String, place: &'static str },
    #[error("profile {profile}: gate {gate} is on in {small} and not in {wide}, which must hold all of {small}")]
    Order { profile: String, gate: String, small: Set, wide: Set },
    #[error("set {set} of profile {profile}: gate {gate} is on without {dependency}, which it depends on")]
    Dependency { profile: String, set: String, gate: String, dependency: String },
    #[error("it has {0} twice, and it cannot be told which is meant")]
    Twice(String),
    #[error("it has no lists for set {set} of profile {profile}")]
    NoLists { profile: String, set: String },
}

/// As it is written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    version: String,
    profiles: Vec<String>,
    gates: Vec<GateInfo>,
    resolved: Vec<Lists>,
}

impl Registry {
    /// The registry that a release of `file` under the name `version` brings.
    pub fn of_file(file: &GatesFile, version: &str) -> Result<Registry, RegistryError> {
        if version.trim().is_empty() {
            return Err(RegistryError::NoVersion);
        }
        if crate::version::is_odd(version) {
            return Err(RegistryError::OddVersion(version.to_owned()));
        }
        let gates = file.gates.values().map(|gate| (gate.name.clone(), info(file, gate))).collect();
        let lists = file
            .profiles
            .iter()
            .flat_map(|profile| LISTED.map(|set| ((profile.clone(), set), lists(file, profile, set))))
            .collect();
        let mut registry = Registry {
            version: version.to_owned(),
            profiles: file.profiles.clone(),
            gates,
            lists,
            digest: String::new(),
        };
        registry.digest = digest_of(&registry.content());
        Ok(registry)
    }

    /// Reads JSON as [`Registry::to_json`] writes it. Unknown fields are fine, an unknown schema is not.
    pub fn from_json(text: &str) -> Result<Registry, RegistryError> {
        let malformed = |error: serde_json::Error| RegistryError::Malformed(error.to_string());
        let mut content: Value = serde_json::from_str(text).map_err(malformed)?;
        let fields = content.as_object_mut().ok_or_else(|| RegistryError::Malformed("not a JSON object".to_owned()))?;
        match fields.get("schema") {
            Some(schema) if schema.as_u64() == Some(SCHEMA) => {}
            other => return Err(RegistryError::Schema(other.map_or("missing".to_owned(), Value::to_string))),
        }
        let found = fields.remove("digest").and_then(|d| d.as_str().map(str::to_owned)).unwrap_or_default();
        let computed = digest_of(&content);
        if found != computed {
            return Err(RegistryError::Digest { found, computed });
        }
        Registry::of_written(serde_json::from_value(content).map_err(malformed)?, found)
    }

    pub fn to_json(&self) -> String {
        let mut content = self.content();
        content["digest"] = Value::String(self.digest.clone());
        let mut text = serde_json::to_string_pretty(&crate::canonical::sorted(&content)).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Profile by name; a registry with one profile serves every name, as there is no choice to get wrong.
    pub fn lists(&self, profile: &str, set: Set) -> Result<&Lists, RegistryError> {
        let only = (self.profiles.len() == 1).then(|| self.profiles[0].as_str());
        let find = |profile: &str| self.lists.get(&(profile.to_owned(), set));
        find(profile)
            .or_else(|| only.and_then(find))
            .ok_or_else(|| RegistryError::NoLists { profile: profile.to_owned(), set: set.name().to_owned() })
    }

    fn of_written(written: Written, digest: String) -> Result<Registry, RegistryError> {
        if written.version.trim().is_empty() {
            return Err(RegistryError::NoVersion);
        }
        let mut gates: BTreeMap<String, GateInfo> = BTreeMap::new();
        for gate in written.gates {
            if let Some(twice) = gates.insert(gate.name.clone(), gate) {
                return Err(RegistryError::Twice(format!("gate {}", twice.name)));
            }
        }
        let mut lists: BTreeMap<(String, Set), Lists> = BTreeMap::new();
        for entry in written.resolved {
            check_lists(&gates, &entry)?;
            check_dependencies(&gates, &entry)?;
            // A set that a later release has invented is not for this reader.
            if let Ok(set) = entry.set.parse::<Set>()
                && let Some(twice) = lists.insert((entry.profile.clone(), set), entry)
            {
                return Err(RegistryError::Twice(format!("set {} of profile {}", twice.set, twice.profile)));
            }
        }
        let registry = Registry { version: written.version, profiles: written.profiles, gates, lists, digest };
        for profile in &registry.profiles {
            registry.lists(profile, Set::Default)?;
            registry.check_order(profile)?;
        }
        Ok(registry)
    }

    /// What `gates.toml` is held to, also where the registry was made by something else.
    fn check_order(&self, profile: &str) -> Result<(), RegistryError> {
        for (small, wide) in ORDER {
            let of = |set| self.lists.get(&(profile.to_owned(), set)).map(|lists| &lists.enabled);
            let (Some(inner), Some(outer)) = (of(small), of(wide)) else { continue };
            if let Some(gate) = inner.difference(outer).next() {
                let (profile, gate) = (profile.to_owned(), gate.clone());
                return Err(RegistryError::Order { profile, gate, small, wide });
            }
        }
        Ok(())
    }

    fn content(&self) -> Value {
        let written = Written {
            version: self.version.clone(),
            profiles: self.profiles.clone(),
            gates: self.gates.values().cloned().collect(),
            resolved: self.lists.values().cloned().collect(),
        };
        // Only texts, lists and maps with text keys: there is nothing in it that JSON cannot say.
        let mut content = serde_json::to_value(written).unwrap_or_default();
        content["schema"] = SCHEMA.into();
        content
    }
}

fn info(file: &GatesFile, gate: &crate::gate::Gate) -> GateInfo {
    GateInfo {
        name: gate.name.clone(),
        owner: gate.owner.clone(),
        contact: gate.contact.clone(),
        enhancement: gate.enhancement.clone(),
        stage: gate.stage(&file.profiles).name().to_owned(),
        description: gate.description.clone(),
        since: gate.since.to_string(),
        expires: gate.expires.map(|version| version.to_string()),
        depends_on: gate.depends_on.iter().cloned().collect(),
        reversible: gate.reversible,
    }
}

fn lists(file: &GatesFile, profile: &str, set: Set) -> Lists {
    let (on, off): (Vec<_>, Vec<_>) = file.gates.values().partition(|gate| gate.is_on(profile, set));
    let names = |gates: Vec<&crate::gate::Gate>| gates.into_iter().map(|gate| gate.name.clone()).collect();
    Lists { profile: profile.to_owned(), set: set.name().to_owned(), enabled: names(on), disabled: names(off) }
}

/// Every gate in exactly one list, and no others.
fn check_lists(gates: &BTreeMap<String, GateInfo>, lists: &Lists) -> Result<(), RegistryError> {
    let names = gates.keys().chain(&lists.enabled).chain(&lists.disabled);
    for gate in names {
        let count = usize::from(lists.enabled.contains(gate)) + usize::from(lists.disabled.contains(gate));
        let place = match (count, gates.contains_key(gate)) {
            (1, true) => continue,
            (0, _) => "neither",
            (2, _) => "both",
            _ => "no metadata, but in one",
        };
        let (profile, set, gate) = (lists.profile.clone(), lists.set.clone(), gate.clone());
        return Err(RegistryError::NotDisjoint { profile, set, gate, place });
    }
    Ok(())
}

/// Only custom lists may turn a gate on without what it depends on, and those are not in here.
fn check_dependencies(gates: &BTreeMap<String, GateInfo>, lists: &Lists) -> Result<(), RegistryError> {
    let on = lists.enabled.iter().filter_map(|name| gates.get(name));
    let mut pairs = on.flat_map(|gate| gate.depends_on.iter().map(move |dependency| (&gate.name, dependency)));
    match pairs.find(|(_, dependency)| !lists.enabled.contains(*dependency)) {
        None => Ok(()),
        Some((gate, dependency)) => {
            let (profile, set) = (lists.profile.clone(), lists.set.clone());
            Err(RegistryError::Dependency { profile, set, gate: gate.clone(), dependency: dependency.clone() })
        }
    }
}
