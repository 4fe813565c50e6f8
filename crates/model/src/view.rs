//! The replicated state in few bytes: a [`Cluster`] is made of it and read back into it.

use std::{collections::BTreeMap, fmt};

use membership::{
    Cluster, ClusterId, Member, MemberId,
    gate::{GateState, Proposal},
};
use proto::Version;

/// A member's values for the features: a bit for each that is on, or no feature known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Values(pub u8);

impl Values {
    pub const NONE_KNOWN: Values = Values(0x80);

    pub fn on(self) -> u8 {
        self.0 & !Values::NONE_KNOWN.0
    }

    pub fn to_map(self, features: u32) -> BTreeMap<String, bool> {
        let known = if self == Values::NONE_KNOWN { 0 } else { features };
        (0..known).map(|at| (name(at), self.0 >> at & 1 == 1)).collect()
    }

    pub fn of(map: &BTreeMap<String, bool>) -> Values {
        if map.is_empty() {
            return Values::NONE_KNOWN;
        }
        Values(bits(map.iter().filter(|(_, on)| **on).map(|(name, _)| name)))
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Values::NONE_KNOWN { f.write_str("unknown") } else { write!(f, "{:02b}", self.0) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Role {
    /// Not there yet.
    #[default]
    Absent,
    Learner,
    Voter,
    Removed,
}

impl Role {
    pub fn is_member(self) -> bool {
        matches!(self, Role::Learner | Role::Voter)
    }
}

/// A stored proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stored {
    pub minor: u8,
    pub index: u8,
    pub values: Values,
}

/// What the replicated state says of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seat {
    pub role: Role,
    pub stored: Option<Stored>,
}

/// The replicated state at one index, without the history of changes, on which nothing depends.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The cluster version is 3.`minor`.
    pub minor: u8,
    pub enabled: u8,
    pub changed: u8,
    pub relevant: u8,
    /// The entry that brought the version.
    pub since: u8,
    pub seats: Vec<Seat>,
}

impl View {
    pub fn has_gate(&self) -> bool {
        self.minor >= 8
    }

    pub fn voters(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter().filter(|seat| seat.role == Role::Voter)
    }

    pub fn members(&self) -> impl Iterator<Item = usize> {
        (0..self.seats.len()).filter(|at| self.seats[*at].role.is_member())
    }

    /// The cluster as the member in this slot has it in memory.
    pub fn cluster(&self, local: usize, features: u32) -> Cluster {
        self.base(local).with_gate(self.gate(features))
    }

    /// Members and version alone.
    pub fn base(&self, local: usize) -> Cluster {
        let members = self.members().map(|at| (id(at), member(at, self.seats[at].role == Role::Learner)));
        let removed = (0..self.seats.len()).filter(|at| self.seats[*at].role == Role::Removed).map(id);
        let version = Some(version(self.minor));
        let cluster = Cluster::new(ClusterId(1), id(local), members.collect(), removed.collect(), version);
        cluster.with_learners_max(self.seats.len())
    }

    pub fn gate(&self, features: u32) -> GateState {
        let proposals = self.seats.iter().enumerate().filter_map(|(at, seat)| {
            let Stored { minor, index, values } = seat.stored?;
            let features = values.to_map(features);
            Some((id(at), Proposal { version: version(minor), index: index.into(), features }))
        });
        GateState {
            enabled: (0..features).filter(|at| self.enabled >> at & 1 == 1).map(name).collect(),
            index: self.changed.into(),
            relevant_index: self.relevant.into(),
            version_index: self.since.into(),
            proposals: proposals.collect(),
            ..GateState::default()
        }
    }

    pub fn of(cluster: &Cluster, slots: usize) -> View {
        let gate = cluster.gate();
        let stored = |proposal: &Proposal| Stored {
            minor: proposal.version.minor as u8,
            index: proposal.index as u8,
            values: Values::of(&proposal.features),
        };
        let seat = |at| Seat { role: role(cluster, id(at)), stored: gate.proposals.get(&id(at)).map(stored) };
        View {
            minor: cluster.version().map_or(0, |version| version.minor as u8),
            enabled: bits(&gate.enabled),
            changed: gate.index as u8,
            relevant: gate.relevant_index as u8,
            since: gate.version_index as u8,
            seats: (0..slots).map(seat).collect(),
        }
    }
}

pub(crate) fn bits<'a>(names: impl IntoIterator<Item = &'a String>) -> u8 {
    names.into_iter().fold(0, |bits, name| bits | 1 << (name.as_bytes()[0] - b'A'))
}

pub(crate) fn name(at: u32) -> String {
    char::from(b'A' + at as u8).to_string()
}

pub(crate) fn version(minor: u8) -> Version {
    Version::new(3, minor.into())
}

pub(crate) fn id(slot: usize) -> MemberId {
    MemberId(slot as u64 + 1)
}

pub(crate) fn member(slot: usize, is_learner: bool) -> Member {
    Member { id: id(slot), peer_urls: vec![format!("http://{slot}")], is_learner, ..Member::default() }
}

fn role(cluster: &Cluster, id: MemberId) -> Role {
    match cluster.member(id) {
        Some(member) if member.is_learner => Role::Learner,
        Some(_) => Role::Voter,
        None if cluster.is_removed(id) => Role::Removed,
        None => Role::Absent,
    }
}
