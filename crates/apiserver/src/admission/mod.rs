//! ValidatingAdmissionPolicies: what may be written, in the words of whoever runs the cluster.
//!
//! `kinds` are the two resources, `check` is what is wrong with one of them, `code` its compiled expressions, `rule` which
//! requests it is about, `evaluate` what it says of one, and `keeper` keeps what is in force in step with the store. All but
//! the keeper is pure; `rest::police` asks for every write.

mod attributes;
mod binding;
mod check;
mod code;
mod evaluate;
pub(crate) mod keeper;
mod kinds;
mod policy;
mod rule;
#[cfg(test)]
mod tests;
mod types;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

pub(crate) use self::{
    attributes::{Attributes, Operation},
    binding::Binding,
    check::{check_binding, check_policy},
    evaluate::{Denial, Input, Verdict},
    kinds::{observe, resources},
    policy::Policy,
    rule::Place,
};

pub(crate) const GROUP: &str = "admissionregistration.k8s.io";
pub(crate) const POLICIES: &str = "validatingadmissionpolicies";
pub(crate) const BINDINGS: &str = "validatingadmissionpolicybindings";

/// All policies and bindings as of one revision of the store.
#[derive(Default)]
pub(crate) struct Policies {
    /// Every change up to this revision is in here.
    pub revision: i64,
    policies: BTreeMap<String, Arc<Policy>>,
    bindings: BTreeMap<String, Arc<Binding>>,
}

/// A policy that a request is about, with its bindings that are.
pub(crate) struct Concerned {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Arc<Binding>>,
    /// The version of the resource that its rules named.
    pub version: String,
}

impl Policies {
    pub(crate) fn new(revision: i64) -> Policies {
        Policies { revision, ..Policies::default() }
    }

    /// The same with one object changed or gone.
    pub(crate) fn with(&self, revision: i64, key: &str, changed: Option<Value>) -> Policies {
        let mut next = Policies { revision, policies: self.policies.clone(), bindings: self.bindings.clone() };
        next.policies.remove(key);
        next.bindings.remove(key);
        match changed {
            Some(object) if object["kind"] == kinds::POLICY => {
                next.policies.insert(key.to_owned(), Arc::new(Policy::new(&object)));
            }
            Some(object) if object["kind"] == kinds::BINDING => {
                next.bindings.insert(key.to_owned(), Arc::new(Binding::new(&object)));
            }
            _ => {}
        }
        next
    }

    /// Bound policies whose rules name this place, in the order of their names; selectors and conditions are not asked yet.
    /// `versions` are those of the resource, the request's first.
    pub(crate) fn concerned(&self, place: &Place<'_>, versions: &[String]) -> Vec<Concerned> {
        let concerned = self.policies.values().filter_map(|policy| {
            let bindings = self.bindings.values().filter(|binding| binding.policy == policy.name);
            let bindings: Vec<_> =
                bindings.filter(|binding| binding.resources.names(place, versions).is_some()).cloned().collect();
            let version = if bindings.is_empty() { None } else { policy.constraints.names(place, versions) };
            version.map(|version| Concerned { policy: policy.clone(), bindings, version: version.to_owned() })
        });
        concerned.collect()
    }
}
