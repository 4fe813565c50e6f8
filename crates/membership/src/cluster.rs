//! The cluster: members, removed ids, version, downgrade job, feature gate. Replicated state, changed by apply alone.

use std::collections::{BTreeMap, BTreeSet};

use proto::Version;

use crate::{
    Change, ClusterId, Downgrade, Member, MemberId,
    gate::{Cause, GateEffect, GateState},
};

/// Why a configuration change is refused. The texts are etcd's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("membership: ID removed")]
    IdRemoved,
    #[error("membership: ID exists")]
    IdExists,
    #[error("membership: ID not found")]
    IdNotFound,
    #[error("membership: peerURL exists")]
    PeerUrlExists,
    #[error("membership: can only promote a learner member")]
    NotLearner,
    #[error("membership: too many learner members in cluster")]
    TooManyLearners,
    #[error("membership: the learner does not propose every cluster feature that is on")]
    LearnerFeatures,
}

/// What applying a [`Change`] did, for the caller to write down and to tell the transport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Added(Member),
    Promoted(Member),
    Updated(Member),
    Removed(MemberId),
}

/// Who is in the cluster, and at which version.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub id: ClusterId,
    pub local: MemberId,
    members: BTreeMap<MemberId, Member>,
    removed: BTreeSet<MemberId>,
    version: Option<Version>,
    downgrade: Downgrade,
    pub(crate) gate: GateState,
    learners_max: usize,
}

/// etcd's default of `--max-learners`.
pub const LEARNERS_MAX: usize = 1;

impl Cluster {
    pub fn new(
        id: ClusterId,
        local: MemberId,
        members: BTreeMap<MemberId, Member>,
        removed: BTreeSet<MemberId>,
        version: Option<Version>,
    ) -> Cluster {
        let (downgrade, gate, learners_max) = (Downgrade::default(), GateState::default(), LEARNERS_MAX);
        Cluster { id, local, members, removed, version, downgrade, gate, learners_max }
    }

    pub fn learners_max(&self) -> usize {
        self.learners_max
    }

    /// Must be the same on every member, because apply depends on it (as in etcd).
    #[must_use]
    pub fn with_learners_max(mut self, learners_max: usize) -> Cluster {
        self.learners_max = learners_max;
        self
    }

    #[must_use]
    pub fn with_downgrade(mut self, downgrade: Downgrade) -> Cluster {
        self.downgrade = downgrade;
        self
    }

    /// In id order.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.get(&id)
    }

    pub fn is_removed(&self, id: MemberId) -> bool {
        self.removed.contains(&id)
    }

    pub fn removed(&self) -> impl Iterator<Item = MemberId> {
        self.removed.iter().copied()
    }

    pub fn voters(&self) -> impl Iterator<Item = MemberId> {
        self.voting_members().map(|m| m.id)
    }

    pub fn voting_members(&self) -> impl Iterator<Item = &Member> {
        self.members.values().filter(|m| !m.is_learner)
    }

    pub fn learners(&self) -> impl Iterator<Item = MemberId> {
        self.members.values().filter(|m| m.is_learner).map(|m| m.id)
    }

    pub fn is_local_learner(&self) -> bool {
        self.members.get(&self.local).is_some_and(|m| m.is_learner)
    }

    /// `None` until the first leader has decided it.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// Without what follows from it: see [`Cluster::apply_version`].
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    pub fn downgrade(&self) -> &Downgrade {
        &self.downgrade
    }

    /// Whether the cluster version is where the downgrade job wants it.
    pub fn is_at_downgrade_target(&self) -> bool {
        self.version.is_some() && crate::parse_release(&self.downgrade.target) == self.version
    }

    /// Applies `downgrade_info_set`: an ended job keeps no target. Returns what to write down.
    pub fn set_downgrade(&mut self, enabled: bool, target: String) -> &Downgrade {
        self.downgrade = Downgrade { enabled, target: if enabled { target } else { String::new() } };
        &self.downgrade
    }

    /// Whether `change` may be applied now. Depends on replicated state alone, so every member answers alike.
    pub fn validate(&self, change: &Change) -> Result<(), ChangeError> {
        let id = change.id();
        if self.removed.contains(&id) {
            return Err(ChangeError::IdRemoved);
        }
        match (change, self.members.get(&id)) {
            (Change::Add { .. }, Some(_)) => Err(ChangeError::IdExists),
            (Change::Add { member, as_learner }, None) => {
                self.check_urls(id, &member.peer_urls)?;
                if *as_learner && member.is_learner { self.check_learners(1) } else { Ok(()) }
            }
            (_, None) => Err(ChangeError::IdNotFound),
            (Change::Promote(_), Some(member)) if !member.is_learner => Err(ChangeError::NotLearner),
            (Change::Promote(_), Some(_)) if rule!(PromotionIsChecked, !self.proposes_all_that_is_on(id), false) => {
                Err(ChangeError::LearnerFeatures)
            }
            (Change::Promote(_) | Change::Remove(_), Some(_)) => Ok(()),
            (Change::Update { peer_urls, .. }, Some(_)) => self.check_urls(id, peer_urls),
        }
    }

    /// Applies `change`, or finds out why not and changes nothing.
    pub fn apply(&mut self, change: Change) -> Result<Changed, ChangeError> {
        self.validate(&change)?;
        let found = self.members.get_mut(&change.id());
        Ok(match (change, found) {
            (Change::Add { member, .. }, _) => {
                self.members.insert(member.id, member.clone());
                Changed::Added(member)
            }
            (Change::Remove(id), _) => {
                self.members.remove(&id);
                self.removed.insert(id);
                Changed::Removed(id)
            }
            (Change::Promote(_), Some(member)) => {
                member.is_learner = false;
                Changed::Promoted(member.clone())
            }
            (Change::Update { peer_urls, .. }, Some(member)) => {
                member.peer_urls = peer_urls;
                Changed::Updated(member.clone())
            }
            (Change::Promote(_) | Change::Update { .. }, None) => return Err(ChangeError::IdNotFound),
        })
    }

    /// Applies `change` and what follows for the gate from it: a new voter may end the agreement on a feature.
    pub fn apply_at(&mut self, index: u64, change: Change) -> Result<(Changed, GateEffect), ChangeError> {
        let is_voter = |cluster: &Cluster, id| cluster.members.get(&id).is_some_and(|member| !member.is_learner);
        let id = change.id();
        let was_voter = is_voter(self, id);
        let changed = self.apply(change)?;
        let cause = match &changed {
            Changed::Added(_) => Some(Cause::VoterAdded(id)),
            Changed::Promoted(_) => Some(Cause::VoterPromoted(id)),
            Changed::Updated(_) | Changed::Removed(_) => None,
        };
        let removed = matches!(changed, Changed::Removed(_)).then_some(id);
        let voters_changed = was_voter != is_voter(self, id);
        let effect = self.settle_members(index, cause.filter(|_| voters_changed), removed, voters_changed);
        Ok((changed, effect))
    }

    /// Adds a member, or finds out why not.
    pub fn add(&mut self, member: Member) -> Result<(), ChangeError> {
        let as_learner = member.is_learner;
        self.apply(Change::Add { member, as_learner }).map(drop)
    }

    pub fn promote(&mut self, id: MemberId) -> Result<&Member, ChangeError> {
        self.apply(Change::Promote(id))?;
        self.members.get(&id).ok_or(ChangeError::IdNotFound)
    }

    pub fn remove(&mut self, id: MemberId) -> Result<(), ChangeError> {
        self.apply(Change::Remove(id)).map(drop)
    }

    /// Takes the peer URLs of `update`; the rest of the member stays.
    pub fn update_peer_urls(&mut self, update: &Member) -> Result<&Member, ChangeError> {
        self.apply(Change::Update { id: update.id, peer_urls: update.peer_urls.clone() })?;
        self.members.get(&update.id).ok_or(ChangeError::IdNotFound)
    }

    /// Sets what a member says of itself. `None` if the member is unknown or removed.
    pub fn set_attributes(&mut self, id: MemberId, name: String, client_urls: Vec<String>) -> Option<&Member> {
        let member = self.members.get_mut(&id)?;
        member.name = name;
        member.client_urls = client_urls;
        Some(member)
    }

    /// A member to propose, with an id of its own. `now` is the Unix time in seconds. etcd takes the id of that
    /// second and lets apply refuse a clash; here the next free second is taken.
    pub fn new_member(&self, peer_urls: &[String], is_learner: bool, now: u64) -> Member {
        let mut peer_urls = peer_urls.to_vec();
        peer_urls.sort_unstable();
        let taken = |id: MemberId| id.0 == 0 || self.members.contains_key(&id) || self.removed.contains(&id);
        // The token is empty: only the members a cluster begins with carry its token in their ids.
        let mut ids = (now..).map(|second| MemberId::compute(&peer_urls, "", Some(second)));
        let id = ids.find(|id| !taken(*id)).unwrap_or_default();
        Member { id, peer_urls, is_learner, ..Member::default() }
    }

    /// Whether `more` learners fit beside those there are. At start etcd asks this with `more` = 0.
    pub fn check_learners(&self, more: usize) -> Result<(), ChangeError> {
        check_learners(self.learners_max, self.learners().count() + more)
    }

    fn check_urls(&self, id: MemberId, urls: &[String]) -> Result<(), ChangeError> {
        let mut others = self.members.values().filter(|m| m.id != id).flat_map(|m| &m.peer_urls);
        if others.any(|url| urls.contains(url)) { Err(ChangeError::PeerUrlExists) } else { Ok(()) }
    }
}

pub(crate) fn check_learners(max: usize, learners: usize) -> Result<(), ChangeError> {
    if learners > max { Err(ChangeError::TooManyLearners) } else { Ok(()) }
}
