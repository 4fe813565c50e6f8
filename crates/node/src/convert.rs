//! Between etcd's raftpb, which is on the wire and on disk, and the types of the `raft` crate, which never leave this
//! crate.

use bytes::Bytes;
use proto::raftpb;
use raft::eraftpb;

pub(crate) fn entry_to_core(entry: &raftpb::Entry) -> eraftpb::Entry {
    let mut out = eraftpb::Entry::default();
    out.set_entry_type(match entry.r#type() {
        raftpb::EntryType::EntryNormal => eraftpb::EntryType::EntryNormal,
        raftpb::EntryType::EntryConfChange => eraftpb::EntryType::EntryConfChange,
        raftpb::EntryType::EntryConfChangeV2 => eraftpb::EntryType::EntryConfChangeV2,
    });
    out.term = entry.term();
    out.index = entry.index();
    out.data = entry.data.clone().unwrap_or_default();
    out
}

pub(crate) fn entry_from_core(entry: &eraftpb::Entry) -> raftpb::Entry {
    let kind = match entry.get_entry_type() {
        eraftpb::EntryType::EntryNormal => raftpb::EntryType::EntryNormal,
        eraftpb::EntryType::EntryConfChange => raftpb::EntryType::EntryConfChange,
        eraftpb::EntryType::EntryConfChangeV2 => raftpb::EntryType::EntryConfChangeV2,
    };
    raftpb::Entry {
        r#type: Some(kind as i32),
        term: Some(entry.term),
        index: Some(entry.index),
        // etcd writes no data field for an empty entry.
        data: (!entry.data.is_empty()).then(|| entry.data.clone()),
    }
}

pub(crate) fn hard_state_to_core(state: &raftpb::HardState) -> eraftpb::HardState {
    eraftpb::HardState { term: state.term(), vote: state.vote(), commit: state.commit(), ..Default::default() }
}

pub(crate) fn hard_state_from_core(state: &eraftpb::HardState) -> raftpb::HardState {
    raftpb::HardState { term: Some(state.term), vote: Some(state.vote), commit: Some(state.commit) }
}

pub(crate) fn conf_state_from_core(state: &eraftpb::ConfState) -> raftpb::ConfState {
    raftpb::ConfState {
        voters: state.voters.clone(),
        learners: state.learners.clone(),
        voters_outgoing: state.voters_outgoing.clone(),
        learners_next: state.learners_next.clone(),
        auto_leave: Some(state.auto_leave),
    }
}

/// A change as the `raft` crate numbers it: etcd's 2 is an update and its 3 a learner, the crate's 2 is a learner.
/// An update of peer URLs, and a change that apply has refused, are changes of node 0, which the core skips.
pub(crate) fn conf_change_to_core(change: &raftpb::ConfChange, refused: bool) -> eraftpb::ConfChange {
    use raftpb::ConfChangeType as From;
    let mut out = eraftpb::ConfChange { id: change.id(), ..Default::default() };
    let (kind, node_id) = match change.r#type() {
        From::ConfChangeAddNode => (eraftpb::ConfChangeType::AddNode, change.node_id()),
        From::ConfChangeRemoveNode => (eraftpb::ConfChangeType::RemoveNode, change.node_id()),
        From::ConfChangeAddLearnerNode => (eraftpb::ConfChangeType::AddLearnerNode, change.node_id()),
        From::ConfChangeUpdateNode => (eraftpb::ConfChangeType::AddNode, 0),
    };
    out.set_change_type(kind);
    out.node_id = if refused { 0 } else { node_id };
    out
}

pub(crate) fn proposal(data: Bytes) -> eraftpb::Entry {
    eraftpb::Entry { data, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_went() {
        let entry = raftpb::Entry {
            r#type: Some(raftpb::EntryType::EntryConfChange as i32),
            term: Some(3),
            index: Some(9),
            data: Some(Bytes::from_static(b"x")),
        };
        assert_eq!(entry_from_core(&entry_to_core(&entry)), entry);
    }

    #[test]
    fn changes_keep_their_meaning() {
        let change = |kind: raftpb::ConfChangeType| raftpb::ConfChange {
            r#type: Some(kind as i32),
            node_id: Some(5),
            ..Default::default()
        };
        let learner = conf_change_to_core(&change(raftpb::ConfChangeType::ConfChangeAddLearnerNode), false);
        assert_eq!(learner.get_change_type(), eraftpb::ConfChangeType::AddLearnerNode);
        assert_eq!(learner.node_id, 5);
        let update = conf_change_to_core(&change(raftpb::ConfChangeType::ConfChangeUpdateNode), false);
        assert_eq!(update.node_id, 0, "an update must not demote the member");
        let refused = conf_change_to_core(&change(raftpb::ConfChangeType::ConfChangeAddNode), true);
        assert_eq!(refused.node_id, 0);
    }
}
