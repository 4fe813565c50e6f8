//! Defaults: filled in where a field is missing, or null where null is not a value.

use serde_json::Value;

use super::{
    Schema,
    way::{Step, Way},
};

/// One thing that `fill` has done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filled {
    way: Vec<Step>,
    /// Whether there was a null; else there was nothing.
    pub null: bool,
}

/// What becomes of a null that is no value and has no default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    Drop,
    /// As in what is applied: there a null is not the same as nothing, which validation then says.
    Keep,
}

/// Fills in defaults, from the outside in, so that a default of a parent gets those of its children; then takes out
/// nulls that are no values. What was done comes back, in its order.
pub(crate) fn fill(schema: &Schema, value: &mut Value) -> Vec<Filled> {
    fill_beside(schema, value, Nulls::Drop)
}

/// The same beside nulls that may be kept.
pub(crate) fn fill_beside(schema: &Schema, value: &mut Value, nulls: Nulls) -> Vec<Filled> {
    let mut fill = Fill { nulls, done: Vec::new() };
    fill.walk(schema, value, Way::Root);
    fill.done
}

/// The same for the members of an object that a write is about; defaults of the others were filled in when it was read.
pub(crate) fn fill_part(
    schema: &Schema,
    object: &mut Value,
    nulls: Nulls,
    is_part: impl Fn(&str) -> bool,
) -> Vec<Filled> {
    let Some(map) = object.as_object_mut() else { return Vec::new() };
    let (part, rest) = std::mem::take(map).into_iter().partition(|(name, _)| is_part(name));
    let mut part = Value::Object(part);
    let filled = fill_beside(schema, &mut part, nulls).into_iter();
    let filled = filled.filter(|filled| matches!(filled.way.first(), Some(Step::Name(name)) if is_part(name)));
    *map = rest;
    if let Value::Object(part) = part {
        map.extend(part.into_iter().filter(|(name, _)| is_part(name)));
    }
    filled.collect()
}

/// Takes back what `fill` did, as far as its places are there: in the object, or in an excerpt of it. A null that was no value
/// is nothing, but in a list.
pub(crate) fn unfill(value: &mut Value, filled: &[Filled]) {
    for Filled { way, .. } in filled.iter().rev() {
        let Some((last, parents)) = way.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut *value, |value, step| match step {
            Step::Name(name) => value.get_mut(name),
            Step::Item(index) => value.get_mut(index),
        });
        match (last, parent) {
            (Step::Name(name), Some(Value::Object(map))) => drop(map.remove(name)),
            // An item has its place, and was a null there.
            (Step::Item(index), Some(Value::Array(list))) => {
                list.get_mut(*index).into_iter().for_each(|item| *item = Value::Null);
            }
            _ => {}
        }
    }
}

/// Takes out nulls that are no values, as `fill` does, and fills nothing in.
pub(crate) fn drop_nulls(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()) else { return true };
            drop_nulls(inner, value);
            !value.is_null() || inner.nullable
        }),
        Value::Array(list) => {
            if let Some(items) = &schema.items {
                list.iter_mut().for_each(|item| drop_nulls(items, item));
            }
        }
        _ => {}
    }
}

struct Fill {
    nulls: Nulls,
    done: Vec<Filled>,
}

impl Fill {
    fn walk(&mut self, schema: &Schema, value: &mut Value, way: Way<'_>) {
        match value {
            Value::Object(map) => {
                self.missing(schema, map, &way);
                map.retain(|name, value| {
                    let Some(inner) = schema.properties.get(name).or(schema.additional.as_deref()) else { return true };
                    let entry = !schema.properties.contains_key(name);
                    self.stands(inner, value, entry, Way::Name(&way, name))
                });
            }
            Value::Array(list) => {
                let Some(items) = &schema.items else { return };
                for (index, item) in list.iter_mut().enumerate() {
                    let way = Way::Item(&way, index);
                    if let (true, Some(default)) = (item.is_null() && !items.nullable, &items.default) {
                        self.done.push(Filled { way: way.steps(), null: true });
                        *item = default.clone();
                    }
                    self.walk(items, item, way);
                }
            }
            _ => {}
        }
    }

    fn missing(&mut self, schema: &Schema, map: &mut serde_json::Map<String, Value>, way: &Way<'_>) {
        for (name, property) in &schema.properties {
            let null = map.get(name).map(Value::is_null);
            let missing = null.is_none_or(|null| null && !property.nullable);
            if let (true, Some(default)) = (missing, &property.default) {
                map.insert(name.clone(), default.clone());
                self.done.push(Filled { way: Way::Name(way, name).steps(), null: null.is_some() });
            }
        }
    }

    /// Whether a member of an object stays, which is an entry of a map or a property. What is below it is filled in.
    fn stands(&mut self, schema: &Schema, value: &mut Value, entry: bool, way: Way<'_>) -> bool {
        if value.is_null() && !schema.nullable {
            let null = Filled { way: way.steps(), null: true };
            match &schema.default {
                None if self.nulls == Nulls::Keep => return true,
                None => {
                    self.done.push(null);
                    return false;
                }
                // An entry of a map is there by its key, so its default stands in for a null alone.
                Some(default) if entry => {
                    self.done.push(null);
                    *value = default.clone();
                }
                Some(_) => {}
            }
        }
        self.walk(schema, value, way);
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    #[test]
    fn only_a_part_is_filled() {
        let of = |default: i64| json!({"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": default}}});
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": of(1), "status": of(2)}}));
        let mut object = json!({"kind": "K", "spec": {}});
        let filled = fill_part(&schema, &mut object, Nulls::Drop, |name| name == "status");
        assert_eq!(object, json!({"kind": "K", "spec": {}, "status": {"n": 2}}));
        unfill(&mut object, &filled);
        assert_eq!(object, json!({"kind": "K", "spec": {}}));
        let filled = fill_part(&schema, &mut object, Nulls::Drop, |name| name != "status");
        assert_eq!((object, filled.len()), (json!({"kind": "K", "spec": {"n": 1}}), 1));
    }

    #[test]
    fn nulls_are_kept_where_they_are_applied() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "n": {"type": "integer", "default": 1}, "s": {"type": "string"}, "m": {"type": "object", "additionalProperties": {"type": "string"}},
        }}));
        let mut object = json!({"n": null, "s": null, "m": {"a": null}});
        fill_beside(&schema, &mut object, Nulls::Keep);
        assert_eq!(object, json!({"n": 1, "s": null, "m": {"a": null}}));
    }

    #[test_case(json!({}) => json!({}); "a missing parent without default stays missing")]
    #[test_case(json!({"spec": {}}) => json!({"spec": {"n": 1, "nul": 3, "obj": {"in": "x"}}}); "parent default gets child defaults")]
    #[test_case(json!({"spec": {"n": 5, "obj": {"in": "y"}}}) => json!({"spec": {"n": 5, "nul": 3, "obj": {"in": "y"}}}); "given values stay")]
    #[test_case(json!({"spec": {"n": null, "nul": null, "plain": null}}) => json!({"spec": {"n": 1, "nul": null, "obj": {"in": "x"}}}); "nulls")]
    #[test_case(json!({"spec": {"map": {"a": null, "b": {"in": "z"}, "c": {}}}}) => json!({"spec": {"map": {"a": {"in": "y"}, "b": {"in": "z"}, "c": {"in": "x"}}, "n": 1, "nul": 3, "obj": {"in": "x"}}}); "entries of a map")]
    #[test_case(json!({"spec": {"list": [{}, {"n": 2}]}}) => json!({"spec": {"list": [{"n": 7}, {"n": 2}], "n": 1, "nul": 3, "obj": {"in": "x"}}}); "items")]
    fn fills(mut value: Value) -> Value {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "n": {"type": "integer", "default": 1},
            "nul": {"type": "integer", "nullable": true, "default": 3},
            "plain": {"type": "string"},
            "obj": {"type": "object", "default": {}, "properties": {"in": {"type": "string", "default": "x"}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "default": {"in": "y"}, "properties": {"in": {"type": "string", "default": "x"}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 7}}}},
        }}}}));
        let mut sent = value.clone();
        drop_nulls(&schema, &mut sent);
        let filled = fill(&schema, &mut value);
        let mut back = value.clone();
        unfill(&mut back, &filled);
        assert_eq!(back, sent);
        value
    }
}
