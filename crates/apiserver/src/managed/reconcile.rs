//! Sets that were written when the schema was another one: what has become one piece is owned as one piece.

use super::{
    element::Element,
    node::{Kind, Node},
    set::{Branch, Set},
};

pub(super) fn reconcile(node: &Node, set: &Set) -> Set {
    below(node, set)
}

fn below(node: &Node, set: &Set) -> Set {
    let mut out = Set::default();
    for (element, branch) in &set.branches {
        let next = match (node.first(), element) {
            (Kind::Map, Element::Field(name)) => node.map().and_then(|map| map.child(name)),
            (Kind::Map, _) => node.map().and_then(|map| map.rest),
            (Kind::List, _) => node.list().map(|list| list.items),
            _ => None,
        };
        let branch = next.map_or_else(|| branch.clone(), |next| place(next, branch));
        out.put(element.clone(), branch);
    }
    out
}

fn place(node: &Node, branch: &Branch) -> Branch {
    let atomic = match (node.first(), node.map()) {
        // Nobody has said how it is merged, so nobody has changed it.
        (Kind::Map, Some(map)) if map.fields.is_empty() && matches!(map.rest, Some(Node::Guessed)) => {
            return branch.clone();
        }
        (Kind::Map, Some(map)) => map.atomic,
        (Kind::List, _) => node.list().is_some_and(|list| list.atomic),
        _ => return branch.clone(),
    };
    if atomic {
        Branch { owned: true, below: Set::default() }
    } else {
        Branch { owned: branch.owned, below: below(node, &branch.below) }
    }
}
