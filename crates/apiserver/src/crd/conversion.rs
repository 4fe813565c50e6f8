//! How objects of a definition get from version to version.

use serde_json::Value;

use crate::{
    convert::{Endpoint, REVIEWS, roots},
    field::FieldError,
    name,
};

/// All that is wrong with `spec.conversion`, under the names that Kubernetes has within for what is in `webhook`. What the old
/// definition has may stay.
pub(super) fn check(spec: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let conversion = &spec["conversion"];
    let webhook = &conversion["webhook"];
    match conversion["strategy"].as_str() {
        Some("Webhook") => check_webhook(webhook, old, errors),
        Some("None") => {}
        Some("") | None if conversion.is_object() => {
            errors.push(FieldError::required("spec.conversion.strategy", ""));
        }
        None => {}
        Some(other) => errors.push(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"])),
    }
    if conversion["strategy"] != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        let given = [(&webhook["clientConfig"], CONFIG), (&webhook["conversionReviewVersions"], VERSIONS)];
        let given = given.into_iter().filter(|(value, _)| value.is_object() || !list(value).is_empty());
        errors.extend(given.map(|(_, at)| FieldError::forbidden(at, detail)));
    }
}

/// Whether the bundle of a webhook, if there is one, can be read. A definition cannot be established before.
pub(super) fn is_bundle_sound(spec: &Value) -> bool {
    let bundle = spec["conversion"]["webhook"]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
    bundle.is_empty() || roots(bundle).is_ok()
}

const CONFIG: &str = "spec.conversion.webhookClientConfig";
const VERSIONS: &str = "spec.conversion.conversionReviewVersions";

fn check_webhook(webhook: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let config = &webhook["clientConfig"];
    match (config["url"].as_str(), &config["service"]) {
        _ if !config.is_object() => {
            errors.push(FieldError::required(CONFIG, "required when strategy is set to Webhook"));
        }
        (None, service @ Value::Object(_)) => check_service(service, errors),
        (Some(url), Value::Null) => check_url(url, errors),
        _ => errors.push(FieldError::required(CONFIG, "exactly one of url or service is required")),
    }
    let bundle = config["caBundle"].as_str().unwrap_or_default();
    let held = old.is_some_and(|old| super::is_established(old) && is_bundle_sound(&old["spec"]));
    if let (true, Some(why)) = (held && !bundle.is_empty(), roots(bundle).err()) {
        errors.push(FieldError::invalid(format!("{CONFIG}.caBundle"), bundle, why));
    }
    check_reviews(list(&webhook["conversionReviewVersions"]), old, errors);
}

fn check_url(url: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (at, before) = (format!("{CONFIG}.url"), errors.len());
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid(at.clone(), scheme, why));
    }
    if host.is_empty() {
        errors.push(FieldError::invalid(at.clone(), "", format!("host must be specified{FORM}")));
    }
    for (part, what) in [(user, "user information is"), (fragment, "fragments are"), (query, "query parameters are")] {
        if !part.is_empty() {
            errors.push(FieldError::invalid(at.clone(), part, format!("{what} not permitted in the URL")));
        }
    }
    // What is left is what cannot be asked at all.
    if errors.len() == before
        && let Err(why) = Endpoint::parse(url)
    {
        errors.push(FieldError::invalid(at, url, why));
    }
}

fn check_service(service: &Value, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{CONFIG}.service.{key}");
    for key in ["name", "namespace"] {
        if service[key].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(at(key), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(at("port"), port, detail));
    }
    let path = service["path"].as_str().unwrap_or_default();
    if !path.is_empty() && !path.starts_with('/') {
        errors.push(FieldError::invalid(at("path"), path, "must start with a '/'"));
    }
    // What the first character should be is passed over, whatever it is.
    let inner = path.char_indices().nth(1).map_or("", |(at, _)| &path[at..]);
    let steps = inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate();
    for (index, step) in steps.filter(|_| !matches!(path, "" | "/")) {
        let why = match name::check_subdomain(step) {
            _ if step.is_empty() => format!("segment[{index}] may not be empty"),
            Err(why) => format!("segment[{index}]: {why}"),
            Ok(()) => continue,
        };
        errors.push(FieldError::invalid(at("path"), path, why));
    }
}

fn check_reviews(versions: &[Value], old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(VERSIONS, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        let (at, version) = (format!("{VERSIONS}[{index}]"), version.as_str().unwrap_or_default());
        if versions[..index].iter().any(|other| other == version) {
            errors.push(FieldError::invalid(at, version, "duplicate version"));
        } else if let Err(why) = name::check_dns1035(version) {
            errors.push(FieldError::invalid(at, version, why));
        }
    }
    let before = old.map(|old| list(&old["spec"]["conversion"]["webhook"]["conversionReviewVersions"]));
    if !is_known(versions) && before.is_none_or(|before| before.is_empty() || is_known(before)) {
        errors.push(FieldError::invalid(VERSIONS, versions.to_vec(), "must include at least one of v1, v1beta1"));
    }
}

fn is_known(versions: &[Value]) -> bool {
    versions.iter().any(|version| REVIEWS.iter().any(|known| version == known))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"strategy": "None"}) => ""; "none")]
    #[test_case(json!({"strategy": "Magic"}) => r#"spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook""#; "unknown")]
    #[test_case(json!({"strategy": "None", "webhook": {}}) => ""; "an empty webhook")]
    #[test_case(json!({"strategy": "None", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}) => "[spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook, spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook]"; "a webhook for nothing")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v1"]}}) => ""; "sound")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook"; "no config")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"; "nowhere")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n"}}, "conversionReviewVersions": ["v1"]}}) => ""; "service")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "", "port": 0, "path": "a//B"}}, "conversionReviewVersions": ["v1", "v1"]}})
        => "[spec.conversion.webhookClientConfig.service.namespace: Required value, spec.conversion.webhookClientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive, spec.conversion.webhookClientConfig.service.path: Invalid value: \"a//B\": must start with a '/', spec.conversion.webhookClientConfig.service.path: Invalid value: \"a//B\": segment[0] may not be empty, spec.conversion.webhookClientConfig.service.path: Invalid value: \"a//B\": segment[1] may not be empty, spec.conversion.webhookClientConfig.service.path: Invalid value: \"a//B\": segment[2]: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), spec.conversion.conversionReviewVersions[1]: Invalid value: \"v1\": duplicate version]"; "a bad service")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/", "caBundle": "!"}, "conversionReviewVersions": ["v1"]}}) => ""; "a bundle may be wrong at first")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v2"]}}) => "spec.conversion.conversionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1"; "review versions")]
    fn says(conversion: Value) -> String {
        let mut errors = Vec::new();
        check(&json!({"conversion": conversion}), None, &mut errors);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }

    /// Once a definition is established its bundle must stay sound, and one that never was may stay as it is.
    #[test]
    fn a_sound_bundle_stays_sound() {
        let spec = |bundle: &str| {
            json!({"conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://h/", "caBundle": bundle}}}})
        };
        let old = |bundle: &str| json!({"spec": spec(bundle), "status": {"conditions": [{"type": "Established", "status": "True"}]}});
        let errors = |old: Value| {
            let mut errors = Vec::new();
            check(&spec("!"), Some(&old), &mut errors);
            errors.len()
        };
        assert_eq!((errors(old("")), errors(old("!"))), (1, 0));
        assert!(is_bundle_sound(&spec("")) && !is_bundle_sound(&spec("!")));
    }
}
