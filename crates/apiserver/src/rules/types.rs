//! The types of a schema as expressions see them.

use std::sync::Arc;

use serde_json::Value;

use crate::cel::{ListKind, ObjectType, RESERVED, Type};

/// Words besides CEL's own that a name may not be; as a field it is written `__word__`.
const LITERALS: [&str; 4] = ["true", "false", "null", "in"];

/// The type of a schema's values; `None` for what expressions cannot see. The root of an object has names of its own.
pub(super) fn of(schema: &Value, root: bool) -> Option<Type> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Type::Dyn);
    }
    match schema["type"].as_str()? {
        "array" => {
            let items = schema.get("items")?;
            Some(Type::List(Arc::new(of(items, is_embedded(items))?), list_kind(schema)))
        }
        "object" => match &schema["additionalProperties"] {
            values @ Value::Object(_) => Some(Type::map(Type::String, of(values, is_embedded(values))?)),
            _ => Some(object(schema, root)),
        },
        "string" => Some(match schema["format"].as_str() {
            Some("byte") => Type::Bytes,
            Some("duration") => Type::Duration,
            Some("date" | "date-time") => Type::Timestamp,
            _ => Type::String,
        }),
        "boolean" => Some(Type::Bool),
        "number" => Some(Type::Double),
        "integer" => Some(Type::Int),
        _ => None,
    }
}

pub(super) fn is_embedded(schema: &Value) -> bool {
    schema["x-kubernetes-embedded-resource"] == true
}

fn object(schema: &Value, root: bool) -> Type {
    let mut object = ObjectType::default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let (Some(known), Some(kind)) = (escape(name), of(property, is_embedded(property))) {
            object.fields.insert(known, (name.clone(), kind));
        }
    }
    if root {
        for name in ["apiVersion", "kind"] {
            object.fields.insert(name.to_owned(), (name.to_owned(), Type::String));
        }
        let names = ["name", "generateName"].map(|name| (name.to_owned(), (name.to_owned(), Type::String)));
        let metadata = Type::Object(Arc::new(ObjectType { fields: names.into() }));
        object.fields.insert("metadata".to_owned(), ("metadata".to_owned(), metadata));
    }
    Type::Object(Arc::new(object))
}

fn list_kind(schema: &Value) -> ListKind {
    let keys = || schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(Arc::new(keys().filter_map(escape).collect())),
        _ => ListKind::Atomic,
    }
}

/// A field's name as an expression writes it; `None` if it cannot.
pub(super) fn escape(name: &str) -> Option<String> {
    if LITERALS.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
    if !name.chars().all(plain) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    #[test_case("replicas" => Some("replicas".to_owned()); "plain")]
    #[test_case("namespace" => Some("__namespace__".to_owned()); "reserved")]
    #[test_case("a-b.c/d" => Some("a__dash__b__dot__c__slash__d".to_owned()); "signs")]
    #[test_case("a__b" => Some("a__underscores__b".to_owned()); "underscores")]
    #[test_case("1a" => None; "digit first")]
    #[test_case("a b" => None; "space")]
    fn escapes(name: &str) -> Option<String> {
        super::escape(name)
    }
}
