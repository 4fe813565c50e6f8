//! Messages between the core and the network: what may come in, and how it goes out.
//!
//! The core panics on messages that no sound member sends. Nothing from the network reaches it unlooked at.

use proto::raftpb;
use raft::{
    StateRole,
    eraftpb::{Message, MessageType},
};

use super::Core;
use crate::convert;

/// Bytes put before the context of another member's read.
const PREFIX: usize = 8;

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
        match m.get_msg_type() {
            MessageType::MsgAppendResponse
            | MessageType::MsgHeartbeatResponse
            | MessageType::MsgRequestVoteResponse
            | MessageType::MsgRequestPreVoteResponse
                if raft.prs().get(m.from).is_none() =>
            {
                Err(Refused::Stranger(m.from))
            }
            MessageType::MsgPropose | MessageType::MsgReadIndex if m.entries.is_empty() => {
                Err(Refused::Malformed("it has no entries"))
            }
            MessageType::MsgAppend => check_append(m),
            MessageType::MsgHeartbeat if m.term >= raft.term && m.commit > raft.raft_log.last_index() => {
                Err(Refused::LogLost { commit: m.commit, last: raft.raft_log.last_index() })
            }
            MessageType::MsgSnapshot if !names_members(m) => Err(Refused::Malformed("its snapshot names no members")),
            MessageType::MsgTransferLeader if raft.state == StateRole::Leader && raft.prs().get(m.from).is_none() => {
                Err(Refused::Stranger(m.from))
            }
            _ => Ok(()),
        }
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

fn check_append(m: &Message) -> Result<(), Refused> {
    let mut term = m.log_term;
    for (entry, index) in m.entries.iter().zip(m.index + 1..) {
        if entry.index != index || entry.term < term || entry.term > m.term {
            return Err(Refused::Malformed("its entries do not follow one another"));
        }
        term = entry.term;
    }
    Ok(())
}

fn names_members(m: &Message) -> bool {
    let metadata = m.get_snapshot().get_metadata();
    metadata.index > 0 && !metadata.get_conf_state().get_voters().is_empty()
}

/// Messages as they go on the wire. Of several answers to appends the last to a member says all, and so does the last of
/// several heartbeats that ask it to confirm reads.
pub(super) fn outgoing(messages: Vec<Message>) -> Vec<raftpb::Message> {
    let mut out: Vec<raftpb::Message> = Vec::with_capacity(messages.len());
    for mut message in messages {
        if message.get_msg_type() == MessageType::MsgReadIndexResp {
            strip_prefix(&mut message);
        }
        let message = convert::message_from_core(&message);
        match out.iter_mut().rev().find(|earlier| says_all(&message, earlier)) {
            Some(earlier) => *earlier = message,
            None => out.push(message),
        }
    }
    out
}

/// Whether `earlier` need not be sent because of `later`.
fn says_all(later: &raftpb::Message, earlier: &raftpb::Message) -> bool {
    let same = (earlier.r#type, earlier.to, earlier.term) == (later.r#type, later.to, later.term);
    same && match later.r#type() {
        raftpb::MessageType::MsgAppResp => !earlier.reject() && !later.reject() && earlier.index() <= later.index(),
        raftpb::MessageType::MsgHeartbeat => earlier.commit() <= later.commit() && later.context.is_some(),
        _ => false,
    }
}

fn strip_prefix(message: &mut Message) {
    for entry in message.mut_entries().iter_mut() {
        if entry.data.len() >= PREFIX {
            entry.data = entry.data.slice(PREFIX..);
        }
    }
}
