//! One truth for membership at start: raft's stored configuration against the records of the members.
//!
//! The records win, as in etcd since 3.7, which builds raft's configuration from them: members of both kinds must
//! count the same quorum from the same file. Whatever differed is told in words, for the log and the operator.

use std::collections::{BTreeMap, BTreeSet};

use proto::raftpb::ConfState;

use crate::{Member, MemberId};

/// What to start raft with, and what was found on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Reconciliation {
    pub conf_state: ConfState,
    /// Whether the stored configuration must be written anew to agree with the records.
    pub rewrite: bool,
    /// Empty if nothing differed.
    pub findings: Vec<Finding>,
}

/// One difference. Each is worth an error in the log: in normal operation both are written in one transaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    #[error("the database holds no raft configuration; it is built from the {members} member records")]
    NoConfState { members: usize },
    #[error("raft's stored configuration counts member {0}, which has no record: it counts no longer")]
    NoRecord(MemberId),
    #[error("raft's stored configuration still counts member {0}, which was removed: it counts no longer")]
    CountedAfterRemoval(MemberId),
    #[error("member {0} has a record but is not in raft's stored configuration: it counts from now on, as a {1}")]
    NotCounted(MemberId, Role),
    #[error("member {0} is a {1} in raft's stored configuration and a {2} in its record: it is a {2}")]
    OtherRole(MemberId, Role, Role),
    #[error("member {0} has a record although it was removed: it counts, but no change to it will be accepted")]
    RemovedButListed(MemberId),
    #[error("this member, {0}, has no record: it takes no part until the cluster adds it")]
    LocalUnknown(MemberId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Voter,
    Learner,
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if *self == Role::Voter { "voter" } else { "learner" })
    }
}

/// Why the member must not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    #[error(
        "the database stands in the middle of a joint configuration change (leaving {0}), which no etcd makes; \
         restore a snapshot"
    )]
    Joint(String),
    #[error("no member record in the database is a voter, so nothing could ever be decided; restore a snapshot")]
    NoVoter,
    #[error("this member, {0}, was removed from its cluster; start with a new data dir, as a new member")]
    Removed(MemberId),
}

/// `applied` is the database's consistent index: at 0 nothing was applied and there is nothing to compare.
pub fn plan_reconciliation(
    stored: Option<&ConfState>,
    members: &BTreeMap<MemberId, Member>,
    removed: &BTreeSet<MemberId>,
    local: MemberId,
    applied: u64,
) -> Result<Reconciliation, ReconcileError> {
    let conf_state = conf_state_of(members.values());
    if applied == 0 {
        return Ok(Reconciliation { conf_state, rewrite: false, findings: Vec::new() });
    }
    if removed.contains(&local) && !members.contains_key(&local) {
        return Err(ReconcileError::Removed(local));
    }
    if conf_state.voters.is_empty() {
        return Err(ReconcileError::NoVoter);
    }
    let mut findings = Vec::new();
    match stored {
        None => findings.push(Finding::NoConfState { members: members.len() }),
        Some(stored) => {
            check_joint(stored)?;
            compare(stored, members, removed, &mut findings);
        }
    }
    let rewrite = !findings.is_empty();
    findings.extend(members.keys().filter(|id| removed.contains(id)).map(|id| Finding::RemovedButListed(*id)));
    if !members.contains_key(&local) {
        findings.push(Finding::LocalUnknown(local));
    }
    Ok(Reconciliation { conf_state, rewrite, findings })
}

/// The configuration that these members make.
pub fn conf_state_of<'a>(members: impl Iterator<Item = &'a Member>) -> ConfState {
    let mut state = ConfState { auto_leave: Some(false), ..ConfState::default() };
    for member in members {
        let list = if member.is_learner { &mut state.learners } else { &mut state.voters };
        list.push(member.id.0);
    }
    state
}

fn check_joint(stored: &ConfState) -> Result<(), ReconcileError> {
    if stored.voters_outgoing.is_empty() && stored.learners_next.is_empty() {
        return Ok(());
    }
    let ids: Vec<_> = stored.voters_outgoing.iter().map(|id| MemberId(*id).to_string()).collect();
    Err(ReconcileError::Joint(ids.join(", ")))
}

fn compare(
    stored: &ConfState,
    members: &BTreeMap<MemberId, Member>,
    removed: &BTreeSet<MemberId>,
    findings: &mut Vec<Finding>,
) {
    let voters = stored.voters.iter().map(|id| (MemberId(*id), Role::Voter));
    let learners = stored.learners.iter().map(|id| (MemberId(*id), Role::Learner));
    let counted: BTreeMap<_, _> = voters.chain(learners).collect();
    for (id, role) in &counted {
        match members.get(id).map(role_of) {
            Some(record) if record != *role => findings.push(Finding::OtherRole(*id, *role, record)),
            Some(_) => {}
            None if removed.contains(id) => findings.push(Finding::CountedAfterRemoval(*id)),
            None => findings.push(Finding::NoRecord(*id)),
        }
    }
    let more = members.values().filter(|m| !counted.contains_key(&m.id));
    findings.extend(more.map(|m| Finding::NotCounted(m.id, role_of(m))));
}

fn role_of(member: &Member) -> Role {
    if member.is_learner { Role::Learner } else { Role::Voter }
}
