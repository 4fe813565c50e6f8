//! Server-side apply: a configuration becomes an object, or part of one that is there.

use serde_json::{Value, json};

use super::{
    ATTEMPTS_MAX, Api, Call,
    admit::{self, Scope},
    intent::{Candidate, Intent},
    own::{self, Author, Claims},
};
use crate::{
    decode::{self, Decoded},
    form,
    managed::{self, Applied, ApplyError, Managers, Node},
    object,
    resource::{Resource, Role},
    route::Target,
    scale,
    serve::answer::Warnings,
    status::{Result, Status},
};

/// An applied configuration.
pub(crate) struct Apply {
    pub decoded: Decoded,
    force: bool,
}

impl Apply {
    pub(crate) fn parse(call: &Call) -> Result<Apply> {
        let decoded = decode::yaml(&call.body)
            .map_err(|error| Status::bad_request(format!("error encoding patch: yaml: {error}")))?;
        Ok(Apply { decoded, force: call.query.flag("force") })
    }

    /// The configuration for one object: in its place, and in the form that is stored.
    pub(crate) fn config(&self, resource: &Resource, target: &Target) -> Result<Value> {
        let mut config = self.decoded.value.clone();
        let api_version = resource.api_version();
        let kind = admit::kind(resource, &api_version, Scope::Main);
        form::check_applied(&config, &kind)?;
        // What is there has a name, and a configuration for it need not repeat it.
        if object::meta(&config, "name").is_empty() {
            object::set(&mut config, "name", target.name.as_deref().unwrap_or_default());
        }
        admit::check_place(&mut config, target.namespace.as_deref(), target.name.as_deref())?;
        if config["metadata"].get("managedFields").is_some_and(|entries| !entries.is_null()) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        if resource.role == Role::Secret {
            check_text(resource, &config)?;
        }
        admit::normalize(resource, &mut config);
        Ok(config)
    }
}

/// What becomes bytes must be text while it can still be seen.
fn check_text(resource: &Resource, config: &Value) -> Result<()> {
    let node = resource.types.get(&resource.api_version()).unwrap_or(&Node::Guessed);
    let text = json!({"stringData": config["stringData"]});
    managed::check(node, &text).map_err(|why| untyped(resource, config, &why))
}

fn untyped(resource: &Resource, config: &Value, why: &str) -> Box<Status> {
    let (namespace, name) = (object::meta(config, "namespace"), object::meta(config, "name"));
    let what = format!("{namespace}/{name}; {}, Kind={}", resource.api_version(), resource.kind);
    Status::bad_request(format!("failed to create typed patch object ({what}): {why}"))
}

impl Author<'_> {
    /// The object that an apply wants, and whose its fields are then.
    pub(crate) fn applied(&self, old: &Value, config: &Value, apply: &Apply) -> Result<Candidate> {
        let managers = Managers::parse(object::list(old, "managedFields"))
            .map_err(|why| Status::internal(format!("failed to decode managed fields: {why}")))?;
        let applied = self.writer().apply(Some(old), config, managers, apply.force);
        let applied = applied.map_err(|error| self.refusal(&apply.decoded.value, error))?;
        let Applied { mut object, mut wanted, managers } = applied;
        for object in [Some(&mut object), wanted.as_mut()].into_iter().flatten() {
            self.check_made(object)?;
        }
        let claims = Claims::After(managers);
        Ok(match (self.elsewhere, wanted) {
            // It goes the way of all writes to where the gates are.
            (Some(_), Some(wanted)) => Candidate { object: wanted, wanted: None, claims },
            (_, wanted) => Candidate { object, wanted, claims },
        })
    }

    /// Whose the fields of a new object are.
    pub(crate) fn applied_anew(&self, config: &Value) -> Result<Claims> {
        let applied = self.writer().apply(None, config, Managers::default(), false);
        Ok(Claims::After(applied.map_err(|error| self.refusal(config, error))?.managers))
    }

    /// An apply can make what nobody could send.
    pub(crate) fn check_made(&self, object: &mut Value) -> Result<()> {
        let api_version = self.resource.api_version();
        form::check_made(object, &admit::kind(self.resource, &api_version, Scope::Main))
    }

    fn refusal(&self, config: &Value, error: ApplyError) -> Box<Status> {
        let resource = self.resource;
        match error {
            ApplyError::Conflicts(conflicts) => {
                // Through a scale everybody is seen to have written scales.
                let scale = self.scope == Scope::Scale;
                let conflicts =
                    if scale { conflicts.through(scale::API_VERSION, &["spec", "replicas"]) } else { conflicts };
                Status::apply_conflict(conflicts.message(), conflicts.causes())
            }
            ApplyError::Merge(why) => Status::bad_request(format!("failed to merge config: {why}")),
            ApplyError::Typed(why) => untyped(resource, config, &why),
        }
    }
}

impl Api {
    /// Applies to what is there, or makes it; true if it was made.
    pub(crate) async fn apply(&self, target: &Target, call: &Call, warnings: &mut Warnings) -> Result<(bool, Value)> {
        let intent = Intent::Apply(Apply::parse(call)?);
        own::manager(call, &intent)?;
        self.update_or_make(target, &intent, call, warnings).await
    }

    /// Puts an object in the place of what is there; true if it was made, which some kinds can be so.
    pub(crate) async fn replace(&self, target: &Target, call: &Call, warnings: &mut Warnings) -> Result<(bool, Value)> {
        own::updater(call)?;
        let resource = self.resource(target)?;
        let intent = Intent::replace(&resource, target, call)?;
        if resource.put_makes() {
            self.update_or_make(target, &intent, call, warnings).await
        } else {
            self.update(target, &intent, call, warnings).await.map(|object| (false, object))
        }
    }

    async fn update_or_make(
        &self,
        target: &Target,
        intent: &Intent,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<(bool, Value)> {
        for _ in 0..ATTEMPTS_MAX {
            match self.update(target, intent, call, warnings).await {
                Err(status) if is_absent(&status, target) => {}
                done => return Ok((false, done?)),
            }
            let made = match intent {
                Intent::Apply(apply) => self.create_applied(target, apply, call, warnings).await,
                Intent::Replace(decoded) => self.create_put(target, decoded, call, warnings).await,
                Intent::Patch(_) => break,
            };
            match made {
                // Somebody else was faster.
                Err(status) if status.reason == "AlreadyExists" => {}
                made => return Ok((true, made?)),
            }
        }
        Err(Status::server_timeout("write", "others made and deleted the object each time"))
    }
}

fn is_absent(status: &Status, target: &Target) -> bool {
    let about = |key: &str| status.details.get(key).and_then(Value::as_str);
    status.code == 404
        && target.subresource.is_none()
        && about("name") == target.name.as_deref()
        && about("kind") == Some(target.plural.as_str())
}
