//! `/scale`: the count of an object under a form that is the same for all kinds, for those who scale without knowing them.

use serde_json::{Value, json};

use super::{
    Call,
    admit::{self, Scope},
    own::Author,
    present,
    update::{Candidate, Intent},
};
use crate::{
    object,
    resource::Resource,
    route::Target,
    scale::{self, Scale},
    status::{Result, Status},
};

/// An object in the form of the part that was read or written.
pub fn part(resource: &Resource, scope: Scope, object: Value, call: &Call) -> Result<Value> {
    match scope {
        Scope::Scale => present::shown(&scale::columns(), of(resource)?.of(&object)?, call),
        _ => present::one(resource, object, call),
    }
}

/// An object as policies see it: the part that is written, where that has a form of its own.
pub fn seen(resource: &Resource, scope: Scope, object: &Value) -> Result<Value> {
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
    pub fn rescaled(&self, intent: &Intent, target: &Target, old: &Value) -> Result<Candidate> {
        let scale = of(self.resource)?;
        let wanted = match intent {
            Intent::Replace(decoded) => in_place(decoded.value.clone(), target)?,
            Intent::Patch(patch) => in_place(patch.apply(&scale.draft(old))?, target)?,
            Intent::Apply(apply) => {
                let mut config = json!({"apiVersion": self.resource.api_version(), "kind": self.resource.kind});
                let wanted = in_place(apply.decoded.value.clone(), target)?;
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
        let count = json!({"spec": {"replicas": wanted["spec"].get("replicas").unwrap_or(&json!(0))}});
        scale.set(&mut object, &count)?;
        Ok(Candidate { claims: self.given(Some(old), &object), object, wanted: None })
    }
}

fn in_place(mut scale: Value, target: &Target) -> Result<Value> {
    object::check_form(&scale, scale::API_VERSION, scale::KIND)?;
    admit::check_name(&mut scale, target.namespace.as_deref(), target.name.as_deref())?;
    Ok(scale)
}
