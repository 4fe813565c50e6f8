//! Messages that no sound member sends: each is refused, and changes nothing.

use bytes::Bytes;
use proto::raftpb::{
    ConfState, Entry, Message,
    MessageType::{self, *},
    Snapshot, SnapshotMetadata,
};
use raft::eraftpb;
use slog::Logger;
use test_case::test_case;

use super::{Core, CoreOptions, Refused};
use crate::{convert, log_store::LogStore};

const TERM: u64 = 2;
const COMMIT: u64 = 3;
const LAST: u64 = 5;

/// Member 1 of three, with a log of five entries of which three are committed.
fn core_with_log() -> Core {
    let entries = (1..=LAST).map(|index| convert::entry_to_core(&entry(index, TERM))).collect();
    core(entries, eraftpb::HardState { term: TERM, commit: COMMIT, ..Default::default() })
}

fn core(entries: Vec<eraftpb::Entry>, state: eraftpb::HardState) -> Core {
    let conf = eraftpb::ConfState { voters: vec![1, 2, 3], ..Default::default() };
    let store = LogStore::new((0, 0), state, conf, entries);
    let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0, seed: 1 };
    Core::new(&options, store, &Logger::root(slog::Discard, slog::o!())).unwrap()
}

fn entry(index: u64, term: u64) -> Entry {
    Entry { index: Some(index), term: Some(term), data: Some(Bytes::from_static(b"x")), ..Default::default() }
}

/// A message of member 2 in the term of the log.
fn message(kind: MessageType) -> Message {
    Message { r#type: Some(kind as i32), from: Some(2), to: Some(1), term: Some(TERM), ..Default::default() }
}

fn work(core: &mut Core) -> Vec<Message> {
    let mut sent = Vec::new();
    while let Some(mut work) = core.take_work() {
        sent.append(&mut work.messages);
        sent.append(&mut work.messages_after_sync);
        sent.extend(core.handle_persisted(work).messages);
    }
    sent
}

/// A core that follows member 2.
fn follower() -> Core {
    let mut core = core_with_log();
    core.handle_message(&message(MsgHeartbeat)).unwrap();
    work(&mut core);
    core
}

/// A core without a log, which follows member 2.
fn joiner() -> Core {
    let mut core = core(Vec::new(), eraftpb::HardState::default());
    core.handle_message(&message(MsgHeartbeat)).unwrap();
    work(&mut core);
    core
}

/// A core that the others have elected.
fn leader() -> Core {
    let mut core = core_with_log();
    while !core.status().is_leader {
        core.handle_tick();
        for asked in work(&mut core) {
            let kind = if asked.r#type() == MsgPreVote { MsgPreVoteResp } else { MsgVoteResp };
            let answer = Message { from: asked.to, term: asked.term, ..message(kind) };
            core.handle_message(&answer).unwrap();
        }
    }
    work(&mut core);
    core
}

fn snapshot(index: u64, term: u64, conf_state: ConfState) -> Message {
    let metadata = SnapshotMetadata { index: Some(index), term: Some(term), conf_state: Some(conf_state) };
    Message { snapshot: Some(Snapshot { data: None, metadata: Some(metadata) }), ..message(MsgSnap) }
}

fn members(voters: &[u64], learners: &[u64]) -> ConfState {
    ConfState { voters: voters.to_vec(), learners: learners.to_vec(), ..Default::default() }
}

fn joint() -> ConfState {
    ConfState { voters_outgoing: vec![1, 2], ..members(&[1, 2, 3], &[]) }
}

/// Answers to reads carry the reader's context in an entry.
fn with_entry(message: Message) -> Message {
    Message { entries: vec![Entry { data: Some(Bytes::from_static(b"context!")), ..Default::default() }], ..message }
}

fn without_term(message: Message) -> Message {
    Message { term: None, ..message }
}

fn at(index: u64, message: Message) -> Message {
    Message { index: Some(index), ..message }
}

fn committed(commit: u64, message: Message) -> Message {
    Message { commit: Some(commit), ..message }
}

fn from(sender: u64, message: Message) -> Message {
    Message { from: Some(sender), ..message }
}

/// An acknowledgement in the term that the leader has been elected for.
fn acknowledged(index: u64) -> Message {
    Message { term: Some(TERM + 1), ..at(index, message(MsgAppResp)) }
}

fn rejected(hint: u64) -> Message {
    Message { reject: Some(true), reject_hint: Some(hint), ..acknowledged(LAST) }
}

fn append(index: u64, log_term: u64, entries: Vec<Entry>) -> Message {
    Message { log_term: Some(log_term), entries, ..at(index, message(MsgApp)) }
}

#[test_case(follower, without_term(committed(LAST, message(MsgHeartbeat))); "heartbeat without a term")]
#[test_case(follower, without_term(committed(9, message(MsgHeartbeat))); "heartbeat without a term beyond the log")]
#[test_case(follower, without_term(at(9, with_entry(message(MsgReadIndexResp)))); "answer to a read without a term")]
#[test_case(follower, without_term(message(MsgVote)); "vote without a term")]
#[test_case(follower, without_term(message(MsgPreVote)); "pre-vote without a term")]
#[test_case(leader, without_term(acknowledged(9)); "acknowledgement without a term")]
#[test_case(follower, with_entry(message(MsgProp)); "proposal with a term")]
#[test_case(follower, with_entry(message(MsgReadIndex)); "question with a term")]
#[test_case(follower, Message { term: Some(u64::MAX), ..message(MsgHeartbeat) }; "last term of all")]
#[test_case(follower, committed(9, append(9, 0, vec![])); "append beyond the log without a log term")]
#[test_case(follower, append(u64::MAX, 1, vec![entry(0, TERM)]); "append after the last index of all")]
#[test_case(joiner, committed(1, append(0, 0, vec![entry(1, 0)])); "entry without a term")]
#[test_case(follower, snapshot(9, 0, members(&[1, 2], &[])); "snapshot without a term")]
#[test_case(follower, snapshot(9, TERM + 1, members(&[1, 2], &[])); "snapshot of a later term")]
#[test_case(follower, snapshot(u64::MAX, TERM, members(&[1, 2], &[])); "snapshot of the last index of all")]
#[test_case(follower, snapshot(9, TERM, members(&[], &[1])); "snapshot without voters")]
#[test_case(follower, snapshot(9, TERM, members(&[1, 2], &[2])); "snapshot with a voter that is a learner")]
#[test_case(follower, snapshot(9, TERM, members(&[1, 2, 2], &[])); "snapshot with a voter twice")]
#[test_case(follower, snapshot(9, TERM, members(&[1, 0], &[])); "snapshot with a voter without an id")]
#[test_case(follower, snapshot(9, TERM, joint()); "snapshot with a joint configuration")]
#[test_case(leader, acknowledged(LAST + 2); "acknowledgement of what the leader does not have")]
#[test_case(leader, rejected(u64::MAX); "rejection with the last index of all")]
#[test_case(leader, from(1, acknowledged(LAST)); "acknowledgement in the name of the leader")]
#[test_case(leader, from(0, without_term(with_entry(message(MsgReadIndex)))); "question of nobody")]
fn refused(role: fn() -> Core, message: Message) {
    let mut core = role();
    let before = core.status();
    let answer = core.handle_message(&message);
    assert!(matches!(answer, Err(Refused::Malformed(_))), "{answer:?}");
    assert_eq!(core.status(), before);
    assert!(work(&mut core).is_empty());
}

// A member of etcd sends back what it was asked to forward if its leader has changed to this member.
#[test_case(follower, from(1, without_term(with_entry(message(MsgProp)))); "own proposal")]
#[test_case(leader, from(1, without_term(with_entry(message(MsgReadIndex)))); "own question")]
#[test_case(joiner, append(0, 0, vec![entry(1, 1), entry(2, TERM)]); "the first entries")]
#[test_case(leader, acknowledged(LAST + 1); "acknowledgement of all")]
#[test_case(leader, rejected(LAST); "rejection")]
#[test_case(follower, snapshot(9, TERM, members(&[1, 2], &[3])); "snapshot")]
fn taken(role: fn() -> Core, message: Message) {
    let mut core = role();
    assert_eq!(core.handle_message(&message), Ok(()));
    work(&mut core);
}
