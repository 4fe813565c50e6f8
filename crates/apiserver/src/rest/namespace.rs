//! What is special about namespaces: a label of their name, and finalizers of their own, which hold them until their content is gone.

use serde_json::{Value, json};

use super::{Api, admit::Scope};
use crate::{
    builtin::NAMESPACE_FINALIZER,
    keeper, object,
    resource::{Resource, Role},
    status::Result,
    store::Guard,
};

impl Api {
    /// Whether nothing is in a namespace: then, what that relies on. Nothing new comes into one that is on its way out.
    async fn vacant(&self, namespace: &str) -> Result<Option<Guard>> {
        let catalog = self.catalog.borrow().clone();
        for resource in catalog.namespaced() {
            if !self.store.list(&resource.prefix_in(Some(namespace)), None, 1, 0).await?.entries.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(keeper::all_known(&catalog)))
    }

    /// Whether an update is the end of what it is written to, as nobody holds it any more: then, what that relies on. Who takes the
    /// finalizers of a namespace off by `finalize` answers for what is in it, as in Kubernetes; by any other write it does not go
    /// before its content.
    pub(super) async fn end(&self, resource: &Resource, object: &Value, scope: Scope) -> Result<Option<Vec<Guard>>> {
        if !object::is_deleting(object)
            || !object::list(object, "finalizers").is_empty()
            || has_own_end(resource, object)
        {
            return Ok(None);
        }
        if resource.role == Role::Namespace && scope != Scope::Finalize {
            Ok(self.vacant(object::meta(object, "name")).await?.map(|guard| vec![guard]))
        } else {
            Ok(Some(Vec::new()))
        }
    }
}

/// A namespace can always be selected by its name. One that has none yet gets its label with it.
pub(super) fn label(object: &mut Value) {
    let name = object::meta(object, "name").to_owned();
    if !name.is_empty() {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
}

/// What the server decides before it is noted who manages what.
pub(super) fn shape(object: &mut Value, old: Option<&Value>) {
    match old {
        None => object["status"] = json!({"phase": "Active"}),
        Some(_) => {
            label(object);
            if object["status"]["phase"].is_null() {
                object["status"]["phase"] = "Active".into();
            }
        }
    }
}

/// What it decides afterwards: finalizers that were wished for and are not taken have their owner all the same, as in Kubernetes.
pub(super) fn finish(object: &mut Value, old: Option<&Value>, scope: Scope) {
    label(object);
    match (old, scope) {
        (_, Scope::Finalize) => {}
        (Some(old), _) => object["spec"] = old["spec"].clone(),
        (None, _) => hold(object),
    }
    if object["spec"].is_null() {
        object["spec"] = json!({});
    }
}

/// Whether a namespace that goes is still held by those who empty it.
pub(super) fn has_own_end(resource: &Resource, object: &Value) -> bool {
    resource.role == Role::Namespace && !finalizers(object).is_empty()
}

fn finalizers(object: &Value) -> &[Value] {
    object["spec"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// None begins without us.
fn hold(object: &mut Value) {
    let mut names = finalizers(object).to_vec();
    if !names.iter().any(|name| name == NAMESPACE_FINALIZER) {
        names.push(NAMESPACE_FINALIZER.into());
    }
    object["spec"] = json!({"finalizers": names});
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!({}) => json!(["kubernetes"]); "none")]
    #[test_case(json!({"spec": {"finalizers": ["a.io/b"]}}) => json!(["a.io/b", "kubernetes"]); "another")]
    #[test_case(json!({"spec": {"finalizers": ["kubernetes", "a.io/b"]}}) => json!(["kubernetes", "a.io/b"]); "both")]
    fn a_new_one_is_held(mut object: Value) -> Value {
        finish(&mut object, None, Scope::Main);
        object["spec"]["finalizers"].take()
    }

    #[test]
    fn finalizers_change_through_finalize_alone() {
        let old = json!({"spec": {"finalizers": ["kubernetes"]}});
        let sent = || json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["a.io/b"]}});
        let finished = |scope| {
            let mut object = sent();
            finish(&mut object, Some(&old), scope);
            object["spec"].take()
        };
        assert_eq!(finished(Scope::Main), old["spec"]);
        assert_eq!(finished(Scope::Status), old["spec"]);
        assert_eq!(finished(Scope::Finalize), sent()["spec"]);
    }
}
