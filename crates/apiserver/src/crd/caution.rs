//! What a definition asks for and this server does not do: its author is told, so that nobody relies on it.

use serde_json::Value;

use super::versions;
use crate::field::child;

/// One text for each thing, naming where it stands. What the old definition had already is not said again.
pub fn cautions(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let known = old.map(texts).unwrap_or_default();
    texts(definition).into_iter().filter(|text| !known.contains(text)).collect()
}

fn texts(definition: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    for (index, version) in versions(definition).iter().enumerate() {
        let at = format!("spec.versions[{index}]");
        if version["selectableFields"].as_array().is_some_and(|fields| !fields.is_empty()) {
            texts.push(format!(
                "{at}.selectableFields: not served by this server; select by metadata.name and metadata.namespace"
            ));
        }
        let mut rules = Vec::new();
        find_rules(&version["schema"]["openAPIV3Schema"], &format!("{at}.schema.openAPIV3Schema"), &mut rules);
        if let Some(first) = rules.first() {
            let count = rules.len();
            texts.push(format!("{first}: rules are kept and not evaluated by this server ({count} in all)"));
        }
    }
    texts
}

fn find_rules(schema: &Value, path: &str, found: &mut Vec<String>) {
    if schema["x-kubernetes-validations"].as_array().is_some_and(|rules| !rules.is_empty()) {
        found.push(child(path, "x-kubernetes-validations"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        find_rules(property, &format!("{path}.properties[{name}]"), found);
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            find_rules(&schema[key], &child(path, key), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_done_is_said_once() {
        let rule = json!([{"rule": "self.a > 0"}]);
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "x-kubernetes-validations": rule, "properties": {"l": {"items": {"x-kubernetes-validations": rule}}}}}});
        let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        assert_eq!(
            cautions(&definition, None),
            [
                "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations: rules are kept and not evaluated \
             by this server (2 in all)",
            ]
        );
        assert!(cautions(&definition, Some(&definition)).is_empty());
    }
}
