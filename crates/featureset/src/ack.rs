//! Acknowledgements: who runs with which row. Each is a Lease, renewed while its component lives.

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub const LABEL_VALUE: &str = "ack";
const COMPONENT: &str = "gates.lockgate.io/component";
const VERSION: &str = "gates.lockgate.io/version";
const DIGEST: &str = "gates.lockgate.io/row-digest";
const GATES: &str = "gates.lockgate.io/gates";

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ack {
    pub component: String,
    /// Tells replicas of one component apart.
    pub instance: String,
    pub version: String,
    /// Of the row it runs with.
    pub digest: String,
    /// The gates a change of which makes it restart; `None` is any.
    pub gates: Option<BTreeSet<String>>,
    /// Seconds since 1970.
    pub renewed: i64,
    pub duration_seconds: i64,
}

impl Ack {
    pub fn is_alive(&self, now: i64) -> bool {
        now < self.renewed.saturating_add(self.duration_seconds)
    }

    /// Whether a change of these gates makes it restart.
    pub fn follows<'a>(&self, mut changed: impl Iterator<Item = &'a String>) -> bool {
        changed.any(|gate| self.gates.as_ref().is_none_or(|gates| gates.contains(gate)))
    }

    /// The name of its Lease.
    pub fn name(&self) -> String {
        let digest = crate::canonical::digest_of_bytes(format!("{}/{}", self.component, self.instance).as_bytes());
        let tame = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let component: String = self.component.chars().map(tame).take(60).collect();
        format!("gates-ack-{}-{}", component.trim_matches('-'), &digest["sha256:".len()..][..10]).replace("--", "-")
    }

    /// `renew_time` is `renewed` as the API has it.
    pub fn to_lease(&self, namespace: &str, renew_time: &str) -> Value {
        let mut annotations = json!({COMPONENT: self.component, VERSION: self.version, DIGEST: self.digest});
        if let Some(gates) = &self.gates {
            annotations[GATES] = gates.iter().cloned().collect::<Vec<_>>().join(",").into();
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": self.name(), "namespace": namespace,
                "labels": {crate::config_map::LABEL: LABEL_VALUE}, "annotations": annotations,
            },
            "spec": {
                "holderIdentity": self.instance, "leaseDurationSeconds": self.duration_seconds, "renewTime": renew_time,
            },
        })
    }

    /// `seconds` reads a time of the API. A lease that is no acknowledgement is none.
    pub fn of_lease(lease: &Value, seconds: impl Fn(&str) -> Option<i64>) -> Option<Ack> {
        let (metadata, spec) = (&lease["metadata"], &lease["spec"]);
        if metadata["labels"][crate::config_map::LABEL] != LABEL_VALUE {
            return None;
        }
        let annotation = |key: &str| metadata["annotations"][key].as_str().map(str::to_owned);
        let gates = annotation(GATES)
            .map(|gates| gates.split(',').filter(|gate| !gate.is_empty()).map(str::to_owned).collect());
        Some(Ack {
            component: annotation(COMPONENT)?,
            instance: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            version: annotation(VERSION)?,
            digest: annotation(DIGEST)?,
            gates,
            renewed: spec["renewTime"].as_str().and_then(seconds)?,
            duration_seconds: spec["leaseDurationSeconds"].as_i64()?,
        })
    }
}
