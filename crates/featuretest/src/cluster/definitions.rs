//! Definitions in memory, with the part of server-side apply that the controller relies on.

use std::collections::{BTreeMap, BTreeSet};

use featureset::{
    definition::{ANNOTATION, MANAGER},
    sync::{Definitions, FieldWrite, Held},
};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Server {
    definitions: BTreeMap<String, Definition>,
    pub unreadable: Option<String>,
    pub held: BTreeMap<String, Vec<Held>>,
    /// The definitions that refuse applies, each with the reason given.
    pub refusing: BTreeMap<String, String>,
}

#[derive(Default)]
pub struct Definition {
    pub follow: Option<String>,
    pub gates: Vec<Gate>,
    pub deleted: bool,
    version: u64,
}

pub struct Gate {
    name: String,
    stage: String,
    enabled: Option<bool>,
    owners: BTreeSet<String>,
}

impl Server {
    pub fn get(&mut self, name: &str) -> &mut Definition {
        let definition = self.definitions.entry(name.to_owned()).or_default();
        definition.version += 1;
        definition
    }

    pub fn look(&self) -> Definitions {
        Definitions {
            there: self.definitions.iter().map(|(name, definition)| definition.to_json(name)).collect(),
            unreadable: self.unreadable.clone(),
            held: self.held.clone(),
        }
    }

    pub fn apply(&mut self, write: &FieldWrite) {
        if let Some(why) = self.refusing.get(&write.name) {
            let refused = Held::Refused { config: write.config.clone(), why: why.clone(), again: false };
            self.held.insert(write.name.clone(), vec![refused]);
            return;
        }
        if let Some(held) = self.held.get_mut(&write.name) {
            held.retain(|held| matches!(held, Held::Contested { .. }));
        }
        let definition = self.definitions.get_mut(&write.name).unwrap();
        assert_eq!(
            write.config["metadata"]["resourceVersion"],
            definition.version.to_string(),
            "the definition has changed since the look"
        );
        let items = write.config["spec"]["customFeatureGates"]["featureGates"].as_array().cloned().unwrap_or_default();
        let mut wanted: BTreeMap<&str, bool> =
            items.iter().map(|item| (item["name"].as_str().unwrap(), item["enabled"].as_bool().unwrap())).collect();
        for gate in &mut definition.gates {
            gate.apply(wanted.remove(gate.name.as_str()), !write.taken.is_empty());
        }
        assert!(wanted.is_empty(), "{wanted:?} are new gates without a stage, which the API refuses");
        definition.version += 1;
    }

    pub fn describe(&self) -> String {
        let of = |(name, definition): (&String, &Definition)| {
            format!("{name}:{}\n", definition.gates.iter().map(Gate::describe).collect::<String>())
        };
        self.definitions.iter().map(of).collect()
    }
}

impl Definition {
    /// Writes gates such as `A:alpha` or, set by their author, `B:beta=off`.
    pub fn put(&mut self, words: &[&str]) {
        let old = std::mem::take(&mut self.gates);
        for word in words {
            let (name, rest) = word.split_once(':').unwrap();
            let (stage, set) = rest.split_once('=').map_or((rest, None), |(stage, set)| (stage, Some(set == "on")));
            let known = old.iter().find(|gate| gate.name == name);
            let mut gate =
                Gate { name: name.to_owned(), stage: stage.to_owned(), enabled: None, owners: BTreeSet::new() };
            if let Some(known) = known {
                (gate.enabled, gate.owners) = (known.enabled, known.owners.clone());
            }
            self.gates.push(gate);
            if let Some(on) = set {
                self.set(name, on, "author");
            }
        }
    }

    /// Updates a value. A manager that changes it owns it.
    pub fn set(&mut self, name: &str, on: bool, manager: &str) {
        let gate = self.gates.iter_mut().find(|gate| gate.name == name).unwrap();
        if gate.enabled != Some(on) {
            gate.enabled = Some(on);
            gate.owners = [manager.to_owned()].into();
        }
    }

    fn to_json(&self, name: &str) -> Value {
        let mut metadata = json!({"name": name, "uid": "u", "resourceVersion": self.version.to_string()});
        if let Some(follow) = &self.follow {
            metadata["annotations"] = json!({ANNOTATION: follow});
        }
        if self.deleted {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let managers: BTreeSet<&String> = self.gates.iter().flat_map(|gate| &gate.owners).collect();
        metadata["managedFields"] = managers.iter().map(|manager| self.entry(manager)).collect::<Vec<_>>().into();
        let gates: Vec<Value> = self.gates.iter().map(Gate::to_json).collect();
        let spec = if gates.is_empty() { json!({}) } else { json!({"customFeatureGates": {"featureGates": gates}}) };
        json!({"metadata": metadata, "spec": spec})
    }

    fn entry(&self, manager: &str) -> Value {
        let mut claims = json!({});
        for gate in self.gates.iter().filter(|gate| gate.owners.contains(manager)) {
            claims[format!("k:{}", json!({"name": gate.name}))] = json!({".": {}, "f:name": {}, "f:enabled": {}});
        }
        let operation = if manager == MANAGER { "Apply" } else { "Update" };
        let fields = json!({"f:spec": {"f:customFeatureGates": {"f:featureGates": claims}}});
        json!({"manager": manager, "operation": operation, "apiVersion": "apiextensions.k8s.io/v1", "fieldsV1": fields})
    }
}

impl Gate {
    fn apply(&mut self, wanted: Option<bool>, force: bool) {
        let us = || MANAGER.to_owned();
        match wanted {
            Some(on) if self.enabled == Some(on) => drop(self.owners.insert(us())),
            Some(on) => {
                self.owners.remove(MANAGER);
                assert!(self.owners.is_empty() || force, "{} is owned by {:?}", self.name, self.owners);
                (self.enabled, self.owners) = (Some(on), [us()].into());
            }
            None if self.owners.remove(MANAGER) && self.owners.is_empty() => self.enabled = None,
            None => {}
        }
    }

    fn to_json(&self) -> Value {
        let mut gate = json!({"name": self.name, "preRelease": self.stage, "fieldPaths": [".spec.x"]});
        if let Some(on) = self.enabled {
            gate["enabled"] = on.into();
        }
        gate
    }

    fn describe(&self) -> String {
        let owners = self.owners.iter().cloned().collect::<Vec<_>>().join("+");
        match self.enabled {
            Some(on) => format!(" {} {} by {owners};", self.name, if on { "on" } else { "off" }),
            None => format!(" {} unset;", self.name),
        }
    }
}
