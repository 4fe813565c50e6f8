//! One object.

use bytes::Bytes;

use super::{
    Api, Call,
    admit::Scope,
    options, scale,
    shown::{self, Shown, Wanted},
};
use crate::{
    route::Target,
    serve::{accept::Form, answer},
    status::{Result, Status},
};

impl Api {
    pub(crate) async fn get(&self, target: &Target, call: &Call) -> Result<Bytes> {
        let resource = self.resource(target)?;
        let name = target.name.as_deref().unwrap_or_default();
        if let Some(revision) = options::version(&call.query)? {
            self.not_older_than(revision).await?;
        }
        let key = resource.key(target.namespace.as_deref(), name);
        let entry = self.store.get(&key).await?.ok_or_else(|| Status::not_found(&resource.name(), name))?;
        let scope = Scope::of(target);
        let wanted = if scope != Scope::Scale && call.form == Form::Object { Wanted::Text } else { Wanted::Trees };
        match self.show(&resource, &entry, wanted).await? {
            text @ Shown::Text(_) => Ok(shown::one(&resource, &text)),
            Shown::Tree(object) => scale::part(&resource, scope, object, call).map(|part| answer::print(&part)),
        }
    }

    /// Reads ask the leader, so a revision that is not there now is one that somebody made up, or that a store lost.
    pub(super) async fn not_older_than(&self, revision: i64) -> Result<()> {
        if revision <= 0 {
            return Ok(());
        }
        let now = self.store.revision().await?;
        if revision > now { Err(Status::version_too_large(revision, now)) } else { Ok(()) }
    }
}
