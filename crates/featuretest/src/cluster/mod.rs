//! A cluster in memory, which keeps the objects that the controller's steps write.

mod definitions;
mod validation;

use std::{cell::RefCell, collections::BTreeMap};

use featureset::{
    GatesFile, Registry, Set,
    ack::Ack,
    audit::Trail,
    config_map::{of_config_map, to_config_map, version_of},
    object::{ClusterOperator, ClusterVersion, FeatureGate},
    sync::{Part, Refused, World, Write, sync},
};
use serde_json::{Value, json};

pub use self::{definitions::Server, validation::Validation};

pub const NAMESPACE: &str = "lockgate-gates";

#[derive(Default)]
pub struct Cluster {
    pub feature_gate: Option<FeatureGate>,
    pub cluster_version: Option<ClusterVersion>,
    pub cluster_version_unreadable: Option<String>,
    pub cluster_operator: Option<ClusterOperator>,
    pub registries: Vec<Value>,
    pub audit: Vec<Value>,
    pub acks: Vec<Ack>,
    pub definitions: Server,
    /// How the API validates writes of the FeatureGate.
    pub validation: Validation,
    /// The last write that the API refused, until the FeatureGate changes.
    refused: Option<Refused>,
    pub now: i64,
    made: u64,
    /// Registries by their text. They never change, and reading a hundred of them takes long in a debug build.
    read: RefCell<BTreeMap<String, Result<Registry, String>>>,
}

/// The time that these clusters keep registries that no version needs.
pub const KEEP_SECONDS: i64 = 300;

/// The seconds of a time that `Cluster::time` has written.
pub fn seconds_of(text: &str) -> Option<i64> {
    let (minutes, seconds) = text.strip_prefix("2026-01-01T00:")?.strip_suffix('Z')?.split_once(':')?;
    Some(minutes.parse::<i64>().ok()? * 60 + seconds.parse::<i64>().ok()?)
}

/// A registry from words such as `A:Default B:TechPreviewNoUpgrade C:none D:Default<A` (D depends on A).
pub fn registry(version: &str, gates: &[&str]) -> Registry {
    let mut text = format!("schema = 1\nversion = \"{version}\"\n");
    for word in gates {
        let (gate, depends) =
            word.split_once('<').map_or((*word, String::new()), |(gate, on)| (gate, format!("{on:?}")));
        let (name, set) = gate.split_once(':').unwrap();
        let sets = if set == "none" { Vec::new() } else { set.parse::<Set>().unwrap().with_wider() };
        let sets: Vec<&str> = sets.into_iter().map(Set::name).collect();
        text += &format!(
            "[gate.{name}]\ndescription = \"d\"\nowner = \"o\"\ncontact = \"c\"\nenhancement = \"https://e\"\n\
             since = \"1.0\"\nsets = {sets:?}\ndepends_on = [{depends}]\n"
        );
    }
    Registry::of_file(&GatesFile::parse(&text).unwrap(), version).unwrap()
}

impl Cluster {
    pub fn step(&self, own: &Registry) -> Vec<Write> {
        let registries = self
            .registries
            .iter()
            .map(|object| {
                let version = version_of(object).unwrap().to_owned();
                (version, self.read(object))
            })
            .collect::<BTreeMap<_, _>>();
        let time = self.time();
        sync(&World {
            own,
            profile: "default",
            namespace: NAMESPACE,
            operator_name: ClusterOperator::NAME,
            feature_gate: self.feature_gate.as_ref(),
            refused: self.refused.as_ref(),
            cluster_version: self.cluster_version.as_ref(),
            cluster_version_unreadable: self.cluster_version_unreadable.as_deref(),
            cluster_operator: self.cluster_operator.as_ref(),
            registries: &registries,
            registry_objects: &self.registries,
            keep_registries_seconds: KEEP_SECONDS,
            definitions: &self.definitions.look(),
            audit: &Trail::read(&self.audit),
            acks: &self.acks,
            now: (self.now, &time),
            seconds_of,
        })
    }

    fn read(&self, object: &Value) -> Result<Registry, String> {
        let mut read = self.read.borrow_mut();
        let of_object = || of_config_map(object).map_err(|error| error.to_string());
        read.entry(object.to_string()).or_insert_with(of_object).clone()
    }

    fn time(&self) -> String {
        format!("2026-01-01T00:{:02}:{:02}Z", self.now / 60, self.now % 60)
    }

    pub fn write(&mut self, write: Write) {
        self.made += 1;
        let version = Some(self.made.to_string());
        match write {
            Write::CreateRegistry(object) => self.registries.push(object),
            Write::CreateFeatureGate(mut object) => {
                assert!(self.feature_gate.is_none());
                object.metadata.uid = Some(format!("uid-{}", self.made));
                object.metadata.generation = Some(1);
                self.feature_gate = Some(*object);
            }
            Write::Audit(object) => {
                let name = object["metadata"]["name"].clone();
                self.audit.retain(|other| other["metadata"]["name"] != name);
                self.audit.push(object);
            }
            Write::FeatureGateStatus(mut object) => {
                object.metadata.resource_version = version;
                self.feature_gate = Some(*object);
            }
            Write::RestoreSpec(mut object) => {
                object.metadata.resource_version = version;
                object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
                self.feature_gate = Some(*object);
            }
            Write::ReplaceFeatureGate { old, new } => {
                assert_eq!(self.feature_gate.take().map(|object| object.metadata), Some(*old));
                self.write(Write::CreateFeatureGate(new));
            }
            Write::CreateClusterOperator(object) => self.cluster_operator = Some(*object),
            Write::ClusterOperatorStatus(mut object) => {
                object.metadata.resource_version = version;
                self.cluster_operator = Some(*object);
            }
            Write::FieldGates(fields) => self.definitions.apply(&fields),
            Write::MarkRegistry(object) => {
                let old = self.registries.iter_mut().find(|old| old["metadata"]["name"] == object["metadata"]["name"]);
                *old.expect("it is there") = object;
            }
            Write::ForgetAck(ack) => self.acks.retain(|other| *other != ack),
            Write::DeleteRegistry { name, .. } => {
                let count = self.registries.len();
                self.registries.retain(|object| object["metadata"]["name"] != name.as_str());
                assert_eq!(self.registries.len(), count - 1);
            }
        }
    }

    /// Runs steps until there is nothing to write, and returns the writes.
    pub fn settle(&mut self, own: &Registry) -> Vec<Write> {
        let mut all = Vec::new();
        for _ in 0..10 {
            let writes = self.step(own);
            if writes.is_empty() {
                return all;
            }
            for write in writes {
                all.push(write.clone());
                if !self.take(write) {
                    break;
                }
            }
        }
        panic!("the controller still writes after 10 steps: {all:?}");
    }

    /// Returns false if the API refuses the write, which the controller remembers for the object's present state.
    fn take(&mut self, write: Write) -> bool {
        let part = match &write {
            Write::FeatureGateStatus(_) => Some(Part::Status),
            Write::RestoreSpec(_) => Some(Part::Spec),
            _ => None,
        };
        let there = self.feature_gate.as_ref().map(|object| &object.spec);
        if let (Some(part), Some(spec)) = (part, there)
            && self.validation.refuses(part, spec)
        {
            self.refused = Some(Refused { part, why: "it is invalid".to_owned() });
            return false;
        }
        if part.is_some() || matches!(write, Write::ReplaceFeatureGate { .. }) {
            self.refused = None;
        }
        self.write(write);
        true
    }

    pub fn choose(&mut self, spec: Value) {
        let object = self.feature_gate.as_mut().expect("there is a FeatureGate");
        object.spec = serde_json::from_value(spec).unwrap();
        self.refused = None;
        object.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
    }

    pub fn history(&mut self, desired: &str, versions: &[&str]) {
        let history: Vec<Value> = versions
            .iter()
            .map(|v| json!({"state": "Completed", "version": v, "startedTime": "t", "completionTime": "t", "image": "", "verified": false}))
            .collect();
        let object = json!({"metadata": {"name": "version"}, "spec": {}, "status": {"desired": {"version": desired}, "history": history}});
        self.cluster_version = Some(serde_json::from_value(object).unwrap());
    }

    pub fn put_registry(&mut self, registry: &Registry) {
        self.registries.push(to_config_map(registry, NAMESPACE));
    }
}
