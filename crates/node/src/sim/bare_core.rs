//! A core without a log, an apply thread and a network, for tests of what other members may send to it.

use bytes::Bytes;
use proto::raftpb;
use raft::eraftpb;

use crate::{
    convert,
    core::{Core, CoreOptions, CoreStatus},
    log_store::LogStore,
};

/// Member 1 of a cluster. Its disk is memory, and it applies at once what is committed.
pub struct BareCore(Core);

impl BareCore {
    /// A member that starts with these entries, which begin at index 1. Its term is that of the last one.
    pub fn start(voters: Vec<u64>, entries: &[raftpb::Entry], commit: u64) -> BareCore {
        let conf = eraftpb::ConfState { voters, ..Default::default() };
        let term = entries.last().map_or(0, raftpb::Entry::term);
        let state = eraftpb::HardState { term, commit, ..Default::default() };
        let store = LogStore::new((0, 0), state, conf, entries.iter().map(convert::entry_to_core).collect());
        let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0, seed: 1 };
        let core = Core::new(&options, store, &slog::Logger::root(slog::Discard, slog::o!()));
        BareCore(core.expect("the log and the configuration are valid"))
    }

    /// Gives it a message of another member, or returns why it is refused.
    pub fn receive(&mut self, message: &raftpb::Message) -> Result<(), String> {
        self.0.handle_message(message).map_err(|refused| refused.to_string())
    }

    pub fn tick(&mut self) {
        self.0.handle_tick();
    }

    /// Whether the proposal was taken.
    pub fn propose(&mut self, data: Bytes) -> bool {
        self.0.handle_proposals(vec![data]).is_ok()
    }

    /// Writes and applies all that is due, and returns the messages to others.
    pub fn work(&mut self) -> Vec<raftpb::Message> {
        let mut sent = Vec::new();
        while let Some(mut work) = self.0.take_work() {
            sent.append(&mut work.messages);
            sent.append(&mut work.messages_after_sync);
            let mut committed = std::mem::take(&mut work.committed);
            let done = self.0.handle_persisted(work);
            sent.extend(done.messages);
            committed.extend(done.committed);
            if let Some(last) = committed.last() {
                self.0.handle_applied(last.index());
            }
        }
        sent
    }

    pub fn is_leader(&self) -> bool {
        self.0.status().is_leader
    }

    /// Term, commit index and last index.
    pub fn numbers(&self) -> (u64, u64, u64) {
        let CoreStatus { term, commit, last, .. } = self.0.status();
        (term, commit, last)
    }
}
