//! The two kinds as the server publishes and stores them.

use serde_json::{Value, json};

use super::{BINDINGS, GROUP, POLICIES};
use crate::{
    builtin::{Basics, resource, text, words},
    object,
    resource::{Resource, Role},
    table::Column,
};

pub(super) const POLICY: &str = "ValidatingAdmissionPolicy";
pub(super) const BINDING: &str = "ValidatingAdmissionPolicyBinding";

pub(crate) fn resources() -> Vec<Resource> {
    vec![policies(), bindings()]
}

/// What the server says of a policy it has read.
pub(crate) fn observe(object: &mut Value) {
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    object["status"]["observedGeneration"] = object::generation(object).into();
}

fn policies() -> Resource {
    let count = "Validations indicates the number of validation rules defined in this configuration";
    let params = "ParamKind specifies the kind of resources used to parameterize this policy";
    resource(Basics {
        group: GROUP,
        plural: POLICIES,
        kind: POLICY,
        short_names: &[],
        namespaced: false,
        role: Role::Policy,
        schema: policy_schema(),
        columns: vec![
            Column::name(),
            Column::cell("Validations", "integer", count, |policy| {
                policy["spec"]["validations"].as_array().map_or(0, Vec::len).into()
            }),
            Column::cell("ParamKind", "string", params, |policy| param_kind(&policy["spec"]["paramKind"]).into()),
            Column::age(),
        ],
    })
}

fn bindings() -> Resource {
    let policy = "PolicyName indicates the policy definition which the policy binding binded to";
    let params = "ParamRef indicates the param resource which sets the configuration param";
    resource(Basics {
        group: GROUP,
        plural: BINDINGS,
        kind: BINDING,
        short_names: &[],
        namespaced: false,
        role: Role::Binding,
        schema: binding_schema(),
        columns: vec![
            Column::name(),
            Column::cell("PolicyName", "string", policy, |binding| words(&binding["spec"]["policyName"])),
            Column::cell("ParamRef", "string", params, |binding| param_ref(&binding["spec"]["paramRef"]).into()),
            Column::age(),
        ],
    })
}

fn param_kind(kind: &Value) -> String {
    let text = |key: &str| kind[key].as_str().unwrap_or_default();
    if kind.is_object() { format!("{}/{}", text("apiVersion"), text("kind")) } else { "<unset>".to_owned() }
}

fn param_ref(params: &Value) -> String {
    let text = |key: &str| params[key].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        (_, "") if params["selector"].is_object() => selector_shown(&params["selector"]),
        (_, "") => "<unset>".to_owned(),
        // Whether there are namespaces cannot be told from here.
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A selector as Go prints it.
fn selector_shown(selector: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {},", text(value))).collect();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().map(|expression| {
        let (key, operator) = (text(&expression["key"]), text(&expression["operator"]));
        let values: Vec<String> = expression["values"].as_array().into_iter().flatten().map(text).collect();
        format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn list(description: &str, items: Value) -> Value {
    json!({"type": "array", "description": description, "items": items, "x-kubernetes-list-type": "atomic"})
}

fn texts(description: &str) -> Value {
    list(description, json!({"type": "string"}))
}

fn keyed(description: &str, key: &str, items: Value) -> Value {
    json!({"type": "array", "description": description, "items": items, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key], "x-kubernetes-patch-merge-key": key, "x-kubernetes-patch-strategy": "merge"})
}

fn atomic(mut schema: Value) -> Value {
    schema["x-kubernetes-map-type"] = "atomic".into();
    schema
}

fn selector(description: &str) -> Value {
    let requirement = json!({"type": "object", "properties": {
        "key": text("The label that is asked for."), "operator": text("In, NotIn, Exists or DoesNotExist."),
        "values": texts("Values for In and NotIn."),
    }});
    json!({"type": "object", "description": description, "default": {}, "x-kubernetes-map-type": "atomic", "properties": {
        "matchLabels": {"type": "object", "description": "Labels and the values they must have.", "additionalProperties": {"type": "string"}},
        "matchExpressions": list("More that must hold.", requirement),
    }})
}

fn match_resources(description: &str) -> Value {
    let rule = json!({"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
        "apiGroups": texts("Groups, or * for all."), "apiVersions": texts("Versions, or * for all."),
        "resources": texts("Resources, `things`, or parts of them, `things/status`, with * for all."),
        "operations": texts("CREATE, UPDATE, DELETE, CONNECT or *."),
        "scope": {"type": "string", "default": "*", "description": "Cluster, Namespaced or *."},
        "resourceNames": texts("Names of objects; none of them means all."),
    }});
    json!({"type": "object", "description": description, "x-kubernetes-map-type": "atomic", "properties": {
        "namespaceSelector": selector("Which namespaces, by their labels. What is in no namespace is always meant."),
        "objectSelector": selector("Which objects, by the labels they have or had."),
        "resourceRules": list("Which operations on which resources.", rule.clone()),
        "excludeResourceRules": list("Which of those not.", rule),
        "matchPolicy": {"type": "string", "default": "Equivalent",
            "description": "Equivalent: requests by another version of a resource are meant too. Exact: they are not."},
    }})
}

fn policy_schema() -> Value {
    let named = |name: &str, expression: &str| {
        json!({"type": "object", "required": ["name", "expression"], "properties": {
            "name": text(name), "expression": text(expression)}})
    };
    let validation = json!({"type": "object", "properties": {
        "expression": text("Must be true. Sees object, oldObject, request, namespaceObject and variables."),
        "message": text("What is said if it is not."),
        "messageExpression": text("Makes that text; goes before message."),
        "reason": text("Forbidden, Invalid (unless given) or RequestEntityTooLarge."),
    }});
    let annotation = json!({"type": "object", "properties": {
        "key": text("The name of the annotation."), "valueExpression": text("Makes its text, or null for none.")}});
    let warning = json!({"type": "object", "properties": {
        "fieldRef": text("Where the expression stands."), "warning": text("What is doubtful about it.")}});
    json!({"type": "object", "description": "ValidatingAdmissionPolicy accepts or rejects objects without changing them.", "properties": {
        "spec": {"type": "object", "description": "What is demanded of which requests.", "properties": {
            "paramKind": {"type": "object", "description": "Not supported by this server.", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text("Group and version."), "kind": text("The kind.")}},
            "matchConstraints": match_resources("Which requests are judged. Required."),
            "matchConditions": keyed("Further conditions for that, which all must be true.", "name",
                named("What the condition is called.", "Must be true for the policy to be asked.")),
            "variables": keyed("Expressions that others use as variables.NAME; each may use those before it.", "name",
                atomic(named("The name after `variables.`", "What it stands for."))),
            "validations": list("What must be true.", validation),
            "auditAnnotations": list("What is noted of each request.", annotation),
            "failurePolicy": {"type": "string", "default": "Fail", "description": "Fail or Ignore: what to do if an expression cannot be evaluated."},
        }},
        "status": {"type": "object", "description": "What the server makes of it.", "properties": {
            "observedGeneration": {"type": "integer", "format": "int64", "description": "The generation that is in force."},
            "typeChecking": {"type": "object", "properties": {"expressionWarnings": list("Expressions that do not fit the types.", warning)}},
            "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        }},
    }})
}

fn binding_schema() -> Value {
    json!({"type": "object", "description": "ValidatingAdmissionPolicyBinding puts a policy in force.", "properties": {
        "spec": {"type": "object", "description": "Which policy, where, and what follows.", "properties": {
            "policyName": text("The policy. Required."),
            "paramRef": {"type": "object", "description": "Not supported by this server.", "x-kubernetes-map-type": "atomic",
                "x-kubernetes-preserve-unknown-fields": true},
            "matchResources": match_resources("Which of the policy's requests are judged; all unless given."),
            "validationActions": {"type": "array", "description": "Deny, Warn, Audit: what follows when the policy says no. Required.",
                "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        }},
    }})
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(json!(null) => "<unset>"; "none")]
    #[test_case(json!({"name": "a"}) => "*/a"; "by name")]
    #[test_case(json!({"name": "a", "namespace": "forms"}) => "forms/a"; "by name and namespace")]
    #[test_case(json!({"selector": {"matchLabels": {"b": "c", "a": "b"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]}})
        => "&LabelSelector{MatchLabels:map[string]string{a: b,b: c,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"; "by labels")]
    fn parameters(reference: Value) -> String {
        param_ref(&reference)
    }

    #[test_case(json!(null) => "<unset>"; "none")]
    #[test_case(json!({"apiVersion": "forms.io/v1", "kind": "Foo"}) => "forms.io/v1/Foo"; "a kind")]
    fn kinds_of_parameters(kind: Value) -> String {
        param_kind(&kind)
    }
}
