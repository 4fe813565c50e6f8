//! How others move the commit thread, and wait for it.

use std::{
    sync::mpsc::SyncSender,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use super::{
    Failure,
    defrag::{Copied, DefragError, DefragReport},
    file::FileView,
    take_over::{Received, TakeOverError},
};

/// What only the commit thread may do with the file, beside committing to it.
pub(super) enum Step {
    Defrag(DefragStep),
    /// Go on with the received file in place of the file.
    TakeOver(Box<Received>, SyncSender<Result<(), TakeOverError>>),
}

/// What a defragmentation asks of the commit thread.
pub(super) enum DefragStep {
    /// Commit, keep what is committed from then on, and hand out the file as committed.
    Begin(SyncSender<Result<FileView, Failure>>),
    /// Bring the copy up to date and go on with it in place of the file.
    End(Box<Copied>, SyncSender<Result<DefragReport, DefragError>>),
    /// The defragmentation is over: keep no more.
    GiveUp,
}

/// Why the commit thread woke.
pub(super) enum Turn {
    /// Commit, then call [`Control::finished`] with the ticket.
    Commit {
        ticket: u64,
    },
    Step(Step),
    /// End; first commit what is left if so said.
    Stop {
        commit: bool,
    },
}

/// The commit thread's wishes and tickets.
#[derive(Default)]
pub(super) struct Control {
    inner: Mutex<Inner>,
    wake: Condvar,
    done: Condvar,
}

#[derive(Default)]
struct Inner {
    /// When the first change after the last freeze was made.
    pending_since: Option<Instant>,
    full: bool,
    /// Commits up to this number were asked for, and up to that were done.
    requested: u64,
    completed: u64,
    step: Option<Step>,
    stop: Option<bool>,
    ended: bool,
}

impl Control {
    pub(super) fn note_pending(&self) {
        self.inner.lock().pending_since.get_or_insert_with(Instant::now);
        self.wake.notify_one();
    }

    pub(super) fn note_full(&self) {
        let mut inner = self.inner.lock();
        if !inner.full {
            inner.full = true;
            self.wake.notify_one();
        }
    }

    /// Waits until a commit that began after this call has ended, well or not; false if the thread has ended first.
    pub(super) fn commit_and_wait(&self) -> bool {
        let mut inner = self.inner.lock();
        inner.requested += 1;
        let ticket = inner.requested;
        self.wake.notify_one();
        while inner.completed < ticket && !inner.ended {
            self.done.wait(&mut inner);
        }
        inner.completed >= ticket
    }

    /// False if the thread has ended.
    pub(super) fn submit(&self, step: Step) -> bool {
        let mut inner = self.inner.lock();
        while inner.step.is_some() && !inner.ended {
            self.done.wait(&mut inner);
        }
        if !inner.ended {
            inner.step = Some(step);
            self.wake.notify_one();
        }
        !inner.ended
    }

    pub(super) fn stop(&self, commit: bool) {
        self.inner.lock().stop.get_or_insert(commit);
        self.wake.notify_one();
    }

    /// The commit thread's wait. `held` says that only what was asked for is to be committed.
    pub(super) fn next(&self, interval: Duration, held: bool) -> Turn {
        let mut inner = self.inner.lock();
        loop {
            if let Some(commit) = inner.stop {
                return Turn::Stop { commit };
            }
            if let Some(step) = inner.step.take() {
                self.done.notify_all();
                return Turn::Step(step);
            }
            let due = inner.pending_since.map(|since| since + interval).filter(|_| !held);
            let asked = inner.requested > inner.completed;
            if asked || (inner.full && !held) || due.is_some_and(|d| d <= Instant::now()) {
                // What is noted from now on may belong to the next layer. A note about this one only costs a turn.
                inner.pending_since = None;
                inner.full = false;
                return Turn::Commit { ticket: inner.requested };
            }
            match due {
                Some(due) => {
                    self.wake.wait_until(&mut inner, due);
                }
                None => self.wake.wait(&mut inner),
            }
        }
    }

    pub(super) fn finished(&self, ticket: u64) {
        let mut inner = self.inner.lock();
        inner.completed = inner.completed.max(ticket);
        self.done.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.inner.lock().ended
    }

    /// The thread is gone: nobody may wait for it any more.
    pub(super) fn ended(&self) {
        let mut inner = self.inner.lock();
        inner.ended = true;
        // Drops the reply channel of a step nobody will do.
        inner.step = None;
        self.done.notify_all();
    }
}
