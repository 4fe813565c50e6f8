//! Gated paths as a tree, so that a walk over an object touches only what lies on the way to them.

mod here;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Gate, Gates, Path, PreRelease, Step,
    schema::{self, ListKeys},
};

pub(crate) use here::{Field, Here};

/// The gates of a CRD, prepared for the schema of its storage version. The other steps of the
/// engine need it.
///
/// Build it once for each change of the CRD.
#[derive(Debug)]
pub struct Gating {
    pub(crate) root: Node,
}

impl Gating {
    /// Prepares the gates for a schema. Ignores a path with `[*]` at a value that is neither a map
    /// nor a keyed list in the schema, because its items cannot be told apart. [`crate::validate`]
    /// rejects such paths.
    pub fn new(gates: &Gates, schema: &Value) -> Gating {
        let mut root = Node::default();
        let paths = gates.gates.iter().flat_map(|gate| gate.field_paths.iter().map(move |path| (gate, path)));
        for (number, (gate, path)) in paths.enumerate() {
            if let (Some(role), Some(ways)) = (Role::of(gate), ways(path, schema)) {
                root.insert(path, ways, Mark { number, gate: gate.name.clone(), path: path.clone(), role });
            }
        }
        Gating { root }
    }

    /// Whether every gate is on and none is deprecated, so that no write is changed or causes a
    /// warning.
    pub fn is_idle(&self) -> bool {
        self.root.named.is_empty() && self.root.each.is_none()
    }
}

/// A place in objects, by the steps that lead to it.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// What `fieldsV1` calls the field, as `f:spec`; nothing where `[*]` leads here.
    element: String,
    named: BTreeMap<String, Node>,
    each: Option<Box<(Way, Node)>>,
    mark: Option<Mark>,
}

/// What `[*]` leads through.
#[derive(Debug)]
pub(crate) enum Way {
    Map,
    List(ListKeys),
}

/// A gated path that writes have to heed.
#[derive(Debug)]
pub(crate) struct Mark {
    /// Its own among all marks of a tree.
    pub(crate) number: usize,
    pub(crate) gate: String,
    pub(crate) path: Path,
    pub(crate) role: Role,
}

#[derive(Debug)]
pub(crate) enum Role {
    /// The gate is off: the value is frozen.
    Off,
    /// The gate is on and deprecated: users are warned, with the author's text if there is one.
    Deprecated(Option<String>),
}

impl Role {
    fn of(gate: &Gate) -> Option<Role> {
        match (gate.is_on(), gate.pre_release) {
            (false, _) => Some(Role::Off),
            (true, PreRelease::Deprecated) => Some(Role::Deprecated(gate.field_deprecation_warning.clone())),
            (true, _) => None,
        }
    }
}

impl Node {
    fn of_field(name: &str) -> Node {
        Node { element: format!("f:{name}"), ..Node::default() }
    }

    fn insert(&mut self, path: &Path, ways: Vec<Way>, mark: Mark) {
        let mut ways = ways.into_iter();
        let mut node = self;
        for step in path.steps() {
            node = match step {
                Step::Named(name) => node.named.entry(name.clone()).or_insert_with(|| Node::of_field(name)),
                Step::Each => {
                    let way = ways.next().expect("a way for every [*]");
                    &mut node.each.get_or_insert_with(|| Box::new((way, Node::default()))).1
                }
            };
        }
        // Only gates that validation would refuse meet here; the choice must not depend on their order.
        if node.mark.as_ref().is_none_or(|before| mark.rank() < before.rank()) {
            node.mark = Some(mark);
        }
    }
}

impl Node {
    fn entry(&self) -> Option<&Node> {
        match self.each.as_deref()? {
            (Way::Map, node) => Some(node),
            (Way::List(_), _) => None,
        }
    }

    fn item(&self) -> Option<(&ListKeys, &Node)> {
        match self.each.as_deref()? {
            (Way::List(keys), node) => Some((keys, node)),
            (Way::Map, _) => None,
        }
    }
}

impl Mark {
    fn rank(&self) -> (bool, &str) {
        (!matches!(self.role, Role::Off), &self.gate)
    }
}

/// What each `[*]` of the path leads through; none if one of them leads nowhere.
fn ways(path: &Path, schema: &Value) -> Option<Vec<Way>> {
    let mut here = Some(schema);
    let mut ways = Vec::new();
    for step in path.steps() {
        here = match (step, here) {
            (Step::Named(name), here) => here.and_then(|schema| schema::named(schema, name)),
            (Step::Each, None) => return None,
            (Step::Each, Some(schema)) => {
                let (way, next) = match schema::map_values(schema) {
                    Some(values) => (Way::Map, values),
                    None => (Way::List(ListKeys::of(schema)?), schema.get("items")?),
                };
                ways.push(way);
                Some(next)
            }
        };
    }
    Some(ways)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Such gates are refused, but an old CRD may have them.
    #[test]
    fn of_two_gates_of_one_path_one_that_is_off_decides() {
        let gate = |name: &str, enabled: bool| json!({ "name": name, "preRelease": "alpha", "enabled": enabled, "fieldPaths": [".spec.a"] });
        let gates = [gate("A", true), gate("C", false), gate("B", false)];
        for turn in 0..3 {
            let mut turned = gates.to_vec();
            turned.rotate_left(turn);
            let gating = Gating::new(&Gates::parse_lenient(&json!({ "featureGates": turned })), &Value::Null);
            let off = Here::root(&gating).step("spec").step("a").off().map(|mark| mark.gate.as_str());
            assert_eq!(off, Some("B"));
        }
    }
}
