//! New objects.

use serde_json::Value;

use super::{
    ATTEMPTS_MAX, Api, Call,
    admit::{self, Scope},
    apply::Apply,
    gate::{Gated, Hub, Sides},
    hub, kept, namespace,
    own::{self, Author, Claims},
    police, present,
    strict::{self, Form},
    update::Prepared,
    versions,
    views::Views,
};
use crate::{
    admission::{self, Attributes, Operation},
    crd,
    decode::Decoded,
    form, method, name, object,
    resource::{Resource, Role},
    route::Target,
    schema,
    serve::answer::Warnings,
    status::{Result, Status},
    store::{Change, Entry, Guard, Outcome, Seen},
};

impl Api {
    pub(crate) async fn create(&self, target: &Target, call: &Call, warnings: &mut Warnings) -> Result<Value> {
        own::creator(call)?;
        let decoded = admit::body(self.resource(target)?.as_ref(), Scope::Main, call)?;
        self.create_from(target, &decoded, false, call, warnings).await
    }

    /// Makes what is applied and is not there yet.
    pub(super) async fn create_applied(
        &self,
        target: &Target,
        apply: &Apply,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let resource = self.resource(target)?;
        let value = apply.config(&resource, target)?;
        admit::check_place(&mut apply.decoded.value.clone(), target.namespace.as_deref(), target.name.as_deref())?;
        let uid = object::meta(&value, "uid");
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&resource.name(), object::meta(&value, "name"), why));
        }
        let decoded = Decoded { value, twice: apply.decoded.twice.clone() };
        self.create_from(target, &decoded, true, call, warnings).await
    }

    /// Makes what is put where nothing is. A uid is of something that was there; a version is passed over, as in Kubernetes.
    pub(super) async fn create_put(
        &self,
        target: &Target,
        decoded: &Decoded,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let resource = self.resource(target)?;
        let mut decoded = Decoded { value: decoded.value.clone(), twice: decoded.twice.clone() };
        let uid = object::meta(&decoded.value, "uid");
        if !uid.is_empty() {
            let place = (target.namespace.as_deref(), target.name.as_deref().unwrap_or_default());
            return Err(kept::other_uid(&resource, place, (uid, ""), call.query.dry_run()?));
        }
        let version = object::meta(&decoded.value, "resourceVersion");
        if !version.is_empty() && version.parse::<u64>().is_err() {
            return Err(Status::modified(&resource.name(), target.name.as_deref().unwrap_or_default()));
        }
        object::meta_mut(&mut decoded.value).remove("resourceVersion");
        self.create_from(target, &decoded, false, call, warnings).await
    }

    /// What has no place in the schema is told by who merges, before anybody asks what is to become of fields that nobody knows.
    fn check_mergeable(&self, resource: &Resource, manager: &str, config: &Value) -> Result<()> {
        let views = Views::new(resource);
        Author::new(resource, Scope::Main, manager, &views, &self.metrics.gating).applied_anew(config).map(drop)
    }

    async fn create_from(
        &self,
        target: &Target,
        decoded: &Decoded,
        applied: bool,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let (mode, dry_run) = (call.query.field_validation()?, call.query.dry_run()?);
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            let resource = self.resource(target)?;
            if resource.namespaced && target.namespace.is_none() {
                return Err(method::missing(&resource.group));
            }
            let mut object = decoded.value.clone();
            object::dedup_owners(&mut object).into_iter().for_each(|text| warnings.add(text));
            let api_version = resource.api_version();
            let kind = admit::kind(&resource, &api_version, Scope::Main);
            form::check_embedded(&mut object, &resource.schema, &kind, form::Sent::Whole(&call.body))?;
            let unknown = admit::prune(&resource, &mut object);
            let manager = own::creator(call)?;
            if applied {
                self.check_mergeable(&resource, &manager, &decoded.value)?;
            }
            let form = if applied { Form::Apply(&decoded.twice) } else { Form::Whole(&decoded.twice) };
            // Told also if the object is refused for something else.
            strict::check(&kind, &form, &unknown, mode, warnings)?;
            admit::check_place(&mut object, target.namespace.as_deref(), None)?;
            let given = object.clone();
            let begun = start(&resource, object)?;
            let mut views = Views::new(&resource);
            let made = views.settled(|views| {
                let author = Author::new(&resource, Scope::Main, &manager, views, &self.metrics.gating);
                let mut object = begun.clone();
                let claims = if applied { author.applied_anew(&decoded.value)? } else { author.given(None, &given) };
                if applied {
                    author.check_made(&mut object)?;
                }
                self.prepare_create(&author, object, claims)
            });
            let Prepared { mut object, kept, mut said } = made.await?;
            let name = object::meta(&object, "name").to_owned();
            let place = self.check_namespace(&resource, target.namespace.as_deref(), &name).await?;
            let attributes = Attributes {
                resource: &resource,
                subresource: "",
                operation: Operation::Create,
                namespace: place_of(&resource, target, &name),
                name: &name,
                user: &call.user,
                dry_run,
                options: police::options(call, "CreateOptions"),
            };
            let policed = self.police(&attributes, &object, &Value::Null, &mut said).await?;
            versions::fit(&resource, &mut object);
            let key = resource.key(target.namespace.as_deref(), &name);
            let value = match kept {
                Some(kept) => admit::encode(&resource, &kept),
                None => self.encoded(&resource, &object).await?,
            };
            let object = versions::answer(&resource, &mut views, object, &value).await?;
            if dry_run {
                if let Some(entry) = self.store.get(&key).await? {
                    return Err(taken(&resource, &object, Some(&entry)));
                }
                self.say(&resource, "create", said, warnings);
                return present::one(&resource, object, call);
            }
            let bytes = value.to_string();
            let seen = Seen { key: key.clone(), revision: 0 };
            let guards = Api::guards(&resource, policed);
            let all: Vec<Guard> = guards.iter().chain(&place).cloned().collect();
            match self.store.write(&seen, &all, Change::Put(bytes.as_bytes())).await? {
                Outcome::Done(revision) => {
                    self.say(&resource, "create", said, warnings);
                    return self.created(&resource, object, revision, call).await;
                }
                // A generated name that is taken: the next one will not be.
                Outcome::Moved if object::meta(&decoded.value, "name").is_empty() => {
                    last = Some((resource.name(), name))
                }
                Outcome::Moved => return Err(taken(&resource, &object, self.store.get(&key).await?.as_ref())),
                // It may be on its way out now.
                Outcome::GuardMoved if !self.store.still(place.as_slice()).await? => {}
                Outcome::GuardMoved => self.guards_moved(&guards).await?,
            }
        }
        match last {
            Some((resource, name)) => Err(Status::no_name_found(&resource, &name)),
            None => Err(Status::server_timeout("create", "others were faster each time")),
        }
    }

    async fn created(&self, resource: &Resource, mut object: Value, revision: i64, call: &Call) -> Result<Value> {
        object::set(&mut object, "resourceVersion", revision.to_string());
        self.caught_up(resource, revision).await;
        present::one(resource, object, call)
    }

    fn prepare_create(&self, author: &Author<'_>, mut object: Value, claims: Claims) -> Result<Prepared> {
        let (resource, mut said) = (author.resource, Warnings::default());
        // Where gates are of another version, a webhook may have to be asked about what was sent.
        let whole = resource.gated_elsewhere().map(|_| object.clone());
        let filled = schema::fill_beside(&resource.schema, &mut object, claims.nulls(resource));
        let sent = whole.or_else(|| self.unfilled(resource, &object, &filled));
        self.shape(resource, &mut object, None, &mut said);
        let read = self.unsent(resource, sent.as_ref(), &object);
        let sides = Sides { raw: None, read: &read, sent: sent.as_ref() };
        let gated = self.gate(resource, author.views, &sides, object, Scope::Main, &mut said)?;
        let Gated { mut object, hub, kept, faults } = gated;
        let change = own::Change { raw: None, old: None, hub: hub.as_ref(), kept: kept.as_ref() };
        author.record(&change, &mut object, claims);
        if resource.role == Role::Namespace {
            namespace::finish(&mut object, None, Scope::Main);
        }
        author.views.complete()?;
        self.validate(resource, Scope::Main, &hub::judged(resource, &object), None, faults, &mut said)?;
        Ok(Prepared::new(object, kept.or_else(|| Hub::kept(resource, hub)), said))
    }

    /// What is special to a kind.
    pub(super) fn shape(&self, resource: &Resource, object: &mut Value, old: Option<&Value>, warnings: &mut Warnings) {
        match resource.role {
            Role::Definition => self.shape_definition(object, old, warnings),
            Role::Policy if old.is_none() => admission::observe(object),
            Role::Namespace => namespace::shape(object, old),
            _ => {}
        }
    }

    fn shape_definition(&self, object: &mut Value, old: Option<&Value>, warnings: &mut Warnings) {
        if !object["spec"].is_object() || !(object["status"].is_object() || object["status"].is_null()) {
            return; // validation will say so
        }
        crd::fill(object);
        let had = old.is_some_and(|old| old["spec"]["customFeatureGates"].is_object());
        if !self.field_gates && !had && object["spec"]["customFeatureGates"].is_object() {
            object["spec"].as_object_mut().map(|spec| spec.remove("customFeatureGates"));
            warnings.add("spec.customFeatureGates: dropped, feature gate \"CRDFieldLevelVersioning\" is disabled");
        }
        let others = self.others(object::meta(object, "name"));
        let others: Vec<&Value> = others.iter().map(|definition| &definition.object).collect();
        crd::decide_status(object, &others);
    }
}

/// A name is taken, by something that may be on its way out.
fn taken(resource: &Resource, object: &Value, by: Option<&Entry>) -> Box<Status> {
    let name = object::meta(object, "name");
    let mut refused = match object::meta(object, "generateName") {
        "" => Status::already_exists(&resource.name(), name),
        _ => Status::no_name_found(&resource.name(), name),
    };
    if by.and_then(|entry| admit::stored(resource, entry).ok()).is_some_and(|object| object::is_deleting(&object)) {
        refused.message = format!("object is being deleted: {}", refused.message);
    }
    refused
}

/// The namespace a request is in. A namespace is in itself.
pub(super) fn place_of<'a>(resource: &Resource, target: &'a Target, name: &'a str) -> &'a str {
    if resource.role == Role::Namespace { name } else { target.namespace.as_deref().unwrap_or_default() }
}

/// A new object as it was sent, with what the server decides.
fn start(resource: &Resource, mut object: Value) -> Result<Value> {
    if let Some(custom) = resource.custom().filter(|custom| custom.terminating) {
        tracing::debug!(definition = custom.definition, "create refused while it is going away");
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&resource.name(), object::meta(&object, "name"), why));
    }
    if resource.role == Role::Namespace {
        namespace::label(&mut object);
    }
    begin(resource, &mut object)?;
    admit::normalize(resource, &mut object);
    own::complete(resource, &mut object);
    Ok(object)
}

/// The metadata of something new: what the server alone decides.
fn begin(resource: &Resource, object: &mut Value) -> Result<()> {
    if !object::meta(object, "resourceVersion").is_empty() {
        return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
    }
    if object::meta(object, "name").is_empty() {
        let prefix = object::meta(object, "generateName").to_owned();
        if !prefix.is_empty() {
            object::set(object, "name", name::generate(&prefix));
        }
    }
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "resourceVersion"] {
        object::meta_mut(object).remove(key);
    }
    object::set(object, "uid", name::uid());
    object::set(object, "creationTimestamp", object::now());
    if resource.has_generation {
        object::set(object, "generation", 1);
    }
    if resource.has_status {
        object.as_object_mut().map(|object| object.remove("status"));
    }
    Ok(())
}
