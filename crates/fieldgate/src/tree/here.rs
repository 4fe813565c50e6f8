//! A walk's place in the tree of gated paths.

use super::{Gating, Mark, Node, Role};
use crate::schema::ListKeys;

/// All nodes that one place in an object is at: `.m.k` can be at `.m['k']` and at `.m[*]`.
///
/// Mostly that is one node, which takes no memory of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Here<'a> {
    first: Option<&'a Node>,
    more: Vec<&'a Node>,
}

/// A name that leads on.
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    /// As `fieldsV1` has it.
    pub(crate) element: &'a str,
    pub(crate) place: Here<'a>,
}

impl<'a> FromIterator<&'a Node> for Here<'a> {
    fn from_iter<I: IntoIterator<Item = &'a Node>>(nodes: I) -> Here<'a> {
        let mut nodes = nodes.into_iter();
        Here { first: nodes.next(), more: nodes.collect() }
    }
}

impl<'a> Here<'a> {
    pub(crate) fn root(gating: &'a Gating) -> Here<'a> {
        Here { first: Some(&gating.root), more: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.first.into_iter().chain(self.more.iter().copied())
    }

    /// The gate that freezes this place.
    pub(crate) fn off(&self) -> Option<&'a Mark> {
        if let (Some(node), true) = (self.first, self.more.is_empty()) {
            return node.mark.as_ref().filter(|mark| matches!(mark.role, Role::Off));
        }
        self.marks().filter(|mark| matches!(mark.role, Role::Off)).min_by_key(|mark| mark.rank())
    }

    /// The deprecated gates of this place, each with its author's text.
    pub(crate) fn deprecated(&self) -> impl Iterator<Item = (&'a Mark, Option<&'a str>)> {
        self.marks().filter_map(|mark| match &mark.role {
            Role::Deprecated(text) => Some((mark, text.as_deref())),
            Role::Off => None,
        })
    }

    fn marks(&self) -> impl Iterator<Item = &'a Mark> {
        self.nodes().filter_map(|node| node.mark.as_ref())
    }

    /// Whether a gate that is off or deprecated is about this very place.
    pub(crate) fn is_gated(&self) -> bool {
        self.marks().next().is_some()
    }

    /// The names that lead on from here, each once. `[*]` may lead on to more.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        // Mostly a name leads to one place, which need not be looked up again.
        let alone = self.more.is_empty() && self.nodes().all(|node| node.entry().is_none());
        self.nodes().enumerate().flat_map(move |(i, node)| {
            let seen = move |name: &str| self.nodes().take(i).any(|before| before.named.contains_key(name));
            let own = node.named.iter().filter(move |(name, _)| !seen(name));
            own.map(move |(name, next)| {
                let place = if alone { Here { first: Some(next), more: Vec::new() } } else { self.step(name) };
                Field { name, element: &next.element, place }
            })
        })
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.nodes().any(|node| node.named.contains_key(name))
    }

    /// Where a field or key leads to.
    pub(crate) fn step(&self, name: &str) -> Here<'a> {
        let named = self.nodes().filter_map(|node| node.named.get(name));
        self.nodes().filter_map(Node::entry).chain(named).collect()
    }

    /// Where every entry of a map leads to.
    pub(crate) fn entries(&self) -> Here<'a> {
        self.nodes().filter_map(Node::entry).collect()
    }

    /// Where every item of a list leads to, and what tells the items apart.
    pub(crate) fn items(&self) -> Option<(&'a ListKeys, Here<'a>)> {
        if let (Some(node), true) = (self.first, self.more.is_empty()) {
            return node.item().map(|(keys, next)| (keys, Here { first: Some(next), more: Vec::new() }));
        }
        // One place has one schema, so all keys are the same.
        let (keys, _) = self.nodes().find_map(Node::item)?;
        Some((keys, self.nodes().filter_map(Node::item).map(|(_, node)| node).collect()))
    }
}
