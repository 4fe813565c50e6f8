//! Objects that go away, at once or when those who hold them let go.

use serde_json::{Value, json};

use super::{
    ATTEMPTS_MAX, Api, Call,
    admit::{encode, readable, stored},
    delete_options, is_kept_namespace, namespace, options, police, present,
    shown::Wanted,
};
use crate::{
    admission::{Attributes, Operation},
    crd, object, protobuf,
    resource::{Resource, Role},
    route::Target,
    serve::{answer::Warnings, auth::User},
    status::{self, Result, Status},
    store::{Change, Entry, Guard, Outcome, Seen},
};

/// What a client demands of the object it deletes.
#[derive(Default)]
struct Demands {
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
    /// Who deletes, with which options; nobody, where policies are not asked.
    by: Option<(User, Value)>,
}

impl Demands {
    fn parse(call: &Call) -> Result<Demands> {
        let dry_run = call.query.dry_run()?;
        let mut options = police::options(call, "DeleteOptions");
        if call.body.is_empty() {
            delete_options::check(&delete_options::from_query(&call.query)?)?;
            let said = |key: &str| call.query.given(key).map(str::to_owned);
            let by = Some((call.user.clone(), options));
            return Ok(Demands { uid: said("uid"), version: said("resourceVersion"), dry_run, by });
        }
        let body: Value = if call.body.starts_with(protobuf::MAGIC) {
            protobuf::decode(&call.body).ok_or_else(|| Status::bad_request("the delete options are unrecognized"))?
        } else {
            delete_options::parse(call)?
        };
        delete_options::check(&body)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let conditions = &body["preconditions"];
        for (key, value) in body.as_object().into_iter().flatten() {
            if !matches!(key.as_str(), "kind" | "apiVersion") {
                options[key] = value.clone();
            }
        }
        let all = body["dryRun"].as_array().is_some_and(|list| list.iter().any(|value| value == "All"));
        Ok(Demands {
            uid: text(&conditions["uid"]),
            version: text(&conditions["resourceVersion"]),
            dry_run: dry_run || all,
            by: Some((call.user.clone(), options)),
        })
    }

    fn check(&self, resource: &Resource, object: &Value) -> Result<()> {
        let name = object::meta(object, "name");
        let checks = [
            ("UID", &self.uid, object::meta(object, "uid"), "deleted and then recreated"),
            ("ResourceVersion", &self.version, object::meta(object, "resourceVersion"), "modified"),
        ];
        for (what, wanted, found, fate) in checks {
            let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != found) else { continue };
            if resource.role == Role::Namespace {
                let why =
                    format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
                return Err(Status::conflict(&resource.name(), name, why));
            }
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might \
                 have been {fate}"
            );
            // Kubernetes names the kind here, where it names the resource elsewhere.
            return Err(Status::conflict(&resource.kind_name(), name, why));
        }
        Ok(())
    }
}

impl Api {
    pub(crate) async fn delete(&self, target: &Target, call: &Call, warnings: &mut Warnings) -> Result<Value> {
        let demands = Demands::parse(call)?;
        let resource = self.resource(target)?;
        let name = target.name.as_deref().unwrap_or_default();
        let key = resource.key(target.namespace.as_deref(), name);
        let left = self.remove(&resource, &key, name, &demands, warnings).await?;
        match left {
            Removed::Marked(object) => present::one(&resource, self.shown(&resource, object).await?, call),
            Removed::Gone(object) => Ok(status::success(&resource.name(), name, object::meta(&object, "uid"))),
        }
    }

    pub(crate) async fn delete_collection(
        &self,
        target: &Target,
        call: &Call,
        warnings: &mut Warnings,
    ) -> Result<Value> {
        let demands = Demands::parse(call)?;
        let resource = self.resource(target)?;
        let selector = self.selector(&resource, call)?;
        let options = options::list(&call.query)?;
        let listed = self.listed(&resource, target.namespace.as_deref(), &selector, &options, Wanted::Trees).await?;
        let (metadata, objects) = (listed.metadata(), listed.trees());
        for object in &objects {
            let name = object::meta(object, "name");
            let key = resource.key(Some(object::meta(object, "namespace")), name);
            match self.remove(&resource, &key, name, &demands, warnings).await {
                Ok(_) => {}
                // Somebody else was faster, which is as good.
                Err(status) if status.code == 404 => {}
                Err(status) => return Err(status),
            }
        }
        present::many(&resource, objects, metadata, call)
    }

    /// Deletes or marks one object that lies at `key`; for the janitor. Policies are asked if it is done in somebody's name.
    pub(crate) async fn purge(&self, resource: &Resource, entry: &Entry, user: Option<&User>) -> Result<()> {
        let name = entry.key.rsplit('/').next().unwrap_or_default().to_owned();
        let options = || json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        let by = user.map(|user| (user.clone(), options()));
        let demands = Demands { by, ..Demands::default() };
        match self.remove(resource, &entry.key, &name, &demands, &mut Warnings::default()).await {
            Err(status) if status.code == 404 => Ok(()),
            other => other.map(|_| ()),
        }
    }

    async fn remove(
        &self,
        resource: &Resource,
        key: &str,
        name: &str,
        demands: &Demands,
        warnings: &mut Warnings,
    ) -> Result<Removed> {
        for _ in 0..ATTEMPTS_MAX {
            let entry = self.store.get(key).await?.ok_or_else(|| Status::not_found(&resource.name(), name))?;
            let object = removable(resource, &entry)?;
            demands.check(resource, &object)?;
            if object::is_deleting(&object) && namespace::has_own_end(resource, &object) {
                return Ok(Removed::Marked(object));
            }
            if is_kept_namespace(resource, name) {
                let why = "this namespace may not be deleted";
                return Err(Status::forbidden(&resource.name(), name, why));
            }
            let guards = self.policed(resource, &object, name, demands, warnings).await?;
            let held = is_held(resource, &object);
            if held && object::is_deleting(&object) {
                return Ok(Removed::Marked(object));
            }
            let marked = if held { mark(resource, &object) } else { object.clone() };
            if demands.dry_run {
                return Ok(if held { Removed::Marked(marked) } else { Removed::Gone(marked) });
            }
            let mut value = encode(resource, &marked);
            if resource.converter.is_some() {
                value["apiVersion"] = marked["apiVersion"].clone();
            }
            let bytes = value.to_string();
            let change = if held { Change::Put(bytes.as_bytes()) } else { Change::Delete };
            // Without the definition as a guard: what is to go, goes, whatever its gates are.
            let seen = Seen { key: key.to_owned(), revision: entry.revision };
            match self.store.write(&seen, &guards, change).await? {
                Outcome::Done(revision) => return Ok(self.removed(resource, marked, held, revision).await),
                Outcome::Moved => {}
                Outcome::GuardMoved => self.guards_moved(&guards).await?,
            }
        }
        Err(Status::modified(&resource.name(), name))
    }

    /// Asks the policies whether the object may go.
    async fn policed(
        &self,
        resource: &Resource,
        object: &Value,
        name: &str,
        demands: &Demands,
        warnings: &mut Warnings,
    ) -> Result<Vec<Guard>> {
        let Some((user, options)) = &demands.by else { return Ok(Vec::new()) };
        let namespace = if resource.role == Role::Namespace { name } else { object::meta(object, "namespace") };
        let attributes = Attributes {
            resource,
            subresource: "",
            operation: Operation::Delete,
            namespace,
            name,
            user,
            dry_run: demands.dry_run,
            options: options.clone(),
        };
        let guard = self.police(&attributes, &Value::Null, object, warnings).await?;
        Ok(guard.into_iter().collect())
    }

    async fn removed(&self, resource: &Resource, mut object: Value, held: bool, revision: i64) -> Removed {
        if resource.role != Role::Definition || held {
            self.caught_up(resource, revision).await;
        }
        if !held {
            return Removed::Gone(object);
        }
        object::set(&mut object, "resourceVersion", revision.to_string());
        if matches!(resource.role, Role::Definition | Role::Namespace) {
            self.janitor.notify_one();
        }
        Removed::Marked(object)
    }
}

/// What is looked at to delete an object is its metadata, which is the same in all versions: no webhook need be asked, and none
/// that is gone keeps objects from going.
fn removable(resource: &Resource, entry: &Entry) -> Result<Value> {
    if resource.converter.is_none() {
        return readable(resource, entry);
    }
    let mut object = stored(resource, entry)?;
    object::set(&mut object, "resourceVersion", entry.revision.to_string());
    Ok(object)
}

enum Removed {
    Gone(Value),
    /// It stays until its finalizers are taken off.
    Marked(Value),
}

/// Namespaces and definitions go when what is in them is gone, whatever finalizers clients have left them.
fn is_held(resource: &Resource, object: &Value) -> bool {
    !object::list(object, "finalizers").is_empty()
        || resource.role == Role::Namespace
        || (resource.role == Role::Definition && !object::is_deleting(object))
}

fn mark(resource: &Resource, object: &Value) -> Value {
    let mut marked = object.clone();
    object::set(&mut marked, "deletionTimestamp", object::now());
    object::set(&mut marked, "deletionGracePeriodSeconds", 0);
    if object::generation(object) > 0 {
        object::set(&mut marked, "generation", object::generation(object) + 1);
    }
    match resource.role {
        Role::Namespace => {
            object::keep(&mut marked, "generation", object);
            object::meta_mut(&mut marked).remove("deletionGracePeriodSeconds");
            marked["status"]["phase"] = "Terminating".into();
        }
        Role::Definition => crd::mark_terminating(&mut marked),
        _ => {}
    }
    marked
}
