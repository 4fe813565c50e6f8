//! Changed objects: by a whole new one or by a patch.

use serde_json::Value;

use super::{
    ATTEMPTS_MAX, Api, Call,
    admit::{self, Scope, encode, served, settle, stored},
    create::place_of,
    gate::{Gated, Hub, Raw, Sides},
    hub,
    intent::{Candidate, Intent},
    kept::{Manner, carry_over, check_version, keep_gates},
    namespace,
    own::{self, Author},
    police, scale, versions,
    views::Views,
};
use crate::{
    admission::{self, Attributes, Operation},
    form, object,
    resource::{Resource, Role},
    route::Target,
    schema,
    serve::answer::Warnings,
    status::{Result, Status},
    store::{Change, Guard, Outcome, Seen},
};

impl Api {
    pub(crate) async fn update(
        &self,
        target: &Target,
        intent: &Intent,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let scope = Scope::of(target);
        own::manager(call, intent)?;
        let (dry_run, name) = (call.query.dry_run()?, target.name.as_deref().unwrap_or_default());
        for _ in 0..ATTEMPTS_MAX {
            let resource = self.resource(target)?;
            let key = resource.key(target.namespace.as_deref(), name);
            let entry = self.store.get(&key).await?.ok_or_else(|| Status::not_found(&resource.name(), name))?;
            let (raw, mut views) = (stored(&resource, &entry)?, Views::new(&resource));
            let mut settled = raw.clone();
            let known = settle(&resource, &mut settled);
            let old = served(&resource, views.now(&settled, &resource.api_version()).await?, entry.revision);
            // What was read is then the storage version itself.
            let pruned = known && resource.converter.is_none() && resource.stored_schema.is_none();
            let stored = Raw { object: &raw, pruned };
            let step = Step { resource: &resource, target, intent, scope, call, raw: stored, old: &old };
            let Prepared { mut object, kept, mut said } =
                views.settled(|views| self.prepare_update(&step, views, warnings)).await?;
            let attributes = Attributes {
                resource: &resource,
                subresource: target.subresource.as_deref().unwrap_or_default(),
                operation: Operation::Update,
                namespace: place_of(&resource, target, name),
                name,
                user: &call.user,
                dry_run,
                options: police::options(call, "UpdateOptions"),
            };
            let (new, old) = (scale::seen(&resource, scope, &object)?, scale::seen(&resource, scope, &old)?);
            let policed = self.police(&attributes, &new, &old, &mut said).await?;
            versions::fit(&resource, &mut object);
            let value = match kept {
                Some(kept) => encode(&resource, &kept),
                None => self.encoded(&resource, &object).await?,
            };
            let end = self.end(&resource, &object, scope).await?;
            let gone = end.is_some();
            let object = versions::answer(&resource, &mut views, object, &value).await?;
            let guards: Vec<Guard> =
                Api::guards(&resource, policed).into_iter().chain(end.into_iter().flatten()).collect();
            if dry_run || (value == raw && !gone) {
                // What was not taken was judged by gates, and those must be the ones of now.
                if resource.gating.is_some() && !self.store.still(&guards).await? {
                    self.guards_moved(&guards).await?;
                    continue;
                }
                self.say(&resource, "update", said, warnings);
                return scale::written(&resource, scope, object, call);
            }
            let bytes = value.to_string();
            let change = if gone { Change::Delete } else { Change::Put(bytes.as_bytes()) };
            let seen = Seen { key, revision: entry.revision };
            match self.store.write(&seen, &guards, change).await? {
                Outcome::Done(revision) => {
                    self.say(&resource, "update", said, warnings);
                    return self.updated(&resource, scope, object, revision, call).await;
                }
                Outcome::Moved => {}
                Outcome::GuardMoved => self.guards_moved(&guards).await?,
            }
        }
        Err(Status::modified(&self.resource(target)?.name(), name))
    }

    async fn updated(
        &self,
        resource: &Resource,
        scope: Scope,
        mut object: Value,
        revision: i64,
        call: &Call,
    ) -> Result<Value> {
        object::set(&mut object, "resourceVersion", revision.to_string());
        self.caught_up(resource, revision).await;
        if resource.role == Role::Definition {
            self.janitor.notify_one();
        }
        scale::written(resource, scope, object, call)
    }

    /// What is told of the fields that were sent goes to `warnings` at once: it is told also if the write is refused.
    fn prepare_update(&self, step: &Step<'_>, views: &Views<'_>, warnings: &mut Warnings) -> Result<Prepared> {
        let Step { resource, target, intent, scope, call, raw, old } = *step;
        let mut said = Warnings::default();
        // An apply must know what others have; any other write takes what it changes, as far as that can be seen.
        views.set_strict(matches!(intent, Intent::Apply(_)));
        let leave = |wanted: &Value| self.left_of(step, views, wanted);
        let elsewhere = resource.gated_elsewhere().is_some();
        let mut author = Author::new(resource, scope, &own::manager(call, intent)?, views, &self.metrics.gating);
        author.elsewhere = elsewhere.then_some(&leave);
        let Candidate { mut object, wanted, claims } = intent.candidate(&author, target, old)?;
        views.complete()?;
        object::dedup_owners(&mut object).into_iter().for_each(|text| warnings.add(text));
        let api_version = resource.api_version();
        let kind = admit::kind(resource, &api_version, scope);
        form::check_embedded(&mut object, &resource.schema, &kind, intent.sent(call))?;
        let unknown = admit::prune(resource, &mut object);
        intent.check_fields(step, &unknown, warnings)?;
        let manner = Manner { whole: matches!(intent, Intent::Replace(_)), dry_run: call.query.dry_run()? };
        check_version(resource, &object, old, scope, manner)?;
        let mut object = carry_over(resource, object, old, scope);
        admit::normalize(resource, &mut object);
        own::complete(resource, &mut object);
        let other = match wanted {
            Some(wanted) => Some(self.sent(resource, &carry_over(resource, wanted, old, scope))),
            // A webhook may have to be asked about it.
            None => elsewhere.then(|| object.clone()),
        };
        let is_part = |name: &str| match scope {
            Scope::Status => name == "status",
            // A count is put into what is stored.
            Scope::Scale => false,
            _ => !resource.has_status || name != "status",
        };
        let filled = schema::fill_part(&resource.schema, &mut object, claims.nulls(resource), is_part);
        let sent = other.or_else(|| self.unfilled(resource, &object, &filled));
        if resource.role == Role::Definition && matches!(intent, Intent::Replace(_)) && scope == Scope::Main {
            keep_gates(&mut object, old, &mut said);
        }
        self.shape(resource, &mut object, Some(old), &mut said);
        let sides = Sides { raw: Some(raw), read: old, sent: sent.as_ref() };
        let gated = self.gate(resource, views, &sides, object, scope, &mut said)?;
        let Gated { mut object, hub, kept, faults } = gated;
        let raised = scope != Scope::Status
            && resource.has_generation
            && fieldgate::raises_generation(old, &object, resource.has_status);
        if resource.has_generation {
            object::set(&mut object, "generation", object::generation(old) + i64::from(raised));
        }
        if resource.role == Role::Policy && scope == Scope::Main {
            admission::observe(&mut object);
        }
        let change = own::Change { raw: Some(raw.object), old: Some(old), hub: hub.as_ref(), kept: kept.as_ref() };
        author.record(&change, &mut object, claims);
        if resource.role == Role::Namespace {
            namespace::finish(&mut object, Some(old), scope);
        }
        views.complete()?;
        self.validate(resource, scope, &hub::judged(resource, &object), Some(old), faults, &mut said)?;
        Ok(Prepared::new(object, kept.or_else(|| Hub::kept(resource, hub)), said))
    }

    /// What gates of another version leave of an object that is to be applied.
    fn left_of(&self, step: &Step<'_>, views: &Views<'_>, wanted: &Value) -> Value {
        let Step { resource, raw, old, scope, .. } = *step;
        let mut object = wanted.clone();
        // What is made of something missing will be made again.
        if views.complete().is_err() {
            return object;
        }
        schema::prune(&resource.schema, &mut object);
        let sent = carry_over(resource, object, old, scope);
        let mut object = sent.clone();
        schema::fill(&resource.schema, &mut object);
        let sides = Sides { raw: Some(raw), read: old, sent: Some(&sent) };
        let left = self.gate(resource, views, &sides, object, scope, &mut Warnings::default());
        left.map_or(sent, |left| left.object)
    }
}

/// All that the way of an update depends on.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub resource: &'a Resource,
    target: &'a Target,
    intent: &'a Intent,
    pub scope: Scope,
    pub call: &'a Call,
    raw: Raw<'a>,
    pub old: &'a Value,
}

/// An object that is good to be stored, if no policy has anything against it.
pub(super) struct Prepared {
    pub object: Value,
    /// The same in the version that is stored, where gates have had their say in that.
    pub kept: Option<Value>,
    pub said: Warnings,
}

impl Prepared {
    pub(super) fn new(object: Value, mut kept: Option<Value>, said: Warnings) -> Prepared {
        if let Some(kept) = &mut kept {
            for key in ["generation", "managedFields"] {
                object::keep(kept, key, &object);
            }
        }
        Prepared { object, kept, said }
    }
}
