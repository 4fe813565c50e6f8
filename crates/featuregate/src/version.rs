//! `Version`: the major and minor number that features are registered against.

use std::{fmt, str::FromStr};

/// A minor release, such as 3.8. Patch releases share it, because a patch changes no feature's spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The first number, 3 in 3.8.
    pub major: u16,
    /// The second number, 8 in 3.8.
    pub minor: u16,
}

/// Shorthand for [`Version::new`] that keeps the rows of a feature table on one line.
pub const fn v(major: u16, minor: u16) -> Version {
    Version { major, minor }
}

/// A text that does not parse as a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version: write MAJOR.MINOR or MAJOR.MINOR.PATCH, such as 3.8 or 3.8.0")]
pub struct VersionError {
    /// The text as given.
    pub text: String,
}

impl Version {
    /// Returns the version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Version {
        Version { major, minor }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Reads `3.8` and `3.8.0`; a pre-release or build tail after the patch (`3.8.0-alpha.0`) is allowed and dropped.
impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Version, VersionError> {
        parse_release(text).map(|(version, _)| version).ok_or_else(|| VersionError { text: text.to_owned() })
    }
}

/// The minor release and the patch number (0 where none is written).
pub(crate) fn parse_release(text: &str) -> Option<(Version, u16)> {
    let mut parts = text.splitn(3, '.');
    let version = Version { major: number(parts.next()?)?, minor: number(parts.next()?)? };
    let patch = match parts.next() {
        None => 0,
        Some(rest) => number(rest.split(['-', '+']).next()?)?,
    };
    Some((version, patch))
}

/// Decimal digits alone: `str::parse` would also take a leading `+`.
fn number(text: &str) -> Option<u16> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_person_or_a_server_writes() {
        for (text, want) in [("3.8", v(3, 8)), ("3.8.0", v(3, 8)), ("3.10.17", v(3, 10)), ("3.8.0-alpha.0", v(3, 8))] {
            assert_eq!(text.parse(), Ok(want), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest_by_name() {
        for text in ["", "3", "3.", ".8", "v3.8", "3.8.", "3.8.x", "+3.8", "3.-8", "3.8.0.1", "3.99999", " 3.8"] {
            let error = text.parse::<Version>().expect_err(text);
            assert!(error.to_string().starts_with(&format!("{text:?} is not a version")), "{error}");
        }
    }

    #[test]
    fn orders_by_number_and_prints_without_a_patch() {
        assert!(v(3, 9) < v(3, 10));
        assert_eq!(v(3, 10).to_string(), "3.10");
    }
}
