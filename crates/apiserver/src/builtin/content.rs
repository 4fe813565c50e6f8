//! What config maps, secrets and leases may hold, in the texts of Kubernetes.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::tls;
use crate::{
    field::{Fault, FieldError},
    form::json_fault,
    name, object,
    patch::unlike,
};

const CONTENT_BYTES_MAX: usize = 1 << 20;
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// What is wrong with the content of an object of this kind, and with what becomes of the old one. `part` is what is written of it.
pub(crate) fn faults(kind: &str, part: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = old.map(|old| changes(kind, object, old)).unwrap_or_default();
    match kind {
        "ConfigMap" => config_map(object, &mut errors),
        "Secret" => secret(object, &mut errors),
        "Lease" => lease(&object["spec"], &mut errors),
        "Namespace" if part == "status" => phase(object, &mut errors),
        "Namespace" => errors.extend(finalizers(object, part == "finalize")),
        _ => {}
    }
    errors
}

/// What is not refused, and yet may be meant otherwise.
pub(crate) fn caution(kind: &str, object: &Value) -> Option<String> {
    let bytes = |key: &str| decoded(&object["data"][key]);
    let keeps_pair = kind == "Secret" && object["type"] == "kubernetes.io/tls";
    keeps_pair.then(|| tls::check(&bytes("tls.crt"), &bytes("tls.key")).err()).flatten()
}

/// The phase of a namespace follows from whether it is going.
fn phase(object: &Value, errors: &mut Vec<FieldError>) {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    let (wanted, when) = if object::is_deleting(object) { ("Terminating", "not empty") } else { ("Active", "empty") };
    if phase != wanted {
        let why = format!("may only be '{wanted}' if `deletionTimestamp` is {when}");
        errors.push(FieldError::invalid("status.Phase", phase, why));
    }
}

/// Those who have to do something before a namespace is gone, by their names.
fn finalizers(object: &Value, numbered: bool) -> Vec<FieldError> {
    let names = object["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fault = |(index, name): (usize, &str)| {
        let field = if numbered { format!("spec.finalizers[{index}]") } else { "spec.finalizers".to_owned() };
        let faults = object::finalizer_faults(name).into_iter();
        faults.map(|why| FieldError::invalid(field.clone(), name, why)).collect::<Vec<_>>()
    };
    names.enumerate().flat_map(fault).collect()
}

/// What cannot become of the old one.
fn changes(kind: &str, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if kind == "Secret" && object["type"] != old["type"] {
        errors.push(FieldError::invalid("type", object["type"].clone(), "field is immutable"));
    }
    if !matches!(kind, "ConfigMap" | "Secret") || old["immutable"] != true {
        return errors;
    }
    let frozen = |field: &str| FieldError::forbidden(field, "field is immutable when `immutable` is set");
    if object["immutable"] != true {
        errors.push(frozen("immutable"));
    }
    let changed = ["data", "binaryData"].into_iter().filter(|key| object[*key] != old[*key]);
    errors.extend(changed.map(frozen));
    errors
}

fn config_map(object: &Value, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in entries(object, "data") {
        check_key("data", key, errors);
        if object["binaryData"].get(key).is_some() {
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                key.as_str(),
                "duplicate of key present in binaryData",
            ));
        }
        bytes += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(object, "binaryData") {
        check_key("binaryData", key, errors);
        bytes += decoded(value).len();
    }
    // Kubernetes means the object as a whole.
    check_size("[]", bytes, errors);
}

fn secret(object: &Value, errors: &mut Vec<FieldError>) {
    let mut bytes = 0;
    for (key, value) in entries(object, "data") {
        check_key("data", key, errors);
        bytes += decoded(value).len();
    }
    check_size("data", bytes, errors);
    let missing = |key: &&str| object["data"].get(*key).is_none();
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/service-account-token" if is_empty(&object["metadata"]["annotations"][ACCOUNT]) => {
            errors.push(FieldError::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
        }
        "kubernetes.io/dockercfg" => check_json(object, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_json(object, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if ["username", "password"].iter().all(&missing) => {
            errors.extend(["username", "password"].map(required));
        }
        "kubernetes.io/ssh-auth" if is_empty(&object["data"]["ssh-privatekey"]) => {
            errors.push(required("ssh-privatekey"));
        }
        "kubernetes.io/tls" => errors.extend(["tls.crt", "tls.key"].into_iter().filter(missing).map(required)),
        _ => {}
    }
}

fn is_empty(text: &Value) -> bool {
    text.as_str().unwrap_or_default().is_empty()
}

/// A file of credentials must be a JSON object.
fn check_json(object: &Value, key: &str, errors: &mut Vec<FieldError>) {
    let field = format!("data[{key}]");
    let Some(value) = object["data"].get(key) else {
        errors.push(FieldError::required(field, ""));
        return;
    };
    let bytes = decoded(value);
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => unlike(&other, "Go value of type map[string]interface {}"),
        Err(error) => json_fault(&error, &bytes),
    };
    errors.push(FieldError::invalid(field, "<secret contents redacted>", why));
}

fn lease(spec: &Value, errors: &mut Vec<FieldError>) {
    let least = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    for (key, min, why) in least {
        if let Some(found) = spec[key].as_i64().filter(|found| *found < min) {
            errors.push(FieldError::invalid(format!("spec.{key}"), found, why));
        }
    }
}

fn entries<'a>(object: &'a Value, map: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object[map].as_object().into_iter().flatten()
}

/// The bytes of what the schema has found to be base64.
fn decoded(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

fn check_key(map: &str, key: &str, errors: &mut Vec<FieldError>) {
    for why in name::config_key_faults(key) {
        errors.push(FieldError::invalid(format!("{map}[{key}]"), key, why));
    }
}

fn check_size(field: &str, bytes: usize, errors: &mut Vec<FieldError>) {
    if bytes > CONTENT_BYTES_MAX {
        let detail = format!("may not be more than {CONTENT_BYTES_MAX} bytes");
        errors.push(FieldError::new(Fault::TooLong, field, Value::Null, detail));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn texts(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
        faults(kind, "", object, old).iter().map(ToString::to_string).collect()
    }

    fn secret(kind: &str, data: Value) -> Vec<String> {
        texts("Secret", &json!({"type": kind, "data": data}), None)
    }

    /// Texts of kube-apiserver 1.36.3.
    #[test_case("tls", json!({}) => vec!["data[tls.crt]: Required value", "data[tls.key]: Required value"]; "nothing of a certificate")]
    #[test_case("tls", json!({"tls.crt": ""}) => vec!["data[tls.key]: Required value"]; "half a certificate")]
    #[test_case("tls", json!({"tls.crt": "", "tls.key": ""}) => Vec::<String>::new(); "an empty certificate")]
    #[test_case("basic-auth", json!(null) => vec!["data[username]: Required value", "data[password]: Required value"]; "nobody")]
    #[test_case("basic-auth", json!({"username": ""}) => Vec::<String>::new(); "a user")]
    #[test_case("ssh-auth", json!({"ssh-privatekey": ""}) => vec!["data[ssh-privatekey]: Required value"]; "no key")]
    #[test_case("service-account-token", json!({}) => vec!["metadata.annotations[kubernetes.io/service-account.name]: Required value"]; "no account")]
    #[test_case("dockercfg", json!({}) => vec!["data[.dockercfg]: Required value"]; "no file")]
    #[test_case("dockercfg", json!({".dockercfg": ""}) => vec![r#"data[.dockercfg]: Invalid value: "<secret contents redacted>": unexpected end of JSON input"#]; "an empty file")]
    #[test_case("dockerconfigjson", json!({".dockerconfigjson": "WzFd"}) => vec![r#"data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go value of type map[string]interface {}"#]; "a list")]
    #[test_case("dockerconfigjson", json!({".dockerconfigjson": "eA=="}) => vec![r#"data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": invalid character 'x' looking for beginning of value"#]; "no JSON")]
    #[test_case("dockerconfigjson", json!({".dockerconfigjson": "e30="}) => Vec::<String>::new(); "a file")]
    fn types_of_secrets(kind: &str, data: Value) -> Vec<String> {
        secret(&format!("kubernetes.io/{kind}"), data)
    }

    #[test]
    fn keys_and_sizes() {
        let told = secret("Opaque", json!({"a b": "", ".": "", "..": "", "..x": "", "x": ""}));
        let word = r#"data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#;
        let dots = [
            r#"data[.]: Invalid value: ".": must not be '.'"#,
            r#"data[..]: Invalid value: "..": must not be '..'"#,
            r#"data[..x]: Invalid value: "..x": must not start with '..'"#,
        ];
        assert_eq!(told, [&dots[..], &[word]].concat());
        let map = json!({"data": {"a": "x"}, "binaryData": {"a": "YQ=="}});
        assert_eq!(
            texts("ConfigMap", &map, None),
            [r#"data[a]: Invalid value: "a": duplicate of key present in binaryData"#]
        );
        let large = |bytes: usize| texts("ConfigMap", &json!({"data": {"a": "x".repeat(bytes)}}), None);
        assert_eq!(large(CONTENT_BYTES_MAX), Vec::<String>::new());
        assert_eq!(large(CONTENT_BYTES_MAX + 1), ["[]: Too long: may not be more than 1048576 bytes"]);
    }

    #[test]
    fn what_stays_as_it_is() {
        let old = json!({"type": "Opaque", "immutable": true, "data": {"a": "YQ=="}});
        let told = texts("Secret", &json!({"type": "Other", "data": {}}), Some(&old));
        let frozen = "Forbidden: field is immutable when `immutable` is set";
        let kind = r#"type: Invalid value: "Other": field is immutable"#.to_owned();
        assert_eq!(told, [kind, format!("immutable: {frozen}"), format!("data: {frozen}")]);
        assert_eq!(texts("Secret", &old, Some(&old)), Vec::<String>::new());
        // Others may have fields of these names.
        assert_eq!(texts("CronTab", &json!({"data": 1}), Some(&json!({"immutable": true}))), Vec::<String>::new());
    }

    #[test]
    fn leases_count_upwards() {
        let told = texts("Lease", &json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}), None);
        let first = "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0";
        assert_eq!(told, [first, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]);
    }
}
