//! The fields that a value has.

use serde_json::{Map as Object, Value};

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node},
    set::{Branch, Set},
};

/// Every field of an object that can have an owner: leaves, entries of maps, items of lists.
pub(super) fn fields(node: &Node, value: &Value) -> Set {
    branch(node, value).below
}

fn branch(node: &Node, value: &Value) -> Branch {
    let kind = match node.kind(Some(value)) {
        Kind::Open => node.first(),
        kind => kind,
    };
    let piece = Branch { owned: true, below: Set::default() };
    match (kind, node.map(), node.list()) {
        (Kind::Map, Some(map), _) if map.atomic => piece,
        (Kind::Map, Some(map), _) => Branch { owned: false, below: of_map(map, value.as_object()) },
        (Kind::List, _, Some(list)) if list.atomic => piece,
        (Kind::List, _, Some(list)) => Branch { owned: false, below: of_list(list, value.as_array()) },
        _ => piece,
    }
}

fn of_map(map: Map<'_>, object: Option<&Object<String, Value>>) -> Set {
    let mut set = Set::default();
    for (name, value) in object.into_iter().flatten() {
        let mut branch = match map.child(name) {
            Some(node) => branch(node, value),
            None => Branch::default(),
        };
        let empty = value.is_null() || value.as_object().is_some_and(Object::is_empty);
        branch.owned |= empty || !map.fields.contains_key(name);
        set.put(Element::field(name), branch);
    }
    set
}

/// Items that cannot be told apart are owned together, without what is below them.
fn of_list(list: List<'_>, items: Option<&Vec<Value>>) -> Set {
    let named = items.into_iter().flatten().filter_map(|item| Some((list::name(list, item).ok()?, item)));
    let mut groups: std::collections::BTreeMap<Element, Vec<&Value>> = Default::default();
    named.for_each(|(element, item)| groups.entry(element).or_default().push(item));
    let mut set = Set::default();
    for (element, items) in groups {
        let below = if let [item] = items[..] { branch(list.items, item).below } else { Set::default() };
        set.put(element, Branch { owned: true, below });
    }
    set
}
