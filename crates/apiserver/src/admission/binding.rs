//! A binding: where a policy is in force, and what follows when it says no.

use serde_json::{Value, json};

use super::rule::Resources;
use crate::object;

pub(crate) struct Binding {
    pub name: String,
    pub policy: String,
    pub resources: Resources,
    pub denies: bool,
    pub warns: bool,
    pub audits: bool,
}

impl Binding {
    pub(crate) fn new(object: &Value) -> Binding {
        let spec = &object["spec"];
        let acts =
            |action: &str| spec["validationActions"].as_array().is_some_and(|list| list.contains(&json!(action)));
        Binding {
            name: object::meta(object, "name").to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            resources: Resources::new(&spec["matchResources"]),
            denies: acts("Deny"),
            warns: acts("Warn"),
            audits: acts("Audit"),
        }
    }
}
