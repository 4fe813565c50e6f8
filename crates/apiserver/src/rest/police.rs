//! Asks the admission policies about a write that is otherwise good.

use serde_json::{Value, json};

use super::{Api, Call};
use crate::{
    admission::{self, Attributes, Input, Verdict},
    resource::{Resource, Role},
    serve::answer::Warnings,
    status::{Result, Status},
    store::{self, Guard},
};

impl Api {
    /// Refuses what a policy refuses. The guard keeps the write from slipping past a policy that this server has not seen yet.
    /// Policies are not judged by policies, so that a bad one can always be taken away.
    pub(super) async fn police(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
        old: &Value,
        warnings: &mut Warnings,
    ) -> Result<Option<Guard>> {
        let resource = attributes.resource;
        if matches!(resource.role, Role::Policy | Role::Binding) {
            return Ok(None);
        }
        let policies = self.policies.borrow().clone();
        let guard = Guard::NothingAfter { prefix: admission::keeper::prefix(), revision: policies.revision };
        let versions = self.catalog.borrow().versions(resource);
        let names: Vec<String> = versions.iter().map(|resource| resource.version.clone()).collect();
        let place = attributes.place();
        let concerned = policies.concerned(&place, &names);
        if concerned.is_empty() {
            return Ok(Some(guard));
        }
        let namespace = self.namespace_of(attributes).await?;
        let mut verdict = Verdict::default();
        for concerned in &concerned {
            let wanted = versions.iter().find(|resource| resource.version == concerned.version);
            let wanted = wanted.map_or(resource, AsRef::as_ref);
            let object = self.in_version(attributes, object, wanted).await?;
            let old = self.in_version(attributes, old, wanted).await?;
            let request = attributes.request(&concerned.version);
            let input = Input { object: &object, old: &old, request: &request, namespace: &namespace };
            concerned.judge(&place, &input, &mut verdict);
        }
        verdict.warnings.iter().for_each(|text| warnings.add(text));
        match verdict.denials.first() {
            Some(denial) => Err(Status::denied(&resource.name(), attributes.name, denial)),
            None => Ok(Some(guard)),
        }
    }

    /// The namespace a request is in; null if it is in none.
    async fn namespace_of(&self, attributes: &Attributes<'_>) -> Result<Value> {
        if attributes.namespace.is_empty() || attributes.resource.role == Role::Namespace {
            return Ok(Value::Null);
        }
        let key = format!("{}{}", store::prefix("", "namespaces"), attributes.namespace);
        match self.store.get(&key).await? {
            Some(entry) => super::stored(attributes.resource, &entry),
            None => Ok(Value::Null),
        }
    }

    /// An object in the version whose rules were met. A scale is the same in all.
    async fn in_version(&self, attributes: &Attributes<'_>, object: &Value, wanted: &Resource) -> Result<Value> {
        let version = wanted.api_version();
        if object.is_null() || attributes.subresource == "scale" || object["apiVersion"] == version.as_str() {
            return Ok(object.clone());
        }
        let mut shown = self.shown(wanted, object.clone()).await?;
        shown["apiVersion"] = version.into();
        Ok(shown)
    }
}

/// The options of a call in the form that expressions see.
pub(super) fn options(call: &Call, kind: &str) -> Value {
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    for key in ["fieldManager", "fieldValidation"] {
        if let Some(value) = call.query.get(key) {
            options[key] = value.into();
        }
    }
    if let Some(value) = call.query.get("dryRun") {
        options["dryRun"] = json!([value]);
    }
    options
}
