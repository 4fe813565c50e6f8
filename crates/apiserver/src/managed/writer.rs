//! One write, by one manager, through one version: whose the fields are afterwards.

use std::collections::{BTreeMap, BTreeSet};

use fieldgate::Gating;
use serde_json::Value;

use super::{
    compare::{Comparison, compare},
    managers::{Claim, Managers, Operation},
    node::Types,
    reconcile::reconcile,
    set::Set,
    views::Views,
};
use crate::scale::Counts;

/// What a write through this endpoint cannot change, so does not own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// These fields and all below them.
    Except(&'static [&'static str]),
    /// All but this field.
    Only(&'static str),
}

impl Reset {
    pub(super) fn filter(&self, set: Set) -> Set {
        match self {
            Reset::Except([]) => set,
            Reset::Except(fields) => {
                let paths: Vec<&[&str]> = fields.iter().map(std::slice::from_ref).collect();
                set.without(&Set::of(&paths))
            }
            Reset::Only(field) => set.only(field),
        }
    }
}

/// Who nobody named.
const UNKNOWN: &str = "unknown";
/// What the server decides, so nobody owns.
const SERVERS: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

pub(crate) struct Writer<'a> {
    pub types: &'a Types,
    pub api_version: &'a str,
    pub subresource: &'a str,
    pub manager: &'a str,
    pub reset: Reset,
    /// Where the count lies in each version, for those who write nothing else.
    pub counts: Option<&'a Counts>,
    /// Gates of which one or more are off: what is behind those stays as it is, with its owners.
    pub gating: Option<&'a Gating>,
    /// What gates leave of an object, where they speak of fields by the names of another version.
    pub elsewhere: Option<&'a dyn Fn(&Value) -> Value>,
    pub views: &'a dyn Views,
    /// What an object has that nobody wrote: the parts that are there in every object of a kind with a type.
    pub zero: &'a Value,
    /// The time, as in metadata.
    pub now: &'a str,
}

impl Writer<'_> {
    /// Whose the fields are after a create, a PUT or a patch made `new` of `live`. An object that nobody has kept track of
    /// is not tracked from the middle of its life on, until somebody applies.
    pub(crate) fn update(&self, live: Option<&Value>, new: &Value, managers: Managers) -> Managers {
        match live {
            Some(_) if managers.is_empty() => managers,
            Some(live) => self.update_by(self.manager, live, new, managers),
            None => self.update_by(self.manager, &self.nothing(), new, managers),
        }
    }

    pub(super) fn update_by(&self, manager: &str, live: &Value, new: &Value, managers: Managers) -> Managers {
        let mut managers = self.reconciled(managers);
        let mut changes = self.changes(&bare(live), &bare(new), &managers);
        release(&mut managers, &changes, None);
        let Some(own) = changes.remove(self.api_version) else { return managers };
        let set = stripped(&own.modified.union(&own.added));
        if !set.is_empty() {
            let claim = self.claim(manager, Operation::Update, Set::default());
            let claim = managers.claims.entry(claim.id()).or_insert(claim);
            claim.set = std::mem::take(&mut claim.set).union(&set);
            claim.time = self.time(claim.time.take());
        }
        managers
    }

    /// When a claim that was made before is made again. What is claimed through a scale has no time, as in Kubernetes: it comes first.
    pub(super) fn time(&self, before: Option<String>) -> Option<String> {
        if self.counts.is_some() { before } else { Some(self.now.to_owned()) }
    }

    /// A new object as it was before anyone wrote to it.
    pub(super) fn nothing(&self) -> Value {
        let mut nothing = self.zero.clone();
        nothing["apiVersion"] = self.api_version.into();
        nothing
    }

    pub(super) fn claim(&self, manager: &str, operation: Operation, set: Set) -> Claim {
        let manager = if manager.is_empty() { UNKNOWN } else { manager }.to_owned();
        let (subresource, api_version) = (self.subresource.to_owned(), self.api_version.to_owned());
        Claim { manager, operation, subresource, api_version, time: None, set }
    }

    /// Managers by today's schema. Those of versions that are gone are forgotten, as nothing can be said of their fields.
    pub(super) fn reconciled(&self, managers: Managers) -> Managers {
        let claims = managers.claims.into_iter().filter_map(|(id, mut claim)| {
            claim.set = reconcile(self.types.get(&claim.api_version)?, &claim.set);
            Some((id, claim))
        });
        Managers { claims: claims.collect() }
    }

    /// What has changed, as each version in which somebody has fields sees it. Versions of which nothing can be said are left
    /// out, and claims in them stay.
    pub(super) fn changes(&self, live: &Value, new: &Value, managers: &Managers) -> Changes {
        let versions = managers.claims.values().map(|claim| claim.api_version.as_str());
        let versions: BTreeSet<&str> = versions.chain([self.api_version]).collect();
        let change = |version: &str| {
            let node = self.types.get(version)?;
            let found = if version == self.api_version {
                compare(node, live, new)
            } else {
                // Both are asked for, so that they can be converted together.
                let pair = (self.views.view(live, version), self.views.view(new, version));
                compare(node, pair.0?.as_ref(), pair.1?.as_ref())
            };
            Some((version.to_owned(), found.map(|set| self.reset.filter(set))))
        };
        let mut changes = versions.into_iter().filter_map(change).collect();
        self.count_everywhere(&mut changes);
        changes
    }

    /// A count is one and the same in all versions, so that who has it in any has lost it, whatever is written there.
    fn count_everywhere(&self, changes: &mut Changes) {
        let count = |version: &str| {
            let names: Vec<&str> = self.counts?.get(version)?.iter().map(String::as_str).collect();
            Some(Set::of(&[&names]))
        };
        let own = changes.get(self.api_version).map(|own| own.modified.clone().union(&own.added));
        let own = own.zip(count(self.api_version)).map(|(changed, count)| changed.intersection(&count));
        if own.is_none_or(|own| own.is_empty()) {
            return;
        }
        for (version, change) in changes.iter_mut().filter(|(version, _)| *version != self.api_version) {
            if let Some(count) = count(version) {
                change.modified = std::mem::take(&mut change.modified).union(&count);
            }
        }
    }
}

/// By version.
pub(super) type Changes = BTreeMap<String, Comparison>;

/// Takes from all managers but one what a write has changed.
pub(super) fn release(managers: &mut Managers, changes: &Changes, except: Option<&str>) {
    for (id, claim) in managers.claims.iter_mut().filter(|(id, _)| Some(id.as_str()) != except) {
        match changes.get(&claim.api_version) {
            Some(change) => {
                let set = claim.set.difference(&change.modified).difference(&change.added);
                claim.set = set.difference(&change.removed);
            }
            None => tracing::debug!(id, "a manager of a version that the object cannot be seen in"),
        }
    }
    managers.claims.retain(|_, claim| !claim.set.is_empty());
}

/// What of the fields of others a write changes.
pub(super) fn taken(managers: &Managers, changes: &Changes, except: &str) -> BTreeMap<String, (Claim, Set)> {
    let others = managers.claims.iter().filter(|(id, _)| *id != except);
    let taken = others.filter_map(|(id, claim)| {
        let change = changes.get(&claim.api_version)?;
        let set = claim.set.intersection(&change.modified.clone().union(&change.added));
        (!set.is_empty()).then(|| (id.clone(), (claim.clone(), set)))
    });
    taken.collect()
}

/// Without what the server decides.
pub(super) fn stripped(set: &Set) -> Set {
    set.difference(&Set::of(SERVERS))
}

/// The object without word of its managers.
pub(super) fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object.get_mut("metadata").and_then(Value::as_object_mut).map(|metadata| metadata.remove("managedFields"));
    object
}
