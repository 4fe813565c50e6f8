//! The cluster: members, removed ids, version. Replicated state, changed by apply alone.

use std::collections::{BTreeMap, BTreeSet};

use proto::Version;

use crate::{ClusterId, Member, MemberId};

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
}

/// Who is in the cluster, and at which version.
///
/// Invariant: an id is never both in `members` and in `removed`.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub id: ClusterId,
    pub local: MemberId,
    members: BTreeMap<MemberId, Member>,
    removed: BTreeSet<MemberId>,
    version: Option<Version>,
}

impl Cluster {
    pub fn new(
        id: ClusterId,
        local: MemberId,
        members: BTreeMap<MemberId, Member>,
        removed: BTreeSet<MemberId>,
        version: Option<Version>,
    ) -> Cluster {
        Cluster { id, local, members, removed, version }
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

    pub fn voters(&self) -> impl Iterator<Item = MemberId> {
        self.members.values().filter(|m| !m.is_learner).map(|m| m.id)
    }

    pub fn learners(&self) -> impl Iterator<Item = MemberId> {
        self.members.values().filter(|m| m.is_learner).map(|m| m.id)
    }

    /// `None` until the first leader has decided it.
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    pub fn set_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Adds a member, or finds out why not.
    pub fn add(&mut self, member: Member) -> Result<(), ChangeError> {
        self.check_id(member.id)?;
        if self.members.contains_key(&member.id) {
            return Err(ChangeError::IdExists);
        }
        self.check_urls(&member)?;
        self.members.insert(member.id, member);
        Ok(())
    }

    pub fn promote(&mut self, id: MemberId) -> Result<&Member, ChangeError> {
        self.check_id(id)?;
        let member = self.members.get_mut(&id).ok_or(ChangeError::IdNotFound)?;
        if !member.is_learner {
            return Err(ChangeError::NotLearner);
        }
        member.is_learner = false;
        Ok(member)
    }

    pub fn remove(&mut self, id: MemberId) -> Result<(), ChangeError> {
        self.check_id(id)?;
        self.members.remove(&id).ok_or(ChangeError::IdNotFound)?;
        self.removed.insert(id);
        Ok(())
    }

    /// Takes the peer URLs of `update`; the rest of the member stays.
    pub fn update_peer_urls(&mut self, update: &Member) -> Result<&Member, ChangeError> {
        self.check_id(update.id)?;
        if !self.members.contains_key(&update.id) {
            return Err(ChangeError::IdNotFound);
        }
        self.check_urls(update)?;
        let member = self.members.get_mut(&update.id).ok_or(ChangeError::IdNotFound)?;
        member.peer_urls.clone_from(&update.peer_urls);
        Ok(member)
    }

    /// Sets what a member says of itself. `None` if the member is unknown or removed.
    pub fn set_attributes(&mut self, id: MemberId, name: String, client_urls: Vec<String>) -> Option<&Member> {
        let member = self.members.get_mut(&id)?;
        member.name = name;
        member.client_urls = client_urls;
        Some(member)
    }

    fn check_id(&self, id: MemberId) -> Result<(), ChangeError> {
        if self.removed.contains(&id) { Err(ChangeError::IdRemoved) } else { Ok(()) }
    }

    fn check_urls(&self, member: &Member) -> Result<(), ChangeError> {
        let others = self.members.values().filter(|m| m.id != member.id);
        let taken = others.flat_map(|m| &m.peer_urls).any(|url| member.peer_urls.contains(url));
        if taken { Err(ChangeError::PeerUrlExists) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, url: &str, is_learner: bool) -> Member {
        Member { id: MemberId(id), peer_urls: vec![url.into()], is_learner, ..Member::default() }
    }

    fn cluster() -> Cluster {
        let mut c = Cluster::new(ClusterId(9), MemberId(1), BTreeMap::new(), BTreeSet::new(), None);
        c.add(member(1, "http://a", false)).unwrap();
        c
    }

    #[test]
    fn changes_are_checked() {
        let mut c = cluster();
        assert_eq!(c.add(member(1, "http://b", false)), Err(ChangeError::IdExists));
        assert_eq!(c.add(member(2, "http://a", false)), Err(ChangeError::PeerUrlExists));
        c.add(member(2, "http://b", true)).unwrap();
        assert_eq!(c.voters().collect::<Vec<_>>(), [MemberId(1)]);
        assert_eq!(c.promote(MemberId(1)), Err(ChangeError::NotLearner));
        c.promote(MemberId(2)).unwrap();
        assert_eq!(c.voters().count(), 2);
        c.remove(MemberId(2)).unwrap();
        assert_eq!(c.remove(MemberId(2)), Err(ChangeError::IdRemoved));
        assert_eq!(c.add(member(2, "http://c", false)), Err(ChangeError::IdRemoved));
        assert_eq!(c.promote(MemberId(3)), Err(ChangeError::IdNotFound));
    }

    #[test]
    fn an_update_keeps_the_learner_flag() {
        let mut c = cluster();
        c.add(member(2, "http://b", true)).unwrap();
        assert_eq!(c.update_peer_urls(&member(2, "http://a", false)).err(), Some(ChangeError::PeerUrlExists));
        assert!(c.update_peer_urls(&member(2, "http://c", false)).unwrap().is_learner);
    }
}
