//! Applying a configuration: what it says is laid over the object, and what it no longer says goes, if nobody else wants it.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use super::{
    check::check,
    conflict::Conflicts,
    last_applied,
    managers::{Claim, Managers, Operation},
    merge::merge,
    node::Node,
    own::fields,
    remove::{empty, remove},
    set::Set,
    value,
    writer::{Writer, bare, release, stripped, taken},
};

/// kubectl's applies on the client left no word of which fields they were about but an annotation, which is heeded for
/// its applies on the server.
const KUBECTL: &str = "kubectl";
/// Who has all fields of an object that nobody has kept track of.
const BEFORE: &str = "before-first-apply";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Applied {
    /// Without managedFields.
    pub object: Value,
    /// The same if no gate were off; none if none is.
    pub wanted: Option<Value>,
    pub managers: Managers,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplyError {
    /// The configuration does not fit its type.
    Typed(String),
    Merge(String),
    Conflicts(Conflicts),
}

impl Writer<'_> {
    /// `live` is none if there is no object yet.
    pub(crate) fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        managers: Managers,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let node = self.types.get(self.api_version).unwrap_or(&Node::Guessed);
        let allowed = self.allowed(config);
        check(node, &allowed).map_err(ApplyError::Typed)?;
        let empty = json!({"apiVersion": config["apiVersion"], "kind": config["kind"]});
        let old = live.map_or_else(|| empty.clone(), bare);
        let managers = match live {
            Some(_) if managers.is_empty() => self.update_by(BEFORE, &self.nothing(), &old, managers),
            _ => managers,
        };
        let mut done = self.apply_to(node, &old, config, managers.clone(), force);
        if let (Err(ApplyError::Conflicts(conflicts)), KUBECTL) = (&done, self.manager)
            && let Some(allowed) = last_applied::unchanged(node, &old, self.api_version)
        {
            done = match conflicts.beyond(&allowed) {
                Some(left) => Err(ApplyError::Conflicts(left)),
                None => self.apply_to(node, &old, config, managers, true),
            };
        }
        let mut applied = done?;
        if self.manager == KUBECTL {
            last_applied::sync(&mut applied.object, config);
            applied.wanted.iter_mut().for_each(|wanted| last_applied::sync(wanted, config));
        }
        Ok(applied)
    }

    fn apply_to(
        &self,
        node: &Node,
        live: &Value,
        config: &Value,
        managers: Managers,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let mut managers = self.reconciled(managers);
        let mut own = self.claim(self.manager, Operation::Apply, self.unfrozen(fields(node, config)));
        let id = own.id();
        let last = managers.claims.get(&id).cloned();
        own.time = last.as_ref().and_then(|last| last.time.clone());
        own.set = self.emptied(node, live, config, last.as_ref()).union(&own.set);
        managers.put(own);
        let (object, wanted) =
            self.laid_over(node, live, config, |merged| self.prune(merged, &managers, last.as_ref()))?;
        let changes = self.changes(live, &object, &managers);
        let taken = taken(&managers, &changes, &id);
        if !force && !taken.is_empty() {
            return Err(ApplyError::Conflicts(Conflicts::new(&taken)));
        }
        release(&mut managers, &changes, Some(&id));
        if let Some(own) = managers.claims.get_mut(&id) {
            own.set = stripped(&own.set);
            if !value::same(live, &object) {
                own.time = self.time(own.time.take());
            }
        }
        managers.claims.retain(|_, claim| !claim.set.is_empty());
        Ok(Applied { object, wanted, managers })
    }

    /// The object that is wished for, and the one that gates leave of it.
    fn laid_over(
        &self,
        node: &Node,
        live: &Value,
        config: &Value,
        prune: impl Fn(Value) -> Value,
    ) -> Result<(Value, Option<Value>), ApplyError> {
        let lay = |config: &Value| {
            let pruned = prune(merge(node, live, config)?);
            // An empty map or list that is applied is to be there when all that was in it has gone. Kubernetes brings it with
            // the next apply of the same, which would be a write that nobody wanted.
            merge(node, &pruned, config)
        };
        let wanted = match self.gating.filter(|_| check(node, config).is_err()) {
            None => lay(config),
            // What is behind a gate that is off need not fit; it is wished for all the same.
            Some(gating) => lay(&self.allowed(config)).map(|mut wanted| {
                gating.lay_over(config, &mut wanted);
                wanted
            }),
        };
        let wanted = wanted.map_err(ApplyError::Merge)?;
        let object = match (self.gating, self.elsewhere) {
            (Some(gating), _) => {
                let mut object = wanted.clone();
                gating.apply(Some(live), &mut object);
                object
            }
            (None, Some(leave)) => leave(&wanted),
            (None, None) => return Ok((wanted, None)),
        };
        Ok((object, Some(wanted)))
    }

    /// A configuration without what gates keep out.
    fn allowed(&self, config: &Value) -> Value {
        let mut allowed = config.clone();
        self.gating.map(|gating| gating.apply(None, &mut allowed));
        allowed
    }

    /// Of these fields those that this write can own.
    fn unfrozen(&self, set: Set) -> Set {
        let open = self.gating.and_then(|gating| Set::parse(&gating.unfrozen(&set.to_json()).ok()?).ok());
        self.reset.filter(open.unwrap_or(set))
    }

    /// Fields of which gates leave nothing but themselves, as far as this manager makes them or has done so. Nobody else has them, so
    /// they must be its own to go when it no longer applies them.
    fn emptied(&self, node: &Node, live: &Value, config: &Value, last: Option<&Claim>) -> Set {
        if self.gating.is_none() {
            return Set::default();
        }
        let left = self.reset.filter(fields(node, &self.allowed(config)).difference(&fields(node, config)));
        let made = left.difference(&fields(node, live).with_named(Some(node)));
        last.map_or(made.clone(), |last| left.intersection(&last.set).union(&made))
    }

    /// Without what this manager applied last time and nobody claims now.
    fn prune(&self, merged: Value, managers: &Managers, last: Option<&Claim>) -> Value {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return merged };
        let pruned = self.pruned(&merged, managers, last);
        pruned.unwrap_or(merged)
    }

    /// None if the object cannot be seen in a version that somebody has fields in.
    fn pruned(&self, merged: &Value, managers: &Managers, last: &Claim) -> Option<Value> {
        let node = self.types.get(&last.api_version)?;
        let merged = self.views.view(merged, &last.api_version)?;
        let mut pruned = remove(node, &merged, &last.set.with_named(Some(node)));
        for (version, claimed) in claimed(managers, &last.api_version) {
            let Some(node) = self.types.get(version) else { continue };
            let named = |set: &Set| set.with_named(Some(node));
            let pair = (self.views.view(&merged, version), self.views.view(&pruned, version));
            let (whole, part) = (pair.0?, pair.1?);
            let kept = named(&fields(node, &part)).union(&named(&claimed));
            pruned = remove(node, &whole, &named(&fields(node, &whole)).difference(&kept));
        }
        // What was below a field that goes and was never this manager's stays.
        let named = |set: &Set| set.with_named(Some(node));
        let pruned = self.views.view(&pruned, &last.api_version)?;
        let gone = named(&fields(node, &merged)).difference(&named(&fields(node, &pruned)));
        let left = empty(node, &merged, &gone.intersection(&named(&last.set)));
        self.views.view(&left, self.api_version).map(Cow::into_owned)
    }
}

/// All claims, by version, with the one of the last apply first.
fn claimed<'a>(managers: &'a Managers, first: &'a str) -> Vec<(&'a str, Set)> {
    let mut by: BTreeMap<(bool, &str), Set> = BTreeMap::new();
    for claim in managers.claims.values() {
        let set = by.entry((claim.api_version != first, &claim.api_version)).or_default();
        *set = std::mem::take(set).union(&claim.set);
    }
    by.into_iter().map(|((_, version), set)| (version, set)).collect()
}
