//! From text to [`Path`]: the grammar of CRD field selectors (`.name`, `['any key']`) plus `[*]`.

use std::str::FromStr;

use super::{PATH_BYTES_MAX, Path, Step};

/// Why a text is not a path to a gated field. Each `at` is a 0-based offset in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty.
    #[error("must not be empty; a path looks like .spec.replicas")]
    Empty,
    /// The text is a single dot: the root of an object cannot be gated.
    #[error("must name a field below the root; a path looks like .spec.replicas")]
    Root,
    /// The text is longer than [`PATH_BYTES_MAX`].
    #[error("has {found} bytes, at most {PATH_BYTES_MAX} are allowed")]
    TooLong {
        /// Length of the text in bytes.
        found: usize,
    },
    /// A step begins with neither `.` nor `[`.
    #[error("found {found:?} at byte {at}, where a step begins: with '.', as in .name, or with '[', as in ['any key']")]
    NoStep {
        /// The character at that place.
        found: char,
        /// Offset of that character.
        at: usize,
    },
    /// A dot has no name after it.
    #[error("has no name after the '.' at byte {at}; an empty or unusual key is written ['key']")]
    NoName {
        /// Offset of the dot.
        at: usize,
    },
    /// A name after a dot contains a character that needs the form `['key']`.
    #[error("name {name:?} has {found:?} in it; write it as ['key'], or [*] for every entry")]
    BadName {
        /// The name.
        name: String,
        /// The first such character.
        found: char,
    },
    /// A bracket is followed by neither `'` nor `*]`.
    #[error("found no key after the '[' at byte {at}; write a key in single quotes, as in ['key'], or [*]")]
    NoKey {
        /// Offset of the bracket.
        at: usize,
    },
    /// A key in brackets does not end with `']`.
    #[error("found no end of the key that begins at byte {at}; it ends with ']")]
    OpenKey {
        /// Offset of the opening bracket.
        at: usize,
    },
    /// In a key, a backslash precedes a character other than `'` and `\\`.
    #[error("key that begins at byte {at} has a backslash before something else than ' or \\")]
    BadEscape {
        /// Offset of the opening bracket.
        at: usize,
    },
    /// The last step is `[*]`.
    #[error("must not end with [*]; name the field of each entry, or gate the map or list as a whole")]
    EndsWithEach,
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Path, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong { found: text.len() });
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (step, bytes) = parse_step(&text[at..], at, text.len())?;
            steps.push(step);
            at += bytes;
        }
        match steps.last() {
            None => Err(PathError::Empty),
            Some(Step::Each) => Err(PathError::EndsWithEach),
            Some(Step::Named(_)) => Ok(Path { steps }),
        }
    }
}

/// The step that `rest` begins with, and its length in bytes.
fn parse_step(rest: &str, at: usize, total: usize) -> Result<(Step, usize), PathError> {
    if rest.starts_with("[*]") {
        return Ok((Step::Each, 3));
    }
    if let Some(key) = rest.strip_prefix("['") {
        let (key, bytes) = parse_key(key, at)?;
        return Ok((Step::Named(key), 2 + bytes));
    }
    match rest.chars().next() {
        Some('.') if total == 1 => Err(PathError::Root),
        Some('.') => parse_name(&rest[1..], at).map(|name| (Step::Named(name.to_owned()), 1 + name.len())),
        Some('[') => Err(PathError::NoKey { at }),
        Some(found) => Err(PathError::NoStep { found, at }),
        None => Err(PathError::Empty),
    }
}

fn parse_name(rest: &str, at: usize) -> Result<&str, PathError> {
    let name = rest.split(['.', '[']).next().unwrap_or(rest);
    if name.is_empty() {
        return Err(PathError::NoName { at });
    }
    match name.chars().find(|c| !is_plain(*c)) {
        Some(found) => Err(PathError::BadName { name: name.to_owned(), found }),
        None => Ok(name),
    }
}

/// The key up to its closing `']`, and how many bytes it took together with that.
fn parse_key(rest: &str, at: usize) -> Result<(String, usize), PathError> {
    let mut key = String::new();
    let mut chars = rest.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '\'' if rest[index..].starts_with("']") => return Ok((key, index + 2)),
            '\'' => return Err(PathError::OpenKey { at }),
            '\\' => match chars.next() {
                Some((_, escaped @ ('\'' | '\\'))) => key.push(escaped),
                _ => return Err(PathError::BadEscape { at }),
            },
            c => key.push(c),
        }
    }
    Err(PathError::OpenKey { at })
}

/// Whether `.name` parses back to this name, so that the normal form needs no quotes.
pub(super) fn can_stand_after_dot(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    !matches!(c, '.' | '[' | ']' | '\'' | '"' | '\\' | '*') && !c.is_whitespace() && !c.is_control()
}
