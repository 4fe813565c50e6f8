//! A value beside what it was before the write, where the two can be told to be the same thing.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ListType, Schema};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    pub schema: &'a Schema,
    pub new: &'a Value,
    pub old: &'a Value,
}

impl<'a> Pair<'a> {
    /// The pair under a field, if both sides have it and the schema knows it.
    pub(crate) fn key(&self, name: &str) -> Option<Pair<'a>> {
        let schema = self.schema.properties.get(name).or(self.schema.additional.as_deref())?;
        Some(Pair { schema, new: self.new.get(name)?, old: self.old.get(name)? })
    }

    /// The pair of an item, which only items of a map list have.
    pub(crate) fn index(&self, index: usize) -> Option<Pair<'a>> {
        let new = self.new.get(index)?;
        let old = self.schema.item_like(new, self.old.as_array()?)?;
        Some(Pair { schema: self.schema.items.as_deref()?, new, old })
    }

    /// The same of all items, in their order.
    pub(crate) fn items(&self) -> Vec<Option<Pair<'a>>> {
        let list = |value: &'a Value| value.as_array().map_or(&[][..], Vec::as_slice);
        let Some(schema) = self.schema.items.as_deref().filter(|_| self.schema.list_type == Some(ListType::Map)) else {
            return vec![None; list(self.new).len()];
        };
        let mut by_keys: BTreeMap<String, &Value> = BTreeMap::new();
        for old in list(self.old) {
            by_keys.entry(self.schema.keys_text(old)).or_insert(old);
        }
        let pair = |new| Some(Pair { schema, new, old: by_keys.get(&self.schema.keys_text(new)).copied()? });
        list(self.new).iter().map(pair).collect()
    }

    pub(crate) fn is_equal(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if self.schema.list_type == Some(ListType::Map) => {
                new.len() == old.len() && self.items().iter().all(|pair| pair.is_some_and(|pair| pair.is_equal()))
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|name| self.key(name).is_some_and(|pair| pair.is_equal()))
            }
            (new, old) => new == old,
        }
    }
}

impl Schema {
    /// The item of a map list with the same keys.
    pub(crate) fn item_like<'a>(&self, item: &Value, list: &'a [Value]) -> Option<&'a Value> {
        if self.list_type != Some(ListType::Map) {
            return None;
        }
        list.iter().find(|other| self.list_keys.iter().all(|key| other.get(key) == item.get(key)))
    }

    /// The keys of an item of a map list, equal for items that have equal ones.
    fn keys_text(&self, item: &Value) -> String {
        let text = |key: &String| item.get(key).map_or_else(|| "-".to_owned(), Value::to_string);
        self.list_keys.iter().map(text).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::check_lists;

    /// Each item once: a list as long as an object can hold must not hold up the server.
    #[test]
    fn items_of_a_long_list_find_each_other() {
        let schema = Schema::parse(
            &json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
            "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}),
        );
        let list: Vec<Value> = (0..30_000).map(|n| json!({"n": n})).collect();
        let (old, new) = (json!(list), Value::Array(list.iter().rev().cloned().collect()));
        let pair = Pair { schema: &schema, new: &new, old: &old };
        assert!(pair.is_equal());
        assert!(
            pair.items().iter().zip(list.iter().rev()).all(|(pair, item)| pair.is_some_and(|pair| pair.old == item))
        );
        let mut errors = Vec::new();
        check_lists(&schema, &old, "l", &mut errors);
        assert!(errors.is_empty());
    }
}
