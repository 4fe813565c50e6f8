//! How something is to be deleted, as the body of the request says it.

use serde_json::{Value, json};

use super::{Call, admit};
use crate::{
    decode,
    field::FieldError,
    form,
    patch::unlike,
    serve::query::Query,
    status::{Name, Result, Status},
};

/// From a body that is not empty.
pub(super) fn parse(call: &Call) -> Result<Value> {
    let parse = |why: String| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    admit::check_media(call)?;
    let body = if call.content_type().starts_with("application/yaml") {
        decode::yaml(&call.body).map_err(|error| Status::bad_request(format!("yaml: {error}")))?.value
    } else {
        decode::json(&call.body).map_err(|error| parse(form::json_fault(&error, &call.body)))?.value
    };
    if body.is_object() || body.is_null() {
        Ok(body)
    } else {
        Err(parse(unlike(&body, &format!("Go value of type {}", form::HEADER))))
    }
}

/// From the address, which counts where there is no body.
pub(super) fn from_query(query: &Query) -> Result<Value> {
    Ok(json!({
        "gracePeriodSeconds": query.number("gracePeriodSeconds")?,
        "orphanDependents": query.choice("orphanDependents"),
        "propagationPolicy": query.given("propagationPolicy"),
    }))
}

/// Whether a value has the type of a field.
type Fits = fn(&Value) -> bool;

/// What is misunderstood could delete too much, so nothing is passed over.
pub(super) fn check(options: &Value) -> Result<()> {
    let kind = options["kind"].as_str().unwrap_or_default();
    if !matches!(kind, "" | "DeleteOptions") {
        let version = options["apiVersion"].as_str().unwrap_or_default();
        return Err(Status::bad_request(format!("no kind {kind:?} is registered for version {version:?}")));
    }
    let place = |name: &str, wanted: &str| format!("Go struct field DeleteOptions.{name} of type {wanted}");
    let fields: [(&str, &str, Fits); 5] = [
        ("preconditions", "v1.Preconditions", Value::is_object),
        ("gracePeriodSeconds", "int64", Value::is_i64),
        ("propagationPolicy", "v1.DeletionPropagation", Value::is_string),
        ("orphanDependents", "bool", Value::is_boolean),
        ("dryRun", "[]string", |list| list.as_array().is_some_and(|list| list.iter().all(Value::is_string))),
    ];
    let mut given = fields.into_iter().map(|(name, wanted, fits)| (name, wanted, fits, &options[name]));
    if let Some((name, wanted, _, found)) = given.find(|(.., fits, value)| !value.is_null() && !fits(value)) {
        return Err(Status::bad_request(unlike(found, &place(name, wanted))));
    }
    for name in ["uid", "resourceVersion"] {
        let found = &options["preconditions"][name];
        if !found.is_null() && !found.is_string() {
            let wanted = if name == "uid" { "types.UID" } else { "string" };
            return Err(Status::bad_request(unlike(found, &place(&format!("preconditions.{name}"), wanted))));
        }
    }
    let errors = faults(options);
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(&Name::new("meta.k8s.io", "DeleteOptions"), "", &errors))
    }
}

fn faults(options: &Value) -> Vec<FieldError> {
    let (policy, dry) = (&options["propagationPolicy"], &options["dryRun"]);
    let mut errors = Vec::new();
    if !policy.is_null() && !options["orphanDependents"].is_null() {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy.clone(), why));
    }
    if !policy.is_null() && !["Foreground", "Background", "Orphan"].iter().any(|known| policy == known) {
        let known = ["Foreground", "Background", "Orphan", "nil"];
        errors.push(FieldError::not_supported("propagationPolicy", policy.clone(), &known));
    }
    if dry.as_array().is_some_and(|list| list.iter().any(|value| value != "All")) {
        errors.push(FieldError::not_supported("dryRun", dry.clone(), &["All"]));
    }
    errors
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("propagationPolicy=Orphan&gracePeriodSeconds=0&orphanDependents" => "422"; "both")]
    #[test_case("propagationPolicy=" => "422"; "an empty policy")]
    #[test_case("gracePeriodSeconds=x" => "400"; "no number")]
    #[test_case("gracePeriodSeconds=5&propagationPolicy=Background" => ""; "sound")]
    fn addresses(text: &str) -> String {
        let checked = from_query(&Query::parse(text)).and_then(|options| check(&options));
        checked.err().map(|status| status.code.to_string()).unwrap_or_default()
    }

    /// As kube-apiserver 1.37 answers them.
    #[test_case(json!(null) => ""; "nothing")]
    #[test_case(json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "propagationPolicy": "Orphan"}) => ""; "sound")]
    #[test_case(json!({"preconditions": 7}) => "400 json: cannot unmarshal number into Go struct field DeleteOptions.preconditions of type v1.Preconditions"; "preconditions")]
    #[test_case(json!({"preconditions": {"uid": 7}}) => "400 json: cannot unmarshal number into Go struct field DeleteOptions.preconditions.uid of type types.UID"; "uid")]
    #[test_case(json!({"gracePeriodSeconds": "x"}) => "400 json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"; "grace")]
    #[test_case(json!({"kind": "Other", "apiVersion": "v1"}) => r#"400 no kind "Other" is registered for version "v1""#; "another kind")]
    #[test_case(json!({"propagationPolicy": "x"}) => r#"422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil""#; "policy")]
    #[test_case(json!({"propagationPolicy": "Orphan", "orphanDependents": true}) => r#"422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#; "both")]
    #[test_case(json!({"dryRun": ["x"]}) => r#"422 DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All""#; "dry run")]
    fn options(options: Value) -> String {
        check(&options).err().map(|status| format!("{} {}", status.code, status.message)).unwrap_or_default()
    }
}
