//! What an evaluation may cost. Units are those of cel-go: about one for each step and one for each ten characters looked at.

use std::collections::HashMap;

use regex::Regex;

use super::Error;
use crate::schema;

/// What compiling a pattern costs, and each of its characters; compiled size in bytes.
const PATTERN_COST: u64 = 500;
const PATTERN_CHAR_COST: u64 = 20;
pub(super) const PATTERN_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Meter {
    spent: u64,
    limit: u64,
    /// Compiled once, for as long as the meter lives.
    patterns: HashMap<String, Regex>,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Meter {
        Meter { spent: 0, limit, patterns: HashMap::new() }
    }

    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    /// Back to nothing spent.
    pub(crate) fn reset(&mut self) {
        self.spent = 0;
    }

    /// A pattern ready to be used on a text of this size.
    pub(super) fn pattern(&mut self, pattern: &str, text: usize) -> Result<Regex, Error> {
        // A pattern's size times the text's, as in cel-go.
        let size = pattern.len() as u64;
        self.charge((text as u64 / 10 + 1).saturating_mul(size / 4 + 1))?;
        if let Some(found) = self.patterns.get(pattern) {
            return Ok(found.clone());
        }
        self.charge(PATTERN_COST + size * PATTERN_CHAR_COST)?;
        let failed = |why: String| Error::other(format!("Illegal regex: {}", why.replace('\n', " ")));
        let built = schema::compile_pattern(pattern, PATTERN_BYTES_MAX).map_err(failed)?;
        self.patterns.insert(pattern.to_owned(), built.clone());
        Ok(built)
    }

    pub(super) fn charge(&mut self, units: u64) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(units);
        if self.spent > self.limit { Err(Error::Cost) } else { Ok(()) }
    }

    /// For text that is only copied or passed over, which is fast but not free.
    pub(super) fn charge_copy(&mut self, size: usize) -> Result<(), Error> {
        self.charge(size as u64 / 100)
    }

    /// For looking at so many characters or bytes.
    pub(super) fn charge_text(&mut self, size: usize) -> Result<(), Error> {
        self.charge((size as u64).div_ceil(10))
    }
}
