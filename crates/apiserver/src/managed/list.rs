//! Items of lists that are told apart by what they are or by some of their fields.

use serde_json::Value;

use super::{element::Element, node::List};

/// What names an item among its like, or why nothing does.
pub(super) fn name(list: List<'_>, item: &Value) -> Result<Element, String> {
    if list.keys.is_empty() { name_in_set(item) } else { name_by_keys(list, item) }
}

fn name_in_set(item: &Value) -> Result<Element, String> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
        item => Ok(Element::Item(item.clone())),
    }
}

fn name_by_keys(list: List<'_>, item: &Value) -> Result<Element, String> {
    let map = match item {
        Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
        Value::Object(map) => map,
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let default = |key: &String| list.items.map().and_then(|map| map.fields.get(key)?.default.as_ref());
    let found = list.keys.iter().filter_map(|key| Some((key.clone(), map.get(key).or_else(|| default(key))?.clone())));
    let mut found: Vec<(String, Value)> = found.collect();
    if found.is_empty() {
        let names: Vec<String> = list.keys.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
             values for any key fields)",
            names.join(" ")
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Element::Key(found))
}
