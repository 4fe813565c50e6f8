//! Defaults: filled in where a field is missing, or null where null is not a value.

use serde_json::Value;

use super::Schema;

/// Fills in defaults, from the outside in, so that a default of a parent gets those of its children; then takes out
/// nulls that are no values.
pub fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                let missing = map.get(name).is_none_or(|value| value.is_null() && !property.nullable);
                if let (true, Some(default)) = (missing, &property.default) {
                    map.insert(name.clone(), default.clone());
                }
            }
            map.retain(|name, value| {
                let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()) else { return true };
                if value.is_null() && !inner.nullable && !inner.preserve_unknown && schema.properties.contains_key(name)
                {
                    return false;
                }
                fill(inner, value);
                true
            });
        }
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                list.iter_mut().for_each(|item| fill(items, item));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test_case(json!({}) => json!({}); "a missing parent without default stays missing")]
    #[test_case(json!({"spec": {}}) => json!({"spec": {"n": 1, "nul": 3, "obj": {"in": "x"}}}); "parent default gets child defaults")]
    #[test_case(json!({"spec": {"n": 5, "obj": {"in": "y"}}}) => json!({"spec": {"n": 5, "nul": 3, "obj": {"in": "y"}}}); "given values stay")]
    #[test_case(json!({"spec": {"n": null, "nul": null, "plain": null}}) => json!({"spec": {"n": 1, "nul": null, "obj": {"in": "x"}}}); "nulls")]
    #[test_case(json!({"spec": {"list": [{}, {"n": 2}]}}) => json!({"spec": {"list": [{"n": 7}, {"n": 2}], "n": 1, "nul": 3, "obj": {"in": "x"}}}); "items")]
    fn fills(mut value: Value) -> Value {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 1},
            "nul": {"type": "integer", "nullable": true, "default": 3},
            "plain": {"type": "string"},
            "obj": {"type": "object", "default": {}, "properties": {"in": {"type": "string", "default": "x"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}},
        }}}}));
        fill(&schema, &mut value);
        value
    }
}
