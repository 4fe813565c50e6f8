//! What a member sends, caught on its way out.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use membership::{Member, MemberId};
use node::Database;
use proto::raftpb;

use memdisk::Power;

pub(crate) enum Outgoing {
    Message(raftpb::Message),
    Snapshot(raftpb::Message, Database),
    /// To a member that this one does not know.
    SnapshotNowhere(u64),
}

/// One member's way out.
pub(crate) struct Outbox {
    power: Arc<Power>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    members: Vec<MemberId>,
    /// Not members as far as this one knows, but they have sent something.
    remotes: Vec<MemberId>,
    /// With the microseconds that had been spent on syncs when it was sent.
    sent: Vec<(u64, Outgoing)>,
}

impl Outbox {
    pub(crate) fn new(power: Arc<Power>) -> Outbox {
        Outbox { power, inner: Mutex::default() }
    }

    /// As the peer's server does: who is not known yet can still be answered.
    pub(crate) fn learn(&self, id: MemberId) {
        let mut inner = self.lock();
        if !inner.remotes.contains(&id) {
            inner.remotes.push(id);
        }
    }

    pub(crate) fn knows(&self, id: u64) -> bool {
        self.lock().members.contains(&MemberId(id))
    }

    pub(crate) fn take(&self) -> Vec<(u64, Outgoing)> {
        std::mem::take(&mut self.lock().sent)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl node::Network for Outbox {
    fn send(&self, messages: Vec<raftpb::Message>) {
        let spent = self.power.spent();
        let mut inner = self.lock();
        for message in messages {
            let to = MemberId(message.to());
            if inner.members.contains(&to) || inner.remotes.contains(&to) {
                inner.sent.push((spent, Outgoing::Message(message)));
            }
        }
    }

    fn send_snapshot(&self, message: raftpb::Message, database: Database) {
        let mut inner = self.lock();
        let to = message.to();
        let known = inner.members.contains(&MemberId(to));
        inner.sent.push((0, if known { Outgoing::Snapshot(message, database) } else { Outgoing::SnapshotNowhere(to) }));
    }

    fn set_members(&self, members: Vec<Member>) {
        self.lock().members = members.into_iter().map(|member| member.id).collect();
    }

    fn active_since(&self, _: MemberId) -> Option<Instant> {
        None
    }
}
