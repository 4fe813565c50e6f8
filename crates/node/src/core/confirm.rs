//! Linearizable reads: who confirms that the leader still leads.
//!
//! The index for a read is the leader's commit index, provided that no later leader had been elected when the read began. A
//! round of heartbeats shows it: a quorum, the leader among it, was in the leader's term afterwards.
//!
//! A question of another voter shows as much of that voter, if it says in which term it was when it asked. Where that voter
//! and the leader are a quorum (of two or three voters), no later leader can have been elected before the question: one
//! of the two would have been in its term. So the question is answered at once, without a round. This relies on terms
//! alone, not on clocks, and holds however long the question was on its way.

use raft::{
    StateRole,
    eraftpb::{Message, MessageType},
};

use super::Core;

/// Reads that wait at a leader; more are dropped, and asked again.
const READS_MAX: usize = 4096;

/// Begins the context of a question that says the asker's term. Real etcd leaves this field of a question empty, and does
/// not look at it.
const TERM_MARK: &[u8] = b"term";

impl Core {
    /// Asks for an index at which a read is linearizable. `context` must never be used twice, by no member: the core
    /// would take a late confirmation of the first for one of the second.
    pub(crate) fn handle_read_index(&mut self, context: u64) {
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgReadIndex);
        let entry = raft::eraftpb::Entry { data: context.to_be_bytes().to_vec().into(), ..Default::default() };
        message.set_entries(vec![entry].into());
        if self.raw.raft.state == StateRole::Leader {
            self.gather(message);
        } else {
            message.context = [TERM_MARK, &self.raw.raft.term.to_be_bytes()].concat().into();
            // Refused only where it is of no use: there is no leader, or the read is asked again.
            let _ = self.raw.raft.step(message);
        }
    }

    /// Another member asks this leader.
    pub(super) fn handle_asked(&mut self, message: Message) {
        if self.is_confirmed_by_asker(&message) {
            self.answer(message);
        } else {
            self.gather(message);
        }
    }

    /// Whether the question shows that no later leader had been elected when it was asked, and this one knows all that
    /// earlier ones have committed.
    fn is_confirmed_by_asker(&self, question: &Message) -> bool {
        let raft = &self.raw.raft;
        raft.state == StateRole::Leader
            && asked_in_term(question) == Some(raft.term)
            && raft.commit_to_current_term()
            && raft.prs().has_quorum(&[raft.id, question.from].into_iter().collect())
    }

    fn answer(&mut self, mut question: Message) {
        let raft = &mut self.raw.raft;
        let mut message = Message { to: question.from, from: raft.id, term: raft.term, ..Default::default() };
        message.set_msg_type(MessageType::MsgReadIndexResp);
        message.index = raft.raft_log.committed;
        message.set_entries(question.take_entries());
        raft.msgs.push(message);
    }

    /// A leader gathers the reads of all members: one round of heartbeats confirms them all.
    fn gather(&mut self, message: Message) {
        if self.waiting_reads.len() < READS_MAX {
            self.waiting_reads.push(message);
        }
    }

    /// Begins a round for the reads that wait, unless one is under way or this leader has not committed in its term,
    /// before which it cannot tell. A confirmation of the last of them is one of all.
    pub(super) fn begin_reads(&mut self) {
        let raft = &mut self.raw.raft;
        if self.waiting_reads.is_empty() {
            return;
        }
        if raft.state != StateRole::Leader {
            self.waiting_reads.clear();
        } else if raft.commit_to_current_term() && raft.pending_read_count() == 0 {
            for message in std::mem::take(&mut self.waiting_reads) {
                let _ = raft.step(message);
            }
        }
    }
}

fn asked_in_term(question: &Message) -> Option<u64> {
    let term = question.context.strip_prefix(TERM_MARK)?;
    Some(u64::from_be_bytes(term.try_into().ok()?))
}
