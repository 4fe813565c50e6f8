//! Proposals: held while there is no leader, and asked whether the log may have them.

use std::{borrow::Cow, time::Instant};

use proto::{Version, raftpb};

use super::{Judged, Proposal, RaftLoop};
use crate::{core::MESSAGE_BYTES_MAX, error::FatalError, world::Log};

/// Members that ask for more changes at once than a cluster has members get no answer.
const WAITING_MAX: usize = 64;

impl<L: Log> RaftLoop<L> {
    /// The cluster version of the applied state. While a received database is not in place, that state may be older
    /// than version changes that are in no log any more, and the version is taken to be the lowest.
    fn applied_version(&self) -> Option<Version> {
        if self.standing().awaits_database() { None } else { self.parts.cluster.read().version() }
    }

    /// The proposals of another member without those that the log may not have. Those that remain are judged as if they
    /// were appended in turn.
    pub(super) fn loggable<'a>(&mut self, message: &'a raftpb::Message) -> Cow<'a, raftpb::Message> {
        let applied = self.applied_version();
        let may_log = |entry: &raftpb::Entry| match self.versions_ahead.may_log(entry, applied) {
            Ok(()) => {
                self.versions_ahead.expect(entry);
                true
            }
            Err(why) => {
                tracing::warn!(remote_peer_id = format!("{:x}", message.from()), %why, "refused a forwarded proposal");
                false
            }
        };
        let kept: Vec<bool> = message.entries.iter().map(may_log).collect();
        if kept.iter().all(|kept| *kept) {
            return Cow::Borrowed(message);
        }
        let mut rest = message.clone();
        let mut kept = kept.into_iter();
        rest.entries.retain(|_| kept.next().unwrap_or(false));
        Cow::Owned(rest)
    }

    /// Proposals for which nobody waits any more are forgotten: their callers have been told that they failed.
    pub(super) fn take_held(&mut self) -> Vec<(Option<Instant>, Proposal)> {
        let (timeout, now) = (self.parts.request_timeout, self.now);
        let held = std::mem::take(&mut self.held).into_iter();
        held.filter(|(since, _)| now.saturating_duration_since(*since) < timeout)
            .map(|(since, p)| (Some(since), p))
            .collect()
    }

    pub(super) fn propose(&mut self, proposals: Vec<(Option<Instant>, Proposal)>) {
        if proposals.is_empty() {
            return;
        }
        if self.parts.core.status().leader == 0 {
            let now = self.now;
            self.held = proposals.into_iter().map(|(since, p)| (since.unwrap_or(now), p)).collect();
            return;
        }
        let (changes, requests): (Vec<_>, Vec<_>) = proposals.into_iter().partition(|(_, p)| p.is_conf_change);
        let requests = self.drop_unloggable(requests.into_iter().map(|(_, p)| p).collect());
        for batch in batches(&requests) {
            let data = batch.iter().map(|p| p.data.clone()).collect();
            let result = self.parts.core.handle_proposals(data);
            self.note_dropped(result, batch.iter().map(|p| p.id));
        }
        for (since, change) in changes {
            if self.parts.core.awaits_conf_change() {
                self.held.push((since.unwrap_or(self.now), change));
                continue;
            }
            let result = self.parts.core.handle_conf_change_proposal(change.data);
            self.note_dropped(result, [change.id]);
        }
    }

    /// A configuration change of another member waits, like our own, until the one before it is applied here. That member
    /// may have applied it sooner, and answered; the core would drop the next one silently.
    pub(super) fn must_wait(&mut self, message: &raftpb::Message) -> bool {
        let is_change = |entry: &raftpb::Entry| entry.r#type() != raftpb::EntryType::EntryNormal;
        let waits = message.r#type() == raftpb::MessageType::MsgProp
            && message.entries.iter().any(is_change)
            && self.parts.core.awaits_conf_change();
        if waits && self.waiting.len() < WAITING_MAX {
            self.waiting.push((self.now, message.clone()));
        }
        waits
    }

    /// Those that waited come again, and may have to go on waiting.
    pub(super) fn receive_waiting(&mut self) -> Result<(), FatalError> {
        let (timeout, now) = (self.parts.request_timeout, self.now);
        for (since, message) in std::mem::take(&mut self.waiting) {
            if now.saturating_duration_since(since) >= timeout {
                continue;
            }
            self.receive(&message)?;
            self.waiting.iter_mut().filter(|(at, _)| *at == now).for_each(|(at, _)| *at = since);
        }
        Ok(())
    }

    /// The proposer has asked already, but versions may have changed behind its back, or be changing, even in this very
    /// pass: then it is asked again.
    pub(super) fn drop_unloggable(&mut self, mut requests: Vec<Proposal>) -> Vec<Proposal> {
        if self.versions_ahead.is_empty() && requests.iter().all(|request| request.judged == Judged::Plain) {
            return requests;
        }
        let applied = self.applied_version();
        requests.retain(|request| {
            let still_right = matches!(request.judged, Judged::Plain) || request.judged == Judged::At(applied);
            if still_right && self.versions_ahead.is_empty() {
                return true;
            }
            let entry = raftpb::Entry { data: Some(request.data.clone()), ..Default::default() };
            let refused = self.versions_ahead.may_log(&entry, applied).err();
            match &refused {
                None => self.versions_ahead.expect(&entry),
                Some(why) => {
                    tracing::warn!(%why, "refused a proposal while the cluster version changes");
                    self.parts.shared.waits.forget(request.id);
                }
            }
            refused.is_none()
        });
        requests
    }

    pub(super) fn note_dropped(&self, result: raft::Result<()>, ids: impl IntoIterator<Item = u64>) {
        if let Err(error) = result {
            tracing::warn!(%error, "dropped proposals");
            for id in ids {
                self.parts.shared.waits.forget(id);
            }
        }
    }
}

/// Proposals that go to the leader in one message, which the core does not split. A single one may exceed the limit.
fn batches(mut requests: &[Proposal]) -> impl Iterator<Item = &[Proposal]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |request: &&Proposal| {
            bytes += request.data.len() as u64;
            bytes <= MESSAGE_BYTES_MAX
        };
        let len = requests.iter().take_while(fits).count().max(1);
        let (batch, rest) = requests.split_at_checked(len)?;
        requests = rest;
        Some(batch)
    })
}
