//! The members' answers about the gate, and the book that holds all of their answers to the invariant.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::super::{cluster::member::Member, load::number};

/// One member's answer, from its own state.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub member: String,
    /// The entry that the rest is as of.
    pub applied: u64,
    pub state: State,
    /// Why each feature that is off is off.
    pub reasons: BTreeMap<String, Vec<String>>,
}

/// The state that must be equal on all members at an equal index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    pub version: String,
    pub gate_index: u64,
    pub relevant_index: u64,
    pub on: BTreeSet<String>,
    /// By feature, then by member: voters, and learners that have proposed.
    pub proposals: BTreeMap<String, BTreeMap<u64, Said>>,
}

/// A member's proposal for one feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub is_learner: bool,
    /// `None`: it has not proposed for this cluster version. A feature that it does not know is off.
    pub on: Option<bool>,
}

/// One change of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub index: u64,
    pub cause: String,
    pub member: u64,
    pub before: BTreeSet<String>,
    pub after: BTreeSet<String>,
}

impl Seen {
    pub(super) fn ask(member: &Member) -> Result<Seen> {
        let answer = member.ask("/v3/maintenance/featuregate", &json!({"serializable": true}))?;
        Seen::read(&member.name, &answer).with_context(|| format!("{} answered {answer}", member.name))
    }

    fn read(member: &str, answer: &Value) -> Result<Seen> {
        let index = |name: &str| number(&answer[name]);
        let mut state = State {
            version: text(&answer["cluster_version"]),
            gate_index: index("gate_index")?,
            relevant_index: index("relevant_index")?,
            on: BTreeSet::new(),
            proposals: BTreeMap::new(),
        };
        let mut reasons = BTreeMap::new();
        for feature in list(&answer["features"]) {
            let name = text(&feature["name"]);
            if feature["enabled"] == true {
                state.on.insert(name.clone());
            }
            let proposals = list(&feature["proposals"]).iter().map(Said::read).collect::<Result<Vec<_>>>()?;
            // A learner that comes or goes without a proposal changes nothing of this.
            let counts = |said: &(u64, Said)| !said.1.is_learner || said.1.on.is_some();
            state.proposals.insert(name.clone(), proposals.into_iter().filter(counts).collect());
            reasons.insert(name, list(&feature["held_off_by"]).iter().map(text).collect());
        }
        Ok(Seen { member: member.to_owned(), applied: index("applied_index")?, state, reasons })
    }

    pub(super) fn is_on(&self, feature: &str) -> bool {
        self.state.on.contains(feature)
    }

    /// The proposal of each voter, in the order of ids.
    pub(super) fn voters(&self, feature: &str) -> Vec<Option<bool>> {
        let said = self.state.proposals.get(feature).into_iter().flat_map(BTreeMap::values);
        said.filter(|said| !said.is_learner).map(|said| said.on).collect()
    }

    pub(super) fn said(&self, feature: &str, id: u64) -> Option<bool> {
        self.state.proposals.get(feature)?.get(&id)?.on
    }

    pub(super) fn reasons(&self, feature: &str) -> String {
        self.reasons.get(feature).map(|reasons| reasons.join("; ")).unwrap_or_default()
    }

    /// On means that every voter in the same answer says on, and that there is a gate.
    fn check(&self) -> Result<()> {
        for feature in &self.state.on {
            ensure!(self.state.version == "3.8.0", "{feature} is on at {:?}: {self:?}", self.state.version);
            let agreed = self.voters(feature).iter().all(|said| *said == Some(true));
            ensure!(agreed, "{feature} is on, and not every voter says so: {self:?}");
        }
        let newest = self.state.gate_index.max(self.state.relevant_index);
        ensure!(self.applied >= newest, "an answer as of {} shows what came later: {self:?}", self.applied);
        Ok(())
    }
}

impl Said {
    fn read(value: &Value) -> Result<(u64, Said)> {
        let on = (value["proposed"] == true).then(|| value["enabled"] == true);
        Ok((number(&value["member_ID"])?, Said { is_learner: value["is_learner"] == true, on }))
    }
}

/// All changes that a member remembers.
pub(super) fn history(member: &Member) -> Result<Vec<Change>> {
    let answer = member.ask("/v3/maintenance/featuregate/history", &json!({}))?;
    list(&answer["result"]["changes"]).iter().map(change).collect()
}

fn change(value: &Value) -> Result<Change> {
    let names = |value: &Value| list(value).iter().map(text).collect();
    let (index, member) = (number(&value["index"])?, number(&value["member_ID"])?);
    let (before, after) = (names(&value["before"]), names(&value["after"]));
    Ok(Change { index, cause: text(&value["cause"]), member, before, after })
}

/// Every answer of every member of one cluster, by the index it is as of.
#[derive(Default)]
pub(super) struct Book {
    pages: BTreeMap<u64, (String, State)>,
    pub answers: usize,
}

impl Book {
    /// Two members that say different things of one index are a broken cluster, whenever they say it.
    pub(super) fn note(&mut self, seen: &Seen) -> Result<()> {
        seen.check()?;
        self.answers += 1;
        match self.pages.get(&seen.applied) {
            Some((other, state)) if *state != seen.state => {
                bail!("at index {} {other} said {state:?}, and {} {:?}", seen.applied, seen.member, seen.state)
            }
            Some(_) => Ok(()),
            None => {
                self.pages.insert(seen.applied, (seen.member.clone(), seen.state.clone()));
                Ok(())
            }
        }
    }

    /// Indices of which answers were seen.
    pub(super) fn indices(&self) -> usize {
        self.pages.len()
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(member: &str, applied: u64, on: bool, says: &[Option<bool>]) -> Seen {
        let proposals: Vec<Value> = says
            .iter()
            .enumerate()
            .map(|(id, on)| {
                json!({"member_ID": (id + 1).to_string(), "proposed": on.is_some(), "enabled": *on == Some(true)})
            })
            .collect();
        let feature = json!({"name": "X", "enabled": on, "proposals": proposals});
        let answer = json!({"features": [feature], "cluster_version": "3.8.0", "applied_index": applied.to_string(),
            "gate_index": "3", "relevant_index": "2"});
        Seen::read(member, &answer).expect("an answer that can be read")
    }

    #[test]
    fn on_needs_every_voter() {
        let mut book = Book::default();
        book.note(&seen("a", 5, true, &[Some(true), Some(true)])).expect("all agree");
        assert!(book.note(&seen("a", 6, true, &[Some(true), Some(false)])).is_err(), "one says off");
        assert!(book.note(&seen("a", 7, true, &[Some(true), None])).is_err(), "one has not proposed");
        assert!(book.note(&seen("a", 2, true, &[Some(true)])).is_err(), "older than what it shows");
    }

    #[test]
    fn one_index_has_one_state() {
        let mut book = Book::default();
        book.note(&seen("a", 5, true, &[Some(true)])).expect("the first answer");
        book.note(&seen("b", 6, false, &[Some(true)])).expect("another index");
        assert!(book.note(&seen("b", 5, false, &[Some(true)])).is_err(), "off on another member at the same index");
        assert!(book.note(&seen("b", 6, false, &[Some(false)])).is_err(), "another proposal at the same index");
    }
}
