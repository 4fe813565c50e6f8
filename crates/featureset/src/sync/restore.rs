//! The API judges an object as a whole. A spec that came in while somebody had loosened the definition can be one beside which
//! nothing can be written, when the strict definition is back: then rows that came in with it would stay. So the spec goes back to the
//! choice that rows follow, which is the one on record and not one that is found there: whatever somebody puts into the object, this
//! leads nowhere else.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Decided, World, Write, audit, condition::degraded, entry_of, report, rows};
use crate::{
    audit::Kind,
    object::{CustomLists, FeatureGate, FeatureGateSpec},
    resolve::Choice,
    set::Set,
};

/// So much of what was found goes into the audit trail.
const FOUND_MAX: usize = 200;

/// What the API refused as invalid of the FeatureGate as it is now, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub part: Part,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Status,
    /// Also a spec that is right: in Kubernetes rules of transition cannot be asked about an old value of another type, and are not met then.
    Spec,
}

/// `None` if the spec does not stand in the way, or nothing can be done about it.
pub(crate) fn decide(world: &World<'_>, object: &FeatureGate, decided: &Decided) -> Option<Vec<Write>> {
    let (refused, choice) = (world.refused?, decided.choice.as_ref()?);
    let spec = spec_of(choice, &object.spec);
    let restored = Box::new(FeatureGate { spec: spec.clone(), ..object.clone() });
    let mut writes: Vec<Write> = record(world, object, decided).into_iter().collect();
    match refused.part {
        Part::Status if spec == object.spec => return None,
        Part::Status => writes.push(Write::RestoreSpec(restored)),
        Part::Spec if is_of_another_type(&object.spec) => {
            // Others may stand in the way of this, and conditions of the object itself cannot be written.
            writes.extend(told(world, object, decided));
            let new = Box::new(FeatureGate::new(spec));
            writes.push(Write::ReplaceFeatureGate { old: Box::new(object.metadata.clone()), new });
        }
        Part::Spec => return None,
    }
    Some(writes)
}

/// What the choice is as a spec that any definition takes.
fn spec_of(choice: &Choice, old: &FeatureGateSpec) -> FeatureGateSpec {
    let mut spec = FeatureGateSpec::of_set(choice.set);
    // Once it is there it may not be removed.
    if spec.feature_set.is_none() && found_set(old).is_some() {
        spec.feature_set = Some(Set::Default.wire().to_owned());
    }
    let fit = |names: &BTreeSet<String>| names.iter().filter(|name| is_name(name)).cloned().collect::<Vec<_>>();
    let lists =
        CustomLists { enabled: fit(&choice.enabled), disabled: fit(&choice.disabled), ..CustomLists::default() };
    spec.custom_no_upgrade = (!lists.enabled.is_empty() || !lists.disabled.is_empty()).then_some(lists);
    spec
}

/// As the pattern of the definition has it.
fn is_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

fn found_set(spec: &FeatureGateSpec) -> Option<Value> {
    match &spec.unreadable {
        Some(unreadable) => unreadable.found.get("featureSet").cloned(),
        None => spec.feature_set.clone().map(Value::from),
    }
}

fn is_of_another_type(spec: &FeatureGateSpec) -> bool {
    let no_object = spec.unreadable.as_ref().is_some_and(|unreadable| !unreadable.found.is_object());
    no_object || found_set(spec).is_some_and(|set| !set.is_string() && !set.is_null())
}

/// Who looks for the reason why the controller wrote a spec finds what was there before.
fn record(world: &World<'_>, object: &FeatureGate, decided: &Decided) -> Option<Write> {
    let trail = world.audit.as_ref().ok()?;
    let found = decided.wrong.is_some().then(|| found(&object.spec));
    let is_new = |set: &String| trail.entries.last().is_none_or(|last| last.kind != Kind::Refused || last.set != *set);
    let unreadable = found.filter(is_new).map(|set| entry_of(world, object, Kind::Refused, set));
    audit(world, &decided.entry.clone().or(unreadable)?)
}

fn found(spec: &FeatureGateSpec) -> String {
    let whole = || Value::from(spec.clone());
    match found_set(spec).unwrap_or_else(whole) {
        Value::String(set) => set.chars().take(FOUND_MAX).collect(),
        other => other.to_string().chars().take(FOUND_MAX).collect(),
    }
}

fn told(world: &World<'_>, object: &FeatureGate, decided: &Decided) -> Option<Write> {
    let determined = rows::determine(world, object, decided);
    degraded(decided, &determined)?;
    report::report(world, decided, &determined)
}
