//! The audit trail: which sets were chosen, in order. Entries are added and never changed; the first one-way set in it is
//! the set of the cluster for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    config_map::LABEL,
    resolve::Choice,
    set::{Set, UnknownSet},
};

pub const LABEL_VALUE: &str = "audit";
const NAME: &str = "gates-audit";
/// As many entries go into one object, and as many bytes, for custom lists may be long; then there is a next one. The API takes a
/// mebibyte, and an entry that it does not take would hold up the rows for ever.
const ENTRIES_MAX: usize = 500;
const BYTES_MAX: usize = 512 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// The object says so, and the rows follow it.
    Chosen,
    /// The object says so, and the rows stay with what was chosen before: a one-way set, or whatever it was where this is no set at all.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub time: String,
    pub kind: Kind,
    /// By name, so that an entry of a later release can be read; of what is no set, what was found in its place.
    pub set: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enabled: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// The controller that wrote the entry.
    pub controller_version: String,
    /// Of the FeatureGate; another uid is another object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Who wrote the spec last, if the API says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

impl Entry {
    /// Whether it says the same of the same kind; time and writer aside.
    pub fn says(&self, kind: Kind, choice: &Choice) -> bool {
        let same = |names: &[String], set: &std::collections::BTreeSet<String>| names.iter().eq(set.iter());
        self.kind == kind
            && self.set == choice.set.name()
            && same(&self.enabled, &choice.enabled)
            && same(&self.disabled, &choice.disabled)
    }

    pub fn choice(&self) -> Result<Choice, UnknownSet> {
        let set: Set = self.set.parse()?;
        Ok(Choice {
            set,
            enabled: self.enabled.iter().cloned().collect(),
            disabled: self.disabled.iter().cloned().collect(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    #[error("entry {key} of {object}: {why}")]
    Entry { object: String, key: String, why: String },
}

/// All entries, and the object that the next one goes into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trail {
    pub entries: Vec<Entry>,
    key_max: usize,
    last: Option<Value>,
}

impl Trail {
    /// Reads the objects of the trail, in whatever order they come; others are left out.
    pub fn read(objects: &[Value]) -> Result<Trail, AuditError> {
        let mut sorted: Vec<&Value> = objects.iter().filter(|object| number(object).is_some()).collect();
        sorted.sort_by_key(|object| number(object));
        let mut entries = Vec::new();
        for object in &sorted {
            let data: BTreeMap<&String, &Value> = object["data"].as_object().into_iter().flatten().collect();
            for (key, text) in data {
                let read = serde_json::from_str::<Entry>(text.as_str().unwrap_or_default());
                let entry = read.map_err(|error| AuditError::Entry {
                    object: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
                    key: key.clone(),
                    why: error.to_string(),
                })?;
                entries.push(entry);
            }
        }
        let key_max = sorted.iter().map(|object| key_max(object)).max().unwrap_or(0);
        Ok(Trail { entries, key_max, last: sorted.last().map(|object| (*object).clone()) })
    }

    /// The choice that the cluster cannot leave: of the first one-way set, with the lists as they were chosen last.
    pub fn one_way(&self) -> Option<Choice> {
        let chosen = || self.entries.iter().filter(|entry| entry.kind == Kind::Chosen).filter_map(|e| e.choice().ok());
        let set = chosen().find(|choice| choice.set.is_one_way())?.set;
        chosen().rfind(|choice| choice.set == set)
    }

    /// The choice that was recorded last; `None` also if it is one of a later release, for then it is not known.
    pub fn chosen(&self) -> Option<Choice> {
        self.entries.iter().rfind(|entry| entry.kind == Kind::Chosen)?.choice().ok()
    }

    /// The object to create (it has no resourceVersion) or to update, with the entry added.
    pub fn with(&self, entry: &Entry, namespace: &str) -> Value {
        let text = serde_json::to_string(entry).unwrap_or_default();
        let mut object = match &self.last {
            Some(object) if has_room(object, text.len()) => object.clone(),
            Some(object) => empty(namespace, number(object).unwrap_or(1) + 1),
            None => empty(namespace, 1),
        };
        // Those who list the trail go by its label.
        if !object["metadata"]["labels"].is_object() {
            object["metadata"]["labels"] = json!({});
        }
        object["metadata"]["labels"][LABEL] = LABEL_VALUE.into();
        if !object["data"].is_object() {
            object["data"] = json!({});
        }
        object["data"][format!("{:06}", self.key_max + 1)] = text.into();
        object
    }
}

/// The highest number of an entry. It is not how many there are: where somebody took one out, the next must not go over another.
fn key_max(object: &Value) -> usize {
    let keys = object["data"].as_object().into_iter().flatten().map(|(key, _)| key);
    keys.filter_map(|key| key.parse().ok()).max().unwrap_or(0)
}

fn has_room(object: &Value, more: usize) -> bool {
    let entries = || object["data"].as_object().into_iter().flatten();
    let bytes: usize = entries().map(|(key, text)| key.len() + text.as_str().map_or(0, str::len)).sum();
    entries().count() < ENTRIES_MAX && bytes + more <= BYTES_MAX
}

fn empty(namespace: &str, number: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{NAME}-{number}"), "namespace": namespace, "labels": {LABEL: LABEL_VALUE}},
        "data": {},
    })
}

/// Whether it is an object of the trail. By its name alone: a label can be taken off, and then half a trail would pass for all of it.
pub fn is_part(object: &Value) -> bool {
    number(object).is_some()
}

fn number(object: &Value) -> Option<u64> {
    object["metadata"]["name"].as_str()?.strip_prefix(NAME)?.strip_prefix('-')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries with `names` names each, until there are three objects; how many the first has, and how large it is.
    fn filled(names: usize) -> (usize, usize) {
        let mut objects: Vec<Value> = Vec::new();
        for i in 0.. {
            let enabled = (0..names).map(|name| format!("GateWithAnOrdinaryName{name:03}{}", i % 2)).collect();
            let entry = Entry { enabled, generation: Some(i), ..entry(Set::Custom) };
            let trail = Trail::read(&objects).unwrap();
            assert_eq!(trail.entries.len(), i as usize, "none is lost");
            let object = trail.with(&entry, "n");
            objects.retain(|other| other["metadata"]["name"] != object["metadata"]["name"]);
            objects.push(object);
            if objects.len() == 3 {
                break;
            }
        }
        (objects[0]["data"].as_object().unwrap().len(), objects[0].to_string().len())
    }

    fn entry(set: Set) -> Entry {
        let (time, controller_version) = ("t".to_owned(), "1.4.0".to_owned());
        let set = set.name().to_owned();
        let (enabled, disabled) = (Vec::new(), Vec::new());
        let (uid, generation, actor) = (None, None, None);
        Entry { time, kind: Kind::Chosen, set, enabled, disabled, controller_version, uid, generation, actor }
    }

    /// A bug: the next entry went over the last one, and with it went the one-way set.
    #[test]
    fn an_entry_that_somebody_took_out_costs_no_other() {
        let first = Trail::default().with(&entry(Set::Default), "n");
        let mut object = Trail::read(&[first]).unwrap().with(&entry(Set::TechPreview), "n");
        object["data"].as_object_mut().unwrap().remove("000001");
        let trail = Trail::read(&[object]).unwrap();
        let object = trail.with(&Entry { kind: Kind::Refused, ..entry(Set::Default) }, "n");
        let trail = Trail::read(&[object]).unwrap();
        assert_eq!(trail.one_way().map(|choice| choice.set), Some(Set::TechPreview));
        assert_eq!(trail.entries.len(), 2);
    }

    #[test]
    fn no_part_of_the_trail_is_too_large_for_the_api() {
        assert_eq!(filled(0).0, ENTRIES_MAX);
        let (entries, bytes) = filled(2000);
        assert!(entries < ENTRIES_MAX && bytes < 700_000, "{entries} entries, {bytes} bytes");
    }
}
