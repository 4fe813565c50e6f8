//! Messages from the core as they go on the wire: redundant ones are left out, and appends are joined up to a limit.
//!
//! The crate could join appends itself (`batch_append`), but `try_batching` in raft 0.7 ignores `max_size_per_msg`: for
//! a member that lags, it makes one message of all that may be on its way to the member, 512 times the limit and more.

use std::collections::BTreeMap;

use proto::raftpb;
use raft::eraftpb::{Message, MessageType};

use super::{MESSAGE_BYTES_MAX, inbound::PREFIX};
use crate::convert;

/// An entry takes at most this many bytes in a message besides its data.
const ENTRY_HEAD_BYTES_MAX: u64 = 32;

/// Messages as they go on the wire. The last of several answers to appends makes those before it redundant, and so does
/// the last of several heartbeats that ask a member to confirm reads.
pub(super) fn outgoing(messages: Vec<Message>) -> Vec<raftpb::Message> {
    let mut out: Vec<raftpb::Message> = Vec::with_capacity(messages.len());
    let mut appends = Appends::default();
    for mut message in messages {
        if message.get_msg_type() == MessageType::MsgReadIndexResp {
            strip_prefix(&mut message);
        }
        let message = convert::message_from_core(&message);
        match message.r#type() {
            raftpb::MessageType::MsgApp => appends.join_or_push(message, &mut out),
            _ => match out.iter_mut().rev().find(|earlier| is_redundant(earlier, &message)) {
                Some(earlier) => *earlier = message,
                None => out.push(message),
            },
        }
    }
    out
}

/// Whether `earlier` need not be sent because of `later`.
fn is_redundant(earlier: &raftpb::Message, later: &raftpb::Message) -> bool {
    let same = (earlier.r#type, earlier.to, earlier.term) == (later.r#type, later.to, later.term);
    same && match later.r#type() {
        raftpb::MessageType::MsgAppResp => !earlier.reject() && !later.reject() && earlier.index() <= later.index(),
        raftpb::MessageType::MsgHeartbeat => earlier.commit() <= later.commit() && later.context.is_some(),
        _ => false,
    }
}

/// By receiver: where the last append to it is among the messages, and how many bytes its entries have.
#[derive(Default)]
struct Appends(BTreeMap<u64, (usize, u64)>);

impl Appends {
    /// Adds an append to the one before it if it continues that one and both fit into one message.
    fn join_or_push(&mut self, mut message: raftpb::Message, out: &mut Vec<raftpb::Message>) {
        let bytes = message.entries.iter().map(bytes_of).sum::<u64>();
        if let Some((at, before)) = self.0.get_mut(&message.to()) {
            let earlier = &mut out[*at];
            let fits = message.entries.is_empty() || *before + bytes <= MESSAGE_BYTES_MAX;
            if fits && continues(&message, earlier) {
                earlier.entries.append(&mut message.entries);
                earlier.commit = message.commit;
                *before += bytes;
                return;
            }
        }
        self.0.insert(message.to(), (out.len(), bytes));
        out.push(message);
    }
}

fn bytes_of(entry: &raftpb::Entry) -> u64 {
    entry.data.as_ref().map_or(0, |data| data.len() as u64) + ENTRY_HEAD_BYTES_MAX
}

/// Whether the entries of `later` follow those of `earlier`.
fn continues(later: &raftpb::Message, earlier: &raftpb::Message) -> bool {
    let end = earlier.entries.last().map_or((earlier.index(), earlier.log_term()), |last| (last.index(), last.term()));
    earlier.term == later.term && earlier.commit() <= later.commit() && end == (later.index(), later.log_term())
}

fn strip_prefix(message: &mut Message) {
    for entry in message.mut_entries().iter_mut() {
        if entry.data.len() >= PREFIX {
            entry.data = entry.data.slice(PREFIX..);
        }
    }
}

#[cfg(test)]
mod tests {
    use raft::eraftpb::Entry;

    use super::*;

    fn append(to: u64, index: u64, sizes: &[usize], commit: u64) -> Message {
        let mut message = Message { to, from: 1, term: 2, index, log_term: 2, commit, ..Default::default() };
        message.set_msg_type(MessageType::MsgAppend);
        let entry = |(size, index): (&usize, u64)| {
            let data = vec![0; *size].into();
            Entry { index, term: 2, data, ..Default::default() }
        };
        message.set_entries(sizes.iter().zip(index + 1..).map(entry).collect::<Vec<_>>().into());
        message
    }

    /// Receiver, index, number of entries and commit index of each message.
    fn sent(messages: Vec<Message>) -> Vec<(u64, u64, usize, u64)> {
        outgoing(messages).iter().map(|m| (m.to(), m.index(), m.entries.len(), m.commit())).collect()
    }

    #[test]
    fn appends_that_follow_one_another_are_one_message() {
        let (first, other) = (append(2, 4, &[1, 1], 3), append(3, 6, &[1], 3));
        let messages = vec![first, other, append(2, 6, &[1], 5), append(2, 7, &[], 6)];
        assert_eq!(sent(messages), [(2, 4, 3, 6), (3, 6, 1, 3)]);
    }

    #[test]
    fn appends_that_do_not_follow_one_another_stay_apart() {
        let mut other_term = append(2, 5, &[1], 3);
        other_term.log_term = 1;
        let messages = vec![append(2, 4, &[1], 3), append(2, 4, &[1], 3), append(2, 6, &[1], 3), other_term];
        assert_eq!(sent(messages), [(2, 4, 1, 3), (2, 4, 1, 3), (2, 6, 1, 3), (2, 5, 1, 3)]);
    }

    #[test]
    fn appends_are_joined_up_to_the_limit() {
        let third = MESSAGE_BYTES_MAX as usize / 3;
        let full = [append(2, 4, &[third], 3), append(2, 5, &[third], 3), append(2, 6, &[third], 3)];
        assert_eq!(sent(full.to_vec()), [(2, 4, 2, 3), (2, 6, 1, 3)]);
        let large = [append(2, 4, &[3 * third], 3), append(2, 5, &[3 * third], 3), append(2, 6, &[], 9)];
        assert_eq!(sent(large.to_vec()), [(2, 4, 1, 3), (2, 5, 1, 9)], "a commit index takes no room");
    }
}
