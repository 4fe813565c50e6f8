//! The YAML config file: etcd's keys, integers for durations, unknown and double keys refused.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::error::ConfigError;
use super::notice::Notice;
use super::retired;
use super::settings::Settings;
use super::table::{self, Flag, Key, Kind, NO_DISCOVERY};
use super::value::Value;

pub(super) fn read(path: &Path, notices: &mut Vec<Notice>) -> Result<Settings, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::ReadFile { path: path.to_owned(), source })?;
    parse(path, &text, notices)
}

/// `path` is only named in errors.
pub(super) fn parse(path: &Path, text: &str, notices: &mut Vec<Notice>) -> Result<Settings, ConfigError> {
    let file = File { path, notices };
    let bad = |message: String| ConfigError::BadYaml { path: path.to_owned(), message };
    // A file of comments alone sets nothing.
    let root = match serde_saphyr::from_str::<Option<Node>>(text) {
        Ok(root) => root.unwrap_or(Node::Null),
        Err(err) => return Err(bad(first_line(&err.to_string()))),
    };
    match root {
        Node::Null => Ok(Settings::default()),
        Node::Map(entries) => file.settings(entries),
        _ => Err(bad("expected `key: value` lines".to_owned())),
    }
}

/// Position and reason, without the picture of the file and the parser's advice to programmers.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    line.split(", set DuplicateKeyPolicy").next().unwrap_or(line).to_owned()
}

struct File<'a> {
    path: &'a Path,
    notices: &'a mut Vec<Notice>,
}

impl File<'_> {
    fn settings(mut self, entries: Vec<Entry>) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        for entry in entries {
            if let Some(flag) = table::flags().find(|flag| flag.key == Key::Same && flag.name == entry.key) {
                self.set(&mut settings, flag, &entry.key, &entry)?;
            } else if is_section(&entry.key) {
                self.section(&mut settings, entry)?;
            } else {
                self.retired(&entry)?;
            }
        }
        Ok(settings)
    }

    fn section(&mut self, settings: &mut Settings, section: Entry) -> Result<(), ConfigError> {
        let entries = match section.value {
            Node::Null => return Ok(()),
            Node::Map(entries) => entries,
            _ => return Err(self.bad(section.line, section.key, "expected keys below it".to_owned())),
        };
        for entry in entries {
            let is = |flag: &&Flag| matches!(flag.key, Key::Nested(s, k) if s == section.key && k == entry.key);
            let name = format!("{}.{}", section.key, entry.key);
            match table::flags().find(is) {
                Some(flag) => self.set(settings, flag, &name, &entry)?,
                None => return Err(self.unknown(entry.line, name)),
            }
        }
        Ok(())
    }

    fn set(&self, settings: &mut Settings, flag: &'static Flag, key: &str, entry: &Entry) -> Result<(), ConfigError> {
        // `key:` without a value leaves the default.
        if matches!(entry.value, Node::Null) {
            return Ok(());
        }
        let value = value_of(flag.kind, &entry.value).map_err(|reason| self.bad(entry.line, key.to_owned(), reason))?;
        match value {
            Value::Urls(urls) if urls.is_empty() => {}
            value => settings.set(flag, value),
        }
        Ok(())
    }

    fn retired(&mut self, entry: &Entry) -> Result<(), ConfigError> {
        let (line, key) = (entry.line, entry.key.clone());
        if key == "discovery-config" {
            return if matches!(entry.value, Node::Null) {
                Ok(())
            } else {
                Err(self.bad(line, key, NO_DISCOVERY.to_owned()))
            };
        }
        if let Some(successor) = retired::successor(&key) {
            return Err(ConfigError::RenamedKey { path: self.path.to_owned(), line, key, successor });
        }
        let Some((_, harmless)) = retired::IGNORED_KEYS.iter().find(|(name, _)| *name == key) else {
            return Err(self.unknown(line, key));
        };
        match (harmless, scalar(&entry.value)) {
            (_, None) if matches!(entry.value, Node::Null) => Ok(()),
            (Some(only), text) if text.as_deref() != Some(*only) => {
                Err(self.bad(line, key, "gone from etcd since 3.6; leave it out".to_owned()))
            }
            _ => {
                self.notices.push(Notice::Retired { name: key });
                Ok(())
            }
        }
    }

    fn unknown(&self, line: u64, key: String) -> ConfigError {
        let known = known_keys();
        let nearest = retired::nearest(&key, known.iter().map(String::as_str)).map(str::to_owned);
        ConfigError::UnknownKey { path: self.path.to_owned(), line, key, nearest }
    }

    fn bad(&self, line: u64, key: String, reason: String) -> ConfigError {
        ConfigError::BadKey { path: self.path.to_owned(), line, key, reason }
    }
}

fn is_section(name: &str) -> bool {
    table::flags().any(|flag| matches!(flag.key, Key::Nested(section, _) if section == name))
}

fn known_keys() -> Vec<String> {
    let key = |flag: &Flag| match flag.key {
        Key::Same => Some(flag.name.to_owned()),
        Key::Nested(section, key) => Some(format!("{section}.{key}")),
        Key::None => None,
    };
    table::flags().filter_map(key).collect()
}

fn value_of(kind: Kind, node: &Node) -> Result<Value, String> {
    match (kind, node) {
        (Kind::Bool, Node::Bool(b)) => Ok(Value::Bool(*b)),
        (Kind::Bool, _) => Err("expected true or false".to_owned()),
        (Kind::Int | Kind::Uint | Kind::Uint32, Node::Int(n)) => Value::parse(kind, &n.to_string()),
        (Kind::Int | Kind::Uint | Kind::Uint32, _) => Err("expected an integer without quotes".to_owned()),
        (Kind::Duration, Node::Int(n)) => i64::try_from(*n).map(Value::Duration).map_err(|_| "too long".to_owned()),
        (Kind::Duration, _) => Err("expected integer nanoseconds, such as 600000000000 for 10m".to_owned()),
        (Kind::List, Node::Seq(items)) => {
            let items = items.iter().map(|item| scalar(item).ok_or("expected a list of words".to_owned()));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        (Kind::List | Kind::Text | Kind::Urls | Kind::Origins | Kind::OneOf(_), node) => match scalar(node) {
            Some(text) => Value::parse(kind, &text),
            None => Err("expected text".to_owned()),
        },
    }
}

/// The text of a plain value, also of one that YAML takes for a number or a bool.
fn scalar(node: &Node) -> Option<String> {
    match node {
        Node::Bool(b) => Some(b.to_string()),
        Node::Int(n) => Some(n.to_string()),
        Node::Float(n) => Some(n.to_string()),
        Node::Text(text) => Some(text.clone()),
        Node::Null | Node::Seq(_) | Node::Map(_) => None,
    }
}

/// Any YAML value, with the lines of the keys.
#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    Seq(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug)]
struct Entry {
    key: String,
    line: u64,
    value: Node,
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_bool<E: de::Error>(self, b: bool) -> Result<Node, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Node, E> {
        Ok(Node::Int(n.into()))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Node, E> {
        Ok(Node::Int(n.into()))
    }

    fn visit_i128<E: de::Error>(self, n: i128) -> Result<Node, E> {
        Ok(Node::Int(n))
    }

    fn visit_f64<E: de::Error>(self, n: f64) -> Result<Node, E> {
        Ok(Node::Float(n))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Node::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let (line, key) = (key.defined.line(), key.value);
            entries.push(Entry { key, line, value: map.next_value()? });
        }
        Ok(Node::Map(entries))
    }
}
