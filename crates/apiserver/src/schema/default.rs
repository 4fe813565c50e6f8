//! Defaults: filled in where a field is missing, or null where null is not a value.

use serde_json::Value;

use super::{
    Schema,
    way::{Step, Way},
};

/// One thing that `fill` has done.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    way: Vec<Step>,
    /// Whether there was a null; else there was nothing.
    null: bool,
}

/// Fills in defaults, from the outside in, so that a default of a parent gets those of its children; then takes out
/// nulls that are no values. What was done comes back, in its order.
pub fn fill(schema: &Schema, value: &mut Value) -> Vec<Filled> {
    let mut filled = Vec::new();
    walk(schema, value, Way::Root, &mut filled);
    filled
}

/// Takes back what `fill` did, as far as its places are there: in the object, or in an excerpt of it.
pub fn unfill(value: &mut Value, filled: &[Filled]) {
    for Filled { way, null } in filled.iter().rev() {
        let Some((Step::Name(name), parents)) = way.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut *value, |value, step| match step {
            Step::Name(name) => value.get_mut(name),
            Step::Item(index) => value.get_mut(index),
        });
        if let Some(parent) = parent.and_then(Value::as_object_mut) {
            if *null {
                parent.insert(name.clone(), Value::Null)
            } else {
                parent.remove(name)
            };
        }
    }
}

fn walk(schema: &Schema, value: &mut Value, way: Way<'_>, filled: &mut Vec<Filled>) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                let null = map.get(name).map(Value::is_null);
                let missing = null.is_none_or(|null| null && !property.nullable);
                if let (true, Some(default)) = (missing, &property.default) {
                    map.insert(name.clone(), default.clone());
                    filled.push(Filled { way: Way::Name(&way, name).steps(), null: null.is_some() });
                }
            }
            map.retain(|name, value| {
                let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()) else { return true };
                if value.is_null() && !inner.nullable && inner.default.is_none() {
                    filled.push(Filled { way: Way::Name(&way, name).steps(), null: true });
                    return false;
                }
                walk(inner, value, Way::Name(&way, name), filled);
                true
            });
        }
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                for (index, item) in list.iter_mut().enumerate() {
                    walk(items, item, Way::Item(&way, index), filled);
                }
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
        let sent = value.clone();
        let filled = fill(&schema, &mut value);
        let mut back = value.clone();
        unfill(&mut back, &filled);
        assert_eq!(back, sent);
        value
    }
}
