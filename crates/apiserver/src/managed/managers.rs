//! Who has written what: `metadata.managedFields`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{set::Set, value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// The fields of one manager, by one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub manager: String,
    pub operation: Operation,
    pub subresource: String,
    /// The version in which the fields are named.
    pub api_version: String,
    pub time: Option<String>,
    pub set: Set,
}

impl Claim {
    /// Who this is. Updates in several versions are several managers, applies are one.
    pub(crate) fn id(&self) -> String {
        let mut parts = vec![("manager", self.manager.as_str()), ("operation", self.operation.text())];
        if self.operation == Operation::Update {
            parts.push(("apiVersion", &self.api_version));
        }
        parts.push(("subresource", &self.subresource));
        let parts = parts.iter().filter(|(_, text)| !text.is_empty());
        let parts: Vec<String> = parts.map(|(name, text)| format!("{name:?}:{}", value::print(&json!(text)))).collect();
        format!("{{{}}}", parts.join(","))
    }

    fn parse(entry: &Value, index: usize) -> Result<Claim, String> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let operation = match entry["operation"].as_str() {
            Some("Apply") => Operation::Apply,
            Some("Update") => Operation::Update,
            _ => return Err("operation must be `Apply` or `Update`".to_owned()),
        };
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match entry["fieldsType"].as_str().unwrap_or_default() {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
            other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {index}")),
        }
        let set = match &entry["fieldsV1"] {
            Value::Null => Set::default(),
            fields => Set::parse(fields)?,
        };
        let time = entry["time"].as_str().map(str::to_owned);
        let (manager, subresource, api_version) = (text("manager"), text("subresource"), text("apiVersion"));
        Ok(Claim { manager, operation, subresource, api_version, time, set })
    }

    fn to_json(&self) -> Value {
        let mut entry = Map::new();
        for (name, text) in [
            ("manager", self.manager.as_str()),
            ("operation", self.operation.text()),
            ("apiVersion", &self.api_version),
            ("time", self.time.as_deref().unwrap_or_default()),
            ("fieldsType", "FieldsV1"),
            ("subresource", &self.subresource),
        ] {
            if !text.is_empty() {
                entry.insert(name.to_owned(), text.into());
            }
        }
        entry.insert("fieldsV1".to_owned(), self.set.to_json());
        Value::Object(entry)
    }

    pub(crate) fn seconds(&self) -> i64 {
        let parsed = self.time.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        parsed.map_or(0, |time| time.as_second())
    }
}

/// All claims on an object, by who has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Managers {
    pub(super) claims: BTreeMap<String, Claim>,
}

impl Managers {
    pub(crate) fn parse(entries: &[Value]) -> Result<Managers, String> {
        let claims = entries.iter().enumerate().map(|(index, entry)| {
            let claim = Claim::parse(entry, index)?;
            Ok((claim.id(), claim))
        });
        Ok(Managers { claims: claims.collect::<Result<_, String>>()? })
    }

    /// Those of an object; none if they cannot be read.
    pub(crate) fn of(object: &Value) -> Managers {
        Managers::parse(crate::object::list(object, "managedFields")).unwrap_or_default()
    }

    /// Those that a write starts from: its own, if it brings any, or else those of the live object. An empty list, or one
    /// of an empty entry, takes all away.
    pub(crate) fn given(live: &Value, new: &Value) -> Managers {
        let given = new["metadata"].get("managedFields").and_then(Value::as_array);
        match given.map(Vec::as_slice) {
            Some([]) => Managers::default(),
            Some([only]) if only.as_object().is_some_and(Map::is_empty) => Managers::default(),
            Some(entries) => match Managers::parse(entries) {
                Ok(managers) if !managers.is_empty() => managers,
                _ => Managers::of(live),
            },
            None => Managers::of(live),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    /// As entries: applies before updates, older before newer.
    pub(crate) fn to_json(&self) -> Vec<Value> {
        let mut claims: Vec<&Claim> = self.claims.values().collect();
        claims.sort_by_key(|claim| {
            (claim.operation.text(), claim.seconds(), &claim.manager, &claim.api_version, &claim.subresource)
        });
        claims.into_iter().map(Claim::to_json).collect()
    }

    /// The same claims, with the times of those that are there too.
    pub(crate) fn with_times_of(mut self, other: &Managers) -> Managers {
        for (id, claim) in &mut self.claims {
            if let Some(there) = other.claims.get(id) {
                claim.time.clone_from(&there.time);
            }
        }
        self
    }

    pub(super) fn put(&mut self, claim: Claim) {
        self.claims.insert(claim.id(), claim);
    }
}
