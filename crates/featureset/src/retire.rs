//! Whether a gate may go: nobody asks for it any more, neither code nor a version that runs somewhere.

use featuregate::Version;

use crate::{
    change::{ChangeError, find},
    file::{Edit, GatesFile},
    gate::Gate,
    registry::{Lists, Registry},
    resolve::Row,
    set::{LISTED, Set},
};

/// What else there is to know before a gate may go.
#[derive(Clone, Debug, Default)]
pub struct RetireFacts {
    /// Lines of code that name the gate, as `path:line`.
    pub references: Vec<String>,
    /// Registries of versions that are released or installed.
    pub registries: Vec<Registry>,
    /// Installed versions whose registry cannot be read, with the reason.
    pub unreadable: Vec<String>,
    /// Rows of installed versions, as a cluster has them.
    pub rows: Vec<Row>,
    /// Definitions of a cluster whose field gates follow the gate.
    pub followers: Vec<String>,
}

/// A gate may go if nobody asks for it any more: it is off everywhere, or it is on by default everywhere and was so in
/// every version that is out.
pub fn plan_retire(file: &GatesFile, name: &str, facts: &RetireFacts) -> Result<Vec<Edit>, ChangeError> {
    let gate = find(file, name)?;
    let version: Version = file.version.parse().map_err(|_| ChangeError::Version(file.version.clone()))?;
    let mut reasons: Vec<String> =
        facts.references.iter().map(|place| format!("code still asks for it: {place}")).collect();
    reasons.extend(facts.followers.iter().map(|name| format!("fields of {name} in the cluster follow it")));
    reasons.extend(file.dependents(name).iter().map(|other| format!("{} depends on it", other.name)));
    reasons.extend(undecided(file, gate, version, facts));
    reasons.extend(facts.unreadable.iter().map(|why| format!("an installed version may need it: {why}")));
    reasons.extend(facts.registries.iter().filter_map(|registry| need(registry, name, &facts.rows)));
    if reasons.is_empty() {
        Ok(vec![Edit::Retire { gate: name.to_owned(), version }])
    } else {
        Err(ChangeError::NotRetirable { gate: name.to_owned(), reasons })
    }
}

/// What the file says, and what is known of versions before it.
fn undecided(file: &GatesFile, gate: &Gate, version: Version, facts: &RetireFacts) -> Vec<String> {
    let mut reasons = Vec::new();
    let off = file.profiles.iter().all(|profile| gate.sets_in(profile).is_empty());
    let default = file.profiles.iter().all(|profile| gate.is_on(profile, Set::Default));
    if !off && !default {
        reasons.push(
            "it is on in some sets and off in others: promote it to Default or demote it to none first".to_owned(),
        );
    }
    if default && !facts.registries.iter().any(|registry| is_default(registry, &gate.name)) {
        reasons.push("no released version is known that had it on in Default, in all profiles".to_owned());
    }
    // Without a look at what is out nobody knows who still needs it; a gate of this very release is in none.
    if !default && facts.registries.is_empty() && gate.since < version {
        reasons.push(format!(
            "it is known since {}, and no version that is out was looked at: name registries, or the cluster",
            gate.since
        ));
    }
    reasons
}

/// Why a version still needs the gate.
fn need(registry: &Registry, gate: &str, rows: &[Row]) -> Option<String> {
    let version = &registry.version;
    if !registry.gates.contains_key(gate) {
        return None;
    }
    if registry.profiles.iter().any(|profile| is_choice(registry, profile, gate)) {
        return Some(format!("version {version} still needs it: there it is on in some sets and off in others"));
    }
    // Custom lists turn on what no set has, and off what all have.
    let row = rows.iter().find(|row| row.version == *version)?;
    let on =
        row.get(gate).filter(|on| registry.profiles.iter().all(|profile| is_on(registry, profile, gate) != *on))?;
    let state = if on { "on" } else { "off" };
    Some(format!("version {version} still needs it: the cluster has it {state} there, by its custom lists"))
}

fn is_default(registry: &Registry, gate: &str) -> bool {
    let is_on = |lists: &Lists| lists.enabled.contains(gate);
    registry.profiles.iter().all(|profile| registry.lists(profile, Set::Default).is_ok_and(is_on))
}

fn is_on(registry: &Registry, profile: &str, gate: &str) -> bool {
    registry.lists(profile, Set::Default).is_ok_and(|lists| lists.enabled.contains(gate))
}

/// True if the answer for the gate depends on the set.
fn is_choice(registry: &Registry, profile: &str, gate: &str) -> bool {
    let is_on = |set| registry.lists(profile, set).is_ok_and(|lists| lists.enabled.contains(gate));
    LISTED.iter().any(|set| is_on(*set) != is_on(Set::Default))
}
