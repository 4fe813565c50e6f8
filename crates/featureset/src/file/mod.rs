//! `gates.toml`: the one file that people edit. Everything else is made from it.

mod check;
mod edit;
mod read;

use std::{collections::BTreeMap, fmt};

use featuregate::Version;

use crate::gate::Gate;
pub use edit::{Edit, edit};

/// The only number that `schema` may have.
pub const SCHEMA: i64 = 1;
/// The profile of a file that names none.
pub const ONLY_PROFILE: &str = "default";

/// What a sound `gates.toml` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatesFile {
    /// The payload version that this file will be released as.
    pub version: String,
    pub profiles: Vec<String>,
    pub output: Output,
    pub gates: BTreeMap<String, Gate>,
    /// Names that are never used again, with the release they left in.
    pub retired: BTreeMap<String, Version>,
}

/// Where generated files go, from the directory of `gates.toml`. What is not named is not generated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    pub rust: Option<String>,
    pub go: Option<String>,
    pub go_package: Option<String>,
    pub manifests: Option<String>,
    pub docs: Option<String>,
}

impl Output {
    /// What is named, with its key.
    fn paths(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("rust", &self.rust), ("go", &self.go), ("manifests", &self.manifests), ("docs", &self.docs)];
        all.into_iter().filter_map(|(key, path)| path.as_deref().map(|path| (key, path)))
    }
}

/// One thing that is wrong with the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}{what}", if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct FileError {
    pub line: usize,
    /// The path of the key, such as `gate.FastPath.sets`; empty where the text is no TOML.
    pub key: String,
    pub what: String,
}

/// All that is wrong, in the order of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileErrors(pub Vec<FileError>);

impl std::error::Error for FileErrors {}

impl fmt::Display for FileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl GatesFile {
    /// Reads and checks the whole file; a file with any error is refused with all of them.
    pub fn parse(text: &str) -> Result<GatesFile, FileErrors> {
        let (file, mut findings) = read::read(text);
        if let Some(file) = &file {
            check::check(file, &mut findings);
        }
        let mut errors = findings.errors;
        errors.sort_by_key(|error| error.line);
        match file {
            Some(file) if errors.is_empty() => Ok(file),
            _ => Err(FileErrors(errors)),
        }
    }

    /// Gates whose time is over in the release that this file is for.
    pub fn expired(&self) -> Vec<&Gate> {
        let Ok(now) = self.version.parse::<Version>() else { return Vec::new() };
        self.gates.values().filter(|gate| gate.expires.is_some_and(|expires| expires <= now)).collect()
    }

    /// The gates that name `gate` among their dependencies.
    pub fn dependents(&self, gate: &str) -> Vec<&Gate> {
        self.gates.values().filter(|other| other.depends_on.contains(gate)).collect()
    }
}
