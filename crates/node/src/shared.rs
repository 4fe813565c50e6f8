//! What the node's threads and its callers share.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    apply::Response,
    core::CoreStatus,
    error::{ApplyError, FatalError},
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
    pub observer: Arc<dyn Observer>,
    status: Mutex<CoreStatus>,
    term: AtomicU64,
    leader: AtomicU64,
    commit: AtomicU64,
    applied_term: AtomicU64,
    /// Reads may be served from local state at once: this member alone decides, and has applied an entry of its
    /// own term.
    sole_leader: AtomicBool,
    life: watch::Sender<Life>,
}

impl Shared {
    pub fn new(applied: u64, observer: Arc<dyn Observer>) -> Shared {
        let shared = Shared {
            waits: Waits::default(),
            applied: Applied::default(),
            observer,
            status: Mutex::default(),
            term: AtomicU64::new(0),
            leader: AtomicU64::new(0),
            commit: AtomicU64::new(applied),
            applied_term: AtomicU64::new(0),
            sole_leader: AtomicBool::new(false),
            life: watch::Sender::new(Life::Running),
        };
        shared.applied.advance(applied);
        shared
    }

    pub fn publish(&self, status: CoreStatus) {
        let old = std::mem::replace(&mut *self.status.lock(), status);
        self.term.store(status.term, Ordering::Release);
        self.commit.store(status.commit, Ordering::Release);
        if old.leader != status.leader {
            self.leader.store(status.leader, Ordering::Release);
            self.observer.leader_changed(status.leader);
        }
        let sole = status.is_sole_leader && self.applied_term.load(Ordering::Acquire) >= status.term;
        self.sole_leader.store(sole, Ordering::Release);
    }

    /// Before another voter is let in, reads must stop relying on this member alone.
    pub fn clear_sole_leader(&self) {
        self.sole_leader.store(false, Ordering::Release);
    }

    pub fn is_sole_leader(&self) -> bool {
        self.sole_leader.load(Ordering::Acquire)
    }

    pub fn set_applied_term(&self, term: u64) {
        self.applied_term.store(term, Ordering::Release);
    }

    pub fn status(&self) -> CoreStatus {
        *self.status.lock()
    }

    pub fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    pub fn leader(&self) -> u64 {
        self.leader.load(Ordering::Acquire)
    }

    pub fn commit(&self) -> u64 {
        self.commit.load(Ordering::Acquire)
    }

    pub fn fail(&self, error: FatalError) {
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
    pub fn close(&self) {
        self.life.send_if_modified(|life| {
            let running = *life == Life::Running;
            if running {
                *life = Life::Stopped;
            }
            running
        });
        self.clear_sole_leader();
        self.waits.close();
        self.applied.close();
    }

    pub fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Why the node stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        match &*self.life.borrow() {
            Life::Failed(why) => Some(why.clone()),
            Life::Running | Life::Stopped => None,
        }
    }

    pub fn is_running(&self) -> bool {
        *self.life.borrow() == Life::Running
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
