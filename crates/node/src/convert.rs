//! Between etcd's raftpb, which is on the wire and on disk, and the types of the `raft` crate, which never leave this
//! crate.
//!
//! Configuration changes travel through the core as opaque bytes: the crate numbers their kinds differently (etcd's 2 is
//! an update and its 3 a learner, the crate's 2 is a learner) and would panic on etcd's. An entry of that type has
//! its bytes in `context` and no data; the core only needs to know that there is a change.

use bytes::Bytes;
use proto::raftpb;
use raft::eraftpb;

pub(crate) fn entry_to_core(entry: &raftpb::Entry) -> eraftpb::Entry {
    let mut out = eraftpb::Entry::default();
    let data = entry.data.clone().unwrap_or_default();
    out.set_entry_type(match entry.r#type() {
        raftpb::EntryType::EntryNormal => eraftpb::EntryType::EntryNormal,
        raftpb::EntryType::EntryConfChange => eraftpb::EntryType::EntryConfChange,
        raftpb::EntryType::EntryConfChangeV2 => eraftpb::EntryType::EntryConfChangeV2,
    });
    if entry.r#type() == raftpb::EntryType::EntryNormal {
        out.data = data;
    } else {
        out.context = data;
    }
    out.term = entry.term();
    out.index = entry.index();
    out
}

pub(crate) fn entry_from_core(entry: &eraftpb::Entry) -> raftpb::Entry {
    let (kind, data) = match entry.get_entry_type() {
        eraftpb::EntryType::EntryNormal => (raftpb::EntryType::EntryNormal, &entry.data),
        eraftpb::EntryType::EntryConfChange => (raftpb::EntryType::EntryConfChange, &entry.context),
        eraftpb::EntryType::EntryConfChangeV2 => (raftpb::EntryType::EntryConfChangeV2, &entry.context),
    };
    raftpb::Entry {
        r#type: Some(kind as i32),
        term: Some(entry.term),
        index: Some(entry.index),
        // etcd writes no data field for an empty entry.
        data: (!data.is_empty()).then(|| data.clone()),
    }
}

/// `None` for kinds that never come over the network.
pub(crate) fn message_to_core(message: &raftpb::Message) -> Option<eraftpb::Message> {
    let mut out = eraftpb::Message::default();
    out.set_msg_type(message_type_to_core(message.r#type())?);
    out.to = message.to();
    out.from = message.from();
    out.term = message.term();
    out.log_term = message.log_term();
    out.index = message.index();
    out.commit = message.commit();
    out.reject = message.reject();
    out.reject_hint = message.reject_hint();
    out.context = message.context.clone().unwrap_or_default();
    out.set_entries(message.entries.iter().map(entry_to_core).collect::<Vec<_>>().into());
    if let Some(metadata) = message.snapshot.as_ref().and_then(|s| s.metadata.as_ref()) {
        out.set_snapshot(snapshot_to_core(metadata));
    }
    Some(out)
}

pub(crate) fn message_from_core(message: &eraftpb::Message) -> raftpb::Message {
    let snapshot = message.has_snapshot().then(|| snapshot_from_core(message.get_snapshot()));
    raftpb::Message {
        r#type: Some(message_type_from_core(message.get_msg_type()) as i32),
        to: Some(message.to),
        from: Some(message.from),
        term: Some(message.term),
        log_term: Some(message.log_term),
        index: Some(message.index),
        entries: message.get_entries().iter().map(entry_from_core).collect(),
        commit: Some(message.commit),
        snapshot,
        reject: Some(message.reject),
        reject_hint: Some(message.reject_hint),
        context: (!message.context.is_empty()).then(|| message.context.clone()),
        vote: None,
        responses: Vec::new(),
    }
}

fn message_type_to_core(kind: raftpb::MessageType) -> Option<eraftpb::MessageType> {
    use eraftpb::MessageType as To;
    use raftpb::MessageType as From;
    Some(match kind {
        From::MsgProp => To::MsgPropose,
        From::MsgApp => To::MsgAppend,
        From::MsgAppResp => To::MsgAppendResponse,
        From::MsgVote => To::MsgRequestVote,
        From::MsgVoteResp => To::MsgRequestVoteResponse,
        From::MsgSnap => To::MsgSnapshot,
        From::MsgHeartbeat => To::MsgHeartbeat,
        From::MsgHeartbeatResp => To::MsgHeartbeatResponse,
        From::MsgTransferLeader => To::MsgTransferLeader,
        From::MsgTimeoutNow => To::MsgTimeoutNow,
        From::MsgReadIndex => To::MsgReadIndex,
        From::MsgReadIndexResp => To::MsgReadIndexResp,
        From::MsgPreVote => To::MsgRequestPreVote,
        From::MsgPreVoteResp => To::MsgRequestPreVoteResponse,
        From::MsgHup
        | From::MsgBeat
        | From::MsgUnreachable
        | From::MsgSnapStatus
        | From::MsgCheckQuorum
        | From::MsgStorageAppend
        | From::MsgStorageAppendResp
        | From::MsgStorageApply
        | From::MsgStorageApplyResp
        | From::MsgForgetLeader => return None,
    })
}

/// The numbers of the kinds are the same on both sides; only the names differ.
fn message_type_from_core(kind: eraftpb::MessageType) -> raftpb::MessageType {
    raftpb::MessageType::try_from(kind as i32).unwrap_or(raftpb::MessageType::MsgHup)
}

fn snapshot_to_core(metadata: &raftpb::SnapshotMetadata) -> eraftpb::Snapshot {
    let mut out = eraftpb::Snapshot::default();
    let to = out.mut_metadata();
    to.index = metadata.index();
    to.term = metadata.term();
    to.set_conf_state(conf_state_to_core(&metadata.conf_state.clone().unwrap_or_default()));
    out
}

pub(crate) fn snapshot_from_core(snapshot: &eraftpb::Snapshot) -> raftpb::Snapshot {
    let from = snapshot.get_metadata();
    let metadata = raftpb::SnapshotMetadata {
        conf_state: Some(conf_state_from_core(from.get_conf_state())),
        index: Some(from.index),
        term: Some(from.term),
    };
    raftpb::Snapshot { data: None, metadata: Some(metadata) }
}

pub(crate) fn hard_state_to_core(state: &raftpb::HardState) -> eraftpb::HardState {
    eraftpb::HardState { term: state.term(), vote: state.vote(), commit: state.commit(), ..Default::default() }
}

pub(crate) fn hard_state_from_core(state: &eraftpb::HardState) -> raftpb::HardState {
    raftpb::HardState { term: Some(state.term), vote: Some(state.vote), commit: Some(state.commit) }
}

pub(crate) fn conf_state_to_core(state: &raftpb::ConfState) -> eraftpb::ConfState {
    eraftpb::ConfState {
        voters: state.voters.clone(),
        learners: state.learners.clone(),
        voters_outgoing: state.voters_outgoing.clone(),
        learners_next: state.learners_next.clone(),
        auto_leave: state.auto_leave(),
        ..Default::default()
    }
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

/// A change as the `raft` crate numbers it. An update of peer URLs, and a change that apply has refused, are changes of
/// node 0, which the core skips.
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

pub(crate) fn conf_change_proposal(change: Bytes) -> eraftpb::Entry {
    let mut entry = eraftpb::Entry { context: change, ..Default::default() };
    entry.set_entry_type(eraftpb::EntryType::EntryConfChange);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: raftpb::EntryType) -> raftpb::Entry {
        raftpb::Entry {
            r#type: Some(kind as i32),
            term: Some(3),
            index: Some(9),
            data: Some(Bytes::from_static(b"\x10\x03")),
        }
    }

    #[test]
    fn entries_come_back_as_they_went() {
        for kind in [raftpb::EntryType::EntryNormal, raftpb::EntryType::EntryConfChange] {
            assert_eq!(entry_from_core(&entry_to_core(&entry(kind))), entry(kind));
        }
        assert!(entry_to_core(&entry(raftpb::EntryType::EntryConfChange)).data.is_empty(), "etcd's bytes stay opaque");
    }

    #[test]
    fn messages_come_back_as_they_went() {
        for number in 2..=18 {
            let kind = raftpb::MessageType::try_from(number).unwrap();
            let message = raftpb::Message {
                r#type: Some(number),
                to: Some(1),
                from: Some(2),
                term: Some(3),
                log_term: Some(4),
                index: Some(5),
                entries: vec![entry(raftpb::EntryType::EntryConfChange)],
                commit: Some(6),
                reject: Some(true),
                reject_hint: Some(7),
                context: Some(Bytes::from_static(b"c")),
                snapshot: Some(raftpb::Snapshot {
                    data: None,
                    metadata: Some(raftpb::SnapshotMetadata {
                        conf_state: Some(raftpb::ConfState {
                            voters: vec![1, 2],
                            learners: vec![3],
                            auto_leave: Some(false),
                            ..Default::default()
                        }),
                        index: Some(8),
                        term: Some(2),
                    }),
                }),
                ..Default::default()
            };
            match message_to_core(&message) {
                Some(core) => assert_eq!(message_from_core(&core), message, "{kind:?}"),
                None => assert!(matches!(number, 10..=12), "{kind:?} must pass"),
            }
        }
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
