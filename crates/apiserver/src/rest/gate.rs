//! Gates in the way of a write: what a disabled gate guards stays as it is stored.

use fieldgate::{Part, Path, Write};
use serde_json::Value;

use super::{
    Api,
    admit::Scope,
    hub::{self, Before, New},
    views::Views,
};
use crate::{field::FieldError, resource::Resource, serve::answer::Warnings, status::Result};

/// What gates compare.
pub struct Sides<'a> {
    /// As it is stored, in whatever version; none for a create.
    pub raw: Option<&'a Value>,
    /// What the caller could read; for a create what defaults alone bring.
    pub read: &'a Value,
    /// What it sent, before defaults.
    pub sent: &'a Value,
}

/// What gates have made of a write.
pub struct Gated {
    pub object: Value,
    /// In the version that is stored, where a webhook converts and a gate is off.
    pub hub: Option<Hub>,
    /// Faults of what was sent that are not excused by a gate.
    pub faults: Vec<FieldError>,
}

pub struct Hub {
    /// As it will be stored.
    pub kept: Value,
    /// The same if no gate were off.
    pub wanted: Value,
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
            return Ok(Gated { object: new, hub: None, faults: Vec::new() });
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
            let before = sides.raw.map(|raw| Before { raw, read: sides.read });
            let left = self.gate_at_hub(resource, gating, views, before, New { filled: &new, sent: sides.sent })?;
            warn(&left.warnings, warnings);
            let hub = Some(Hub { kept: left.kept, wanted: left.wanted });
            return Ok(Gated { object: left.object, hub, faults: left.faults });
        }
        let Some(gating) = resource.gated_here() else {
            return Ok(Gated { object: new, hub: None, faults: Vec::new() });
        };
        let stored = sides.raw.and_then(|raw| hub::in_storage_version(resource, views, raw));
        views.complete()?;
        let part = part(resource, scope);
        let write = Write { stored: stored.as_ref(), read: Some(sides.read), sent: Some(sides.sent), part };
        let wanted = resource.converter.as_ref().map(|_| new.clone());
        let written = gating.write(&write, new);
        warn(&written.warnings, warnings);
        let hub = wanted.map(|wanted| Hub { kept: written.value.clone(), wanted });
        Ok(Gated { object: written.value, hub, faults: Vec::new() })
    }

    /// Says what is to be said of a write that is done, and counts what gates have held back of it.
    pub(super) fn say(&self, resource: &Resource, op: &str, said: Warnings, warnings: &mut Warnings) {
        if let Some(custom) = resource.custom() {
            for gate in said.suppressed() {
                self.metrics.suppressed.with_label_values(&[custom.definition.as_str(), gate, op]).inc();
            }
        }
        *warnings = said;
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

fn warn(found: &[fieldgate::Warning], warnings: &mut Warnings) {
    for warning in found {
        warnings.add(warning.to_string());
        if warning.kind.is_suppression() {
            warnings.suppress(&warning.gate);
        }
    }
}
