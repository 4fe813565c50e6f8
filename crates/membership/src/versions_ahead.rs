//! What a leader may append: asked for its own and for forwarded proposals.
//!
//! The cluster version that counts is the lowest of the applied one and of every change of it that is in the log and
//! not applied yet: when an entry that is let in now is applied, one of those is the version.

use std::collections::VecDeque;

use prost::Message;
use proto::{Version, etcdserverpb::InternalRaftRequest, raftpb};

use crate::{NotYet, may_log};

/// Version changes in the log that are not applied yet, by index.
#[derive(Debug, Default)]
pub struct VersionsAhead(VecDeque<(u64, Version)>);

impl VersionsAhead {
    /// Takes note of entries that were appended; they replace those of the same and later indices.
    pub fn note(&mut self, entries: &[raftpb::Entry]) {
        if let Some(first) = entries.first() {
            while self.0.back().is_some_and(|(index, _)| *index >= first.index()) {
                self.0.pop_back();
            }
        }
        let changes = entries.iter().filter_map(|entry| Some((entry.index(), version_set(entry)?)));
        self.0.extend(changes);
    }

    /// Takes note of an entry that will be appended, until [`VersionsAhead::note`] knows its index.
    pub fn expect(&mut self, entry: &raftpb::Entry) {
        self.0.extend(version_set(entry).map(|version| (u64::MAX, version)));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn applied(&mut self, index: u64) {
        while self.0.front().is_some_and(|(at, _)| *at <= index) {
            self.0.pop_front();
        }
    }

    /// Whether an entry may be appended behind what is in the log.
    pub fn may_log(&self, entry: &raftpb::Entry, applied: Option<Version>) -> Result<(), NotYet> {
        let ahead = self.0.iter().filter(|_| rule!(VersionsAheadCount, true, false));
        let lowest = ahead.map(|(_, version)| Some(*version)).chain([applied]).min();
        rule!(AppendIsChecked, may_log(entry, lowest.flatten()), Ok(()))
    }
}

/// The version that an entry sets, if it does.
fn version_set(entry: &raftpb::Entry) -> Option<Version> {
    let data = entry.data.as_ref().filter(|_| entry.r#type() == raftpb::EntryType::EntryNormal)?;
    // The field's key is there in the bytes if the field is; few other entries have these bytes by chance.
    if !may_have_key(&data[..data.len().min(HEAD_MAX)]) {
        return None;
    }
    let request = InternalRaftRequest::decode(data.clone()).ok()?;
    // A decision about features names the version that it is for, and moves nothing.
    request.cluster_version_set.filter(|set| set.feature_gates.is_none())?.ver.parse().ok()
}

/// Every entry is asked this.
fn may_have_key(head: &[u8]) -> bool {
    memchr::memchr_iter(KEY[0], head).any(|at| head.get(at + 1) == Some(&KEY[1]))
}

/// `cluster_version_set` is field 1300, of bytes.
const KEY: [u8; 2] = [0xa2, 0x51];
/// A request's id and header come before it.
const HEAD_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use proto::{etcdserverpb::RequestHeader, membershippb::ClusterVersionSetRequest};

    use super::*;

    fn set(index: u64, version: &str) -> raftpb::Entry {
        let request = InternalRaftRequest {
            header: Some(RequestHeader { id: 7, ..Default::default() }),
            cluster_version_set: Some(ClusterVersionSetRequest { ver: version.into(), feature_gates: None }),
            ..Default::default()
        };
        raftpb::Entry { index: Some(index), data: Some(request.encode_to_vec().into()), ..Default::default() }
    }

    #[test]
    fn a_change_on_its_way_counts() {
        let mut ahead = VersionsAhead::default();
        ahead.note(&[set(5, "3.7.0")]);
        assert_eq!(ahead.0, [(5, Version::new(3, 7))]);
        ahead.note(&[set(6, "3.8.0")]);
        // A new leader's entries replace them.
        ahead.note(&[raftpb::Entry { index: Some(5), ..Default::default() }]);
        assert!(ahead.0.is_empty());
        ahead.note(&[set(6, "3.8.0")]);
        ahead.applied(6);
        assert!(ahead.0.is_empty());
    }

    #[test]
    fn a_change_counts_before_it_is_written() {
        let mut ahead = VersionsAhead::default();
        let mut newer = set(0, "3.8.0");
        let decision = proto::membershippb::ClusterFeatureGateSetRequest::default();
        let mut request = InternalRaftRequest::decode(newer.data.take().unwrap()).unwrap();
        request.cluster_version_set.as_mut().unwrap().feature_gates = Some(decision);
        newer.data = Some(request.encode_to_vec().into());
        let applied = Some(Version::new(3, 8));
        assert!(ahead.may_log(&newer, applied).is_ok());
        ahead.expect(&set(0, "3.7.0"));
        assert!(ahead.may_log(&newer, applied).is_err());
        ahead.note(&[set(9, "3.7.0")]);
        assert_eq!(ahead.0, [(9, Version::new(3, 7))]);
        // A decision about features names a version and changes none.
        ahead.note(&[raftpb::Entry { index: Some(9), ..newer }]);
        assert!(ahead.0.is_empty());
    }
}
