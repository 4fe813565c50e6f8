//! Structural schemas: what a field may hold, what becomes of fields nobody knows, what is filled in.
//!
//! Pure functions over JSON values. `check` judges the schema itself; the others take a schema for sound.

mod check;
mod default;
mod embedded;
mod format;
mod listtype;
mod metadata;
mod pattern;
mod plain;
mod prune;
mod ratchet;
mod validate;
mod way;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub(crate) use self::{
    check::{check, unknown_formats},
    default::{Filled, Nulls, drop_nulls, fill, fill_beside, fill_part, unfill},
    embedded::check_embedded,
    format::fits,
    listtype::check_lists,
    metadata::{each_embedded, prune_embedded},
    pattern::compile_pattern,
    plain::{Seams, plain},
    prune::{prune, prune_part},
    ratchet::Pair,
    validate::{validate, validate_update},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map,
}

/// One node of a structural schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub kind: Option<String>,
    pub nullable: bool,
    pub properties: BTreeMap<String, Schema>,
    pub additional: Option<Box<Schema>>,
    pub items: Option<Box<Schema>>,
    pub default: Option<Value>,
    pub preserve_unknown: bool,
    pub embedded: bool,
    pub int_or_string: bool,
    pub list_type: Option<ListType>,
    pub list_keys: Vec<String>,
    pub rules: Box<Rules>,
}

/// What a value must fulfil beyond its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub format: Option<String>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<(String, Regex)>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub required: Vec<String>,
    pub values: Vec<Value>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

impl Schema {
    /// Reads the JSON form (`openAPIV3Schema`). What is not understood here has been refused by `check`, or says nothing
    /// about values.
    pub(crate) fn parse(json: &Value) -> Schema {
        let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
        let text = |key: &str| json.get(key).and_then(Value::as_str);
        let nested =
            |key: &str| json.get(key).filter(|value| value.is_object()).map(|value| Box::new(Schema::parse(value)));
        let additional = match json.get("additionalProperties") {
            Some(Value::Bool(true)) => Some(Box::new(Schema { preserve_unknown: true, ..Schema::default() })),
            _ => nested("additionalProperties"),
        };
        let mut schema = Schema {
            kind: text("type").filter(|kind| !kind.is_empty()).map(str::to_owned),
            nullable: flag("nullable"),
            properties: properties(json),
            additional,
            items: nested("items"),
            default: json.get("default").cloned(),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: list_type(text("x-kubernetes-list-type")),
            list_keys: strings(json.get("x-kubernetes-list-map-keys")),
            rules: Box::new(Rules::parse(json)),
        };
        metadata::prune_defaults(&mut schema);
        schema
    }
}

impl Rules {
    fn parse(json: &Value) -> Rules {
        let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
        let number = |key: &str| json.get(key).and_then(Value::as_f64);
        let count = |key: &str| json.get(key).and_then(Value::as_u64);
        let text = |key: &str| json.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let list = |key: &str| json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let schemas = |key: &str| list(key).iter().map(Schema::parse).collect();
        // What is an integer or a string has no one type.
        let kind = text("type").filter(|_| !flag("x-kubernetes-int-or-string")).unwrap_or_default();
        Rules {
            format: text("format").filter(|name| format::is_for(name, kind)).map(str::to_owned),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: text("pattern").and_then(|text| Some((text.to_owned(), pattern::compile(text).ok()?))),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            required: strings(json.get("required")),
            values: list("enum").to_vec(),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: json.get("not").map(|not| Box::new(Schema::parse(not))),
        }
    }
}

fn properties(json: &Value) -> BTreeMap<String, Schema> {
    let properties = json.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| (name.clone(), Schema::parse(schema))).collect()
}

fn list_type(text: Option<&str>) -> Option<ListType> {
    match text? {
        "atomic" => Some(ListType::Atomic),
        "set" => Some(ListType::Set),
        "map" => Some(ListType::Map),
        _ => None,
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
