//! The state of a definition: names it got, whether it is served, versions that may lie in the store, its gates.

use serde_json::{Value, json};

use super::{approval::Approval, conversion::is_bundle_sound, names::decide_names};
use crate::object;

/// Holds a definition until all its objects are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn accepted_names(object: &Value) -> Option<&Value> {
    let names = &object["status"]["acceptedNames"];
    names["plural"].as_str().is_some_and(|plural| !plural.is_empty()).then_some(names)
}

pub(crate) fn is_established(object: &Value) -> bool {
    condition(object, "Established").is_some_and(|condition| condition["status"] == "True")
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Writes into `object` the status it should have among the others; true if that changed anything.
pub(crate) fn decide_status(object: &mut Value, others: &[&Value]) -> bool {
    let before = object["status"].clone();
    if !before.is_object() {
        object["status"] = json!({});
    }
    let names = decide_names(object, others);
    object["status"]["acceptedNames"] = names.accepted;
    match &names.conflict {
        None => set_condition(object, "NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => set_condition(object, "NamesAccepted", "False", reason, message),
    }
    // Once established a definition stays so, or objects under its old names could not be reached any more.
    if !is_established(object) {
        let (status, reason, message) = match &names.conflict {
            Some(_) => ("False", "NotAccepted", "not all names are accepted"),
            None if !is_bundle_sound(&object["spec"]) => {
                ("False", "InvalidCABundle", "The conversion webhook CABundle is invalid")
            }
            None => ("True", "InitialNamesAccepted", "the initial names have been accepted"),
        };
        set_condition(object, "Established", status, reason, message);
    }
    if let Some(approval) = Approval::of(object) {
        let kind = "KubernetesAPIApprovalPolicyConformant";
        set_condition(object, kind, approval.status, approval.reason, &approval.message);
    }
    store_versions(object);
    let gates = super::gates(object);
    if gates.gates.is_empty() {
        drop(object["status"].as_object_mut().map(|status| status.remove("customFeatureGates")))
    } else {
        object["status"]["customFeatureGates"] = gates.status()
    }
    object["status"] != before
}

/// The storage version is one in which objects may be stored, from now on.
fn store_versions(object: &mut Value) {
    let storage = super::storage_version(object).map(|version| version["name"].clone()).unwrap_or_default();
    let mut stored = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    if storage.is_string() && !stored.contains(&storage) {
        stored.push(storage);
    }
    object["status"]["storedVersions"] = stored.into();
}

/// From now on it is held until its objects are gone.
/// Whether the objects of a definition are being deleted before it.
pub(super) fn is_emptying(object: &Value) -> bool {
    condition(object, "Terminating").is_some_and(|condition| condition["status"] == "True")
}

pub(crate) fn mark_terminating(object: &mut Value) {
    let mut finalizers = object::list(object, "finalizers").to_vec();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.into());
    }
    object::set(object, "finalizers", finalizers);
    set_condition(
        object,
        "Terminating",
        "True",
        "InstanceDeletionInProgress",
        "CustomResource deletion is in progress",
    );
}

fn set_condition(object: &mut Value, kind: &str, status: &str, reason: &str, message: &str) {
    let old = condition(object, kind).cloned();
    let since = match &old {
        Some(old) if old["status"] == status => old["lastTransitionTime"].clone(),
        _ => object::now().into(),
    };
    let new =
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since});
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    match conditions.iter().position(|condition| condition["type"] == kind) {
        Some(at) => conditions[at] = new,
        None => conditions.push(new),
    }
    object["status"]["conditions"] = conditions.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str) -> Value {
        let mut object = json!({"metadata": {"name": format!("{plural}.g.io")}, "spec": {"group": "g.io",
            "names": {"plural": plural, "kind": kind, "shortNames": ["x"]},
            "versions": [{"name": "v1", "served": true, "storage": true}]}});
        super::super::fill(&mut object);
        object
    }

    #[test]
    fn the_first_gets_the_name_and_the_second_is_told() {
        let mut first = definition("foos", "Foo");
        assert!(decide_status(&mut first, &[]));
        assert!(is_established(&first));
        assert_eq!(first["status"]["storedVersions"], json!(["v1"]));
        let mut bad = first.clone();
        bad["status"] = json!({});
        bad["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "!"}}});
        decide_status(&mut bad, &[]);
        assert_eq!(condition(&bad, "Established").unwrap()["reason"], "InvalidCABundle");
        assert!(!decide_status(&mut first, &[]), "the same again changes nothing");
        let mut second = definition("bars", "Foo");
        decide_status(&mut second, &[&first]);
        assert!(!is_established(&second));
        let accepted = condition(&second, "NamesAccepted").unwrap();
        assert_eq!(
            (accepted["reason"].as_str(), accepted["message"].as_str()),
            (Some("SingularConflict"), Some("\"foo\" is already in use"))
        );
        // When the first is gone, the second gets its turn.
        decide_status(&mut second, &[]);
        assert!(is_established(&second));
    }
}
