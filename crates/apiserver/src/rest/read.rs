//! One object.

use serde_json::Value;

use super::{Api, Call, admit::Scope, options, scale};
use crate::{
    route::Target,
    status::{Result, Status},
};

impl Api {
    pub async fn get(&self, target: &Target, call: &Call) -> Result<Value> {
        let resource = self.resource(target)?;
        let name = target.name.as_deref().unwrap_or_default();
        if let Some(revision) = options::version(&call.query)? {
            self.not_older_than(revision).await?;
        }
        let key = resource.key(target.namespace.as_deref(), name);
        let entry = self.store.get(&key).await?.ok_or_else(|| Status::not_found(&resource.name(), name))?;
        scale::part(&resource, Scope::of(target), self.read(&resource, &entry).await?, call)
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
