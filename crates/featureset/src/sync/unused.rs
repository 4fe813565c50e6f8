//! Registries that nobody needs any more: marked first, removed a good while later.
//!
//! In use are the registries of the controller's own version, of the desired one, of the history, of every row there is or is to
//! be, and of everyone who acknowledges. The mark is on the object, so that a controller that starts anew, of whatever version,
//! goes on counting; what comes into use again loses it. A history that was lost and is restored within that time costs nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{World, Write, rows::Determined};
use crate::{config_map::version_of, object::FeatureGate};

/// On a registry that is in no use, with the time since when. The policies let only such be deleted.
pub const UNUSED_SINCE: &str = "gates.lockgate.io/unused-since";

pub(crate) fn decide(world: &World<'_>, feature_gate: &FeatureGate, determined: &Determined) -> Vec<Write> {
    // Without it nobody knows what left the history.
    if world.cluster_version.is_none() {
        return Vec::new();
    }
    let used = used(world, feature_gate, determined);
    let one = |object| version_of(object).and_then(|version| chore(world, object, used.contains(version)));
    world.registry_objects.iter().filter_map(one).collect()
}

fn used<'a>(world: &World<'a>, feature_gate: &'a FeatureGate, determined: &'a Determined) -> BTreeSet<&'a str> {
    let mut used: BTreeSet<&str> = feature_gate.versions().into_iter().collect();
    used.extend(determined.rows.iter().map(|row| row.version.as_str()));
    used.insert(&world.own.version);
    if let Some(cluster_version) = world.cluster_version {
        used.insert(&cluster_version.status.desired.version);
        used.extend(cluster_version.versions());
    }
    used.extend(world.acks.iter().filter(|ack| ack.is_alive(world.now.0)).map(|ack| ack.version.as_str()));
    used
}

fn chore(world: &World<'_>, object: &Value, used: bool) -> Option<Write> {
    let mark = object["metadata"]["annotations"].get(UNUSED_SINCE);
    let since = mark.and_then(Value::as_str).and_then(world.seconds_of);
    match (used, mark, since) {
        (true, None, _) => None,
        (true, Some(_), _) => Some(marked(object, None)),
        (false, _, Some(since)) if world.now.0.saturating_sub(since) < world.keep_registries_seconds => None,
        (false, _, Some(_)) => Some(delete(object)),
        // No mark yet, or one that is no time.
        (false, _, None) => Some(marked(object, Some(world.now.1))),
    }
}

fn marked(object: &Value, since: Option<&str>) -> Write {
    let mut object = object.clone();
    match since {
        // It has annotations: by them it is a registry.
        Some(since) => object["metadata"]["annotations"][UNUSED_SINCE] = since.into(),
        None => drop(object["metadata"]["annotations"].as_object_mut().map(|all| all.remove(UNUSED_SINCE))),
    }
    Write::MarkRegistry(object)
}

/// Of the very object that was looked at: one that was unmarked meanwhile stays.
fn delete(object: &Value) -> Write {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    Write::DeleteRegistry { name: text("name"), uid: text("uid"), resource_version: text("resourceVersion") }
}
