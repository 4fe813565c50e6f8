//! `Release`: the record of what one release's table promised, as text that is kept in the tree and compared with later.
//!
//! ```text
//! release 3.8.0
//! feature LeaseCheckpoint server
//!   3.6 alpha off
//!   3.8 beta on
//! feature Quorum cluster
//!   3.8 ga on locked
//! retired OldName
//! ```
//!
//! One record per release is never edited after the release; `#` starts a comment. Retired names stay for ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use crate::{Level, Registry, Spec, Stage, Version, feature::spec_at, version::parse_release};

/// The features of a release, and the names that later releases must not use again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// The major and minor version of the release.
    pub version: Version,
    /// The patch number of the release.
    pub patch: u16,
    /// The features of the release, by name. Several patch releases of one minor release list the
    /// same features.
    pub features: BTreeMap<String, Row>,
    /// Names of removed features. A name stays here permanently.
    pub retired: BTreeSet<String>,
}

/// A feature as a release defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether servers or the cluster decide on the value.
    pub level: Level,
    /// The specs of the feature, ascending by version. At least one in a parsed record.
    pub specs: Vec<Spec>,
}

impl Row {
    /// Returns the spec in force at `version`, or `None` before the first one.
    pub fn spec_at(&self, version: Version) -> Option<&Spec> {
        spec_at(&self.specs, version)
    }
}

/// A syntax error in a release record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the release record: found {found:?}, expected {expected}")]
pub struct RecordError {
    /// 1-based number of the faulty line. For an error at the end of the text, the number of lines,
    /// which is 0 for an empty text.
    pub line: usize,
    /// The faulty line as it stands in the text, or `the end`.
    pub found: String,
    /// A phrase that describes the input that would be valid at this place.
    pub expected: &'static str,
}

impl Release {
    /// Returns the record of `registry` for the release that ships it. `retired` lists the names of
    /// all features that were ever removed.
    pub fn of<'a>(
        version: Version,
        patch: u16,
        registry: &Registry,
        retired: impl IntoIterator<Item = &'a str>,
    ) -> Release {
        let row = |feature: &crate::Feature| Row { level: feature.level, specs: feature.specs.to_vec() };
        Release {
            version,
            patch,
            features: registry.features().iter().map(|feature| (feature.name.to_owned(), row(feature))).collect(),
            retired: retired.into_iter().map(str::to_owned).collect(),
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "release {}.{}", self.version, self.patch)?;
        for (name, row) in &self.features {
            writeln!(f, "feature {name} {}", row.level)?;
            for spec in &row.specs {
                writeln!(f, "  {spec}")?;
            }
        }
        self.retired.iter().try_for_each(|name| writeln!(f, "retired {name}"))
    }
}

/// `3.8 beta on`, `3.9 ga on locked`.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = if self.default { "on" } else { "off" };
        write!(f, "{} {} {default}{}", self.version, self.stage.word(), if self.locked { " locked" } else { "" })
    }
}

impl FromStr for Release {
    type Err = RecordError;

    fn from_str(text: &str) -> Result<Release, RecordError> {
        let mut reader = Reader::default();
        for (i, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
            let fail = |expected| RecordError { line: i + 1, found: line.to_owned(), expected };
            reader.handle_line(&words).map_err(fail)?;
        }
        let lines = text.lines().count();
        let fail = |expected| RecordError { line: lines, found: "the end".to_owned(), expected };
        reader.finish().map_err(fail)
    }
}

#[derive(Default)]
struct Reader {
    release: Option<Release>,
    /// The feature whose specs come next.
    open: Option<String>,
}

impl Reader {
    fn handle_line(&mut self, words: &[&str]) -> Result<(), &'static str> {
        match (words, &mut self.release) {
            ([], _) => Ok(()),
            (["release", version], None) => {
                let (version, patch) = parse_release(version).ok_or("a version such as 3.8.0")?;
                self.release = Some(Release { version, patch, features: BTreeMap::new(), retired: BTreeSet::new() });
                Ok(())
            }
            (_, None) => Err("`release VERSION` before anything else"),
            (["release", ..], Some(_)) => Err("one `release` line, at the top"),
            (["feature", name, level], Some(release)) => {
                self.open.take().map_or(Ok(()), |last| require_specs(release, &last))?;
                let level = Level::from_word(level).ok_or("`server` or `cluster` after the name")?;
                let row = Row { level, specs: Vec::new() };
                if release.features.insert((*name).to_owned(), row).is_some() {
                    return Err("each feature once");
                }
                self.open = Some((*name).to_owned());
                Ok(())
            }
            (["retired", name], Some(release)) => {
                if !release.retired.insert((*name).to_owned()) {
                    return Err("each retired name once");
                }
                Ok(())
            }
            (words, Some(release)) => {
                let row = self.open.as_ref().and_then(|name| release.features.get_mut(name));
                let row = row.ok_or("`feature NAME LEVEL` or `retired NAME`")?;
                let spec = parse_spec(words).ok_or("a spec: VERSION alpha|beta|ga|deprecated on|off [locked]")?;
                if row.specs.last().is_some_and(|last| last.version >= spec.version) {
                    return Err("a version above the line before it");
                }
                row.specs.push(spec);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<Release, &'static str> {
        let release = self.release.ok_or("`release VERSION`")?;
        self.open.map_or(Ok(()), |last| require_specs(&release, &last))?;
        Ok(release)
    }
}

fn require_specs(release: &Release, name: &str) -> Result<(), &'static str> {
    match release.features.get(name) {
        Some(row) if row.specs.is_empty() => Err("at least one spec for the feature above"),
        _ => Ok(()),
    }
}

fn parse_spec(words: &[&str]) -> Option<Spec> {
    let (version, stage, default, locked) = match words {
        [version, stage, default] => (version, stage, default, false),
        [version, stage, default, "locked"] => (version, stage, default, true),
        _ => return None,
    };
    let default = match *default {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    Some(Spec { version: version.parse().ok()?, stage: Stage::from_word(stage)?, default, locked })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "release 3.8.1\nfeature A server\n  3.6 alpha off\n  3.8 ga on locked\nretired B\n";

    #[test]
    fn reads_back_what_it_prints() {
        let release: Release = RECORD.parse().expect("legal");
        assert_eq!(release.to_string(), RECORD);
        let loose = "# first\n\nrelease 3.8.1 # now\nfeature A server\n3.6 alpha off\n 3.8 ga on locked\nretired B";
        assert_eq!(loose.parse(), Ok(release));
    }

    #[test]
    fn says_which_line_is_wrong_and_what_would_be_right() {
        for (text, line, expected) in [
            ("", 0, "`release VERSION`"),
            ("feature A server", 1, "`release VERSION` before anything else"),
            ("release x", 1, "a version such as 3.8.0"),
            ("release 3.8.0\nrelease 3.9.0", 2, "one `release` line, at the top"),
            ("release 3.8.0\nfeature A client", 2, "`server` or `cluster` after the name"),
            ("release 3.8.0\n3.8 alpha off", 2, "`feature NAME LEVEL` or `retired NAME`"),
            (
                "release 3.8.0\nfeature A server\n3.8 gamma off",
                3,
                "a spec: VERSION alpha|beta|ga|deprecated on|off [locked]",
            ),
            ("release 3.8.0\nfeature A server\n3.8 beta on\n3.8 ga on", 4, "a version above the line before it"),
            ("release 3.8.0\nfeature A server\nfeature B server", 3, "at least one spec for the feature above"),
            ("release 3.8.0\nfeature A server", 2, "at least one spec for the feature above"),
            ("release 3.8.0\nretired A\nretired A", 3, "each retired name once"),
        ] {
            let error = text.parse::<Release>().expect_err(text);
            assert_eq!((error.line, error.expected), (line, expected), "{text}");
        }
    }
}
