//! Who manages what of an object about to be stored: from the request to `metadata.managedFields`.

use std::{borrow::Cow, collections::BTreeSet};

use fieldgate::Gating;
use serde_json::{Value, json};

use super::{Call, admit::Scope, gate::Hub, intent::Intent, views::Views};
use crate::{
    field::FieldError,
    managed::{self, Held, Managers, Reset, Writer},
    object,
    resource::{Resource, Role},
    schema::Nulls,
    serve::metrics::Stopwatch,
    status::{Name, Result, Status},
};

/// The writer of one request, on one resource.
pub(crate) struct Author<'a> {
    pub resource: &'a Resource,
    pub scope: Scope,
    pub views: &'a Views<'a>,
    /// What gates leave of an object, where they are of another version.
    pub elsewhere: Option<&'a dyn Fn(&Value) -> Value>,
    engine: &'a Stopwatch,
    manager: String,
    api_version: String,
    zero: Value,
    now: String,
}

/// Where claims come from.
pub(crate) enum Claims {
    /// Those before the write, which takes what it changes.
    Before(Managers),
    /// Those after an apply.
    After(Managers),
}

impl Claims {
    /// Kinds that Go knows take a null for nothing wherever it comes from.
    pub(crate) fn nulls(&self, resource: &Resource) -> Nulls {
        match self {
            Claims::After(_) if resource.custom().is_some() => Nulls::Keep,
            _ => Nulls::Drop,
        }
    }
}

/// An object before and after a write.
pub(crate) struct Change<'a> {
    /// As it is stored, in whatever version.
    pub raw: Option<&'a Value>,
    pub old: Option<&'a Value>,
    pub hub: Option<&'a Hub>,
    /// As it will be stored, where this version does not show all of it.
    pub kept: Option<&'a Value>,
}

impl<'a> Author<'a> {
    pub(crate) fn new(
        resource: &'a Resource,
        scope: Scope,
        manager: &str,
        views: &'a Views<'a>,
        engine: &'a Stopwatch,
    ) -> Author<'a> {
        let (manager, api_version) = (manager.to_owned(), resource.api_version());
        let zero = zero(resource);
        Author { resource, scope, views, elsewhere: None, engine, manager, api_version, zero, now: object::now() }
    }

    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer {
            types: &self.resource.types,
            api_version: &self.api_version,
            subresource: self.scope.name(),
            manager: &self.manager,
            reset: reset(self.resource, self.scope),
            counts: self.resource.scale.as_ref().filter(|_| self.scope == Scope::Scale).map(|scale| &scale.counts),
            gating: self.resource.gated_here(),
            elsewhere: self.elsewhere,
            views: self.views,
            zero: &self.zero,
            now: &self.now,
        }
    }

    /// The claims a PUT or patch starts from. A part of an object has no say in them.
    pub(crate) fn given(&self, old: Option<&Value>, new: &Value) -> Claims {
        Claims::Before(match (self.scope, old) {
            (Scope::Status | Scope::Scale | Scope::Finalize, Some(old)) => Managers::of(old),
            (Scope::Main, old) | (_, old @ None) => Managers::given(old.unwrap_or(&Value::Null), new),
        })
    }

    /// Writes the claims into `object`, which is as it will be stored but for them.
    pub(crate) fn record(&self, change: &Change<'_>, object: &mut Value, claims: Claims) {
        let old = change.old;
        let entries = match claims {
            Claims::After(managers) => self.frozen(change, managers, object).entries,
            Claims::Before(managers) => {
                // A webhook need not be asked for names of what is held, unless somebody else than the writer has a say in claims.
                let given = self.resource.converter.is_none() || managers != old.map(Managers::of).unwrap_or_default();
                let managers = self.writer().update(old, object, managers);
                let listed = if given { self.frozen(change, managers, object) } else { Listed::of(managers) };
                if listed.managers.is_crowded() { listed.managers.capped().to_json() } else { listed.entries }
            }
        };
        match (unchanged(old, object, &entries), entries.is_empty()) {
            // A time alone is no change.
            (Some(before), _) => object::set(object, "managedFields", before),
            (None, true) => drop(object::meta_mut(object).remove("managedFields")),
            (None, false) => object::set(object, "managedFields", entries),
        }
    }

    /// Claims on fields behind a gate that is off stay as they were.
    fn frozen(&self, change: &Change<'_>, managers: Managers, object: &Value) -> Listed {
        if let Some(hub) = change.hub {
            return Listed::of(self.frozen_at_hub(change, hub, &managers));
        }
        let listed = Listed::of(managers);
        let Some(gating) = self.resource.gated_here() else { return listed };
        self.engine.time(|| frozen_here(gating, change, listed, change.kept.unwrap_or(object)))
    }

    fn frozen_at_hub(&self, change: &Change<'_>, hub: &Hub, managers: &Managers) -> Managers {
        let without = |gating: &Gating| {
            let mut object = hub.kept.clone();
            gating.apply(None, &mut object).then_some(object)
        };
        let without: Vec<Value> = self.resource.held.iter().filter_map(without).collect();
        if without.is_empty() && hub.kept == hub.wanted {
            return managers.clone();
        }
        let held = Held {
            types: &self.resource.types,
            views: self.views,
            live: change.raw,
            kept: &hub.kept,
            wanted: &hub.wanted,
            without,
        };
        held.freeze(&change.old.map(Managers::of).unwrap_or_default(), managers)
    }
}

/// Claims, and the same as entries of an object.
struct Listed {
    managers: Managers,
    entries: Vec<Value>,
}

impl Listed {
    fn of(managers: Managers) -> Listed {
        Listed { entries: managers.to_json(), managers }
    }
}

fn frozen_here(gating: &Gating, change: &Change<'_>, written: Listed, object: &Value) -> Listed {
    let before = change.old.map(|old| object::list(old, "managedFields")).unwrap_or_default();
    let frozen = match gating.freeze_managed_fields(before, &written.entries, object) {
        Ok(Cow::Owned(entries)) => Managers::parse(&entries),
        // Mostly no claim has moved. Claims that cannot be read are left as they are.
        Ok(Cow::Borrowed(_)) | Err(_) => return written,
    };
    // Whoever changed an open field has done so now, whatever became of its claims on others.
    frozen.map(|frozen| frozen.with_times_of(&written.managers)).map_or(written, Listed::of)
}

/// Kubernetes' types have their parts also where nobody has said anything of them.
pub(super) fn zero(resource: &Resource) -> Value {
    match resource.role {
        Role::Custom(_) => Value::Null,
        Role::Definition => json!({"spec": {"names": {}}, "status": {"acceptedNames": {}}}),
        _ => {
            let parts = ["spec", "status"].into_iter().filter(|part| resource.schema.properties.contains_key(*part));
            parts.map(|part| (part.to_owned(), json!({}))).collect::<serde_json::Map<_, _>>().into()
        }
    }
}

/// Gives an object the parts that every one of its kind has. A definition without them is refused.
pub(super) fn complete(resource: &Resource, object: &mut Value) {
    if resource.role == Role::Definition {
        return;
    }
    for (part, empty) in zero(resource).as_object().into_iter().flatten() {
        if object[part].is_null() {
            object[part] = empty.clone();
        }
    }
}

/// What this endpoint does not take from a client, whatever it sends.
fn reset(resource: &Resource, scope: Scope) -> Reset {
    match (scope, &resource.role) {
        (Scope::Status, Role::Namespace) => Reset::Except(&["spec"]),
        (Scope::Status, _) => Reset::Only("status"),
        _ if resource.has_status => Reset::Except(&["status"]),
        _ => Reset::Except(&[]),
    }
}

/// The entries as they were, if the write changes nothing but times.
fn unchanged(old: Option<&Value>, object: &Value, entries: &[Value]) -> Option<Vec<Value>> {
    let strip = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().map(|entry| entry.remove("time"));
        entry.to_string()
    };
    let old = old?;
    let before = object::list(old, "managedFields");
    let texts = |entries: &[Value]| entries.iter().map(strip).collect::<BTreeSet<_>>();
    let same = !before.is_empty()
        && entries.len() == before.len()
        && texts(entries) == texts(before)
        && without_managers(old) == without_managers(object);
    same.then(|| before.to_vec())
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    object::meta_mut(&mut object).remove("managedFields");
    object
}

/// The name of the manager of a create.
pub(super) fn creator(call: &Call) -> Result<String> {
    named(call, "CreateOptions", Vec::new())
}

/// The name of the manager of a PUT, a patch or an apply.
pub(super) fn manager(call: &Call, intent: &Intent) -> Result<String> {
    match intent {
        Intent::Replace(_) => updater(call),
        Intent::Patch(_) => patcher(call),
        Intent::Apply(_) => {
            let missing = call.query.get("fieldManager").is_none();
            let missing = missing.then(|| FieldError::required("fieldManager", "is required for apply patch"));
            named(call, "PatchOptions", missing.into_iter().collect())
        }
    }
}

pub(super) fn updater(call: &Call) -> Result<String> {
    named(call, "UpdateOptions", Vec::new())
}

pub(crate) fn patcher(call: &Call) -> Result<String> {
    let force = call.query.choice("force");
    let force = force.map(|_| FieldError::forbidden("force", "may not be specified for non-apply patch"));
    named(call, "PatchOptions", force.into_iter().collect())
}

fn named(call: &Call, options: &str, mut errors: Vec<FieldError>) -> Result<String> {
    let given = call.query.get("fieldManager");
    errors.extend(given.into_iter().flat_map(managed::check_name));
    errors.extend(call.query.write_faults());
    if !errors.is_empty() {
        return Err(Status::invalid(&Name::new("meta.k8s.io", options), "", &errors));
    }
    let agent = call.headers.get(http::header::USER_AGENT).and_then(|value| value.to_str().ok());
    Ok(given.map_or_else(|| managed::from_user_agent(agent.unwrap_or_default()), str::to_owned))
}
