//! Sets of fields. A field can be in a set without what is below it, and the other way round.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{element::Element, node::Node};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set {
    pub(super) branches: BTreeMap<Element, Branch>,
}

/// Invariant: one in a set is not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Branch {
    /// Whether the field itself is in the set.
    pub(super) owned: bool,
    pub(super) below: Set,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.owned && self.below.is_empty()
    }
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// The whole object has no owner, so a path without elements adds nothing.
    pub(crate) fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let branch = self.branches.entry(first.clone()).or_default();
        if rest.is_empty() { branch.owned = true } else { branch.below.insert(rest) }
    }

    pub(crate) fn of(paths: &[&[&str]]) -> Set {
        let mut set = Set::default();
        for path in paths {
            set.insert(&path.iter().map(|name| Element::field(name)).collect::<Vec<_>>());
        }
        set
    }

    pub(crate) fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.owns(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    pub(super) fn owns(&self, element: &Element) -> bool {
        self.branches.get(element).is_some_and(|branch| branch.owned)
    }

    /// What is in the set below an element, if anything.
    pub(super) fn below(&self, element: &Element) -> Option<&Set> {
        self.branches.get(element).map(|branch| &branch.below).filter(|below| !below.is_empty())
    }

    pub(super) fn put(&mut self, element: Element, branch: Branch) {
        if branch.is_empty() {
            return;
        }
        match self.branches.entry(element) {
            Entry::Vacant(place) => drop(place.insert(branch)),
            Entry::Occupied(mut place) => {
                let old = place.get_mut();
                old.owned |= branch.owned;
                old.below = std::mem::take(&mut old.below).union(&branch.below);
            }
        }
    }

    pub(crate) fn union(mut self, other: &Set) -> Set {
        for (element, branch) in &other.branches {
            self.put(element.clone(), branch.clone());
        }
        self
    }

    pub(crate) fn intersection(&self, other: &Set) -> Set {
        self.with(other, |own, other| {
            let none = Branch::default();
            let other = other.unwrap_or(&none);
            Branch { owned: own.owned && other.owned, below: own.below.intersection(&other.below) }
        })
    }

    /// Without the fields of the other; what is below a field of the other stays.
    pub(crate) fn difference(&self, other: &Set) -> Set {
        self.with(other, |own, other| match other {
            None => own.clone(),
            Some(other) => Branch { owned: own.owned && !other.owned, below: own.below.difference(&other.below) },
        })
    }

    /// Without the fields of the other and all that is below them.
    pub(crate) fn without(&self, other: &Set) -> Set {
        self.with(other, |own, other| match other {
            None => own.clone(),
            Some(other) if other.owned => Branch::default(),
            Some(other) => Branch { owned: own.owned, below: own.below.without(&other.below) },
        })
    }

    fn with(&self, other: &Set, combine: impl Fn(&Branch, Option<&Branch>) -> Branch) -> Set {
        let mut out = Set::default();
        for (element, branch) in &self.branches {
            out.put(element.clone(), combine(branch, other.branches.get(element)));
        }
        out
    }

    /// Only what is at or below this field.
    pub(crate) fn only(&self, field: &str) -> Set {
        let element = Element::field(field);
        let found = self.branches.get_key_value(&element);
        Set { branches: found.map(|(element, branch)| (element.clone(), branch.clone())).into_iter().collect() }
    }

    /// With every field that the schema names and that has something in the set below it. Such fields are structure: nobody
    /// owns them as such, but they go when all below them goes.
    pub(crate) fn with_named(&self, node: Option<&Node>) -> Set {
        let mut out = Set::default();
        for (element, branch) in &self.branches {
            let (named, next) = match (element, node) {
                (Element::Field(name), Some(node)) => {
                    let map = node.map();
                    let named = map.is_some_and(|map| map.fields.contains_key(name));
                    (named, map.and_then(|map| map.child(name)))
                }
                (Element::Key(_), Some(node)) => (false, node.list().map(|list| list.items)),
                _ => (false, None),
            };
            let owned = branch.owned || (named && !branch.below.is_empty());
            out.put(element.clone(), Branch { owned, below: branch.below.with_named(next) });
        }
        out
    }

    /// Every field of the set: at each level those that are in it, then those below.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for (element, _) in self.branches.iter().filter(|(_, branch)| branch.owned) {
            paths.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, branch) in &self.branches {
            prefix.push(element.clone());
            branch.below.collect(prefix, paths);
            prefix.pop();
        }
    }
}
