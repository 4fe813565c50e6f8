//! Where a value is, written only when something is wrong there.

use std::fmt;

#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Property(&'a str),
    /// An entry of a map, or a field that is missing: these have a dot before them even at the root.
    Entry(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(super) const ROOT: Path<'static> = Path { above: None, step: Step::Root };

    pub(super) fn property(&'a self, name: &'a str) -> Path<'a> {
        Path { above: Some(self), step: Step::Property(name) }
    }

    pub(super) fn entry(&'a self, name: &'a str) -> Path<'a> {
        Path { above: Some(self), step: Step::Entry(name) }
    }

    pub(super) fn index(&'a self, index: usize) -> Path<'a> {
        Path { above: Some(self), step: Step::Index(index) }
    }

    pub(super) fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// The field that an error is about, where all that is judged is at `at`.
    pub(super) fn field(&self, at: &str) -> String {
        let own = self.to_string();
        match (at, own.trim_start_matches('.')) {
            ("", "") => "<nil>".to_owned(),
            ("", own) => own.to_owned(),
            (at, "") => at.to_owned(),
            (at, own) => format!("{at}.{own}"),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(above) = self.above else { return Ok(()) };
        above.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Property(name) if above.is_root() => f.write_str(name),
            Step::Property(name) | Step::Entry(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}
