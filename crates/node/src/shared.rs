//! What the node's threads and its callers share.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    apply::Response,
    core::CoreStatus,
    error::{ApplyError, FatalError},
    reads::ReadQueue,
    standing::{AppliedTo, Standing},
    wait::{Applied, Waits},
    world::Observer,
};

/// How the node's life goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Life {
    Running,
    Stopped,
    /// Why it stopped by itself, with all causes.
    Failed(String),
}

pub(crate) struct Shared {
    pub waits: Waits<Result<Response, ApplyError>>,
    pub applied: Applied,
    pub inbox: Inbox,
    pub reads: ReadQueue,
    pub ticked: Ticked,
    pub observer: Arc<dyn Observer>,
    status: Mutex<CoreStatus>,
    term: AtomicU64,
    leader: AtomicU64,
    commit: AtomicU64,
    applied_term: AtomicU64,
    /// Reads may be served from local state at once, see [`Standing::may_read_alone`].
    reads_alone: AtomicBool,
    /// This member has no vote.
    learner: AtomicBool,
    removed: AtomicBool,
    life: watch::Sender<Life>,
}

/// When the raft thread last looked at the clock, and whether what it believes of the leadership may be old.
///
/// A leader that is heard by no quorum gives up within two election timeouts, and a new one adds one to every lease. So
/// long as a leader looks at the clock often, what it promises to owners of leases holds. After a pause, or once it
/// has asked another member to take over, it must ask the others first.
pub(crate) struct Ticked {
    epoch: Instant,
    /// Longer pauses count.
    pause_max: Duration,
    at_ms: AtomicU64,
    has_paused: AtomicBool,
    /// In this term the leadership was offered to another member.
    offered_in: AtomicU64,
}

impl Ticked {
    fn new(epoch: Instant, pause_max: Duration) -> Ticked {
        let (at_ms, has_paused, offered_in) = (AtomicU64::new(0), AtomicBool::new(false), AtomicU64::new(0));
        Ticked { epoch, pause_max, at_ms, has_paused, offered_in }
    }

    pub(crate) fn at(&self, now: Instant) {
        if self.is_pause(now) {
            self.has_paused.store(true, Ordering::Release);
        }
        self.at_ms.store(now.saturating_duration_since(self.epoch).as_millis() as u64, Ordering::Release);
    }

    fn is_pause(&self, now: Instant) -> bool {
        let last = Duration::from_millis(self.at_ms.load(Ordering::Acquire));
        now.saturating_duration_since(self.epoch).saturating_sub(last) > self.pause_max
    }

    pub(crate) fn offered(&self, term: u64) {
        self.offered_in.store(term, Ordering::Release);
    }

    /// Whether the leader of this term must ask the others before it promises anything.
    pub(crate) fn must_ask(&self, now: Instant, term: u64) -> bool {
        self.is_pause(now) || self.has_paused.load(Ordering::Acquire) || self.offered_in.load(Ordering::Acquire) >= term
    }

    /// The others were asked, after the last pause.
    pub(crate) fn asked(&self) {
        self.has_paused.store(false, Ordering::Release);
    }
}

/// As in etcd: a raft thread that does not tick for longer has been asleep.
const PAUSE_TICKS_MAX: u32 = 3;

/// Counts messages of other members that the raft thread has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox(AtomicUsize);

/// As many as etcd holds; beyond that messages are dropped, and sent again.
const INBOX_MAX: usize = 4096;

impl Inbox {
    /// False if there is no room.
    pub(crate) fn enter(&self) -> bool {
        let entered = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < INBOX_MAX).then_some(n + 1));
        entered.is_ok()
    }

    pub(crate) fn leave(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Shared {
    pub(crate) fn new(applied: u64, observer: Arc<dyn Observer>, now: Instant, tick: Duration) -> Shared {
        let shared = Shared {
            waits: Waits::default(),
            applied: Applied::default(),
            inbox: Inbox::default(),
            reads: ReadQueue::default(),
            ticked: Ticked::new(now, PAUSE_TICKS_MAX * tick),
            observer,
            status: Mutex::default(),
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            commit: AtomicU64::new(applied),
            applied_term: AtomicU64::new(0),
            reads_alone: AtomicBool::new(false),
            learner: AtomicBool::new(false),
            removed: AtomicBool::new(false),
            life: watch::Sender::new(Life::Running),
        };
        shared.applied.advance(applied);
        shared
    }

    pub(crate) fn publish(&self, status: CoreStatus) {
        let old = std::mem::replace(&mut *self.status.lock(), status);
        self.term.store(status.term, Ordering::Release);
        self.commit.store(status.commit, Ordering::Release);
        if old.leader != status.leader {
            self.leader.store(status.leader, Ordering::Release);
            self.observer.leader_changed(status.leader);
        }
        let alone = Standing::new(status, self.applied_to()).may_read_alone();
        self.reads_alone.store(alone, Ordering::Release);
    }

    /// Before another member is let in, reads must stop relying on this one alone.
    pub(crate) fn stop_reading_alone(&self) {
        self.reads_alone.store(false, Ordering::Release);
    }

    /// As of the last [`Shared::publish`].
    pub(crate) fn may_read_alone(&self) -> bool {
        self.reads_alone.load(Ordering::Acquire)
    }

    pub(crate) fn is_learner(&self) -> bool {
        self.learner.load(Ordering::Acquire)
    }

    pub(crate) fn set_learner(&self, learner: bool) {
        self.learner.store(learner, Ordering::Release);
    }

    /// An entry of this term is applied. [`Applied::advance`] follows, possibly after more entries.
    pub(crate) fn set_applied_term(&self, term: u64) {
        self.applied_term.store(term, Ordering::Release);
    }

    pub(crate) fn applied_to(&self) -> AppliedTo {
        AppliedTo { index: self.applied.index(), term: self.applied_term.load(Ordering::Acquire) }
    }

    /// Both clocks; raft's as last published.
    pub(crate) fn standing(&self) -> Standing {
        Standing::new(*self.status.lock(), self.applied_to())
    }

    pub(crate) fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    pub(crate) fn leader(&self) -> u64 {
        self.leader.load(Ordering::Acquire)
    }

    pub(crate) fn commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    /// Whether this member ended because it is no longer one.
    pub(crate) fn was_removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }

    pub(crate) fn fail(&self, error: FatalError) {
        self.removed.fetch_or(matches!(error, FatalError::Removed), Ordering::AcqRel);
        let text = with_causes(&error);
        tracing::error!(error = %text, "the member cannot go on");
        self.life.send_if_modified(|life| {
            let first = *life == Life::Running;
            if first {
                *life = Life::Failed(text);
            }
            first
        });
    }

    /// Lets everyone who waits know that no answer will come.
    pub(crate) fn close(&self) {
        self.life.send_if_modified(|life| {
            let running = *life == Life::Running;
            if running {
                *life = Life::Stopped;
            }
            running
        });
        self.stop_reading_alone();
        self.waits.close();
        self.applied.close();
        self.reads.close();
    }

    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Why the node stopped by itself, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match &*self.life.borrow() {
            Life::Failed(why) => Some(why.clone()),
            Life::Running | Life::Stopped => None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        *self.life.borrow() == Life::Running
    }
}

/// An error and all that caused it, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Clock, SystemClock};

    #[test]
    fn a_leader_that_has_slept_or_offered_to_go_must_ask() {
        let (begin, tick) = (SystemClock.now(), Duration::from_millis(100));
        let ticked = Ticked::new(begin, 3 * tick);
        ticked.at(begin + tick);
        assert!(!ticked.must_ask(begin + 2 * tick, 5));
        assert!(ticked.must_ask(begin + 5 * tick, 5), "nothing has looked at the clock for long");
        ticked.at(begin + 6 * tick);
        assert!(ticked.must_ask(begin + 6 * tick, 5), "it has woken, but what it believes may be old");
        ticked.asked();
        assert!(!ticked.must_ask(begin + 6 * tick, 5));
        ticked.offered(5);
        ticked.asked();
        assert!(ticked.must_ask(begin + 6 * tick, 5), "the offer may be taken at any time");
        assert!(!ticked.must_ask(begin + 6 * tick, 6), "a later term is another's, or was won anew");
    }
}
