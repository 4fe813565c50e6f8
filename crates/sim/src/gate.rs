//! Cluster features in a run: members with flags that change from start to start, and what must hold of the gate.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use membership::{
    Enabled, MemberId, NotYet, Reason,
    gate::{GATE_SINCE, GateState},
    may_log,
};
use node::{FeatureFlags, Node};
use prost::Message as _;
use proto::{Version, etcdserverpb::InternalRaftRequest, raftpb};
use random::Random;

use crate::{
    check::{Checked, violation},
    clock::{MS, SECOND},
    simulation::Simulation,
};

/// Those of the shipped table, because apply asks for them.
const FEATURES: [&str; 2] = ["AtomicIncrement", "PersistedLeaseCheckpoints"];
/// The gate must be what the flags say so long after the last fault.
const SETTLED: u64 = 30 * SECOND;

/// A member's flags.
pub(crate) type Flags = BTreeMap<String, bool>;

/// Mostly on, so that members come to agree now and then.
pub(crate) fn draw_flags(random: &mut Random) -> Flags {
    FEATURES.iter().map(|name| ((*name).to_owned(), random.percent(85))).collect()
}

pub(crate) fn flags_of(flags: &Flags) -> FeatureFlags {
    let flags = flags.clone();
    FeatureFlags { own: Arc::new(move |_| flags.clone()), check: Arc::new(|_| Ok(())) }
}

/// Waits until its member may propose.
pub(crate) struct Begin(Pin<Box<dyn Future<Output = ()>>>);

impl Begin {
    pub(crate) fn new(node: Arc<Node>) -> Begin {
        Begin(Box::pin(async move {
            // An error is the member's end, which is found elsewhere.
            let _ = node.begin_proposing_features().await;
        }))
    }

    /// True when there is nothing more to wait for.
    pub(crate) fn poll(&mut self) -> bool {
        self.0.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }
}

/// What was seen of gates and versions, by index.
#[derive(Default)]
pub(crate) struct Gates {
    states: BTreeMap<u64, (GateState, MemberId)>,
    /// As of the last committed entry.
    version: Option<Version>,
}

impl Gates {
    /// The next committed entry may need no more than the cluster version that it is written under.
    pub(crate) fn committed(&mut self, entry: &raftpb::Entry) -> Checked {
        if let Err(why @ NotYet { reason: Reason::Newer { .. }, .. }) = may_log(entry, self.version) {
            return violation(format!("the log holds what it may not, at index {}: {why}", entry.index()));
        }
        let data = entry.data.clone().filter(|_| entry.r#type() == raftpb::EntryType::EntryNormal);
        let set = data.and_then(|data| InternalRaftRequest::decode(data).ok()?.cluster_version_set);
        if let Some(set) = set.filter(|set| set.feature_gates.is_none()) {
            self.version = set.ver.parse().ok();
        }
        Ok(())
    }

    /// The gate of a member that has applied everything up to `index`.
    pub(crate) fn seen(&mut self, index: u64, node: &Node, id: MemberId) -> Checked {
        let cluster = node.cluster();
        if let Err(broken) = cluster.check_gate() {
            return violation(format!("{id} at index {index}: {broken}"));
        }
        if node.gates().enabled() != Enabled::of(&cluster) {
            return violation(format!("{id} at index {index}: what is asked of the gate is not what it holds"));
        }
        let gate = cluster.gate();
        let (first, by) = self.states.entry(index).or_insert_with(|| (gate.clone(), id));
        if first == gate {
            return Ok(());
        }
        violation(format!(
            "{id} and {by} have both applied index {index} but their gates differ: {gate:?} and {first:?}"
        ))
    }
}

impl Simulation {
    /// What follows from any step of a member: it may have caught up, and propose from then on.
    pub(crate) fn poll_begin(&mut self, machine: usize) {
        let m = &mut self.machines[machine];
        if m.paused_until <= self.now && m.begin.as_mut().is_some_and(Begin::poll) {
            m.begin = None;
            self.wake(machine);
        }
    }

    pub(crate) fn look_at_gate(&mut self, machine: usize) -> Checked {
        let m = &self.machines[machine];
        let Some(member) = &m.member else { return Ok(()) };
        let (node, id) = (member.node().clone(), m.id);
        self.checks.gates.seen(node.status().applied_index, &node, id)
    }

    /// All members are up and well: the gate is what the voters' flags say, at a version that has one.
    pub(crate) fn wait_for_gates(&mut self) -> Checked {
        let deadline = self.now + SETTLED;
        while let Err(why) = self.check_gates() {
            if self.now >= deadline {
                return self.fail(why);
            }
            self.run_until(self.now + 500 * MS)?;
        }
        let machine = self.up().first().copied().unwrap_or(0);
        if let Some(member) = &self.machines[machine].member {
            self.report.gate_switches = member.node().cluster().gate().history.len() as u64;
        }
        Ok(())
    }

    fn check_gates(&self) -> Result<(), String> {
        for machine in self.up() {
            let m = &self.machines[machine];
            let Some(member) = &m.member else { continue };
            let cluster = member.node().cluster();
            let has_gate = cluster.version().is_some_and(|version| version >= GATE_SINCE);
            let voters: Vec<_> = cluster.voters().filter_map(|id| self.find(id.0)).collect();
            let is_on = |name: &&str| voters.iter().all(|voter| self.machines[*voter].flags.get(*name) == Some(&true));
            let wanted: BTreeSet<_> =
                FEATURES.iter().filter(|name| has_gate && is_on(name)).map(ToString::to_string).collect();
            let storage = storage::schema::meta::storage_version(&member.node().backend().view());
            if cluster.version() != storage.ok().flatten() {
                return Err(format!("the file of {} is not at the cluster version {:?}", m.id, cluster.version()));
            }
            if cluster.gate().enabled != wanted {
                let (found, id) = (&cluster.gate().enabled, m.id);
                return Err(format!("{id} has {found:?} on, but all members are well and their flags say {wanted:?}"));
            }
        }
        Ok(())
    }
}
