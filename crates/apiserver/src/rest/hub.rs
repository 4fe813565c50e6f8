//! Gates where a webhook converts. They are of the version that objects are stored in, so a write through another is taken there,
//! gated, and brought back.

use std::borrow::Cow;

use fieldgate::{Gating, Part, Write};
use serde_json::Value;

use super::{
    Api,
    admit::{Scope, settle},
    views::Views,
};
use crate::{
    field::FieldError,
    object,
    resource::Resource,
    schema::{self, Schema},
    serve::answer::Warnings,
    status::{Result, Status},
};

/// What gates leave of a write.
pub(super) struct Left {
    /// In the version that was written through.
    pub object: Value,
    /// As it will be stored, in the version for that.
    pub kept: Value,
    /// The same if no gate were off.
    pub wanted: Value,
    /// What is wrong with what was sent, and was not held back by a gate but lost on the way.
    pub faults: Vec<FieldError>,
    pub warnings: Vec<fieldgate::Warning>,
}

/// What there was before: as it is stored, in any version, and as the caller could read it.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub raw: &'a Value,
    pub read: &'a Value,
}

/// What is to be written: with defaults, which webhooks may count on, and as it was sent.
#[derive(Clone, Copy)]
pub(super) struct New<'a> {
    pub filled: &'a Value,
    pub sent: &'a Value,
    pub scope: Scope,
}

/// An object of the store in the version that gates are of, without what that has no place for.
fn in_storage_version(resource: &Resource, views: &Views<'_>, object: &Value) -> Option<Value> {
    let mut object = views.must(object, &resource.stored_version)?.into_owned();
    prune(resource, &mut object);
    Some(object)
}

/// The same of what gates look at.
pub(super) fn excerpt(resource: &Resource, gating: &Gating, views: &Views<'_>, object: &Value) -> Option<Value> {
    let mut excerpt = gating.excerpt(views.must(object, &resource.stored_version)?.as_ref());
    prune(resource, &mut excerpt);
    schema::drop_nulls(stored_schema(resource), &mut excerpt);
    Some(excerpt)
}

fn prune(resource: &Resource, object: &mut Value) {
    // Built-in kinds have one form.
    if resource.custom().is_some() {
        schema::prune(stored_schema(resource), object);
    }
}

fn stored_schema(resource: &Resource) -> &Schema {
    resource.stored_schema.as_ref().unwrap_or(&resource.schema)
}

impl Api {
    pub(super) fn gate_at_hub(
        &self,
        resource: &Resource,
        gating: &Gating,
        views: &Views<'_>,
        before: Option<Before<'_>>,
        new: New<'_>,
    ) -> Result<Left> {
        let old = before.map(|before| before.read);
        let judge = |object: &Value| self.faults(resource, new.scope, object, old, &mut Warnings::default());
        let wrong = judge(new.filled);
        if !wrong.is_empty() {
            let name = object::meta(new.filled, "name");
            views.answer_instead(Status::invalid(&resource.kind_name(), name, &wrong));
        }
        let part_of = |object: &Value| excerpt(resource, gating, views, object);
        // All of them first, so that they are converted together.
        let wanted = in_storage_version(resource, views, new.filled);
        let found = (wanted, before.map(|before| (part_of(before.raw), part_of(before.read))));
        views.complete()?;
        let (Some(wanted), sides) = found else { return Err(unsettled()) };
        let (stored, read) = sides.unwrap_or_default();
        let part = Part::Whole;
        let write = Write { stored: stored.as_ref(), read: read.as_ref(), sent: Some(&wanted), part };
        let mut written = gating.write(&write, wanted.clone());
        if !written.warnings.is_empty() && new.sent != new.filled {
            // What defaults brought was sent by nobody. If that cannot be told apart, a warning too many is given.
            let sent = views.may(new.sent, &resource.stored_version);
            views.complete()?;
            if let Some(mut sent) = sent.map(Cow::into_owned) {
                schema::drop_nulls(stored_schema(resource), &mut sent);
                written.warnings = gating.warnings(&Write { sent: Some(&sent), ..write }, &wanted);
            }
        }
        let mut left = Left {
            object: new.filled.clone(),
            kept: written.value,
            wanted,
            faults: Vec::new(),
            warnings: written.warnings,
        };
        if written.changed {
            bring_back(resource, views, &mut left, &wrong, judge)?;
        }
        Ok(left)
    }
}

/// The gated object in the version of the caller. What was wrong with the caller's is excused if it came through the webhook as
/// it was and the gates took it away; what the webhook took away was for nobody to see.
fn bring_back(
    resource: &Resource,
    views: &Views<'_>,
    left: &mut Left,
    wrong: &[FieldError],
    judge: impl Fn(&Value) -> Vec<FieldError>,
) -> Result<()> {
    // As it will be read: with the defaults of the version that is stored.
    let back = |object: &Value| {
        let mut stored = object.clone();
        settle(resource, &mut stored);
        let mut object = views.must(&stored, &resource.api_version())?.into_owned();
        schema::prune(&resource.schema, &mut object);
        Some(object)
    };
    let pair = (back(&left.kept), if wrong.is_empty() { None } else { back(&left.wanted) });
    views.complete()?;
    left.object = pair.0.ok_or_else(unsettled)?;
    views.remember(&left.object, &resource.stored_version, &left.kept);
    if let Some(wanted) = pair.1 {
        let came_through = judge(&judged(resource, &wanted));
        left.faults = wrong.iter().filter(|fault| !came_through.contains(fault)).cloned().collect();
    }
    Ok(())
}

/// An object as its version judges it. Defaults of a version that is not stored are not read, and what gates took away of them is not
/// there; but what they stand in for is not missing.
pub(super) fn judged<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    let mut judged = Cow::Borrowed(object);
    if resource.gated_elsewhere().is_some() {
        schema::fill(&resource.schema, judged.to_mut());
    }
    judged
}

fn unsettled() -> Box<Status> {
    Status::internal("an object was converted and is not there")
}
