//! Messages from the network: what may reach the core.
//!
//! The core panics on messages that no sound member sends. Nothing from the network reaches it unchecked.
//!
//! Known gaps of raft 0.7, which the checks here and elsewhere close. A change of the crate's version must go through
//! them:
//! - Term 0 means "a message of this process": it bypasses every comparison of terms (`Raft::step`), whoever sent it. A
//!   follower that forwards a message with a term panics (`RaftCore::send`). `check_term` lets term 0 pass only for what
//!   is sent without a term.
//! - The term of an index outside of the log is 0, without an error (`RaftLog::term`), and equals a missing `log_term`
//!   or snapshot term: the core then commits what it does not have, and panics (`RaftLog::maybe_append`,
//!   `Raft::restore`).
//! - A leader takes an acknowledgement of entries that it does not have (`Progress::maybe_update`), and then sends
//!   appends that follow such an entry, with a `log_term` of 0.
//! - Indices and terms are added to without a check for overflow (`Progress::maybe_decr_to`, `Raft::campaign`).
//! - A configuration in a snapshot that cannot be restored ends in a panic (`confchange::restore`), for example one in
//!   which an id is both a voter and a learner.
//! - Messages of an id that is not a member, or under this member's own id, reach code that counts on a progress
//!   (`Raft::handle_append_response`, `Raft::poll`).
//! - Reads are keyed by the context that the asker has chosen (`ReadOnly::add_request`); see `make_unique`.
//! - A leader that is removed goes on counting itself; see `Core::step_down_if_removed`.
//! - `try_batching` ignores `max_size_per_msg`; see `outbound`.
//! - Kinds of configuration changes have other numbers than in etcd; see `convert`.
//! - A second configuration change before the first is applied becomes an empty entry; see `Core::awaits_conf_change`.
//!
//! What cannot be checked here is a lie: a heartbeat or an acknowledgement from a member that breaks the protocol can
//! commit entries that no quorum has, as in etcd.

use std::collections::BTreeSet;

use proto::raftpb;
use raft::{
    StateRole,
    eraftpb::{Message, MessageType},
};

use super::Core;
use crate::convert;

/// No cluster reaches a term or an index above this one, and the core can add to it.
const NUMBER_MAX: u64 = u64::MAX >> 1;

/// Bytes put before the context of another member's read.
pub(super) const PREFIX: usize = 8;

/// Why a message is not given to the core.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("a message of type {0:?} does not come over the network")]
    Local(raftpb::MessageType),
    #[error("an answer from {0:x}, which is not a member")]
    Stranger(u64),
    #[error("a malformed message: {0}")]
    Malformed(&'static str),
    /// Going on would mean to have forgotten what this member once said it has.
    #[error(
        "the leader says that index {commit} is committed, but the log of this member ends at {last}: \
         entries are lost from its log; remove the member and add it again with an empty data dir"
    )]
    LogLost { commit: u64, last: u64 },
}

impl Core {
    /// A message from another member.
    pub(crate) fn handle_message(&mut self, message: &raftpb::Message) -> Result<(), Refused> {
        let Some(mut core) = convert::message_to_core(message) else { return Err(Refused::Local(message.r#type())) };
        self.check(&core)?;
        self.note_farewell(&core);
        if self.raw.raft.state != StateRole::Leader && !self.may_forward(&mut core) {
            return Ok(());
        }
        if core.get_msg_type() == MessageType::MsgReadIndex {
            self.make_unique(&mut core);
            self.handle_asked(core);
            return Ok(());
        }
        // Refusals of the core (no leader, a transfer under way) are answered by the sender's own time-out.
        if let Err(error) = self.raw.raft.step(core) {
            tracing::debug!(%error, kind = ?message.r#type(), from = message.from(), "dropped a message");
        }
        self.draw_timeout();
        Ok(())
    }

    /// A follower hands on what was meant for a leader, under the name of the first sender. Should that one have been
    /// removed, the leader answers that the sender is, and the wrong member stops for good. So proposals go on under our
    /// own name; the others are asked again by their sender.
    fn may_forward(&self, m: &mut Message) -> bool {
        match m.get_msg_type() {
            MessageType::MsgPropose => {
                m.from = self.raw.raft.id;
                true
            }
            MessageType::MsgReadIndex | MessageType::MsgTransferLeader => false,
            _ => true,
        }
    }

    fn check(&self, m: &Message) -> Result<(), Refused> {
        let raft = &self.raw.raft;
        check_numbers(m)?;
        check_term(m)?;
        check_sender(m, raft.id)?;
        match m.get_msg_type() {
            MessageType::MsgAppendResponse
            | MessageType::MsgHeartbeatResponse
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVoteResponse
                if raft.prs().get(m.from).is_none() =>
            {
                Err(Refused::Stranger(m.from))
            }
            MessageType::MsgAppendResponse if self.acknowledges_too_much(m) => {
                Err(Refused::Malformed("it acknowledges entries that this leader does not have"))
            }
            MessageType::MsgPropose | MessageType::MsgReadIndex if m.entries.is_empty() => {
                Err(Refused::Malformed("it has no entries"))
            }
            MessageType::MsgAppend => check_append(m),
            MessageType::MsgHeartbeat if m.term >= raft.term && m.commit > raft.raft_log.last_index() => {
                Err(Refused::LogLost { commit: m.commit, last: raft.raft_log.last_index() })
            }
            MessageType::MsgSnapshot => check_snapshot(m),
            MessageType::MsgTransferLeader if raft.state == StateRole::Leader && raft.prs().get(m.from).is_none() => {
                Err(Refused::Stranger(m.from))
            }
            _ => Ok(()),
        }
    }

    /// A follower acknowledges what its leader has sent in this term, and a leader loses nothing of it.
    fn acknowledges_too_much(&self, m: &Message) -> bool {
        let raft = &self.raw.raft;
        raft.state == StateRole::Leader && m.term == raft.term && !m.reject && m.index > raft.raft_log.last_index()
    }

    /// A follower may ask twice with one context. The core keys reads by it, and would take a confirmation that was
    /// on its way for the first as one for the second, which is a stale read if a new leader came between them.
    fn make_unique(&mut self, message: &mut Message) {
        self.next_context += 1;
        for entry in message.mut_entries().iter_mut().take(1) {
            entry.data = [&self.next_context.to_be_bytes()[..], &entry.data[..]].concat().into();
        }
    }
}

fn check_numbers(m: &Message) -> Result<(), Refused> {
    let metadata = m.get_snapshot().get_metadata();
    let numbers = [m.term, m.index, m.log_term, m.commit, m.reject_hint, metadata.index];
    if numbers.iter().any(|number| *number > NUMBER_MAX) {
        return Err(Refused::Malformed("it has a term or an index that no cluster reaches"));
    }
    Ok(())
}

/// Questions and proposals pass from member to member without a term; all else is of one.
fn check_term(m: &Message) -> Result<(), Refused> {
    match m.get_msg_type() {
        MessageType::MsgPropose | MessageType::MsgReadIndex if m.term > 0 => {
            Err(Refused::Malformed("it has a term, although proposals and questions have none"))
        }
        MessageType::MsgPropose | MessageType::MsgReadIndex => Ok(()),
        _ if m.term == 0 => Err(Refused::Malformed("it has no term")),
        _ => Ok(()),
    }
}

/// A member of etcd may send back what it was asked to forward, so questions and proposals may come from this member.
fn check_sender(m: &Message, local: u64) -> Result<(), Refused> {
    let may_be_forwarded = matches!(
        m.get_msg_type(),
        MessageType::MsgPropose | MessageType::MsgReadIndex | MessageType::MsgTransferLeader
    );
    if m.from == 0 || (m.from == local && !may_be_forwarded) {
        return Err(Refused::Malformed("it names no other member as its sender"));
    }
    Ok(())
}

fn check_append(m: &Message) -> Result<(), Refused> {
    if m.index > 0 && m.log_term == 0 {
        return Err(Refused::Malformed("it follows an entry without a term"));
    }
    // Only the place before the first entry has no term.
    let mut term = m.log_term.max(1);
    for (entry, index) in m.entries.iter().zip(m.index + 1..) {
        if entry.index != index || entry.term < term || entry.term > m.term {
            return Err(Refused::Malformed("its entries do not follow one another"));
        }
        term = entry.term;
    }
    Ok(())
}

fn check_snapshot(m: &Message) -> Result<(), Refused> {
    let metadata = m.get_snapshot().get_metadata();
    if metadata.index == 0 || metadata.term == 0 || metadata.term > m.term {
        return Err(Refused::Malformed("its snapshot has no valid index and term"));
    }
    let members = metadata.get_conf_state();
    if members.get_voters().is_empty() {
        return Err(Refused::Malformed("its snapshot names no members"));
    }
    let is_joint = !members.get_voters_outgoing().is_empty() || !members.get_learners_next().is_empty();
    if is_joint || members.auto_leave {
        return Err(Refused::Malformed("its snapshot has a joint configuration"));
    }
    let mut ids = BTreeSet::new();
    if !members.get_voters().iter().chain(members.get_learners()).all(|id| *id != 0 && ids.insert(*id)) {
        return Err(Refused::Malformed("its snapshot names a member twice, or one without an id"));
    }
    Ok(())
}
