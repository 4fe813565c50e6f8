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
/// As many entries go into one object; then there is a next one.
const ENTRIES_MAX: usize = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// The object says so, and the rows follow it.
    Chosen,
    /// The object says so, and the rows stay with the one-way set that was chosen before.
    Refused,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub time: String,
    pub kind: Kind,
    /// By name, so that an entry of a later release can be read.
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
        Ok(Trail { entries, last: sorted.last().map(|object| (*object).clone()) })
    }

    /// The choice that the cluster cannot leave: of the first one-way set, with the lists as they were chosen last.
    pub fn one_way(&self) -> Option<Choice> {
        let chosen = || self.entries.iter().filter(|entry| entry.kind == Kind::Chosen).filter_map(|e| e.choice().ok());
        let set = chosen().find(|choice| choice.set.is_one_way())?.set;
        chosen().rfind(|choice| choice.set == set)
    }

    /// The object to create (it has no resourceVersion) or to update, with the entry added.
    pub fn with(&self, entry: &Entry, namespace: &str) -> Value {
        let count = |object: &Value| object["data"].as_object().map_or(0, |data| data.len());
        let mut object = match &self.last {
            Some(object) if count(object) < ENTRIES_MAX => object.clone(),
            Some(object) => empty(namespace, number(object).unwrap_or(1) + 1),
            None => empty(namespace, 1),
        };
        // Those who list the trail go by its label.
        object["metadata"]["labels"][LABEL] = LABEL_VALUE.into();
        let key = format!("{:06}", self.entries.len() + 1);
        object["data"][key] = serde_json::to_string(entry).unwrap_or_default().into();
        object
    }
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
