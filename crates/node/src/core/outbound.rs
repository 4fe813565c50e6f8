//! Messages from the core as they go on the wire.

use proto::raftpb;
use raft::eraftpb::{Message, MessageType};

use super::inbound::PREFIX;
use crate::convert;

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
