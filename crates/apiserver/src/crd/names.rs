//! Names of resources of one group: first come, first served.

use serde_json::{Value, json};

use super::status::accepted_names;

/// The names a definition gets, and why it does not get those it wants.
pub(super) struct Names {
    pub accepted: Value,
    pub conflict: Option<(&'static str, String)>,
}

/// Which of the wanted names are free among the other definitions of the group.
pub(super) fn decide_names(object: &Value, others: &[&Value]) -> Names {
    let wanted = &object["spec"]["names"];
    let taken = Taken::of(object, others);
    let mut accepted = accepted_names(object).cloned().unwrap_or_else(|| json!({"plural": "", "kind": ""}));
    let mut conflict = None;
    for (key, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let name = wanted[key].as_str().unwrap_or_default();
        let free = if matches!(key, "kind" | "listKind") { !taken.is_kind(name) } else { !taken.is_resource(name) };
        if free {
            accepted[key] = name.into();
        } else {
            conflict.get_or_insert((reason, format!("{name:?} is already in use")));
        }
    }
    let short: Vec<&str> = wanted["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match short.iter().find(|name| taken.is_resource(name)) {
        Some(name) => drop(conflict.get_or_insert(("ShortNamesConflict", format!("{name:?} is already in use")))),
        None if short.is_empty() => drop(accepted.as_object_mut().map(|names| names.remove("shortNames"))),
        None => accepted["shortNames"] = json!(short),
    }
    if wanted["categories"].is_array() {
        accepted["categories"] = wanted["categories"].clone();
    }
    Names { accepted, conflict }
}

struct Taken<'a> {
    names: Vec<&'a Value>,
}

impl<'a> Taken<'a> {
    fn of(object: &Value, others: &[&'a Value]) -> Taken<'a> {
        let same_group = |other: &&&Value| {
            other["spec"]["group"] == object["spec"]["group"] && other["metadata"]["name"] != object["metadata"]["name"]
        };
        Taken { names: others.iter().filter(same_group).filter_map(|other| accepted_names(other)).collect() }
    }

    fn is_resource(&self, name: &str) -> bool {
        let short =
            |names: &Value| names["shortNames"].as_array().is_some_and(|list| list.iter().any(|short| short == name));
        !name.is_empty()
            && self.names.iter().any(|names| names["plural"] == name || names["singular"] == name || short(names))
    }

    fn is_kind(&self, name: &str) -> bool {
        !name.is_empty() && self.names.iter().any(|names| names["kind"] == name || names["listKind"] == name)
    }
}
