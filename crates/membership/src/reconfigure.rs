//! Checks before a change of members is proposed: `--strict-reconfig-check` and the readiness of a learner.
//!
//! They look at what this member sees now, so they protect from mistakes and decide nothing; whether a change is valid
//! is [`Cluster::validate`]'s to say, at the entry.

use std::{collections::BTreeMap, time::Duration};

use crate::{ChangeError, Cluster, MemberId};

/// How long a connection must have held to count, as in etcd.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(5);

/// The share of the leader's log that a learner must have to be promoted.
const READY_SHARE: f64 = 0.9;

/// Why a change is not proposed. The texts are etcd's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigureError {
    #[error("etcdserver: re-configuration failed due to not enough started members")]
    NotEnoughStarted,
    #[error("etcdserver: unhealthy cluster")]
    Unhealthy,
    #[error("etcdserver: can only promote a learner member which is in sync with leader")]
    LearnerNotReady,
    /// Only the leader knows how far a learner is; others forward the request to it.
    #[error("etcdserver: not leader")]
    NotLeader,
    /// Not etcd's: it has no cluster features.
    #[error("etcdserver: can only promote a learner that proposes every cluster feature that is on; {0}")]
    LearnerFeatures(String),
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// How long this member has been connected to each peer. A peer without a connection is absent.
pub type Links = BTreeMap<MemberId, Duration>;

impl Cluster {
    /// Whether a quorum of started members would remain after adding a voter; the new one counts as not started.
    pub fn is_ready_to_add_voter(&self) -> bool {
        let (voters, started) = self.count_voters(|_| true);
        // One member may always get a second, which is how a restored cluster grows.
        (started == 1 && voters == 1) || started >= quorum(voters + 1)
    }

    pub fn is_ready_to_remove_voter(&self, id: MemberId) -> bool {
        let (voters, started) = self.count_voters(|other| other != id);
        started >= quorum(voters)
    }

    /// The learner counts, and as started.
    pub fn is_ready_to_promote(&self) -> bool {
        let (voters, started) = self.count_voters(|_| true);
        started + 1 >= quorum(voters + 1)
    }

    pub fn may_add(&self, is_learner: bool, links: &Links) -> Result<(), ReconfigureError> {
        if !is_learner && !self.is_ready_to_add_voter() {
            return Err(ReconfigureError::NotEnoughStarted);
        }
        let voters = self.voters().count();
        // A learner is counted like a voter here too; etcd does so.
        if voters == 1 || self.connected(links) >= quorum(voters + 1) {
            return Ok(());
        }
        Err(ReconfigureError::Unhealthy)
    }

    pub fn may_remove(&self, id: MemberId, links: &Links) -> Result<(), ReconfigureError> {
        if self.member(id).is_some_and(|m| m.is_learner) {
            return Ok(());
        }
        if !self.is_ready_to_remove_voter(id) {
            return Err(ReconfigureError::NotEnoughStarted);
        }
        // A member that is down is no part of the quorum that works now.
        if id != self.local && !links.contains_key(&id) {
            return Ok(());
        }
        let voters = self.voters().count();
        let remaining = self.connected(links).saturating_sub(1);
        if remaining < 1 + voters.saturating_sub(1) / 2 {
            return Err(ReconfigureError::Unhealthy);
        }
        Ok(())
    }

    fn check_learner_features(&self, id: MemberId) -> Result<(), ReconfigureError> {
        if self.member(id).is_none_or(|m| !m.is_learner) || self.proposes_all_that_is_on(id) {
            return Ok(());
        }
        let missing = self.held_off_by_promotion(id).join(", ");
        Err(ReconfigureError::LearnerFeatures(match self.current_proposal(id) {
            None => format!("member {id} has not proposed yet: it must run, and reach the others"),
            Some(_) => format!("member {id} says off for {missing}: restart it with --cluster-feature-gates to match"),
        }))
    }

    /// `matched` is the leader's view of how far each member's log is, `None` on a member that does not lead. The
    /// first half is asked even without the strict check.
    pub fn may_promote(
        &self,
        id: MemberId,
        strict: bool,
        leader: MemberId,
        matched: Option<&BTreeMap<MemberId, u64>>,
    ) -> Result<(), ReconfigureError> {
        check_learner_ready(id, leader, matched)?;
        self.check_learner_features(id)?;
        if strict && !self.is_ready_to_promote() {
            return Err(ReconfigureError::NotEnoughStarted);
        }
        Ok(())
    }

    /// Whether this member has been connected to a quorum for [`HEALTH_INTERVAL`].
    pub fn is_connected_to_quorum(&self, links: &Links) -> bool {
        self.connected(links) >= quorum(self.voters().count())
    }

    fn connected(&self, links: &Links) -> usize {
        let held = |id| links.get(&id).is_some_and(|held| *held > HEALTH_INTERVAL);
        self.voters().filter(|id| *id == self.local || held(*id)).count()
    }

    /// How many voters pass `filter`, and how many of them have started.
    fn count_voters(&self, filter: impl Fn(MemberId) -> bool) -> (usize, usize) {
        let voters = self.voting_members().filter(|m| filter(m.id));
        voters.fold((0, 0), |(all, started), m| (all + 1, started + usize::from(m.is_started())))
    }
}

/// Whether the learner's log has nine tenths of the leader's. Says nothing on whether `id` is a learner at all.
pub fn check_learner_ready(
    id: MemberId,
    leader: MemberId,
    matched: Option<&BTreeMap<MemberId, u64>>,
) -> Result<(), ReconfigureError> {
    let matched = matched.ok_or(ReconfigureError::NotLeader)?;
    let learner = *matched.get(&id).ok_or(ChangeError::IdNotFound)?;
    let leader = *matched.get(&leader).ok_or(ReconfigureError::NotLeader)?;
    if (learner as f64) / (leader as f64) < READY_SHARE {
        return Err(ReconfigureError::LearnerNotReady);
    }
    Ok(())
}

/// The peer among `candidates` that has been connected longest: who takes over when a leader stops.
pub fn longest_connected(links: &Links, candidates: impl IntoIterator<Item = MemberId>) -> Option<MemberId> {
    let connected = candidates.into_iter().filter_map(|id| Some((*links.get(&id)?, id)));
    // Among equals the first candidate wins, as in etcd; `max_by` would take the last.
    connected.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, id)| id)
}

pub fn quorum(members: usize) -> usize {
    members / 2 + 1
}
