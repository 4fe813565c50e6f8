//! For programs that cannot ask: their gates as arguments, as a part of a config file, or as a file of their own.

use std::collections::BTreeSet;

use featureset::Row;
use serde_json::{Map, Value, json};

use crate::config_edit::with_list;

/// The gates that are passed on to a program. Some gates break some programs, and few programs know
/// all gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The gates to pass on. All if it is empty.
    pub allow: BTreeSet<String>,
    /// The gates not to pass on. Has precedence over `allow`.
    pub deny: BTreeSet<String>,
}

/// The form of a file with gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line `--feature-gates=A=true,B=false`.
    Args,
    /// A list of `A=true` at this path of a YAML or JSON config file. The rest of the file is kept.
    Config(Vec<String>),
    /// A JSON object with the fields `version`, `enabled` and `disabled` of the row.
    Json,
}

/// Why a list of gates could not be put into a config file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The file is not YAML or JSON, or has several documents. Holds the details.
    #[error("the config file cannot be read: {0}")]
    Config(String),
    /// The path of [`Format::Config`] leads through a value that is not a mapping. Holds the path
    /// of that value.
    #[error("{0} of the config file is no mapping, so nothing can be put below it")]
    NotAMapping(String),
}

impl Filter {
    /// The gates of `row` that pass the filter, with their values, sorted by name.
    pub fn gates<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a str, bool)> {
        let names: BTreeSet<&String> = row.enabled.iter().chain(&row.disabled).collect();
        let passes =
            |name: &&String| (self.allow.is_empty() || self.allow.contains(*name)) && !self.deny.contains(*name);
        names.into_iter().filter(passes).map(|name| (name.as_str(), row.enabled.contains(name)))
    }
}

/// Returns the contents for a file. `old` is the current text, of which [`Format::Config`] keeps
/// everything but the list.
pub fn render(row: &Row, filter: &Filter, format: &Format, old: Option<&str>) -> Result<String, SinkError> {
    let pairs: Vec<String> = filter.gates(row).map(|(name, on)| format!("{name}={on}")).collect();
    match format {
        Format::Args => Ok(format!("--feature-gates={}\n", pairs.join(","))),
        Format::Json => {
            let names = |wanted| {
                filter.gates(row).filter(move |(_, on)| *on == wanted).map(|(name, _)| name).collect::<Vec<_>>()
            };
            Ok(pretty(&json!({"version": row.version, "enabled": names(true), "disabled": names(false)})))
        }
        Format::Config(path) => render_config(path, &pairs, old.unwrap_or_default()),
    }
}

/// A list that is right leaves the file as it is, however it is written; else the rest stays as it is where that can be done.
fn render_config(path: &[String], pairs: &[String], old: &str) -> Result<String, SinkError> {
    let before = read_config(old)?;
    let mut after = before.clone();
    *place(&mut after, path)? = json!(pairs);
    if before == after {
        return Ok(old.to_owned());
    }
    let edited = with_list(old, path, pairs).filter(|text| read_config(text).is_ok_and(|said| said == after));
    Ok(edited.unwrap_or_else(|| pretty(&after)))
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// YAML or JSON; nothing yet is an empty mapping.
fn read_config(text: &str) -> Result<Value, SinkError> {
    let mut documents = featureset::yaml::documents(text).map_err(|error| SinkError::Config(error.to_string()))?;
    match (documents.pop(), documents.len()) {
        (None, _) => Ok(json!({})),
        (Some(one), 0) => Ok(one),
        (Some(_), more) => Err(SinkError::Config(format!("it has {} documents, and one is needed", more + 1))),
    }
}

fn place<'a>(config: &'a mut Value, path: &[String]) -> Result<&'a mut Value, SinkError> {
    let mut at = config;
    for (i, key) in path.iter().enumerate() {
        if at.is_null() {
            *at = Value::Object(Map::new());
        }
        let here = || if i == 0 { "the top".to_owned() } else { path[..i].join(".") };
        let fields = at.as_object_mut().ok_or_else(|| SinkError::NotAMapping(here()))?;
        at = fields.entry(key.clone()).or_insert(Value::Null);
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Snapshot;

    fn row() -> Row {
        Snapshot::fixed(["A", "C"], ["B", "D"]).row
    }

    fn filter(allow: &[&str], deny: &[&str]) -> Filter {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Filter { allow: names(allow), deny: names(deny) }
    }

    #[test]
    fn arguments_with_allow_and_deny() {
        for (allow, deny, want) in [
            (&[][..], &[][..], "A=true,B=false,C=true,D=false"),
            (&["B", "A", "Unknown"], &[], "A=true,B=false"),
            (&[], &["C"], "A=true,B=false,D=false"),
            (&["A", "C"], &["A"], "C=true"),
        ] {
            let got = render(&row(), &filter(allow, deny), &Format::Args, None).unwrap();
            assert_eq!(got, format!("--feature-gates={want}\n"));
        }
    }

    #[test]
    fn a_config_file_keeps_the_rest() {
        let format = Format::Config(vec!["apiServerArguments".to_owned(), "feature-gates".to_owned()]);
        let old = "logLevel: 4\napiServerArguments:\n  v: ['2']\n  feature-gates: [Old=true]\n";
        let new = render(&row(), &filter(&["A"], &[]), &format, Some(old)).unwrap();
        assert_eq!(new, "logLevel: 4\napiServerArguments:\n  v: ['2']\n  feature-gates:\n  - A=true\n");
        let right = "apiServerArguments: {feature-gates: ['A=true']} # as it should be\n";
        assert_eq!(render(&row(), &filter(&["A"], &[]), &format, Some(right)).unwrap(), right);
        let flow = render(&row(), &filter(&["A"], &[]), &format, Some("{apiServerArguments: {v: 1}, z: 2}")).unwrap();
        let value: Value = serde_json::from_str(&flow).unwrap();
        assert_eq!(value, json!({"z": 2, "apiServerArguments": {"v": 1, "feature-gates": ["A=true"]}}));
        assert_eq!(render(&row(), &filter(&["A"], &[]), &format, Some(&new)).unwrap(), new);
        assert!(render(&row(), &filter(&["A"], &[]), &format, None).unwrap().contains("- A=true"));
        let error = render(&row(), &Filter::default(), &format, Some("apiServerArguments: 3")).unwrap_err().to_string();
        assert_eq!(error, "apiServerArguments of the config file is no mapping, so nothing can be put below it");
        assert!(render(&row(), &Filter::default(), &format, Some("a: [")).is_err());
    }

    /// A bug: it was taken for a list of objects, and the file became its only item.
    #[test]
    fn a_config_file_that_looks_like_a_list_of_objects() {
        let old = "kind: PolicyList\nitems:\n- a: 1\n";
        let format = Format::Config(vec!["gates".to_owned()]);
        let new = render(&row(), &filter(&["A"], &[]), &format, Some(old)).unwrap();
        assert_eq!(new, format!("{old}gates:\n- A=true\n"));
    }

    #[test]
    fn the_row_as_json() {
        let text = render(&row(), &filter(&[], &["D"]), &Format::Json, None).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, json!({"version": "fixed", "enabled": ["A", "C"], "disabled": ["B"]}));
    }
}
