//! What a client wants an object to become: a whole new one, a patch of it, or a configuration that is applied to it.

use serde_json::Value;

use super::{
    Call,
    admit::{self, Scope},
    apply::Apply,
    own::{Author, Claims},
    scale,
    strict::{self, Form},
    update::Step,
};
use crate::{
    decode::Decoded,
    form::{self, Sent},
    patch::Patch,
    resource::Resource,
    route::Target,
    schema,
    serve::answer::Warnings,
    status::Result,
};

/// What a client wants the object to become.
pub(crate) enum Intent {
    Replace(Decoded),
    Patch(Patch),
    Apply(Apply),
}

/// What an object is to become, before the server has had its say.
pub(crate) struct Candidate {
    pub object: Value,
    /// What was wished for, where gates have already kept something out.
    pub wanted: Option<Value>,
    pub claims: Claims,
}

impl Intent {
    pub(crate) fn replace(resource: &Resource, target: &Target, call: &Call) -> Result<Intent> {
        let mut decoded = admit::body(resource, Scope::of(target), call)?;
        admit::check_place(&mut decoded.value, target.namespace.as_deref(), target.name.as_deref())?;
        Ok(Intent::Replace(decoded))
    }

    /// How the object came to be, for what is said of it.
    pub(crate) fn sent<'a>(&self, call: &'a Call) -> Sent<'a> {
        if let Intent::Patch(_) = self { Sent::Patched } else { Sent::Whole(&call.body) }
    }

    /// What a patch makes of an object, or of its scale, in the place that is patched.
    pub(crate) fn patched(
        &self,
        patch: &Patch,
        resource: &Resource,
        target: &Target,
        scope: Scope,
        old: &Value,
    ) -> Result<Value> {
        let mut object = patch.apply(old)?;
        let api_version = resource.api_version();
        form::check(&mut object, &admit::kind(resource, &api_version, scope), Sent::Patched)?;
        admit::check_place(&mut object, target.namespace.as_deref(), target.name.as_deref())?;
        Ok(object)
    }

    pub(crate) fn candidate(&self, author: &Author<'_>, target: &Target, old: &Value) -> Result<Candidate> {
        if author.scope == Scope::Scale {
            return author.rescaled(self, target, old);
        }
        let object = match self {
            Intent::Replace(decoded) => decoded.value.clone(),
            Intent::Patch(patch) => self.patched(patch, author.resource, target, author.scope, old)?,
            Intent::Apply(apply) => return author.applied(old, &apply.config(author.resource, target)?, apply),
        };
        let claims = author.given(Some(old), &object);
        Ok(Candidate { object, wanted: None, claims })
    }

    /// Fields that nobody knows or that come twice. `unknown` are those that were taken out of the object.
    pub(crate) fn check_fields(&self, step: &Step<'_>, unknown: &[String], warnings: &mut Warnings) -> Result<()> {
        let Step { resource, call, scope, old, .. } = *step;
        let mode = call.query.field_validation()?;
        let part = |old: &Value| scale::seen(resource, scope, old).unwrap_or_default();
        let made = |patch: &Patch| patch.apply(&part(old)).unwrap_or_default();
        let sent = match (scope, self) {
            (Scope::Scale, Intent::Replace(decoded)) => Some(decoded.value.clone()),
            (Scope::Scale, Intent::Apply(apply)) => Some(apply.decoded.value.clone()),
            (Scope::Scale, Intent::Patch(patch)) => Some(made(patch)),
            _ => None,
        };
        // What the whole has no place for was never put into it.
        let strange = sent.map(|mut sent| schema::prune(&crate::scale::SCHEMA, &mut sent));
        let unknown = strange.as_deref().unwrap_or(unknown);
        let api_version = resource.api_version();
        let kind = admit::kind(resource, &api_version, scope);
        match self {
            Intent::Replace(decoded) => strict::check(&kind, &Form::Whole(&decoded.twice), unknown, mode, warnings),
            Intent::Apply(apply) => strict::check(&kind, &Form::Apply(&apply.decoded.twice), unknown, mode, warnings),
            Intent::Patch(patch) => {
                let form = Form::Patch { faults: &patch.faults, made: &|| made(patch) };
                strict::check(&kind, &form, unknown, mode, warnings)
            }
        }
    }
}
