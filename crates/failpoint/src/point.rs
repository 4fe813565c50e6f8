//! The points and their terms.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use crate::{BadTerms, NAMES, Place, Terms, Value};

/// Why a request for a point failed. The messages are gofail's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No point of this name is in this program. This includes the names that are marked
    /// [`Place::Absent`].
    #[error("failpoint: failpoint does not exist")]
    NoExist,
    /// The point has no terms, so there is nothing to report or to remove.
    #[error("failpoint: failpoint is disabled")]
    Disabled,
    /// The terms do not follow the grammar; the point keeps its earlier terms.
    #[error(transparent)]
    BadTerms(#[from] BadTerms),
    /// A part of a `NAME=TERMS;…` list that has no `=` or more than one. Holds that part.
    #[error("bad failpoint {0:?}")]
    BadList(String),
}

struct Point {
    /// Looked at first, so that a point without terms costs one load.
    armed: AtomicBool,
    terms: RwLock<Option<Arc<Terms>>>,
}

static POINTS: [Point; NAMES.len()] =
    [const { Point { armed: AtomicBool::new(false), terms: RwLock::new(None) } }; NAMES.len()];

/// Sets or replaces the terms of a point. A failure to parse them is also printed, as in gofail.
pub fn enable(name: &str, terms: &str) -> Result<(), Error> {
    let point = find(name)?;
    let terms = Terms::parse(terms).inspect_err(|error| println!("failed to enable \"{name}={terms}\" ({error})"))?;
    point.set(Some(Arc::new(terms)));
    Ok(())
}

/// Removes the terms of a point. An action that is in progress, such as a sleep, completes.
pub fn disable(name: &str) -> Result<(), Error> {
    match find(name)?.set(None) {
        Some(_) => Ok(()),
        None => Err(Error::Disabled),
    }
}

/// Returns the terms of a point, and how many times one of them has acted since they were set.
pub fn status(name: &str) -> Result<(String, u64), Error> {
    let terms = find(name)?.terms().ok_or(Error::Disabled)?;
    Ok((terms.text().to_owned(), terms.count()))
}

/// The names of all points that are in this program, in the order of [`NAMES`].
pub fn list() -> impl Iterator<Item = &'static str> {
    NAMES.iter().filter(|(_, place)| *place == Place::Here).map(|(name, _)| *name)
}

/// Parses `NAME=TERMS;NAME=TERMS` without checking names or terms. Empty parts are ignored.
pub fn parse_list(text: &str) -> Result<Vec<(&str, &str)>, Error> {
    let pairs = text.split(';').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| match pair.split_once('=') {
        Some((name, terms)) if !terms.contains('=') => Ok((name, terms)),
        _ => Err(Error::BadList(pair.to_owned())),
    });
    pairs.collect()
}

/// Runs the terms of the point at this position in [`NAMES`]; `failpoint!` expands to this call.
/// Returns the value of a `return` term, and `None` otherwise.
#[inline]
pub fn hit(at: usize) -> Option<Value> {
    let point = &POINTS[at];
    if !point.armed.load(Ordering::Relaxed) {
        return None;
    }
    point.terms()?.run(NAMES[at].0)
}

/// Runs a point whose body takes no value. Returns true if a `return` term without a value acted. A
/// value of another type is printed and ignored.
pub fn hit_unit(at: usize) -> bool {
    match hit(at) {
        None => false,
        Some(Value::Unit) => true,
        Some(other) => {
            bad_type(at, &other, "struct{}");
            false
        }
    }
}

/// Runs a point whose body takes a text. Returns the text of a `return("…")` term. A value of
/// another type is printed and ignored.
pub fn hit_text(at: usize) -> Option<String> {
    match hit(at)? {
        Value::Text(text) => Some(text),
        other => {
            bad_type(at, &other, "string");
            None
        }
    }
}

fn bad_type(at: usize, value: &Value, expected: &str) {
    let (name, kind) = (NAMES[at].0, value.kind());
    println!("failpoint: {name:?} got value {value} of type {kind:?} but expected type {expected:?}");
}

fn find(name: &str) -> Result<&'static Point, Error> {
    let at = NAMES.iter().position(|(known, place)| *known == name && *place == Place::Here);
    at.map(|at| &POINTS[at]).ok_or(Error::NoExist)
}

impl Point {
    fn terms(&self) -> Option<Arc<Terms>> {
        self.terms.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the terms before.
    fn set(&self, terms: Option<Arc<Terms>>) -> Option<Arc<Terms>> {
        let mut slot = self.terms.write().unwrap_or_else(PoisonError::into_inner);
        self.armed.store(terms.is_some(), Ordering::Relaxed);
        std::mem::replace(&mut *slot, terms)
    }
}
