//! Expressions as trees.

use std::sync::Arc;

/// One expression. `at` is the byte where it stands, or its operator; `depth` the height of the tree under it.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub at: usize,
    pub depth: usize,
    pub node: Node,
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    Literal(Literal),
    Ident(String),
    /// `a.b`, and `a.?b`, which is an optional.
    Select(Box<Expr>, String, bool),
    /// `has(a.b)`
    Has(Box<Expr>, String),
    /// `a[b]`, and `a[?b]`, which is an optional.
    Index(Box<Expr>, Box<Expr>, bool),
    /// Functions and operators, these as `_+_`; a member's target is the first argument.
    Call(String, Member, Vec<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Condition(Box<[Expr; 3]>),
    /// Items, and whether each is left out if it is an empty optional.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    Fold(Box<Fold>),
    /// `optMap` and, if flat, `optFlatMap`: target, variable, body.
    OptionalMap(Box<(Expr, String, Expr)>, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Yes,
    No,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Arc<Vec<u8>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// Makes a list.
    Map,
    Filter,
    /// Makes a list in the order of what the body makes.
    SortBy,
    /// Makes a map with the keys of the range.
    TransformMap,
    /// Makes a map of the one-entry maps that the body makes.
    TransformEntry,
}

/// A macro that visits each item of a list or each key of a map.
#[derive(Clone, Debug)]
pub(super) struct Fold {
    pub kind: FoldKind,
    pub range: Expr,
    /// Item, or key; with `second`, index or key.
    pub first: String,
    pub second: Option<String>,
    pub filter: Option<Expr>,
    pub body: Expr,
}

impl Expr {
    pub(super) fn new(at: usize, node: Node) -> Expr {
        let mut depth = 0;
        each_child(&node, &mut |child| depth = depth.max(child.depth));
        Expr { at, depth: depth + 1, node }
    }

    /// `self.a.b` for a chain of fields that begins at a name.
    pub(super) fn path(&self) -> Option<String> {
        match &self.node {
            Node::Ident(name) => Some(name.clone()),
            Node::Select(operand, field, false) => Some(format!("{}.{field}", operand.path()?)),
            _ => None,
        }
    }
}

fn each_child(node: &Node, visit: &mut impl FnMut(&Expr)) {
    match node {
        Node::Literal(_) | Node::Ident(_) => {}
        Node::Select(operand, ..) | Node::Has(operand, _) => visit(operand),
        Node::Index(operand, index, _) => {
            visit(operand);
            visit(index);
        }
        Node::Call(_, _, list) | Node::And(list) | Node::Or(list) => list.iter().for_each(visit),
        Node::Condition(three) => three.iter().for_each(visit),
        Node::List(items) => items.iter().for_each(|(item, _)| visit(item)),
        Node::Map(entries) => entries.iter().for_each(|(key, value, _)| {
            visit(key);
            visit(value);
        }),
        Node::Fold(fold) => {
            visit(&fold.range);
            fold.filter.iter().for_each(&mut *visit);
            visit(&fold.body);
        }
        Node::OptionalMap(parts, _) => {
            visit(&parts.0);
            visit(&parts.2);
        }
    }
}

/// What is wrong with a source, and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub at: usize,
    pub text: String,
}

impl Fault {
    pub(super) fn new(at: usize, text: impl Into<String>) -> Fault {
        Fault { at, text: text.into() }
    }

    /// As cel-go prints it: the place, the text, the line, and a mark under the column.
    pub(super) fn render(&self, source: &str) -> String {
        let mut at = self.at.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let before = &source[..at];
        let start = before.rfind('\n').map_or(0, |index| index + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[start..].chars().count();
        let shown = source[start..].split('\n').next().unwrap_or_default();
        let dots = ".".repeat(column);
        format!("ERROR: <input>:{line}:{}: {}\n | {shown}\n | {dots}^", column + 1, self.text)
    }
}
