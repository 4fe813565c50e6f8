//! How objects of a definition get from version to version.

use serde_json::Value;

use crate::{
    convert::{Endpoint, NO_SERVICES, roots},
    field::FieldError,
};

/// All that is wrong with `spec.conversion`.
pub fn check(spec: &Value, errors: &mut Vec<FieldError>) {
    let conversion = &spec["conversion"];
    let webhook = &conversion["webhook"];
    match conversion["strategy"].as_str() {
        Some("None") | None if webhook.is_object() => {
            let detail = "should not be set when strategy is not set to Webhook";
            errors.push(FieldError::forbidden("spec.conversion.webhook", detail));
        }
        Some("None") | None => {}
        Some("Webhook") => check_webhook(webhook, errors),
        Some(other) => errors.push(FieldError::not_supported("spec.conversion.strategy", other, &["None", "Webhook"])),
    }
}

fn check_webhook(webhook: &Value, errors: &mut Vec<FieldError>) {
    let config = &webhook["clientConfig"];
    let at = "spec.conversion.webhook.clientConfig";
    match (config["url"].as_str(), config["service"].is_object()) {
        _ if !config.is_object() => errors.push(FieldError::required(at, "required when strategy is set to Webhook")),
        (Some(_), true) | (None, false) => {
            errors.push(FieldError::required(at, "exactly one of url or service is required"));
        }
        (None, true) => errors.push(FieldError::forbidden(format!("{at}.service"), NO_SERVICES)),
        (Some(url), false) => {
            if let Err(why) = Endpoint::parse(url) {
                errors.push(FieldError::invalid(format!("{at}.url"), url, why));
            }
        }
    }
    if let Some(why) = config["caBundle"].as_str().filter(|text| !text.is_empty()).and_then(|text| roots(text).err()) {
        errors.push(FieldError::invalid(format!("{at}.caBundle"), config["caBundle"].clone(), why));
    }
    let versions = webhook["conversionReviewVersions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = "spec.conversion.webhook.conversionReviewVersions";
    if versions.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else if !versions.iter().any(|version| version == "v1") {
        errors.push(FieldError::invalid(at, versions.to_vec(), "must include at least one of v1"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"strategy": "None"}) => ""; "none")]
    #[test_case(json!({"strategy": "Magic"}) => r#"spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook""#; "unknown")]
    #[test_case(json!({"strategy": "None", "webhook": {}}) => "spec.conversion.webhook: Forbidden: should not be set when strategy is not set to Webhook"; "a webhook for nothing")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v1"]}}) => ""; "sound")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhook.clientConfig: Required value: required when strategy is set to Webhook"; "no config")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhook.clientConfig: Required value: exactly one of url or service is required"; "nowhere")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"service": {"name": "s", "namespace": "n"}}, "conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhook.clientConfig.service: Forbidden: this server has no services; give the webhook's address as url"; "service")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/", "caBundle": "!"}, "conversionReviewVersions": ["v1"]}}) => "spec.conversion.webhook.clientConfig.caBundle: Invalid value: \"!\": unable to load root certificates: Invalid symbol 33, offset 0."; "bundle")]
    #[test_case(json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v1beta1"]}}) => "spec.conversion.webhook.conversionReviewVersions: Invalid value: [\"v1beta1\"]: must include at least one of v1"; "review versions")]
    fn says(conversion: Value) -> String {
        let mut errors = Vec::new();
        check(&json!({"conversion": conversion}), &mut errors);
        if errors.is_empty() { String::new() } else { crate::field::join(&errors) }
    }
}
