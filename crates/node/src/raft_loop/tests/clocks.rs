//! Raft's view is ahead of the applied state: what must not be concluded from one about the other.

use raft::eraftpb::{ConfChange, ConfChangeType};

use super::*;

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

    fn propose(&mut self, judged: Judged, data: &[u8]) {
        self.inputs.send(Input::Propose { id: 1, data: Bytes::copy_from_slice(data), judged }).unwrap();
        self.pass();
    }
}

fn change(kind: ConfChangeType, id: u64) -> ConfChange {
    let mut change = ConfChange::default();
    change.set_change_type(kind);
    change.node_id = id;
    change
}

/// A learner applies what is committed at its own pace, and answers writes that were sent through it. After its removal the
/// leader is alone, but may still be behind the learner.
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
