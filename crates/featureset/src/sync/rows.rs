//! The rows of all versions: of the controller, of the history, of what is to come, and of those who lag behind.

use std::collections::{BTreeMap, BTreeSet};

use super::{Decided, World, condition, fields};
use crate::{
    object::{Condition, FeatureGate, StatusRow},
    registry::Registry,
    resolve::{Choice, Resolved, resolve},
};

/// Rows to be, and how sure they are.
#[derive(Debug, Default)]
pub(crate) struct Determined {
    pub rows: Vec<StatusRow>,
    /// Why the own row, or that of the desired version, could not be determined.
    pub degraded: Option<(&'static str, String)>,
    /// Versions whose row stays as it was, of whatever set that is.
    pub kept: Vec<String>,
    /// Other versions whose row is as it was, each with reason and message.
    pub stale: Vec<(&'static str, String)>,
    /// Names in the custom lists that no version knows.
    pub unknown: BTreeSet<String>,
    pub unmet: BTreeSet<(String, String)>,
    /// What follows the rows.
    pub fields: fields::Fields,
    pub conditions: Vec<Condition>,
}

pub(crate) fn determine(world: &World<'_>, feature_gate: &FeatureGate, decided: &Decided) -> Determined {
    let mut determined = Determined::default();
    let mut knowing: Option<BTreeSet<String>> = None;
    for version in versions(world, feature_gate) {
        let old = feature_gate.status.feature_gates.iter().find(|row| row.version == version);
        match row(world, decided, &version) {
            Ok(resolved) => {
                let unknown = &resolved.unknown;
                // Only what is unknown to all is unknown.
                knowing =
                    Some(knowing.map_or(unknown.clone(), |so_far| so_far.intersection(unknown).cloned().collect()));
                determined.unmet.extend(resolved.unmet);
                determined.rows.push(updated(old, StatusRow::of_row(&resolved.row)));
            }
            Err((reason, why)) => {
                determined.rows.extend(old.cloned());
                determined.kept.extend(old.map(|old| old.version.clone()));
                missing(world, &mut determined, &version, old.is_some(), reason, why);
            }
        }
    }
    determined.unknown = knowing.unwrap_or_default();
    if determined.degraded.is_none() && world.cluster_version.is_none() {
        determined.degraded = Some(no_cluster_version(world));
    }
    determined.fields = fields::decide(world, &determined.rows);
    determined.conditions = condition::conditions(decided, &determined);
    determined.conditions.extend(condition::in_force(feature_gate, decided, &determined));
    determined
}

fn no_cluster_version(world: &World<'_>) -> Cause {
    match world.cluster_version_unreadable {
        None => {
            let message = "there is no ClusterVersion version, so it cannot be told which versions are installed; \
                           lockgate gates version begin makes one";
            ("NoClusterVersion", message.to_owned())
        }
        Some(why) => {
            let message = "ClusterVersion version cannot be read, so it cannot be told which versions are installed";
            ("ClusterVersionUnreadable", format!("{message}: {why}"))
        }
    }
}

/// Own version first, then the desired one, the history, and versions that somebody still runs with. Without a
/// ClusterVersion nobody knows what left the history, so all rows stay.
fn versions(world: &World<'_>, feature_gate: &FeatureGate) -> Vec<String> {
    let rows = feature_gate.versions();
    let mut all: Vec<&str> = vec![&world.own.version];
    match world.cluster_version {
        Some(cluster_version) => {
            all.push(&cluster_version.status.desired.version);
            all.extend(cluster_version.versions());
            let alive = world.acks.iter().filter(|ack| ack.is_alive(world.now.0));
            // One who acknowledges a version that has no row cannot run with it.
            all.extend(alive.map(|ack| ack.version.as_str()).filter(|version| rows.contains(version)));
        }
        None => all.extend(rows),
    }
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|version| !version.is_empty() && seen.insert(*version)).map(str::to_owned).collect()
}

type Cause = (&'static str, String);

fn row(world: &World<'_>, decided: &Decided, version: &str) -> Result<Resolved, Cause> {
    let choice: &Choice = decided.choice.as_ref().ok_or_else(|| decided.wrong.clone().unwrap_or_default())?;
    let registry = registry(world, version)?;
    resolve(registry, world.profile, choice).map_err(|error| ("RegistryUnreadable", error.to_string()))
}

/// What the version itself left in the cluster. For the own version both must agree: others will go by the one in the
/// cluster, and all must give one row.
fn registry<'a>(world: &World<'a>, version: &str) -> Result<&'a Registry, Cause> {
    let own = (version == world.own.version).then_some(world.own);
    match (own, world.registries.get(version)) {
        (Some(own), None) => Ok(own),
        (Some(own), Some(Ok(there))) if there.digest == own.digest => Ok(own),
        (Some(own), Some(Ok(there))) => Err((
            "RegistryConflict",
            format!(
                "the registry in the cluster ({}) is not the one of this controller ({}), and both are of {version}; \
                 give one of them another version, or delete the one in the cluster",
                there.digest, own.digest
            ),
        )),
        (None, Some(Ok(there))) => Ok(there),
        (_, Some(Err(why))) => Err(("RegistryUnreadable", why.clone())),
        (None, None) => Err(("RegistryMissing", "it left no registry in the cluster".to_owned())),
    }
}

fn missing(
    world: &World<'_>,
    determined: &mut Determined,
    version: &str,
    kept: bool,
    reason: &'static str,
    why: String,
) {
    let desired = world.cluster_version.map(|cluster_version| cluster_version.status.desired.version.as_str());
    let matters = version == world.own.version || Some(version) == desired;
    let row = if kept { "keeps the row it has" } else { "has no row" };
    match matters {
        true if determined.degraded.is_none() => {
            determined.degraded = Some((reason, format!("version {version} {row}: {why}")));
        }
        true => {}
        false => determined.stale.push((reason, format!("{version} {row}: {why}"))),
    }
}

/// The old row if it says the same, so that an order or a field of somebody else's causes no write.
fn updated(old: Option<&StatusRow>, new: StatusRow) -> StatusRow {
    match old {
        Some(old) if is_clean(old) && old.to_row() == new.to_row() => old.clone(),
        _ => new,
    }
}

/// No name twice, in one list or in both: such a row was edited by hand.
fn is_clean(row: &StatusRow) -> bool {
    let mut seen = BTreeSet::new();
    row.enabled.iter().chain(&row.disabled).all(|gate| seen.insert(&gate.name))
}

/// Equal rows, in whatever order.
pub(crate) fn same(old: &[StatusRow], new: &[StatusRow]) -> bool {
    let by_version = |rows: &[StatusRow]| -> BTreeMap<String, StatusRow> {
        rows.iter().map(|row| (row.version.clone(), row.clone())).collect()
    };
    old.len() == new.len() && by_version(old) == by_version(new)
}
