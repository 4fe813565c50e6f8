//! Raft's view is ahead of the applied state: what must not be concluded from one about the other.

use proto::raftpb::MessageType;
use raft::eraftpb::{ConfChange, ConfChangeType};

use super::*;

const V3_8: Version = Version::new(3, 8);

impl Bench {
    /// As the apply loop does after a batch.
    fn applied(&mut self, index: u64) {
        self.shared.set_applied_term(self.raft.parts.core.status().term);
        self.shared.applied.advance(index);
        self.pass();
    }

    fn pass(&mut self) {
        self.raft.pass(None, self.raft.now).unwrap();
    }

    fn receive(&mut self, message: raftpb::Message) {
        self.inputs.send(Input::Message(Box::new(message))).unwrap();
        self.pass();
    }

    /// How many entries the log gets from a proposal of this member and from one that another member forwards.
    fn logged(&mut self, data: &Bytes) -> [u64; 2] {
        let entry = raftpb::Entry { data: Some(data.clone()), ..Default::default() };
        let forwarded = raftpb::Message { entries: vec![entry], ..from_2(MessageType::MsgProp, None) };
        let begin = self.raft.parts.core.status().last;
        self.propose(Judged::At(Some(V3_8)), data);
        let between = self.raft.parts.core.status().last;
        self.receive(forwarded);
        [between - begin, self.raft.parts.core.status().last - between]
    }

    fn propose(&mut self, judged: Judged, data: &[u8]) {
        self.inputs.send(Input::Propose { id: 1, data: Bytes::copy_from_slice(data), judged }).unwrap();
        self.pass();
    }
}

fn from_2(kind: MessageType, term: Option<u64>) -> raftpb::Message {
    raftpb::Message { r#type: Some(kind as i32), from: Some(2), to: Some(1), term, ..Default::default() }
}

/// A snapshot of index 50 and term 3, in which this member is the only voter.
fn snapshot() -> raftpb::Message {
    let conf_state = Some(raftpb::ConfState { voters: vec![1], learners: vec![2], ..Default::default() });
    let metadata = Some(raftpb::SnapshotMetadata { conf_state, index: Some(50), term: Some(3) });
    let snapshot = Some(raftpb::Snapshot { data: None, metadata });
    raftpb::Message { snapshot, ..from_2(MessageType::MsgSnap, Some(3)) }
}

fn change(kind: ConfChangeType, id: u64) -> ConfChange {
    let mut change = ConfChange::default();
    change.set_change_type(kind);
    change.node_id = id;
    change
}

/// A learner applies what is committed at its own pace, and answers writes that were sent through it. After its removal
/// the leader is alone, but may still be behind the learner.
#[test]
fn a_lone_leader_asks_nobody_only_after_it_has_applied_what_a_removed_member_may_have() {
    let mut b = bench();
    b.pass();
    b.applied(1);
    assert!(b.shared.may_read_alone());
    b.raft.conf_change(2, &change(ConfChangeType::AddLearnerNode, 2)).unwrap();
    b.propose(Judged::Plain, b"a write through the learner");
    assert_eq!(b.shared.commit(), 2);
    assert!(!b.shared.may_read_alone());
    b.raft.conf_change(3, &change(ConfChangeType::RemoveNode, 2)).unwrap();
    b.pass();
    assert!(!b.shared.may_read_alone(), "the write is not applied here");
    b.applied(2);
    assert!(b.shared.may_read_alone());
    b.propose(Judged::Plain, b"a write of its own");
    assert!(b.shared.may_read_alone(), "nobody else can have applied it");
}

/// The cluster version of a received database may be lower than that of the state which it replaces. A member that
/// leads meanwhile must not append what the cluster cannot apply.
#[test]
fn a_leader_whose_received_database_is_not_in_place_takes_the_version_to_be_the_lowest() {
    let mut b = bench();
    b.pass();
    b.applied(1);
    b.raft.parts.cluster.write().apply_version(1, V3_8);
    assert_eq!(b.logged(&needs_3_8()), [1, 1]);
    b.receive(snapshot());
    b.receive(from_2(MessageType::MsgTimeoutNow, Some(3)));
    assert!(b.shared.standing().leads_in().is_some());
    assert!(b.shared.standing().awaits_database());
    assert_eq!(b.shared.standing().decides_in(), None);
    assert_eq!(b.logged(&needs_3_8()), [0, 0]);
    b.applied(50);
    assert_eq!(b.logged(&needs_3_8()), [1, 1]);
}
