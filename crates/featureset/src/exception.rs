//! The file of exceptions: promotions that were let through without evidence, each with its reason, for all to see.

use serde::Serialize;
use toml_edit::{Document, Item};

use crate::{file::FileError, set::Set};

/// Beside `gates.toml`.
pub const FILE_NAME: &str = "gate-exceptions.toml";

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exception {
    pub gate: String,
    /// `None` is every profile.
    pub profile: Option<String>,
    #[serde(serialize_with = "name_of")]
    pub set: Set,
    pub reason: String,
}

fn name_of<S: serde::Serializer>(set: &Set, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(set.name())
}

impl Exception {
    pub fn covers(&self, gate: &str, profile: &str, set: Set) -> bool {
        self.gate == gate && self.set == set && self.profile.as_deref().is_none_or(|own| own == profile)
    }
}

/// Reads `[[exception]]` entries with gate, set, reason and perhaps profile.
pub fn parse_exceptions(text: &str) -> Result<Vec<Exception>, FileError> {
    let line = |at: usize| text.bytes().take(at).filter(|b| *b == b'\n').count() + 1;
    let document = Document::parse(text).map_err(|error| FileError {
        line: error.span().map_or(1, |span| line(span.start)),
        key: String::new(),
        what: error.message().to_owned(),
    })?;
    if let Some((key, item)) = document.iter().find(|(key, item)| *key != "exception" || !item.is_array_of_tables()) {
        let at = item.span().map_or(1, |span| line(span.start));
        return Err(FileError {
            line: at,
            key: key.to_owned(),
            what: "write entries of [[exception]] alone".to_owned(),
        });
    }
    let tables = document.get("exception").and_then(Item::as_array_of_tables);
    tables.into_iter().flatten().map(|table| entry(table, table.span().map_or(1, |span| line(span.start)))).collect()
}

fn entry(table: &toml_edit::Table, line: usize) -> Result<Exception, FileError> {
    let error = |key: &str, what: String| FileError { line, key: format!("exception.{key}"), what };
    if let Some((key, _)) = table.iter().find(|(key, _)| !["gate", "profile", "set", "reason"].contains(key)) {
        return Err(error(key, "unknown key; known here are gate, profile, set, reason".to_owned()));
    }
    let text = |key: &str| match table.get(key).map(|item| item.as_str().map(str::trim)) {
        Some(Some(text)) if !text.is_empty() => Ok(text.to_owned()),
        Some(_) => Err(error(key, "must be a text that says something".to_owned())),
        None => Err(error(key, "is missing".to_owned())),
    };
    let set: Set = text("set")?.parse().map_err(|unknown: crate::set::UnknownSet| error("set", unknown.to_string()))?;
    let profile = table.contains_key("profile").then(|| text("profile")).transpose()?;
    Ok(Exception { gate: text("gate")?, profile, set, reason: text("reason")? })
}
