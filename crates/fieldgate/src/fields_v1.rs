//! Sets of fields as `managedFields` holds them (`fieldsV1`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of fields below one place: the place itself, and for each element of a path (`f:name`, `k:{…}`, `v:…`, `i:0`)
/// what is in the set below that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    pub(crate) itself: bool,
    pub(crate) below: BTreeMap<String, FieldSet>,
}

/// A JSON value that is not a field set as `managedFields` holds it in `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fieldsV1 has {found} at {at:?}, where an object belongs, such as {{\"f:spec\":{{\"f:replicas\":{{}}}}}}")]
pub struct FieldsV1Error {
    /// The place of the faulty value, as field set elements separated by `/`, such as `/f:spec`.
    /// Empty at the top.
    pub at: String,
    /// The faulty value as JSON.
    pub found: String,
}

impl FieldSet {
    /// A whole set; its top is no field, so `{}` is the empty set.
    pub(crate) fn parse(json: &Value) -> Result<FieldSet, FieldsV1Error> {
        let set = FieldSet::parse_at(json, "")?;
        Ok(FieldSet { itself: false, ..set })
    }

    fn parse_at(json: &Value, at: &str) -> Result<FieldSet, FieldsV1Error> {
        let wrong = || FieldsV1Error { at: at.to_owned(), found: json.to_string() };
        let elements = json.as_object().ok_or_else(wrong)?;
        let below = elements.iter().filter(|(element, _)| *element != ".").map(|(element, set)| {
            FieldSet::parse_at(set, &format!("{at}/{element}")).map(|set| (element.clone(), set))
        });
        let below = below.collect::<Result<BTreeMap<_, _>, _>>()?;
        // A field without more below it is written `{}`.
        Ok(FieldSet { itself: elements.contains_key(".") || below.is_empty(), below })
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.itself && self.below.is_empty()
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut elements = Map::new();
        if self.itself && !self.below.is_empty() {
            elements.insert(".".to_owned(), Value::Object(Map::new()));
        }
        elements.extend(self.below.iter().map(|(element, set)| (element.clone(), set.to_json())));
        Value::Object(elements)
    }
}

/// What an element of a path names.
pub(crate) enum Element<'a> {
    Field(&'a str),
    /// A list item, by its keys.
    Item(Value),
    /// Items of sets and by index, through which no gated path leads.
    Other,
}

impl Element<'_> {
    pub(crate) fn parse(text: &str) -> Element<'_> {
        match text.split_once(':') {
            Some(("f", name)) => Element::Field(name),
            Some(("k", keys)) => serde_json::from_str(keys).map_or(Element::Other, Element::Item),
            _ => Element::Other,
        }
    }
}
