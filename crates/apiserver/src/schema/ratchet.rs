//! A value beside what it was before the write, where the two can be told to be the same thing.

use serde_json::Value;

use super::{ListType, Schema};

#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    pub schema: &'a Schema,
    pub new: &'a Value,
    pub old: &'a Value,
}

impl<'a> Pair<'a> {
    /// The pair under a field, if both sides have it and the schema knows it.
    pub fn key(&self, name: &str) -> Option<Pair<'a>> {
        let schema = self.schema.properties.get(name).or(self.schema.additional.as_deref())?;
        Some(Pair { schema, new: self.new.get(name)?, old: self.old.get(name)? })
    }

    /// The pair of an item, which only items of a map list have.
    pub fn index(&self, index: usize) -> Option<Pair<'a>> {
        let new = self.new.get(index)?;
        let old = self.schema.item_like(new, self.old.as_array()?)?;
        Some(Pair { schema: self.schema.items.as_deref()?, new, old })
    }

    pub fn is_equal(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if self.schema.list_type == Some(ListType::Map) => {
                let same = |index| self.index(index).is_some_and(|pair| pair.is_equal());
                new.len() == old.len() && (0..new.len()).all(same)
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
    pub fn item_like<'a>(&self, item: &Value, list: &'a [Value]) -> Option<&'a Value> {
        if self.list_type != Some(ListType::Map) {
            return None;
        }
        let keys = |item: &Value| self.list_keys.iter().map(|key| item.get(key).cloned()).collect::<Vec<_>>();
        let wanted = keys(item);
        list.iter().find(|other| keys(other) == wanted)
    }
}
