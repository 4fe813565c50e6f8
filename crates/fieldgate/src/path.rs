//! Paths to gated fields, in one normal form.

mod parse;

use std::fmt;

pub use parse::PathError;

/// The longest path in bytes. It also bounds the depth of recursion, which takes one call per step.
pub const PATH_BYTES_MAX: usize = 1024;

/// One step of a path, from a value to a value inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of an object or a key of a map.
    Named(String),
    /// `[*]`: every entry of a map, or every item of a keyed list.
    Each,
}

/// A path such as `.spec.items[*]['a.b']`. Two texts of one path parse to equal values and print alike.
///
/// Invariant: at least one step, and the last one is [`Step::Named`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    steps: Vec<Step>,
}

impl Path {
    /// The steps from the root of the object to the field.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Whether an object can have a field at `other` that is at or below a field at `self`. `[*]`
    /// matches any step.
    pub fn covers(&self, other: &Path) -> bool {
        let reaches = self.steps.len() <= other.steps.len();
        reaches && self.steps.iter().zip(&other.steps).all(|(a, b)| a.can_be(b))
    }

    /// Whether every field at `other` is at or below a field at `self`. `[*]` in `other` is matched
    /// by `[*]` only.
    pub fn covers_all(&self, other: &Path) -> bool {
        let reaches = self.steps.len() <= other.steps.len();
        reaches && self.steps.iter().zip(&other.steps).all(|(a, b)| *a == Step::Each || a == b)
    }

    /// Whether both paths can refer to the same field, as `.m['k'].a` and `.m[*].a` can.
    pub fn can_equal(&self, other: &Path) -> bool {
        self.steps.len() == other.steps.len() && self.covers(other)
    }

    /// The path as messages show fields: without the leading dot.
    pub fn field(&self) -> String {
        let text = self.to_string();
        text.strip_prefix('.').map(str::to_owned).unwrap_or(text)
    }
}

impl Step {
    fn can_be(&self, other: &Step) -> bool {
        matches!((self, other), (Step::Each, _) | (_, Step::Each)) || self == other
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Each => f.write_str("[*]"),
            Step::Named(name) if parse::can_stand_after_dot(name) => write!(f, ".{name}"),
            Step::Named(name) => write!(f, "['{}']", name.replace('\\', r"\\").replace('\'', r"\'")),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}
