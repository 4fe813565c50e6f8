//! What must hold at every moment: one leader a term, one log, equal state at equal index, leases that last.
#![expect(clippy::disallowed_types, reason = "looked up by key, never iterated")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
};

use membership::MemberId;
use prost::Message as _;
use proto::{
    etcdserverpb::InternalRaftRequest,
    raftpb::{self, EntryType},
};

use crate::gate::Gates;

/// Something that must not be was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) type Checked = Result<(), Violation>;

pub(crate) fn violation<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(text.into()))
}

/// What must be equal at equal applied index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// hashkv.
    pub keys: u32,
    pub revision: i64,
    pub compacted: i64,
    /// Leases, members, versions, alarms.
    pub rest: u64,
}

#[derive(Default)]
pub(crate) struct Checks {
    leaders: BTreeMap<u64, MemberId>,
    /// By index and term.
    entries: HashMap<(u64, u64), u64>,
    /// By index: term and contents.
    committed: BTreeMap<u64, (u64, u64)>,
    /// By applied index.
    states: HashMap<u64, (State, MemberId)>,
    pub leases: Leases,
    pub gates: Gates,
}

impl Checks {
    pub(crate) fn leader(&mut self, term: u64, id: MemberId) -> Checked {
        match *self.leaders.entry(term).or_insert(id) {
            first if first == id => Ok(()),
            first => violation(format!("term {term} has two leaders, {first} and {id}")),
        }
    }

    pub(crate) fn terms_with_leader(&self) -> usize {
        self.leaders.len()
    }

    pub(crate) fn last_committed(&self) -> u64 {
        self.committed.last_key_value().map_or(0, |(index, _)| *index)
    }

    /// An entry on its way to another member's log.
    pub(crate) fn logged(&mut self, entry: &raftpb::Entry) -> Checked {
        let (at, hash) = ((entry.index(), entry.term()), contents(entry));
        match *self.entries.entry(at).or_insert(hash) {
            first if first == hash => Ok(()),
            _ => violation(format!("two entries have index {} and term {}", at.0, at.1)),
        }
    }

    /// An entry that a member applies.
    pub(crate) fn applied(&mut self, id: MemberId, entry: &raftpb::Entry, now: u64) -> Checked {
        self.logged(entry)?;
        let (index, found) = (entry.index(), (entry.term(), contents(entry)));
        match self.committed.get(&index) {
            Some(first) if *first == found => return Ok(()),
            Some(first) => {
                return violation(format!(
                    "{id} applies index {index} of term {} but another member has applied one of term {}",
                    found.0, first.0
                ));
            }
            None => {}
        }
        self.committed.insert(index, found);
        self.gates.committed(entry)?;
        self.leases.committed(entry, now)
    }

    /// The state of a member that has applied everything up to `index`.
    pub(crate) fn state(&mut self, index: u64, state: State, id: MemberId) -> Checked {
        let (first, by) = *self.states.entry(index).or_insert((state, id));
        if first == state {
            return Ok(());
        }
        violation(format!(
            "{id} and {by} have both applied index {index} but their states differ: {state:x?} and {first:x?}"
        ))
    }
}

fn contents(entry: &raftpb::Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    (entry.r#type() as i32, entry.data.as_deref().unwrap_or_default()).hash(&mut hasher);
    hasher.finish()
}

/// Leases end when nobody renews them, and not before.
#[derive(Default)]
pub(crate) struct Leases {
    /// Until when clients rely on a lease, in microseconds.
    promised: BTreeMap<i64, u64>,
    /// When the end of a lease was first applied.
    ended: BTreeMap<i64, u64>,
    /// Ended by a client.
    revoked: BTreeSet<i64>,
}

impl Leases {
    /// A client has been told, of what it asked for at `asked`, that the lease lives for `ttl` seconds.
    pub(crate) fn promise(&mut self, id: i64, asked: u64, ttl: i64) -> Checked {
        let until = asked + ttl.max(0) as u64 * crate::clock::SECOND;
        let promised = self.promised.entry(id).or_default();
        *promised = until.max(*promised);
        self.check(id)
    }

    /// A client lets a lease go.
    pub(crate) fn revoke(&mut self, id: i64) {
        self.revoked.insert(id);
    }

    /// A client was told that a lease does not exist.
    pub(crate) fn told_gone(&self, id: i64, now: u64) -> Checked {
        match self.promised.get(&id) {
            Some(until) if *until > now && !self.revoked.contains(&id) => violation(format!(
                "lease {id} is said not to exist at {now} µs, but was promised to live until {until} µs"
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn latest_promise(&self) -> u64 {
        self.promised.values().copied().max().unwrap_or(0)
    }

    fn committed(&mut self, entry: &raftpb::Entry, now: u64) -> Checked {
        if entry.r#type() != EntryType::EntryNormal {
            return Ok(());
        }
        let Some(request) = entry.data.clone().and_then(|data| InternalRaftRequest::decode(data).ok()) else {
            return Ok(());
        };
        let Some(revoke) = request.lease_revoke else { return Ok(()) };
        self.ended.entry(revoke.id).or_insert(now);
        self.check(revoke.id)
    }

    fn check(&self, id: i64) -> Checked {
        match (self.promised.get(&id), self.ended.get(&id)) {
            (Some(until), Some(ended)) if ended < until && !self.revoked.contains(&id) => {
                violation(format!("lease {id} ended at {ended} µs but was promised to live until {until} µs"))
            }
            _ => Ok(()),
        }
    }
}
