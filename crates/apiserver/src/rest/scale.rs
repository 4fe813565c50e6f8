//! `/scale`: the count of an object under a form that is the same for all kinds, for those who scale without knowing them.

use serde_json::{Value, json};

use super::{
    Call,
    admit::{self, Scope},
    intent::{Candidate, Intent},
    own::Author,
    present,
};
use crate::{
    form::{self, Kind},
    managed, object,
    resource::Resource,
    route::Target,
    scale::{self, Scale},
    status::{Result, Status},
};

/// An object in the form of the part that was read.
pub(super) fn part(resource: &Resource, scope: Scope, object: Value, call: &Call) -> Result<Value> {
    match scope {
        Scope::Scale => present::shown(&scale::columns(), printed(of(resource)?.of(&object)?), call),
        _ => present::one(resource, object, call),
    }
}

/// The same of one that was written. A gate may have kept a first count out, and then the write was good and there is none.
pub(super) fn written(resource: &Resource, scope: Scope, object: Value, call: &Call) -> Result<Value> {
    match scope {
        Scope::Scale => present::shown(&scale::columns(), printed(of(resource)?.draft(&object)), call),
        _ => part(resource, scope, object, call),
    }
}

/// As Kubernetes prints it: a wish for none is left out.
fn printed(mut scale: Value) -> Value {
    if scale["spec"]["replicas"] == 0 {
        scale["spec"] = json!({});
    }
    scale
}

/// An object as policies see it: the part that is written, where that has a form of its own.
pub(super) fn seen(resource: &Resource, scope: Scope, object: &Value) -> Result<Value> {
    match scope {
        Scope::Scale => Ok(of(resource)?.draft(object)),
        _ => Ok(object.clone()),
    }
}

fn of(resource: &Resource) -> Result<&Scale> {
    resource.scale.as_ref().ok_or_else(Status::unknown_resource)
}

impl Author<'_> {
    /// The object that a write of its scale wants.
    pub(crate) fn rescaled(&self, intent: &Intent, target: &Target, old: &Value) -> Result<Candidate> {
        let scale = of(self.resource)?;
        let wanted = match intent {
            Intent::Replace(decoded) => decoded.value.clone(),
            Intent::Patch(patch) => {
                let made = intent.patched(patch, self.resource, target, Scope::Scale, &scale.unsaid(old))?;
                scale.check_said(&made)?;
                made
            }
            Intent::Apply(apply) => {
                let mut config = json!({"apiVersion": self.resource.api_version(), "kind": self.resource.kind});
                let wanted = in_place(apply.decoded.value.clone(), target)?;
                check_fields(&wanted)?;
                for key in ["name", "namespace", "uid", "resourceVersion"] {
                    object::keep(&mut config, key, &wanted);
                }
                scale.set(&mut config, &wanted)?;
                return self.applied(old, &config, apply);
            }
        };
        let mut object = old.clone();
        for key in ["uid", "resourceVersion"].into_iter().filter(|key| !object::meta(&wanted, key).is_empty()) {
            object::keep(&mut object, key, &wanted);
        }
        let count = json!({"spec": {"replicas": wanted["spec"]["replicas"].as_i64().unwrap_or_default()}});
        scale.set(&mut object, &count)?;
        Ok(Candidate { claims: self.given(Some(old), &object), object, wanted: None })
    }
}

/// A scale to apply must be one, and may have no field that a scale has not, whatever is to become of such fields elsewhere.
fn check_fields(scale: &Value) -> Result<()> {
    let Err(why) = managed::check(&scale::TYPE, scale) else { return Ok(()) };
    let (namespace, name) = (object::meta(scale, "namespace"), object::meta(scale, "name"));
    let kind = format!("{}, Kind={}", scale::API_VERSION, scale::KIND);
    Err(Status::bad_request(format!("failed to create typed patch object ({namespace}/{name}; {kind}): {why}")))
}

/// A scale to apply.
fn in_place(mut scale: Value, target: &Target) -> Result<Value> {
    form::check_applied(&scale, &Kind { api_version: scale::API_VERSION, kind: scale::KIND, typed: true })?;
    // What is there has a name, and a configuration for it need not repeat it.
    if object::meta(&scale, "name").is_empty() {
        object::set(&mut scale, "name", target.name.as_deref().unwrap_or_default());
    }
    admit::check_place(&mut scale, target.namespace.as_deref(), target.name.as_deref())?;
    Ok(scale)
}
