//! Fields that others manage, in the words that kubectl and people know.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::{Value, json};

use super::{
    element::Element,
    managers::{Claim, Operation},
    set::Set,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// What managers are sorted by.
    id: String,
    /// `"kubectl"`, `"kubectl-edit" with subresource "status"`.
    manager: String,
    /// The version that an update was made through.
    version: Option<String>,
    path: Vec<Element>,
}

impl Conflict {
    fn who(&self) -> String {
        let using = self.version.as_ref().map(|version| format!(" using {version}"));
        format!("{}{}", self.manager, using.unwrap_or_default())
    }
}

/// Not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub(crate) fn new(taken: &BTreeMap<String, (Claim, Set)>) -> Conflicts {
        let of = |(id, (claim, set)): (&String, &(Claim, Set))| {
            let version = (claim.operation == Operation::Update).then(|| claim.api_version.to_string());
            let conflict =
                move |path| Conflict { id: id.clone(), manager: shown(claim), version: version.clone(), path };
            set.paths().into_iter().map(conflict).collect::<Vec<_>>()
        };
        Conflicts(taken.iter().flat_map(of).collect())
    }

    /// Those about other fields; none if all are about these.
    pub(crate) fn beyond(&self, allowed: &Set) -> Option<Conflicts> {
        let left: Vec<Conflict> = self.0.iter().filter(|conflict| !allowed.has(&conflict.path)).cloned().collect();
        (!left.is_empty()).then_some(Conflicts(left))
    }

    /// The same, as seen through another form of the object, which has but one field that can be wanted.
    pub(crate) fn through(mut self, version: &str, field: &[&str]) -> Conflicts {
        for conflict in &mut self.0 {
            conflict.version = conflict.version.take().map(|_| version.to_owned());
            conflict.path = field.iter().map(|name| Element::Field((*name).to_owned())).collect();
        }
        self
    }

    pub(crate) fn message(&self) -> String {
        if let [only] = &self.0[..] {
            return format!("Apply failed with 1 conflict: conflict with {}: {}", only.who(), text(&only.path));
        }
        let mut by: BTreeMap<&str, Vec<&Conflict>> = BTreeMap::new();
        self.0.iter().for_each(|conflict| by.entry(&conflict.id).or_default().push(conflict));
        let mut lines = Vec::new();
        for conflicts in by.values() {
            lines.extend(conflicts.first().map(|first| format!("conflicts with {}:", first.who())));
            lines.extend(conflicts.iter().map(|conflict| format!("- {}", text(&conflict.path))));
        }
        format!("Apply failed with {} conflicts: {}", self.0.len(), lines.join("\n"))
    }

    pub(crate) fn causes(&self) -> Vec<Value> {
        let cause = |conflict: &Conflict| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {}", conflict.who()),
                   "field": text(&conflict.path)})
        };
        self.0.iter().map(cause).collect()
    }
}

fn shown(claim: &Claim) -> String {
    let mut out = format!("{:?}", claim.manager);
    if !claim.subresource.is_empty() {
        let _ = write!(out, " with subresource {:?}", claim.subresource);
    }
    out
}

fn text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}
