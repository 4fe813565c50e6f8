//! Gates in the way of a write: what a disabled gate guards stays as it is stored.

use std::borrow::Cow;

use fieldgate::{Gating, Part, Path, Write};
use serde_json::{Map, Value};

use super::{
    Api,
    admit::Scope,
    hub::{self, Before, New},
    versions,
    views::Views,
};
use crate::{
    field::FieldError,
    resource::Resource,
    schema::{self, Filled},
    serve::answer::Warnings,
    status::Result,
};

/// What gates compare.
pub(super) struct Sides<'a> {
    /// None for a create.
    pub raw: Option<Raw<'a>>,
    /// What the caller could read; for a create what defaults alone bring.
    pub read: &'a Value,
    /// What it sent, before defaults; none if that is what is to be written. Where gates are of this version it need not have more
    /// than they look at.
    pub sent: Option<&'a Value>,
}

/// An object as it is stored.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    /// In whatever version.
    pub object: &'a Value,
    /// Whether it is known to have the names of the storage version, and no fields or nulls that this does not take.
    pub pruned: bool,
}

/// What gates have made of a write.
pub(super) struct Gated {
    pub object: Value,
    /// In the version that is stored, where a webhook converts and a gate is off.
    pub hub: Option<Hub>,
    /// As it will be stored, where gates have held fields that the caller's version does not have.
    pub kept: Option<Value>,
    /// Faults of what was sent that are not excused by a gate.
    pub faults: Vec<FieldError>,
}

impl Gated {
    fn untouched(object: Value) -> Gated {
        Gated { object, hub: None, kept: None, faults: Vec::new() }
    }
}

pub(crate) struct Hub {
    /// As it will be stored.
    pub kept: Value,
    /// The same if no gate were off.
    pub wanted: Value,
}

impl Hub {
    /// What is to be stored, where that is another version than the caller's.
    pub(crate) fn kept(resource: &Resource, hub: Option<Hub>) -> Option<Value> {
        hub.filter(|_| resource.gated_elsewhere().is_some()).map(|hub| hub.kept)
    }
}

impl Api {
    /// The write step of gates: what a disabled gate guards stays as it is stored.
    pub(super) fn gate(
        &self,
        resource: &Resource,
        views: &Views<'_>,
        sides: &Sides<'_>,
        new: Value,
        scope: Scope,
        warnings: &mut Warnings,
    ) -> Result<Gated> {
        if resource.gated_here().is_none() && resource.gated_elsewhere().is_none() {
            return Ok(Gated::untouched(new));
        }
        self.metrics.gating.time(|| self.evaluate(resource, views, sides, new, scope, warnings))
    }

    fn evaluate(
        &self,
        resource: &Resource,
        views: &Views<'_>,
        sides: &Sides<'_>,
        new: Value,
        scope: Scope,
        warnings: &mut Warnings,
    ) -> Result<Gated> {
        if let Some(gating) = resource.gated_elsewhere() {
            let before = sides.raw.map(|raw| Before { raw: raw.object, read: sides.read });
            let left = self.gate_at_hub(
                resource,
                gating,
                views,
                before,
                New { filled: &new, sent: sides.sent.unwrap_or(&new), scope },
            )?;
            warn(&left.warnings, warnings);
            let hub = Some(Hub { kept: left.kept, wanted: left.wanted });
            return Ok(Gated { object: left.object, hub, kept: None, faults: left.faults });
        }
        let Some(gating) = resource.gated_here() else { return Ok(Gated::untouched(new)) };
        let stored = sides.raw.and_then(|raw| {
            if raw.pruned {
                Some(Cow::Borrowed(raw.object))
            } else {
                hub::excerpt(resource, gating, views, raw.object).map(Cow::Owned)
            }
        });
        views.complete()?;
        let part = part(resource, scope);
        let write = Write { stored: stored.as_deref(), read: Some(sides.read), sent: sides.sent, part };
        let wanted = resource.converter.as_ref().map(|_| new.clone());
        let written = gating.write(&write, new);
        warn(&written.warnings, warnings);
        let hub = wanted.map(|wanted| Hub { kept: written.value.clone(), wanted });
        let mut object = written.value;
        let kept = versions::hide(resource, &mut object);
        Ok(Gated { object, hub, kept, faults: Vec::new() })
    }

    /// What gates have to know of an object that was sent, where that is another than the one that defaults are filled into.
    pub(super) fn sent(&self, resource: &Resource, object: &Value) -> Value {
        let gating = resource.gated_here();
        let excerpt = |gating: &Gating| {
            let mut sent = gating.excerpt(object);
            schema::drop_nulls(&resource.schema, &mut sent);
            sent
        };
        gating.map_or(Value::Null, |gating| self.metrics.gating.time(|| excerpt(gating)))
    }

    /// The same of an object that defaults have been filled into; none if there was nothing to fill in.
    pub(super) fn unfilled(&self, resource: &Resource, object: &Value, filled: &[Filled]) -> Option<Value> {
        let gating = resource.gated_here().filter(|_| !filled.is_empty())?;
        Some(self.metrics.gating.time(|| {
            let mut sent = gating.excerpt(object);
            schema::unfill(&mut sent, filled);
            sent
        }))
    }

    /// What could be read before a create: what defaults alone bring, as far as gates look at it.
    pub(super) fn unsent(&self, resource: &Resource, sent: Option<&Value>, filled: &Value) -> Value {
        let Some((gating, sent)) = resource.gated_here().zip(sent) else { return Value::Null };
        self.metrics.gating.time(|| only_defaults(sent, &gating.excerpt(filled)))
    }

    /// Says what is to be said of a write that is done, and counts what gates have held back of it.
    pub(super) fn say(&self, resource: &Resource, op: &str, said: Warnings, warnings: &mut Warnings) {
        if let Some(custom) = resource.custom() {
            for gate in said.suppressed() {
                self.metrics.suppressed.with_label_values(&[custom.definition.as_str(), gate, op]).inc();
            }
        }
        said.texts().iter().for_each(|text| warnings.add(text));
    }
}

/// The part of an object that a write is about.
fn part(resource: &Resource, scope: Scope) -> Part {
    let replicas = || resource.scale.as_ref().and_then(|scale| scale.spec_replicas.text.parse().ok());
    match (scope, ".status".parse::<Path>()) {
        (Scope::Scale, _) => replicas().map_or(Part::Whole, Part::Only),
        (Scope::Status, Ok(status)) => Part::Only(status),
        (Scope::Main, Ok(status)) if resource.has_status => Part::AllBut(status),
        _ => Part::Whole,
    }
}

/// What is in `filled` and not in `sent`, so by a default. What was sent and got no default is not there at all.
fn only_defaults(sent: &Value, filled: &Value) -> Value {
    let (Value::Object(sent), Value::Object(filled)) = (sent, filled) else { return Value::Null };
    let own = filled.iter().filter_map(|(key, value)| match sent.get(key) {
        None => Some((key.clone(), value.clone())),
        Some(given) => Some((key.clone(), only_defaults(given, value))).filter(|(_, brought)| !brought.is_null()),
    });
    let own: Map<String, Value> = own.collect();
    if own.is_empty() { Value::Null } else { Value::Object(own) }
}

fn warn(found: &[fieldgate::Warning], warnings: &mut Warnings) {
    for warning in found {
        warnings.add(warning.to_string());
        if warning.kind.is_suppression() {
            warnings.suppress(&warning.gate);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({}), json!({"a": 1}) => json!({"a": 1}); "a default")]
    #[test_case(json!({"a": null}), json!({"a": null}) => json!(null); "a null that was sent is no default")]
    #[test_case(json!({"a": {}}), json!({"a": {"b": 1}}) => json!({"a": {"b": 1}}); "within what was sent")]
    #[test_case(json!({"a": {}}), json!({"a": {}}) => json!(null); "what was sent is not a default, however empty")]
    #[test_case(json!({"a": [{}]}), json!({"a": [{"b": 1}]}) => json!(null); "items are whose the list is")]
    fn defaults_alone(sent: Value, filled: Value) -> Value {
        only_defaults(&sent, &filled)
    }
}
