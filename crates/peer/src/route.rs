//! Which way a message takes, and which need not be sent or may not be taken in. Pure.

use std::collections::BTreeSet;

use membership::{MemberId, NotYet, Reason, may_log};
use proto::{
    Version,
    raftpb::{Entry, Message, MessageType},
};

/// What a member that does not say who it is may be.
const LAST_OF_ETCD: Version = Version::new(3, 7);

/// The ways to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    MsgAppStream,
    MessageStream,
    Pipeline,
}

impl Way {
    /// As etcd's log calls it.
    pub fn name(self) -> &'static str {
        match self {
            Way::MsgAppStream => "streamMsgAppV2",
            Way::MessageStream => "streamMsg",
            Way::Pipeline => "pipeline",
        }
    }
}

/// The way for a message of this type, given which streams are up.
///
/// A snapshot could be large and would hold up what comes behind it, so it never takes a stream.
pub fn pick(kind: MessageType, msgapp_up: bool, message_up: bool) -> Way {
    match kind {
        MessageType::MsgSnap => Way::Pipeline,
        MessageType::MsgApp if msgapp_up => Way::MsgAppStream,
        _ if message_up => Way::MessageStream,
        _ => Way::Pipeline,
    }
}

/// Removes each MsgAppResp that a later one to the same member makes redundant: a follower that has appended more
/// need not acknowledge less.
pub fn drop_redundant(messages: &mut Vec<Message>) {
    let is_response = |m: &Message| m.r#type == Some(MessageType::MsgAppResp as i32);
    if messages.iter().filter(|m| is_response(m)).nth(1).is_none() {
        return;
    }
    let mut seen = BTreeSet::new();
    let mut keep: Vec<bool> = messages.iter().rev().map(|m| !is_response(m) || seen.insert(m.to())).collect();
    messages.retain(|_| keep.pop().unwrap_or(true));
}

/// Takes the proposals out of a message that only members of ours understand, and returns how many there were. Such
/// proposals may go only to a member that has said on that very connection that it is one of ours: a real etcd would
/// write them to the log, and those behind it stop there.
pub fn take_out_newer(message: &mut Message) -> usize {
    let is_newer =
        |entry: &Entry| matches!(may_log(entry, Some(LAST_OF_ETCD)), Err(NotYet { reason: Reason::Newer { .. }, .. }));
    if message.r#type() != MessageType::MsgProp {
        return 0;
    }
    let before = message.entries.len();
    message.entries.retain(|entry| !is_newer(entry));
    before - message.entries.len()
}

/// Why a message that arrived is not handed to raft. The texts are etcd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("cannot process message from removed member")]
    RemovedSender,
    #[error("cannot process message to mismatch member")]
    WrongReceiver,
    /// Raft's notes to itself (or of a type nobody knows): dropped in silence, as etcd does.
    #[error("cannot process a local message from the network")]
    Local,
}

pub fn check_received(
    message: &Message,
    local: MemberId,
    is_removed: impl Fn(MemberId) -> bool,
) -> Result<(), Rejection> {
    if is_removed(MemberId(message.from())) {
        return Err(Rejection::RemovedSender);
    }
    if message.to() != local.0 {
        return Err(Rejection::WrongReceiver);
    }
    // The raw number is looked at: an unknown one would read as the default.
    match message.r#type.map(MessageType::try_from) {
        Some(Ok(kind)) if !is_local(kind) => Ok(()),
        _ => Err(Rejection::Local),
    }
}

fn is_local(kind: MessageType) -> bool {
    use MessageType::*;
    matches!(
        kind,
        MsgHup
            | MsgBeat
            | MsgUnreachable
            | MsgSnapStatus
            | MsgCheckQuorum
            | MsgStorageAppend
            | MsgStorageAppendResp
            | MsgStorageApply
            | MsgStorageApplyResp
    )
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case(MessageType::MsgApp, true, true => Way::MsgAppStream)]
    #[test_case(MessageType::MsgApp, false, true => Way::MessageStream)]
    #[test_case(MessageType::MsgApp, false, false => Way::Pipeline)]
    #[test_case(MessageType::MsgHeartbeat, true, true => Way::MessageStream)]
    #[test_case(MessageType::MsgHeartbeat, true, false => Way::Pipeline)]
    #[test_case(MessageType::MsgSnap, true, true => Way::Pipeline)]
    fn ways(kind: MessageType, msgapp_up: bool, message_up: bool) -> Way {
        pick(kind, msgapp_up, message_up)
    }

    fn message(kind: MessageType, to: u64, index: u64) -> Message {
        let from = Some(1);
        Message { r#type: Some(kind as i32), from, to: Some(to), index: Some(index), ..Message::default() }
    }

    #[test]
    fn only_the_last_response_to_each_member_is_kept() {
        use MessageType::*;
        let mut messages = vec![
            message(MsgAppResp, 1, 1),
            message(MsgAppResp, 2, 2),
            message(MsgHeartbeatResp, 1, 3),
            message(MsgAppResp, 1, 4),
            message(MsgApp, 1, 5),
            message(MsgApp, 1, 6),
        ];
        drop_redundant(&mut messages);
        assert_eq!(messages.iter().map(Message::index).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
        drop_redundant(&mut messages);
        assert_eq!(messages.len(), 5);
    }

    #[test_case(1, 2, Some(MessageType::MsgApp as i32) => Ok(()))]
    #[test_case(9, 2, Some(MessageType::MsgApp as i32) => Err(Rejection::RemovedSender))]
    #[test_case(1, 3, Some(MessageType::MsgApp as i32) => Err(Rejection::WrongReceiver))]
    #[test_case(1, 2, Some(MessageType::MsgHup as i32) => Err(Rejection::Local))]
    #[test_case(1, 2, Some(MessageType::MsgStorageApply as i32) => Err(Rejection::Local))]
    #[test_case(1, 2, Some(77) => Err(Rejection::Local) ; "unknown")]
    #[test_case(1, 2, None => Err(Rejection::Local) ; "no type")]
    fn received(from: u64, to: u64, kind: Option<i32>) -> Result<(), Rejection> {
        let message = Message { r#type: kind, from: Some(from), to: Some(to), ..Message::default() };
        check_received(&message, MemberId(2), |id| id.0 == 9)
    }
}
