//! Which requests a policy or a binding is about (MatchResources).

use serde_json::Value;

use super::attributes::Operation;
use crate::selector::Selector;

/// Where a request goes, but for the version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub group: &'a str,
    pub plural: &'a str,
    pub subresource: &'a str,
    pub operation: Operation,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl Place<'_> {
    pub(crate) fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.plural == "namespaces"
    }
}

#[derive(Debug)]
pub(crate) struct Resources {
    namespaces: Result<Selector, String>,
    objects: Result<Selector, String>,
    /// None of them means all.
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Other versions of a resource count as the same.
    equivalent: bool,
}

#[derive(Debug)]
struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    operations: Vec<String>,
    scope: String,
    names: Vec<String>,
}

impl Resources {
    /// Reads what was checked when it was written; `{}` is about everything.
    pub(crate) fn new(spec: &Value) -> Resources {
        let rules = |key: &str| spec[key].as_array().into_iter().flatten().map(Rule::new).collect();
        Resources {
            namespaces: Selector::of_labels(&spec["namespaceSelector"]),
            objects: Selector::of_labels(&spec["objectSelector"]),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            equivalent: spec["matchPolicy"] != "Exact",
        }
    }

    /// The version under which the rules name this place, if they do. `versions` are the request's own and then the others.
    pub(crate) fn names<'v>(&self, place: &Place<'_>, versions: &'v [String]) -> Option<&'v str> {
        let versions = if self.equivalent { versions } else { &versions[..versions.len().min(1)] };
        let found =
            |rules: &[Rule]| versions.iter().find(|version| rules.iter().any(|rule| rule.names(place, version)));
        match (found(&self.excluded), self.rules.is_empty()) {
            (Some(_), _) => None,
            (None, true) => versions.first().map(String::as_str),
            (None, false) => found(&self.rules).map(String::as_str),
        }
    }

    /// Whether the selectors choose these objects. What is in no namespace is never left out by a selector of namespaces.
    pub(crate) fn select(&self, place: &Place<'_>, namespace: &Value, objects: [&Value; 2]) -> Result<bool, String> {
        let namespaces = self.namespaces.as_ref().map_err(Clone::clone)?;
        if (!place.namespace.is_empty() || place.is_namespace()) && !namespaces.matches(namespace) {
            return Ok(false);
        }
        let selector = self.objects.as_ref().map_err(Clone::clone)?;
        let chosen = |object: &&Value| !object.is_null() && selector.matches(object);
        Ok(selector.is_empty() || objects.iter().any(chosen))
    }
}

impl Rule {
    fn new(rule: &Value) -> Rule {
        let texts = |key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let part = |text: String| match text.split_once('/') {
            Some((resource, part)) => (resource.to_owned(), part.to_owned()),
            None => (text, String::new()),
        };
        Rule {
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(part).collect(),
            operations: texts("operations"),
            scope: rule["scope"].as_str().unwrap_or("*").to_owned(),
            names: texts("resourceNames"),
        }
    }

    fn names(&self, place: &Place<'_>, version: &str) -> bool {
        let one_of = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let fits = |wanted: &str, found: &str| wanted == "*" || wanted == found;
        let in_namespace = !place.namespace.is_empty() && !place.is_namespace();
        let scope = match self.scope.as_str() {
            "Namespaced" => in_namespace,
            "Cluster" => !in_namespace,
            _ => true,
        };
        scope
            && one_of(&self.operations, place.operation.name())
            && one_of(&self.groups, place.group)
            && one_of(&self.versions, version)
            && self.resources.iter().any(|(plural, part)| fits(plural, place.plural) && fits(part, place.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == place.name))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn place<'a>() -> Place<'a> {
        Place {
            group: "g.example.com",
            plural: "things",
            subresource: "",
            operation: Operation::Update,
            namespace: "default",
            name: "a",
        }
    }

    #[test_case(json!({}) => Some("v1"); "nothing said is everything")]
    #[test_case(json!({"resourceRules": [{}]}) => None; "empty rule")]
    #[test_case(json!({"resourceRules": [{"apiVersions": ["v2"]}]}) => Some("v2"); "another version is the same")]
    #[test_case(json!({"matchPolicy": "Exact", "resourceRules": [{"apiVersions": ["v2"]}]}) => None; "unless exact")]
    #[test_case(json!({"resourceRules": [{"apiGroups": ["other"]}]}) => None; "group")]
    #[test_case(json!({"resourceRules": [{"operations": ["CREATE", "DELETE"]}]}) => None; "operation")]
    #[test_case(json!({"resourceRules": [{"operations": ["*"]}]}) => Some("v1"); "every operation")]
    #[test_case(json!({"resourceRules": [{"resources": ["things/status"]}]}) => None; "part")]
    #[test_case(json!({"resourceRules": [{"resources": ["things/*"]}]}) => Some("v1"); "all parts and the whole")]
    #[test_case(json!({"resourceRules": [{"resources": ["*"]}]}) => Some("v1"); "every resource")]
    #[test_case(json!({"resourceRules": [{"scope": "Cluster"}]}) => None; "scope")]
    #[test_case(json!({"resourceRules": [{"scope": "Namespaced"}]}) => Some("v1"); "namespaced")]
    #[test_case(json!({"resourceRules": [{"resourceNames": ["b"]}]}) => None; "another name")]
    #[test_case(json!({"resourceRules": [{"resourceNames": ["b", "a"]}]}) => Some("v1"); "name")]
    #[test_case(json!({"resourceRules": [{"operations": ["*"]}], "excludeResourceRules": [{"resourceNames": ["a"]}]}) => None; "excluded")]
    #[test_case(json!({"excludeResourceRules": [{"apiVersions": ["v2"]}]}) => None; "excluded under another version")]
    fn named(mut spec: Value) -> Option<&'static str> {
        let whole = json!({"apiGroups": ["g.example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["UPDATE"]});
        for list in ["resourceRules", "excludeResourceRules"] {
            for rule in spec[list].as_array_mut().into_iter().flatten().filter(|rule| rule != &&json!({})) {
                for (key, value) in whole.as_object().unwrap() {
                    if rule.get(key).is_none() {
                        rule[key] = value.clone();
                    }
                }
            }
        }
        let found = Resources::new(&spec).names(&place(), &["v1".to_owned(), "v2".to_owned()]).map(str::to_owned);
        found.map(|version| if version == "v1" { "v1" } else { "v2" })
    }

    #[test_case(json!({"namespaceSelector": {"matchLabels": {"team": "a"}}}), "default" => true; "namespace")]
    #[test_case(json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), "default" => false; "other namespace")]
    #[test_case(json!({"namespaceSelector": {"matchLabels": {"team": "b"}}}), "" => true; "in no namespace")]
    #[test_case(json!({"objectSelector": {"matchExpressions": [{"key": "old", "operator": "Exists"}]}}), "" => true; "what was there counts")]
    #[test_case(json!({"objectSelector": {"matchLabels": {"none": "x"}}}), "" => false; "neither")]
    fn selected(spec: Value, namespace: &'static str) -> bool {
        let labels = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
        let place = Place { namespace, ..place() };
        Resources::new(&spec).select(&place, &labels("team", "a"), [&labels("new", "x"), &labels("old", "x")]).unwrap()
    }
}
