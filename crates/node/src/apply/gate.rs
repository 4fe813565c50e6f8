//! The cluster gate in the file: what an entry did to it is written in the entry's batch, and read back at start.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use membership::{
    Cluster, ClusterFeature, Enabled, MemberId,
    gate::{Cause, GateChange, GateEffect, GateRefusal, GateState, Proposal},
};
use proto::{
    Version,
    membershippb::{
        ClusterFeatureGateSetRequest, Feature, FeatureGateChange, FeatureGateProposal, FeatureGateProposalRecord,
        FeatureGateRecord,
    },
};
use storage::{
    Batch,
    schema::{self, DecodeError},
};
use tokio::sync::watch;

use super::State;
use crate::error::FatalError;

/// Which cluster features are on now, for whoever asks; and a bell for whoever waits for a change.
///
/// Apply changes it with the entry, so what it says to apply is as of the entry being applied.
pub struct Gates {
    enabled: AtomicU64,
    /// The cluster version: proposers ask for it at every call, and the lock around [`Cluster`] is apply's at every entry.
    cluster_version: AtomicU32,
    /// The index of the last change of anything in [`GateState`].
    changed: watch::Sender<u64>,
}

impl Gates {
    pub fn new(cluster: &Cluster) -> Gates {
        Gates {
            enabled: AtomicU64::new(Enabled::of(cluster).bits()),
            cluster_version: AtomicU32::new(packed(cluster.version())),
            changed: watch::Sender::new(cluster.gate().relevant_index),
        }
    }

    #[inline]
    pub fn cluster_version(&self) -> Option<Version> {
        unpacked(self.cluster_version.load(Ordering::Acquire))
    }

    #[inline]
    pub fn has(&self, feature: ClusterFeature) -> bool {
        self.enabled().has(feature)
    }

    #[inline]
    pub fn enabled(&self) -> Enabled {
        Enabled::from_bits(self.enabled.load(Ordering::Acquire))
    }

    /// The index of the last change of gate, proposals, voters or version.
    pub fn version(&self) -> u64 {
        *self.changed.borrow()
    }

    /// Changes whenever gate, proposals, voters or version do.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn follow_version(&self, cluster: &Cluster) {
        self.cluster_version.store(packed(cluster.version()), Ordering::Release);
    }

    pub(crate) fn follow(&self, cluster: &Cluster, index: u64) {
        self.follow_version(cluster);
        self.enabled.store(Enabled::of(cluster).bits(), Ordering::Release);
        self.changed.send_replace(index);
    }
}

/// Zero is none: there is no version 0.0.
fn packed(version: Option<Version>) -> u32 {
    version.map_or(0, |version| u32::from(version.major) << 16 | u32::from(version.minor))
}

fn unpacked(packed: u32) -> Option<Version> {
    (packed != 0).then(|| Version::new((packed >> 16) as u16, packed as u16))
}

impl State {
    /// A member's proposal. What is late or doubled changes nothing, alike on every member.
    pub(super) fn feature_gate_proposal(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        id: MemberId,
        proposal: &FeatureGateProposal,
    ) -> Result<(), FatalError> {
        let result = self.cluster.write().apply_proposal(index, id, proposal);
        self.take_gate_effect(batch, index, result)
    }

    pub(super) fn feature_gate_decision(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        version: &str,
        decision: &ClusterFeatureGateSetRequest,
    ) -> Result<(), FatalError> {
        let result = self.cluster.write().apply_decision(index, version, decision);
        self.take_gate_effect(batch, index, result)
    }

    /// A cluster that begins anew agrees anew.
    pub(super) fn forget_gate(&mut self, batch: &mut Batch<'_>, index: u64) {
        schema::gate::clear(batch);
        let mut cluster = self.cluster.write();
        cluster.forget_gate();
        self.gates.follow(&cluster, index);
    }

    fn take_gate_effect(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        result: Result<GateEffect, GateRefusal>,
    ) -> Result<(), FatalError> {
        match result {
            Ok(effect) => self.write_gate(batch, index, &effect)?,
            Err(why) => tracing::info!(%why, index, "an entry left the feature gate as it is"),
        }
        Ok(())
    }

    /// Writes down what changed and lets everyone know.
    pub(super) fn write_gate(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        effect: &GateEffect,
    ) -> Result<(), FatalError> {
        if !effect.changed {
            return Ok(());
        }
        let cluster = self.cluster.read();
        if effect.cleared {
            schema::gate::clear(batch);
        } else if cluster.has_gate() {
            put_effect(batch, cluster.gate(), effect);
        }
        // No model reaches this; a member that does must not go on.
        cluster.check_gate().map_err(|why| FatalError::GateBroken { index, why })?;
        if let Some(change) = &effect.change {
            tell(change);
            self.observer.gate_changed();
        }
        self.gates.follow(&cluster, index);
        Ok(())
    }
}

fn tell(change: &GateChange) {
    let on: Vec<_> = change.after.difference(&change.before).collect();
    let off: Vec<_> = change.before.difference(&change.after).collect();
    tracing::info!(index = change.index, ?on, ?off, cause = ?change.cause, "the cluster feature gate has changed");
}

fn put_effect(batch: &mut Batch<'_>, gate: &GateState, effect: &GateEffect) {
    schema::gate::put_gate(batch, &gate_record(gate));
    for id in &effect.proposals {
        match gate.proposals.get(id) {
            Some(proposal) => schema::gate::put_proposal(batch, id.0, &proposal_record(proposal)),
            None => schema::gate::delete_proposal(batch, id.0),
        }
    }
    if let Some(change) = &effect.change {
        schema::gate::put_change(batch, &change_record(change));
    }
    effect.forgotten.iter().for_each(|index| schema::gate::delete_change(batch, *index));
}

/// Writes all of a gate anew, in place of what the file holds.
pub(crate) fn put_all(batch: &mut Batch<'_>, gate: &GateState) {
    schema::gate::clear(batch);
    if gate.is_unused() {
        return;
    }
    schema::gate::put_gate(batch, &gate_record(gate));
    for (id, proposal) in &gate.proposals {
        schema::gate::put_proposal(batch, id.0, &proposal_record(proposal));
    }
    gate.history.iter().for_each(|change| schema::gate::put_change(batch, &change_record(change)));
}

/// The gate as a database has it.
pub(crate) fn load(view: &storage::View) -> Result<GateState, DecodeError> {
    let stored = schema::gate::load(view)?;
    let record = stored.gate.unwrap_or_default();
    let mut proposals = BTreeMap::new();
    for (id, proposal) in stored.proposals {
        // A version that cannot be read is no current one: the member proposes anew.
        let version = proposal.version.parse().unwrap_or(proto::Version::new(0, 0));
        let features = proposal.features.into_iter().map(|f| (f.name, f.enabled)).collect();
        proposals.insert(MemberId(id), Proposal { version, index: proposal.index, features });
    }
    Ok(GateState {
        enabled: record.enabled.into_iter().collect(),
        index: record.index,
        relevant_index: record.relevant_index,
        version_index: record.version_index,
        proposals,
        history: Arc::new(stored.history.into_iter().filter_map(change_of).collect()),
    })
}

fn gate_record(gate: &GateState) -> FeatureGateRecord {
    FeatureGateRecord {
        enabled: gate.enabled.iter().cloned().collect(),
        index: gate.index,
        relevant_index: gate.relevant_index,
        version_index: gate.version_index,
    }
}

fn proposal_record(proposal: &Proposal) -> FeatureGateProposalRecord {
    let features = proposal.features.iter().map(|(name, on)| Feature { name: name.clone(), enabled: *on });
    FeatureGateProposalRecord {
        version: proposal.version.stored(),
        index: proposal.index,
        features: features.collect(),
    }
}

/// A change as it is stored and sent to clients.
pub fn change_record(change: &GateChange) -> FeatureGateChange {
    let (cause, member_id) = change.cause.to_proto();
    FeatureGateChange {
        index: change.index,
        cause: cause as i32,
        member_id,
        version: change.version.stored(),
        before: change.before.iter().cloned().collect(),
        after: change.after.iter().cloned().collect(),
    }
}

fn change_of(record: FeatureGateChange) -> Option<GateChange> {
    Some(GateChange {
        index: record.index,
        cause: Cause::from_proto(record.cause(), record.member_id)?,
        version: record.version.parse().ok()?,
        before: record.before.into_iter().collect(),
        after: record.after.into_iter().collect(),
    })
}
