//! Objects on their way to a client: as they are stored, where that is what a client reads, and as trees where it is not.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    object, protobuf,
    resource::{Resource, Role, Schemas},
    schema::{self, Seams},
    selector::Selector,
    serve::answer,
    store::Entry,
};

/// In which form objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To be sent as a whole: text will do.
    Text,
    /// To be looked into.
    Trees,
}

pub(super) enum Shown {
    Text(Stored),
    Tree(Value),
}

/// What most selectors look at.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMetadata,
}

#[derive(Deserialize)]
struct HeadMetadata {
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    name: Value,
    #[serde(default)]
    namespace: Value,
}

/// The text of an object that is plain.
pub(super) struct Stored {
    text: Bytes,
    seams: Seams,
    /// The version it is told to have.
    revision: i64,
    /// Whether it says what it is.
    typed: bool,
}

impl Stored {
    /// The object if it can be sent as it is stored.
    pub(super) fn of(resource: &Resource, entry: &Entry) -> Option<Stored> {
        let other_forms = resource.role == Role::Definition || entry.value.starts_with(protobuf::MAGIC);
        if other_forms || resource.converter.is_some() {
            return None;
        }
        let seams = schema::plain(&resource.schema, &entry.value, resource.custom().is_some())?;
        // An object of another version has the defaults of that.
        let other = |schemas: &Schemas| {
            let own = entry.value.get(seams.api_version.clone());
            schemas.len() > 1 && own != Some(quoted(&resource.api_version()).as_bytes())
        };
        if resource.schemas.as_deref().is_some_and(other) {
            return None;
        }
        Some(Stored { text: entry.value.clone(), seams, revision: entry.revision, typed: true })
    }

    /// The object with its labels, name and namespace alone.
    fn head(&self) -> Value {
        let read = serde_json::from_slice(&self.text).map(|Head { metadata }| metadata);
        // Whatever is plain can be read.
        read.map_or(Value::Null, |HeadMetadata { labels, name, namespace }| {
            json!({"metadata": {"labels": labels, "name": name, "namespace": namespace}})
        })
    }

    fn write(&self, api_version: &str, out: &mut Vec<u8>) {
        let Seams { api_version: old, types: [version, kind], resource_version: gap, end } = &self.seams;
        if self.typed {
            out.extend_from_slice(&self.text[..old.start]);
            out.extend_from_slice(api_version.as_bytes());
            out.extend_from_slice(&self.text[old.end..gap.at]);
        } else {
            out.extend_from_slice(&self.text[..version.start]);
            out.extend_from_slice(&self.text[version.end..kind.start]);
            out.extend_from_slice(&self.text[kind.end..gap.at]);
        }
        if gap.after_another && !gap.before_another {
            out.push(b',');
        }
        out.extend_from_slice(b"\"resourceVersion\":\"");
        out.extend_from_slice(self.revision.to_string().as_bytes());
        out.push(b'"');
        if gap.before_another {
            out.push(b',');
        }
        out.extend_from_slice(&self.text[gap.at..*end]);
    }
}

impl Shown {
    /// Whether a selector finds it. What is text is looked at by selectors of its head alone.
    pub(super) fn is_selected(&self, selector: &Selector) -> bool {
        match self {
            _ if selector.is_empty() => true,
            Shown::Tree(object) => selector.matches(object),
            Shown::Text(stored) => selector.matches(&stored.head()),
        }
    }

    /// The object as a tree, if it is one.
    pub(super) fn into_tree(self) -> Option<Value> {
        match self {
            Shown::Tree(object) => Some(object),
            Shown::Text(_) => None,
        }
    }

    /// Says that it has another version than the one it was read at.
    pub(super) fn set_revision(&mut self, revision: i64) {
        match self {
            Shown::Text(stored) => stored.revision = revision,
            Shown::Tree(object) => object::set(object, "resourceVersion", revision.to_string()),
        }
    }

    /// Leaves out what it is: lists of built-in kinds say it once.
    pub(super) fn untype(&mut self) {
        match self {
            Shown::Text(stored) => stored.typed = false,
            Shown::Tree(object) => object::untype(object),
        }
    }

    fn length(&self) -> usize {
        match self {
            Shown::Text(stored) => stored.text.len() + 64,
            Shown::Tree(_) => 1024,
        }
    }

    fn write(&self, api_version: &str, out: &mut Vec<u8>) {
        match self {
            Shown::Text(stored) => stored.write(api_version, out),
            Shown::Tree(object) => answer::write(object, out),
        }
    }
}

/// One object as an answer.
pub(super) fn one(resource: &Resource, object: &Shown) -> Bytes {
    let mut out = Vec::with_capacity(object.length());
    object.write(&quoted(&resource.api_version()), &mut out);
    out.push(b'\n');
    out.into()
}

/// An event of a watch. The order of members here, and in a list, is that of their names, as everywhere.
pub(super) fn event(resource: &Resource, kind: &str, object: &Shown) -> Bytes {
    let mut out = Vec::with_capacity(object.length() + 64);
    out.extend_from_slice(b"{\"object\":");
    object.write(&quoted(&resource.api_version()), &mut out);
    out.extend_from_slice(format!(",\"type\":{}}}\n", quoted(kind)).as_bytes());
    out.into()
}

/// Objects as a list.
pub(super) fn list(resource: &Resource, objects: &[Shown], metadata: &Value) -> Bytes {
    let api_version = quoted(&resource.api_version());
    let mut out = Vec::with_capacity(objects.iter().map(Shown::length).sum::<usize>() + 512);
    out.extend_from_slice(format!("{{\"apiVersion\":{api_version},\"items\":[").as_bytes());
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        object.write(&api_version, &mut out);
    }
    let kind = quoted(&resource.list_kind);
    out.extend_from_slice(format!("],\"kind\":{kind},\"metadata\":{metadata}}}\n").as_bytes());
    out.into()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
