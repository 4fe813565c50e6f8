//! The core's work, carried out in the order that `core` gives: hand on, send, write, sync, answer.

use failpoint::failpoint;
use membership::{NotYet, Reason, may_log};
use proto::{Version, raftpb, walpb};

use super::{COMPACT_SLACK_MAX, RaftLoop, SNAPSHOTS_IN_FLIGHT_MAX};
use crate::{
    apply_loop::ToApply,
    core::{Followed, Work},
    error::FatalError,
    world::Log,
};

impl<L: Log> RaftLoop<L> {
    /// Carries out the core's work, in the order `core` gives.
    pub(super) fn work(&mut self) -> Result<(), FatalError> {
        while let Some(mut work) = self.parts.core.take_work() {
            // Before anything is handed on: apply must know of a new leader when it meets its first entry.
            self.publish_status();
            self.hand_on(std::mem::take(&mut work.committed))?;
            self.answer_reads(&work);
            failpoint!("raftBeforeLeaderSend");
            self.send(std::mem::take(&mut work.messages))?;
            self.persist(&work)?;
            failpoint!("raftBeforeFollowerSend");
            self.send(std::mem::take(&mut work.messages_after_sync))?;
            failpoint!("raftBeforeAdvance");
            let done = self.parts.core.handle_persisted(work);
            if done.hard_state.is_some() {
                self.unsaved_state = done.hard_state;
            }
            self.hand_on(done.committed)?;
            self.send(done.messages)?;
            self.ask_reads();
        }
        self.publish_status();
        self.compact();
        Ok(())
    }

    pub(super) fn persist(&mut self, work: &Work) -> Result<(), FatalError> {
        if let Some(metadata) = &work.snapshot {
            let record =
                walpb::Snapshot { index: metadata.index, term: metadata.term, conf_state: metadata.conf_state.clone() };
            // Before any entry after it: a log whose entries have a gap cannot be read.
            failpoint!("raftBeforeSaveSnap");
            self.parts.log.save_snapshot(&record).map_err(FatalError::Log)?;
            self.snapshot_index = record.index();
            failpoint!("raftAfterSaveSnap");
        }
        failpoint!("raftBeforeSave");
        if !work.entries.is_empty() || work.hard_state.is_some() {
            let state = work.hard_state.or(self.unsaved_state.take());
            self.parts.log.append(state.as_ref(), &work.entries).map_err(FatalError::Log)?;
            self.versions_ahead.note(&work.entries);
            if work.must_sync {
                let saved = self.parts.log.sync().map_err(FatalError::Log)?;
                self.parts.shared.observer.log_saved(&saved);
            }
            self.unsaved_state = None;
        }
        failpoint!("raftAfterSave");
        match &work.snapshot {
            Some(metadata) => self.take_over(metadata.clone()),
            None => Ok(()),
        }
    }

    /// The log says that the state is now that of the received database: whoever applies must go on from it.
    pub(super) fn take_over(&mut self, metadata: raftpb::SnapshotMetadata) -> Result<(), FatalError> {
        let index = metadata.index();
        failpoint!("raftBeforeApplySnap");
        self.parts.to_apply.send(ToApply::TakeOver(metadata)).map_err(|_| FatalError::ApplyEnded)?;
        failpoint!("raftAfterApplySnap");
        self.parts.log.release_to(index).map_err(FatalError::Log)?;
        failpoint!("raftAfterWALRelease");
        Ok(())
    }

    pub(super) fn send(&mut self, messages: Vec<raftpb::Message>) -> Result<(), FatalError> {
        if messages.is_empty() {
            return Ok(());
        }
        let is_snapshot = |m: &raftpb::Message| m.r#type() == raftpb::MessageType::MsgSnap;
        if !messages.iter().any(is_snapshot) {
            self.parts.network.send(messages);
            return Ok(());
        }
        let (snapshots, rest): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_snapshot);
        self.parts.network.send(rest);
        snapshots.into_iter().try_for_each(|message| self.send_snapshot(message))
    }

    /// The database is that of whoever applies, so it goes out from there.
    pub(super) fn send_snapshot(&mut self, message: raftpb::Message) -> Result<(), FatalError> {
        if self.snapshots_in_flight >= SNAPSHOTS_IN_FLIGHT_MAX {
            self.parts.core.handle_snapshot_sent(message.to(), false);
            return Ok(());
        }
        self.snapshots_in_flight += 1;
        self.parts.to_apply.send(ToApply::SendSnapshot(Box::new(message))).map_err(|_| FatalError::ApplyEnded)
    }

    pub(super) fn hand_on(&mut self, committed: Vec<raftpb::Entry>) -> Result<(), FatalError> {
        if committed.is_empty() {
            return Ok(());
        }
        self.keep_changes(&committed)?;
        // Whoever applies a leader's first entry asks whether this member leads, and does not ask again.
        self.publish_status();
        self.parts.to_apply.send(ToApply::Entries(committed)).map_err(|_| FatalError::ApplyEnded)
    }

    /// Configuration changes are known to be committed also after a crash, before they have any effect. Otherwise a
    /// member could come back that counts on the vote of one that was removed, and has ended since.
    fn keep_changes(&mut self, committed: &[raftpb::Entry]) -> Result<(), FatalError> {
        if committed.iter().all(|entry| entry.r#type() == raftpb::EntryType::EntryNormal) {
            return Ok(());
        }
        let state = self.parts.core.state_for_log();
        self.parts.log.append(Some(&state), &[]).map_err(FatalError::Log)?;
        let saved = self.parts.log.sync().map_err(FatalError::Log)?;
        self.parts.shared.observer.log_saved(&saved);
        Ok(())
    }

    pub(super) fn answer_reads(&mut self, work: &Work) {
        for (context, index) in &work.reads {
            for done in self.reads.confirmed(*context, self.now) {
                self.parts.shared.applied.when(*index, done);
            }
        }
    }

    /// A configuration change has been applied; the core must follow.
    pub(crate) fn conf_change(
        &mut self,
        index: u64,
        change: &raft::eraftpb::ConfChange,
    ) -> Result<Followed, FatalError> {
        // Reads may not rely on this member alone from before the core knows of another voter.
        self.parts.shared.stop_reading_alone();
        self.parts.core.handle_conf_change(index, change).map_err(|e| FatalError::Core(e.to_string()))
    }

    pub(super) fn snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), FatalError> {
        if record.index() <= self.snapshot_index {
            // Whoever applies was behind: the log has gone on from a received database, and has no entries before it.
            return Ok(());
        }
        self.snapshot_index = record.index();
        // A snapshot record counts only if the commit index in the log has reached it.
        if let Some(state) = self.unsaved_state.take() {
            self.parts.log.append(Some(&state), &[]).map_err(FatalError::Log)?;
        }
        failpoint!("raftBeforeWALSaveSnaphot");
        self.parts.log.save_snapshot(record).map_err(FatalError::Log)?;
        self.parts.log.release_to(record.index()).map_err(FatalError::Log)
    }

    /// For members of an older version nothing newer may be left in the log. Returns the last entry that is.
    ///
    /// The cut does not wait for databases that are under way: a receiver that needs an entry from before the cut gets
    /// another database.
    pub(crate) fn cut_log(&mut self, record: &walpb::Snapshot, version: Version) -> Result<Option<u64>, FatalError> {
        self.snapshot(record)?;
        self.parts.core.handle_applied(record.index());
        self.parts.core.compact(record.index(), 0);
        let is_newer = |entry: &raftpb::Entry| {
            matches!(may_log(entry, Some(version)), Err(NotYet { reason: Reason::Newer { .. }, .. }))
        };
        let behind = self.parts.core.entries_after(record.index());
        Ok(behind.filter(is_newer).map(|entry| entry.index()).last())
    }

    pub(super) fn publish_status(&mut self) {
        let status = self.parts.core.status();
        let led_in = self.parts.shared.standing().leads_in();
        let lost = led_in.is_some() && led_in != self.standing().leads_in();
        self.parts.shared.publish(status);
        if lost {
            // After publishing: see `ApplyLoop::promote_lessor`.
            self.parts.lessor.lock().demote();
        }
    }

    pub(super) fn compact(&mut self) {
        // A member that receives a database needs the entries after it.
        if self.snapshots_in_flight > 0 {
            return;
        }
        let keep = if self.parts.core.has_other_members() { self.parts.catch_up_entries } else { 0 };
        let applied = self.parts.shared.applied.index();
        let must = keep + self.parts.core.status().last.saturating_sub(applied);
        let slack = COMPACT_SLACK_MAX.min(self.parts.catch_up_entries);
        if self.parts.core.log_len() as u64 > must + slack {
            self.parts.core.handle_applied(applied);
            self.parts.core.compact(applied, keep);
        }
    }

    pub(super) fn finish(&mut self) -> Result<(), FatalError> {
        if let Some(state) = self.unsaved_state.take() {
            self.parts.log.append(Some(&state), &[]).map_err(FatalError::Log)?;
        }
        self.parts.log.sync().map_err(FatalError::Log)?;
        let _ = self.parts.to_apply.send(ToApply::Stop);
        Ok(())
    }
}
