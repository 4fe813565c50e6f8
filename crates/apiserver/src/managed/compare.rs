//! What has changed between two objects, as sets of fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    element::Element,
    list,
    node::{Kind, List, Map, Node},
    set::Set,
    value,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub removed: Set,
    pub modified: Set,
    pub added: Set,
}

impl Comparison {
    pub(super) fn map(self, change: impl Fn(Set) -> Set) -> Comparison {
        Comparison { removed: change(self.removed), modified: change(self.modified), added: change(self.added) }
    }
}

pub(super) fn compare(node: &Node, old: &Value, new: &Value) -> Comparison {
    let mut walk = Walk::default();
    walk.place(node, Some(old), Some(new));
    walk.found
}

#[derive(Default)]
struct Walk {
    path: Vec<Element>,
    found: Comparison,
}

type Side<'a> = Option<&'a Value>;

impl Walk {
    fn place(&mut self, node: &Node, old: Side<'_>, new: Side<'_>) {
        let (before, after) = (node.kind(old), node.kind(new));
        let leaf = if new.is_none() {
            self.take(node, before, old, new)
        } else {
            if old.is_some() && before != after {
                self.take(node, before, old, new);
            }
            self.take(node, after, old, new)
        };
        match (leaf, old, new) {
            (false, None, _) => self.found.added.insert(&self.path),
            (false, _, None) => self.found.removed.insert(&self.path),
            _ => {}
        }
    }

    /// Takes both for this kind of value; true if they were compared as a whole.
    fn take(&mut self, node: &Node, kind: Kind, old: Side<'_>, new: Side<'_>) -> bool {
        let kind = if kind == Kind::Open { node.first() } else { kind };
        match (kind, node.map(), node.list()) {
            (Kind::Map, Some(map), _) if !map.atomic && has_entries(old, new) => self.maps(map, old, new),
            (Kind::List, _, Some(list)) if !list.atomic && has_items(old, new) => self.lists(list, old, new),
            _ => {
                self.leaf(old, new);
                return true;
            }
        }
        false
    }

    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) {
        match (old, new) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !value::same(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
    }

    fn maps(&mut self, map: Map<'_>, old: Side<'_>, new: Side<'_>) {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(|map| map.keys()).collect();
        for name in names {
            let pair = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            if let Some(node) = map.child(name) {
                self.step(Element::field(name), |walk| walk.place(node, pair.0, pair.1));
            }
        }
    }

    fn step(&mut self, element: Element, then: impl FnOnce(&mut Walk)) {
        self.path.push(element);
        then(self);
        self.path.pop();
    }

    fn lists(&mut self, list: List<'_>, old: Side<'_>, new: Side<'_>) {
        let mut items: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (side, is_new) in [(old, false), (new, true)] {
            for item in side.and_then(Value::as_array).into_iter().flatten() {
                let Ok(element) = list::name(list, item) else { continue };
                let pair = items.entry(element).or_default();
                if is_new { pair.1.push(item) } else { pair.0.push(item) }
            }
        }
        for (element, (old, new)) in items {
            self.step(element, |walk| walk.items(list.items, &old, &new));
        }
    }

    /// One item each is the rule; items of the same name are one piece, and the way from one form to the other is a
    /// removal of the old and an addition of the new.
    fn items(&mut self, node: &Node, old: &[&Value], new: &[&Value]) {
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => self.place(node, old.first().copied(), new.first().copied()),
            (0 | 1, _) => {
                if let Some(old) = old.first() {
                    self.place(node, Some(old), None);
                }
                self.found.added.insert(&self.path);
            }
            (_, 0 | 1) => {
                if let Some(new) = new.first() {
                    self.place(node, None, Some(new));
                }
                self.found.removed.insert(&self.path);
            }
            _ => {
                if old.len() != new.len() || old.iter().zip(new).any(|(old, new)| !value::same(old, new)) {
                    self.found.modified.insert(&self.path);
                }
            }
        }
    }
}

fn has_entries(old: Side<'_>, new: Side<'_>) -> bool {
    old.into_iter().chain(new).filter_map(Value::as_object).any(|map| !map.is_empty())
}

fn has_items(old: Side<'_>, new: Side<'_>) -> bool {
    old.into_iter().chain(new).filter_map(Value::as_array).any(|list| !list.is_empty())
}
