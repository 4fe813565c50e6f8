//! The release an element of the API belongs to: major and minor, without a patch number.

use std::{fmt, str::FromStr};

/// A release such as 3.6. Orders as one expects: 3.9 < 3.10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub major: u16,
    pub minor: u16,
}

impl Version {
    pub const fn new(major: u16, minor: u16) -> Self {
        Version { major, minor }
    }

    /// As it is written in files and requests: `X.Y.0`.
    pub fn stored(self) -> String {
        format!("{self}.0")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "failed to read {text:?} as a version; the right form is MAJOR.MINOR or MAJOR.MINOR.PATCH, such as 3.6 or 3.6.0"
)]
pub struct ParseVersionError {
    text: String,
}

impl FromStr for Version {
    type Err = ParseVersionError;

    /// Reads `3.6` and `3.6.0`; a pre-release or build tail after the patch number is ignored.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseVersionError { text: text.chars().take(64).collect() };
        let release = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = release.split('.').map(number);
        let version = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Some(major)), Some(Some(minor)), None | Some(Some(_)), None) => Version { major, minor },
            _ => return Err(error()),
        };
        Ok(version)
    }
}

fn number(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_case::test_case;

    #[test_case("3.6" => Some(Version::new(3, 6)); "two numbers")]
    #[test_case("3.6.16" => Some(Version::new(3, 6)); "three numbers")]
    #[test_case("3.8.0-alpha.0" => Some(Version::new(3, 8)); "pre-release")]
    #[test_case("3" => None; "one number")]
    #[test_case("3.6.0.1" => None; "four numbers")]
    #[test_case("+3.6" => None; "sign")]
    #[test_case("3.x" => None; "letter")]
    #[test_case("3.70000" => None; "too large")]
    #[test_case("" => None; "empty")]
    fn parses(text: &str) -> Option<Version> {
        text.parse().ok()
    }

    #[test]
    fn orders_by_number_and_not_by_text() {
        assert!(Version::new(3, 9) < Version::new(3, 10));
        assert!(Version::new(3, 10) < Version::new(4, 0));
    }
}
