//! Objects in other versions, for steps that cannot wait for a webhook: a step takes what is known, and names what is not. That is
//! asked for, all for one version in one call, and the step is taken again.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
};

use serde_json::{Map, Value};

use super::versions::convert;
use crate::{
    managed,
    resource::Resource,
    status::{Result, Status},
};

/// A step names what it lacks bit by bit; one that never has enough is a fault of ours.
const ROUNDS_MAX: usize = 64;

pub(crate) struct Views<'a> {
    resource: &'a Resource,
    known: RefCell<Vec<Known>>,
    needs: RefCell<Vec<Need>>,
    /// Whether a version of which nothing can be learned is a reason to refuse the write.
    strict: Cell<bool>,
    /// What is answered instead of a webhook's failure: objects that are not valid may be more than it can take.
    instead: RefCell<Option<Box<Status>>>,
}

struct Known {
    object: Value,
    version: String,
    /// None if the webhook has failed on it.
    seen: Option<Value>,
}

#[derive(Clone, PartialEq)]
struct Need {
    object: Value,
    version: String,
    /// Whether the write fails with it.
    must: bool,
}

impl<'a> Views<'a> {
    pub(crate) fn new(resource: &'a Resource) -> Views<'a> {
        Views {
            resource,
            known: RefCell::default(),
            needs: RefCell::default(),
            strict: Cell::new(false),
            instead: RefCell::default(),
        }
    }

    /// Takes a step until nothing is missing.
    pub(crate) async fn settled<T>(&mut self, mut step: impl FnMut(&Views<'_>) -> Result<T>) -> Result<T> {
        for _ in 0..ROUNDS_MAX {
            let done = step(self);
            if !self.ask().await? {
                return done;
            }
        }
        Err(Status::internal("a write wants its object in ever more forms"))
    }

    /// The object in a version, asked for at once.
    pub(crate) async fn now(&mut self, object: &Value, version: &str) -> Result<Value> {
        if let Some(seen) = self.must(object, version) {
            return Ok(seen.into_owned());
        }
        self.ask().await?;
        let seen = self.must(object, version).map(Cow::into_owned);
        seen.ok_or_else(|| Status::internal("an object was converted and is not there"))
    }

    /// The object in a version; none if it must be asked for first.
    pub(crate) fn must<'o>(&self, object: &'o Value, version: &str) -> Option<Cow<'o, Value>> {
        self.find(object, version, true)
    }

    /// The same, but if the webhook fails on it there is just none.
    pub(crate) fn may<'o>(&self, object: &'o Value, version: &str) -> Option<Cow<'o, Value>> {
        self.find(object, version, false)
    }

    /// An error if something is missing; it is not seen, as the step is taken again.
    pub(crate) fn complete(&self) -> Result<()> {
        if self.needs.borrow().is_empty() { Ok(()) } else { Err(Status::internal("the object is not converted yet")) }
    }

    /// Makes known what an object is in a version.
    pub(crate) fn remember(&self, object: &Value, version: &str, seen: &Value) {
        self.known.borrow_mut().push(Known {
            object: key(object),
            version: version.to_owned(),
            seen: Some(seen.clone()),
        });
    }

    pub(crate) fn set_strict(&self, strict: bool) {
        self.strict.set(strict);
    }

    pub(crate) fn answer_instead(&self, status: Box<Status>) {
        *self.instead.borrow_mut() = Some(status);
    }

    fn find<'o>(&self, object: &'o Value, version: &str, must: bool) -> Option<Cow<'o, Value>> {
        if self.resource.converter.is_none() || object["apiVersion"] == version {
            return Some(Cow::Borrowed(object));
        }
        let wanted = key(object);
        // What failed where it was not needed is asked for again where it is.
        let is_it =
            |known: &&Known| known.version == version && known.object == wanted && (known.seen.is_some() || !must);
        if let Some(known) = self.known.borrow().iter().find(is_it) {
            return known.seen.as_ref().map(|seen| Cow::Owned(with_metadata_of(seen, object)));
        }
        let need = Need { object: object.clone(), version: version.to_owned(), must };
        let mut needs = self.needs.borrow_mut();
        if !needs.contains(&need) {
            needs.push(need);
        }
        None
    }

    /// Asks for what is missing; whether anything was.
    async fn ask(&mut self) -> Result<bool> {
        let mut needs = self.needs.take();
        let asked = !needs.is_empty();
        while let Some(Need { version, must, .. }) = needs.first().cloned() {
            let same = |need: &Need| need.version == version && need.must == must;
            let lot: Vec<Value> = needs.iter().filter(|need| same(need)).map(|need| need.object.clone()).collect();
            needs.retain(|need| !same(need));
            let seen: Vec<Option<Value>> = match convert(self.resource, lot.clone(), &version).await {
                Ok(seen) => seen.into_iter().map(Some).collect(),
                Err(status) if must => return Err(self.instead.take().unwrap_or(status)),
                Err(status) => {
                    tracing::warn!(kind = self.resource.kind, version, "{}", status.message);
                    vec![None; lot.len()]
                }
            };
            let known = lot.iter().zip(seen);
            self.known.borrow_mut().extend(known.map(|(object, seen)| Known {
                object: key(object),
                version: version.clone(),
                seen,
            }));
        }
        Ok(asked)
    }
}

impl managed::Views for Views<'_> {
    fn view<'o>(&self, object: &'o Value, version: &str) -> Option<Cow<'o, Value>> {
        self.find(object, version, self.strict.get())
    }
}

/// What a webhook has a say in: all but metadata, and of that labels and annotations.
fn key(object: &Value) -> Value {
    let mut key = object.clone();
    let own = |name: &str| Some((name.to_owned(), object.pointer(&format!("/metadata/{name}"))?.clone()));
    let metadata: Map<String, Value> = ["labels", "annotations"].into_iter().filter_map(own).collect();
    key["metadata"] = Value::Object(metadata);
    key
}

fn with_metadata_of(seen: &Value, object: &Value) -> Value {
    let mut whole = seen.clone();
    let mut metadata = object["metadata"].as_object().cloned().unwrap_or_default();
    for name in ["labels", "annotations"] {
        match seen["metadata"].get(name) {
            Some(own) => drop(metadata.insert(name.to_owned(), own.clone())),
            None => drop(metadata.remove(name)),
        }
    }
    whole["metadata"] = Value::Object(metadata);
    whole
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_of_the_object_and_what_a_webhook_makes_is_the_webhooks() {
        let first = json!({"apiVersion": "g/v1", "metadata": {"name": "a", "generation": 1, "labels": {"a": "b"}}, "spec": {"x": 1}});
        let mut second = first.clone();
        second["metadata"]["generation"] = 2.into();
        assert_eq!(key(&first), key(&second));
        second["metadata"]["labels"]["a"] = "c".into();
        assert_ne!(key(&first), key(&second));
        let seen = json!({"apiVersion": "g/v2", "metadata": {"name": "a", "generation": 1, "annotations": {"k": "v"}}, "spec": {"y": 1}});
        let whole = json!({"apiVersion": "g/v2", "metadata": {"name": "a", "generation": 2, "annotations": {"k": "v"}}, "spec": {"y": 1}});
        assert_eq!(with_metadata_of(&seen, &second), whole);
    }
}
