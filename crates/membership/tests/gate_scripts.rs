//! Runs the scenarios of `testdata/gate`: the cluster gate, entry by entry. `UPDATE_GOLDENFILES=1` rewrites what they print.

use crate::support;

use std::collections::BTreeMap;

use membership::{
    Change, Cluster, ClusterId, Member, MemberId,
    gate::{GateEffect, GateState, Proposal, learner_differences},
};
use proto::membershippb::{ClusterFeatureGateSetRequest, Feature, FeatureGateProposal};

#[test]
fn scripts() {
    support::run_scripts("gate", 8, Script::run);
}

/// A cluster, and messages that were planned and not sent yet.
struct Script {
    cluster: Cluster,
    index: u64,
    proposals: BTreeMap<String, (MemberId, FeatureGateProposal)>,
    decisions: BTreeMap<String, (String, ClusterFeatureGateSetRequest)>,
}

impl Default for Script {
    fn default() -> Script {
        let cluster = Cluster::new(ClusterId(1), MemberId(1), BTreeMap::new(), Default::default(), None);
        Script { cluster, index: 0, proposals: BTreeMap::new(), decisions: BTreeMap::new() }
    }
}

impl Script {
    fn run(&mut self, command: &str, args: &[&str]) -> Option<String> {
        match (command, args) {
            // Sets the scene: `voters 1 2`, `learners 3`, each in an entry of its own.
            ("voters" | "learners", ids) => {
                ids.iter().for_each(|id| drop(self.change(add(id, command == "learners"))));
                None
            }
            // What a member would send now, under a name: `plan late 1 A=on B=off`.
            ("plan", [name, id, values @ ..]) => {
                self.cluster.local = number(id);
                let planned = self.cluster.plan_proposal(&parse(values));
                let said = planned
                    .as_ref()
                    .map_or("nothing to send".into(), |p| format!("for {} in place of {}", p.version, p.replaces));
                self.proposals.extend(planned.map(|planned| (name.to_string(), (number(id), planned))));
                Some(said)
            }
            ("send", [name]) => {
                let (id, proposal) = self.proposals[*name].clone();
                Some(self.apply(|cluster, index| cluster.apply_proposal(index, id, &proposal)))
            }
            // Planned and sent at once.
            ("propose", [id, values @ ..]) => {
                self.cluster.local = number(id);
                let proposal = self.cluster.plan_proposal(&parse(values)).expect("something to propose");
                Some(self.apply(|cluster, index| cluster.apply_proposal(index, number(id), &proposal)))
            }
            ("decide", [name]) => {
                let version = self.cluster.version().map_or(String::new(), |version| version.stored());
                let decision = self.cluster.decide_gate();
                let said = decision.as_ref().map_or("nothing to decide".into(), |d| {
                    let features = d.feature_gates.iter().map(|f| format!(" {}={}", f.name, f.enabled));
                    format!("from {}:{}", d.decided_from, features.collect::<String>())
                });
                self.decisions.extend(decision.map(|decision| (name.to_string(), (version, decision))));
                Some(said)
            }
            ("log", [name]) => {
                let (version, decision) = self.decisions[*name].clone();
                Some(self.apply(|cluster, index| cluster.apply_decision(index, &version, &decision)))
            }
            // A decision that no sound leader makes.
            ("log-broken", values) => {
                let version = self.cluster.version().expect("a version").stored();
                let feature_gates =
                    parse(values).into_iter().map(|(name, enabled)| Feature { name, enabled }).collect();
                let decided_from = self.cluster.gate().relevant_index;
                let decision = ClusterFeatureGateSetRequest { feature_gates, decided_from };
                Some(self.apply(|cluster, index| cluster.apply_decision(index, &version, &decision)))
            }
            ("version", [version]) => {
                let version = version.parse().expect("a version");
                Some(self.apply(|cluster, index| Ok::<_, String>(cluster.apply_version(index, version))))
            }
            ("add" | "add-learner", [id]) => Some(self.change(add(id, command == "add-learner"))),
            ("promote", [id]) => Some(self.change(Change::Promote(number(id)))),
            ("remove", [id]) => Some(self.change(Change::Remove(number(id)))),
            ("load", args) => Some(self.load(args)),
            ("why", [feature]) => Some(lines(self.cluster.held_off(feature).iter().map(ToString::to_string))),
            ("differences", values) => {
                let found = learner_differences(&self.cluster, &parse(values));
                Some(lines(found.iter().map(|(name, cluster, own)| format!("{name}: cluster {cluster}, own {own}"))))
            }
            ("history", []) => {
                let show = |c: &membership::gate::GateChange| {
                    format!("{}: {:?} -> {:?} at {}, {:?}", c.index, c.before, c.after, c.version, c.cause)
                };
                Some(lines(self.cluster.gate().history.iter().map(show)))
            }
            _ => panic!("{command} {args:?} is no command"),
        }
    }

    fn change(&mut self, change: Change) -> String {
        self.apply(|cluster, index| cluster.apply_at(index, change).map(|(_, effect)| effect))
    }

    fn apply<E: std::fmt::Display>(
        &mut self,
        entry: impl FnOnce(&mut Cluster, u64) -> Result<GateEffect, E>,
    ) -> String {
        self.index += 1;
        let before = self.cluster.gate().clone();
        let result = entry(&mut self.cluster, self.index);
        self.cluster.check_gate().expect("the gate follows");
        match result {
            Err(why) => {
                assert_eq!(*self.cluster.gate(), before, "refused means untouched");
                format!("{}: refused: {why}", self.index)
            }
            Ok(effect) => {
                assert!(effect.changed || *self.cluster.gate() == before, "what changed is told");
                format!("{}: {}", self.index, self.show())
            }
        }
    }

    /// Damages what is stored and loads it: `load APPLIED [proposal ID=INDEX | forget ID | on FEATURE | term T | version V]`.
    fn load(&mut self, args: &[&str]) -> String {
        let mut gate: GateState = self.cluster.gate().clone();
        let (mut version, mut term) = (self.cluster.version(), 2);
        let mut ids: Vec<_> = self.cluster.members().cloned().collect();
        for pair in args[1..].chunks(2) {
            match pair {
                ["proposal", id] => {
                    let (id, index) = id.split_once('=').expect("ID=INDEX");
                    let (version, index) = (version.expect("a version"), index.parse().expect("an index"));
                    gate.proposals.insert(number(id), Proposal { version, index, features: BTreeMap::new() });
                }
                ["forget", id] => ids.retain(|member| member.id != number(id)),
                ["on", feature] => _ = gate.enabled.insert((*feature).into()),
                ["term", other] => term = other.parse().expect("a term"),
                ["version", other] => version = other.parse().ok(),
                _ => panic!("{pair:?} is no damage"),
            }
        }
        let members = ids.into_iter().map(|member| (member.id, member)).collect();
        let cluster = Cluster::new(ClusterId(1), MemberId(1), members, Default::default(), version);
        self.cluster = cluster.with_gate(gate);
        let findings = self.cluster.mend_gate(args[0].parse().expect("an index"), term);
        let mut said: Vec<_> = findings.iter().map(|finding| format!("found: {finding}")).collect();
        said.push(self.show());
        said.join("\n")
    }

    fn show(&self) -> String {
        let gate = self.cluster.gate();
        let proposals = gate.proposals.iter().map(|(id, p)| format!(" {id}@{}", p.index)).collect::<String>();
        format!("on {:?}, relevant {}, proposals{proposals}", gate.enabled, gate.relevant_index)
    }
}

fn add(id: &str, as_learner: bool) -> Change {
    let id = number(id);
    let member = Member { id, peer_urls: vec![format!("http://{id}")], is_learner: as_learner, ..Member::default() };
    Change::Add { member, as_learner }
}

fn number(text: &str) -> MemberId {
    MemberId(u64::from_str_radix(text, 16).expect("an id in hex"))
}

fn parse(values: &[&str]) -> BTreeMap<String, bool> {
    let pair =
        |value: &&str| value.split_once('=').map(|(name, on)| (name.to_owned(), on == "on")).expect("NAME=on|off");
    values.iter().map(pair).collect()
}

fn lines(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() { "nothing".into() } else { lines.join("\n") }
}
