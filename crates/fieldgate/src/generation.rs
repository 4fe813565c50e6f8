//! Whether a write counts as a change of what is wanted.

use serde_json::{Map, Value};

/// Whether storing `value` over `stored` raises `metadata.generation`: whether anything but metadata differs, and but
/// status if that is a subresource. To be asked after the write step, so that what was suppressed does not count.
pub fn raises_generation(stored: &Value, value: &Value, status_is_subresource: bool) -> bool {
    let counts = |key: &str| key != "metadata" && !(status_is_subresource && key == "status");
    let (Some(stored), Some(value)) = (stored.as_object(), value.as_object()) else { return stored != value };
    let differs = |a: &Map<String, Value>, b: &Map<String, Value>| {
        a.iter().any(|(key, field)| counts(key) && b.get(key) != Some(field))
    };
    differs(stored, value) || differs(value, stored)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({"metadata": {"labels": {}}, "spec": {"a": 1}}), true => false; "metadata does not count")]
    #[test_case(json!({"metadata": {}, "spec": {"a": 2}}), true => true; "spec counts")]
    #[test_case(json!({"metadata": {}}), true => true; "what is gone counts")]
    #[test_case(json!({"metadata": {}, "spec": {"a": 1}, "status": {}}), true => false; "a status apart does not count")]
    #[test_case(json!({"metadata": {}, "spec": {"a": 1}, "status": {}}), false => true; "a status that is a field counts")]
    fn counts(value: Value, status_is_subresource: bool) -> bool {
        raises_generation(&json!({"metadata": {}, "spec": {"a": 1}}), &value, status_is_subresource)
    }
}
