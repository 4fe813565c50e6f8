//! Entries of the log: in few bytes, and as members send them.

use membership::{Change, Changed, Cluster, gate::GateEffect};
use prost::Message;
use proto::{
    etcdserverpb::{InternalRaftRequest, RequestHeader},
    membershippb::{
        Attributes, ClusterFeatureGateSetRequest, ClusterMemberAttrSetRequest, ClusterVersionSetRequest, Feature,
        FeatureGateProposal,
    },
    raftpb,
};

use crate::{
    state::{Decided, Sent},
    view::{Values, bits, id, member, name, version},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Proposal(usize, Sent),
    Decision(Decided),
    Version(u8),
    Add { member: usize, as_learner: bool },
    Remove(usize),
    Promote(usize),
}

impl Entry {
    /// What `node` does with such an entry, but for writing it down; whether it was not refused. It also skips what is
    /// newer than the cluster version; that is not asked here, because such an entry in the log is a fault already.
    pub(crate) fn apply(&self, cluster: &mut Cluster, index: u64, features: u32) -> bool {
        let changed = |effect: GateEffect| effect.changed;
        match self {
            Entry::Proposal(member, sent) => {
                cluster.apply_proposal(index, id(*member), &sent.to_proto(features)).is_ok_and(changed)
            }
            Entry::Decision(decided) => {
                let ver = version(decided.minor).stored();
                cluster.apply_decision(index, &ver, &decided.to_proto(features)).is_ok_and(changed)
            }
            Entry::Version(minor) => changed(cluster.apply_version(index, version(*minor))),
            Entry::Add { .. } | Entry::Remove(_) | Entry::Promote(_) => {
                let done = self.change().map(|change| cluster.apply_at(index, change));
                done.is_some_and(|done| done.is_ok_and(|(changed, _)| !matches!(changed, Changed::Updated(_))))
            }
        }
    }

    /// As it is sent, and as the log keeps it.
    pub(crate) fn encode(&self, features: u32) -> raftpb::Entry {
        let (kind, data) = match self.change() {
            Some(change) => (raftpb::EntryType::EntryConfChange, change.encode(1).encode_to_vec()),
            None => (raftpb::EntryType::EntryNormal, self.request(features).encode_to_vec()),
        };
        raftpb::Entry { r#type: Some(kind as i32), data: Some(data.into()), ..Default::default() }
    }

    fn change(&self) -> Option<Change> {
        match *self {
            Entry::Add { member: slot, as_learner } => {
                Some(Change::Add { member: member(slot, as_learner), as_learner })
            }
            Entry::Remove(slot) => Some(Change::Remove(id(slot))),
            Entry::Promote(slot) => Some(Change::Promote(id(slot))),
            _ => None,
        }
    }

    fn request(&self, features: u32) -> InternalRaftRequest {
        let header = Some(RequestHeader { id: 1, ..Default::default() });
        let mut request = InternalRaftRequest { header, ..Default::default() };
        let version_set =
            |minor, feature_gates| ClusterVersionSetRequest { ver: version(minor).stored(), feature_gates };
        match self {
            Entry::Proposal(member, sent) => {
                let proposed_feature_gates = Some(sent.to_proto(features));
                let attributes = Attributes { proposed_feature_gates, ..Default::default() };
                request.cluster_member_attr_set =
                    Some(ClusterMemberAttrSetRequest { member_id: id(*member).0, member_attributes: Some(attributes) });
            }
            Entry::Decision(decided) => {
                request.cluster_version_set = Some(version_set(decided.minor, Some(decided.to_proto(features))));
            }
            Entry::Version(minor) => request.cluster_version_set = Some(version_set(*minor, None)),
            Entry::Add { .. } | Entry::Remove(_) | Entry::Promote(_) => {}
        }
        request
    }
}

impl Sent {
    pub fn of(proposal: &FeatureGateProposal, life: u8) -> Sent {
        let values = proposal.features.iter().map(|f| (f.name.clone(), f.enabled)).collect();
        Sent { minor: minor(&proposal.version), replaces: proposal.replaces as u8, values: Values::of(&values), life }
    }

    fn to_proto(self, features: u32) -> FeatureGateProposal {
        let values = self.values.to_map(features).into_iter();
        FeatureGateProposal {
            version: version(self.minor).stored(),
            replaces: self.replaces.into(),
            features: values.map(|(name, enabled)| Feature { name, enabled }).collect(),
        }
    }
}

impl Decided {
    pub fn of(minor: u8, decision: &ClusterFeatureGateSetRequest) -> Decided {
        let on = bits(decision.feature_gates.iter().filter(|f| f.enabled).map(|f| &f.name));
        Decided { minor, from: decision.decided_from as u8, on }
    }

    fn to_proto(self, features: u32) -> ClusterFeatureGateSetRequest {
        let feature = |at| Feature { name: name(at), enabled: self.on >> at & 1 == 1 };
        let feature_gates = (0..features).map(feature).collect();
        ClusterFeatureGateSetRequest { feature_gates, decided_from: self.from.into() }
    }
}

fn minor(version: &str) -> u8 {
    version.parse().map_or(0, |version: proto::Version| version.minor as u8)
}
