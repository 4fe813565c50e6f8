//! What policies refuse when they are written, and what they say of requests.

use serde_json::{Value, json};
use test_case::test_case;

use super::*;
use crate::{builtin, field, serve::auth::User};

/// A sound policy with some fields of its spec set anew; null takes one away.
fn policy(changes: Value) -> Value {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"], "scope": "*"});
    let mut object = json!({"kind": kinds::POLICY, "metadata": {"name": "p"}, "spec": {
        "failurePolicy": "Fail", "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [rule]},
        "validations": [{"expression": "true"}]}});
    json_patch::merge(&mut object["spec"], &changes);
    object
}

fn binding(changes: Value) -> Value {
    let mut object = json!({"kind": kinds::BINDING, "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]}});
    json_patch::merge(&mut object["spec"], &changes);
    object
}

/// For texts of which a part matters.
fn has(part: &'static str) -> impl Fn(String) {
    move |text| assert!(text.contains(part), "{text}")
}

fn said(errors: Vec<field::FieldError>) -> String {
    if errors.is_empty() { String::new() } else { field::join(&errors) }
}

#[test_case(json!({}) => ""; "sound")]
#[test_case(json!({"failurePolicy": "Maybe"}) => "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\""; "failure policy")]
#[test_case(json!({"matchConstraints": null}) => "spec.matchConstraints: Required value"; "constraints")]
#[test_case(json!({"matchConstraints": {"resourceRules": []}}) => "spec.matchConstraints.resourceRules: Required value"; "no rules")]
#[test_case(json!({"validations": null}) => "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]"; "nothing demanded")]
#[test_case(json!({"validations": [{}]}) => "spec.validations[0].expression: Required value: expression is not specified"; "no expression")]
#[test_case(json!({"validations": [{"expression": "object.x"}]}) => "spec.validations[0].expression: Invalid value: \"object.x\": must evaluate to bool but got dyn"; "no verdict")]
#[test_case(json!({"validations": [{"expression": "object.x >"}]}) => using has("spec.validations[0].expression: Invalid value: \"object.x >\": compilation failed: ERROR: <input>:1:11: Syntax error"); "syntax")]
#[test_case(json!({"validations": [{"expression": "request.nme == ''"}]}) => using has("spec.validations[0].expression: Invalid value: \"request.nme == ''\": compilation failed: ERROR: <input>:1:8: undefined field 'nme'"); "unknown field of the request")]
#[test_case(json!({"validations": [{"expression": "variables.x"}]}) => using has("spec.validations[0].expression: Invalid value: \"variables.x\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables'"); "no variables")]
#[test_case(json!({"validations": [{"expression": "authorizer.group('').resource('pods').check('get').allowed()"}]}) => using has("the authorizer is not supported by this server"); "authorizer")]
#[test_case(json!({"validations": [{"expression": "params.x"}]}) => using has("parameters are not supported by this server"); "params")]
#[test_case(json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}) => "spec.paramKind: Forbidden: parameters are not supported by this server; write the values into the policy"; "param kind")]
#[test_case(json!({"validations": [{"expression": "true", "messageExpression": "1"}]}) => "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string but got int"; "message of another type")]
#[test_case(json!({"validations": [{"expression": "true", "message": "a\nb"}]}) => "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks"; "message with lines")]
#[test_case(json!({"validations": [{"expression": "true", "message": "  "}]}) => "spec.validations[0].message: Invalid value: \"  \": must be non-empty if specified"; "empty message")]
#[test_case(json!({"validations": [{"expression": "true", "reason": "Gone"}]}) => "spec.validations[0].reason: Unsupported value: \"Gone\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\""; "reason")]
#[test_case(json!({"variables": [{"name": "a-b", "expression": "1"}]}) => "spec.variables[0].name: Invalid value: \"a-b\": must be a valid CEL identifier"; "name of a variable")]
#[test_case(json!({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]}) => using has("spec.variables[0].expression: Invalid value: \"variables.b\": compilation failed: ERROR: <input>:1:10: undefined field 'b'"); "a later variable")]
#[test_case(json!({"matchConditions": [{"name": "", "expression": "1"}]}) => "[spec.matchConditions[0].name: Required value, spec.matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but got int]"; "condition")]
#[test_case(json!({"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]}) => "spec.matchConditions[1].name: Duplicate value: \"a\""; "conditions of one name")]
#[test_case(json!({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]}) => "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] but got int"; "annotation")]
#[test_case(json!({"matchConstraints": {"resourceRules": [{"apiGroups": ["*", "a"], "apiVersions": [], "resources": ["*", "x"], "operations": ["PATCH"], "scope": "All"}]}}) => "[spec.matchConstraints.resourceRules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other API groups, spec.matchConstraints.resourceRules[0].apiVersions: Required value, spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: \"PATCH\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\", spec.matchConstraints.resourceRules[0].resources: Invalid value: [\"*\",\"x\"]: if '*' is present, must not specify other resources without subresources, spec.matchConstraints.resourceRules[0].scope: Unsupported value: \"All\": supported values: \"*\", \"Cluster\", \"Namespaced\"]"; "rule")]
#[test_case(json!({"matchConstraints": {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}}) => using has("operator: Invalid value: \"Like\": not a valid selector operator"); "selector")]
fn policies_are_checked(changes: Value) -> String {
    said(check_policy(&policy(changes)))
}

#[test_case(json!({}) => ""; "sound")]
#[test_case(json!({"policyName": null}) => "spec.policyName: Required value"; "policy")]
#[test_case(json!({"validationActions": null}) => "spec.validationActions: Required value: at least one validation action is required"; "no action")]
#[test_case(json!({"validationActions": ["Deny", "Deny"]}) => "spec.validationActions[1]: Duplicate value: \"Deny\""; "twice")]
#[test_case(json!({"validationActions": ["Shout"]}) => "spec.validationActions[0]: Unsupported value: \"Shout\": supported values: \"Audit\", \"Deny\", \"Warn\""; "unknown action")]
#[test_case(json!({"validationActions": ["Deny", "Warn"]}) => "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"; "both")]
#[test_case(json!({"paramRef": {"name": "x"}}) => "spec.paramRef: Forbidden: parameters are not supported by this server; write the values into the policy"; "params")]
fn bindings_are_checked(changes: Value) -> String {
    said(check_binding(&binding(changes)))
}

/// What is said of an update of ConfigMap `a` in namespace `default`.
fn judged(policy: &Value, binding: &Value) -> Vec<String> {
    let resources = builtin::resources();
    let resource = resources.iter().find(|resource| resource.plural == "configmaps").unwrap();
    let user = User::new("eve".to_owned(), vec!["staff".to_owned()]);
    let attributes = Attributes {
        resource,
        subresource: "",
        operation: Operation::Update,
        namespace: "default",
        name: "a",
        user: &user,
        dry_run: false,
        options: json!({"kind": "UpdateOptions"}),
    };
    let policies = Policies::default().with(1, "p", Some(policy.clone())).with(2, "b", Some(binding.clone()));
    let object =
        json!({"metadata": {"name": "a", "labels": {"team": "x"}}, "data": {"n": "2", "long": "y".repeat(3000)}});
    let old = json!({"metadata": {"name": "a"}, "data": {"n": "1"}});
    let namespace = json!({"metadata": {"name": "default", "labels": {"env": "prod"}}});
    let mut verdict = Verdict::default();
    for concerned in policies.concerned(&attributes.place(), &["v1".to_owned()]) {
        let request = attributes.request(&concerned.version);
        let input = Input { object: &object, old: &old, request: &request, namespace: &namespace };
        concerned.judge(&attributes.place(), &input, &mut verdict);
    }
    let denials = verdict.denials.iter().map(|denial| {
        let text = denial.text.replace("ValidatingAdmissionPolicy 'p' with binding 'b' denied request", "denied");
        format!("{}: {text}", denial.reason)
    });
    denials.chain(verdict.warnings.iter().map(|text| format!("warning: {text}"))).collect()
}

fn validation(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test_case(validation("object.data.n == '2' && oldObject.data.n == '1'") => ""; "objects")]
#[test_case(validation("object.data.n == '3'") => "Invalid: denied: failed expression: object.data.n == '3'"; "no message")]
#[test_case(validation("object.data.none == ''") => "Invalid: denied: expression 'object.data.none == ''' resulted in error: no such key: none"; "cannot be evaluated")]
#[test_case(json!({"failurePolicy": "Ignore", "validations": [{"expression": "object.data.none == ''"}]}) => ""; "cannot be evaluated and ignored")]
#[test_case(json!({"validations": [{"expression": "false", "message": "m", "reason": "Forbidden"}]}) => "Forbidden: denied: m"; "message and reason")]
#[test_case(json!({"validations": [{"expression": "false", "message": "m", "messageExpression": "'n is ' + object.data.n"}]}) => "Invalid: denied: n is 2"; "made message")]
#[test_case(json!({"validations": [{"expression": "false", "message": "m", "messageExpression": "string(object.none)"}, {"expression": "false", "messageExpression": "'a\\nb'", "message": "l"}]}) => "Invalid: denied: m|Invalid: denied: l"; "message that cannot be made")]
#[test_case(validation("request.operation == 'UPDATE' && request.name == 'a' && request.namespace == 'default' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && request.userInfo.username == 'eve' && 'staff' in request.userInfo.groups && !request.dryRun && request.options.kind == 'UpdateOptions' && !has(request.subResource)") => ""; "request")]
#[test_case(validation("namespaceObject.metadata.labels.env == 'prod'") => ""; "namespace")]
#[test_case(json!({"matchConditions": [{"name": "c", "expression": "object.data.n == '3'"}, {"name": "d", "expression": "object.none == 1"}], "validations": [{"expression": "false"}]}) => ""; "one condition is false")]
#[test_case(json!({"matchConditions": [{"name": "c", "expression": "namespaceObject == null"}], "validations": [{"expression": "namespaceObject != null"}]}) => ""; "conditions see no namespace")]
#[test_case(json!({"matchConditions": [{"name": "d", "expression": "object.none == 1"}], "validations": [{"expression": "false"}]}) => "Invalid: denied: expression 'object.none == 1' resulted in error: no such key: none"; "a condition cannot be evaluated")]
#[test_case(json!({"variables": [{"name": "n", "expression": "int(object.data.n)"}, {"name": "m", "expression": "variables.n + 1"}, {"name": "bad", "expression": "object.none"}], "validations": [{"expression": "variables.m == 3 || variables.bad"}, {"expression": "variables.m == 4", "messageExpression": "'m is ' + string(variables.m)"}]}) => "Invalid: denied: m is 3"; "variables")]
#[test_case(json!({"auditAnnotations": [{"key": "k", "valueExpression": "object.none"}], "validations": null}) => using has("must evaluate to one of"); "an annotation that does not compile")]
#[test_case(json!({"auditAnnotations": [{"key": "k", "valueExpression": "string(object.none)"}], "validations": null}) => "Invalid: denied: expression 'string(object.none)' resulted in error: no such key: none"; "an annotation that cannot be made")]
#[test_case(json!({"paramKind": {"kind": "x"}}) => "Invalid: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: parameters are not supported by this server; write the values into the policy"; "somebody else stored it")]
#[test_case(json!({"matchConstraints": {"objectSelector": {"matchLabels": {"team": "z"}}}, "validations": [{"expression": "false"}]}) => ""; "not chosen")]
#[test_case(json!({"matchConstraints": {"namespaceSelector": {"matchLabels": {"env": "prod"}}}, "validations": [{"expression": "false"}]}) => "Invalid: denied: failed expression: false"; "chosen")]
#[test_case(validation("[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, object.data.long.contains('yyyyyyyyyyyyyz') == false)))))") => using has("resulted in error: operation cancelled: actual cost limit exceeded"); "too expensive")]
fn requests_are_judged(changes: Value) -> String {
    judged(&policy(changes), &binding(json!({}))).join("|")
}

#[test]
fn all_of_a_binding_shares_a_budget() {
    let expensive = "object.data.long.matches('(y|z)*x?(y|z)*x?(y|z)*x?(y|z)*x?(y|z)*x?(y|z)*x?(y|z)*x?(y|z)*x?$')";
    let validations: Vec<Value> = (0..3000).map(|_| json!({"expression": expensive})).collect();
    let said = judged(&policy(json!({"validations": validations})), &binding(json!({})));
    assert_eq!(
        said,
        [
            "Invalid: denied: validation failed due to running out of cost budget, no further validation rules will be run"
        ]
    );
}

#[test]
fn a_binding_decides_what_follows() {
    let no = policy(json!({"validations": [{"expression": "false", "message": "m"}]}));
    let warn = judged(&no, &binding(json!({"validationActions": ["Warn", "Audit"]})));
    assert_eq!(warn, ["warning: Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': m"]);
    assert!(judged(&no, &binding(json!({"policyName": "other"}))).is_empty(), "not bound");
    let elsewhere = json!({"matchResources": {"namespaceSelector": {"matchLabels": {"env": "test"}}}});
    assert!(judged(&no, &binding(elsewhere)).is_empty(), "bound elsewhere");
}
