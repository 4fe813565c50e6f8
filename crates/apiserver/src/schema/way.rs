//! The way to a value inside of an object.

use crate::field::child;

/// Kept on the stack while an object is walked through, and written down only where something is done.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    Root,
    Name(&'a Way<'a>, &'a str),
    Item(&'a Way<'a>, usize),
}

/// One step of it, written down.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Name(String),
    Item(usize),
}

impl Way<'_> {
    /// As in messages: `spec.items[0].foo`.
    pub(super) fn text(self) -> String {
        match self {
            Way::Root => String::new(),
            Way::Name(parent, name) => child(&parent.text(), name),
            Way::Item(parent, index) => format!("{}[{index}]", parent.text()),
        }
    }

    pub(super) fn steps(self) -> Vec<Step> {
        let (parent, last) = match self {
            Way::Root => return Vec::new(),
            Way::Name(parent, name) => (parent, Step::Name(name.to_owned())),
            Way::Item(parent, index) => (parent, Step::Item(index)),
        };
        let mut steps = parent.steps();
        steps.push(last);
        steps
    }
}
