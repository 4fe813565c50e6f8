//! Whether a peer can be reached, and since when.

use std::{fmt, sync::Arc, time::Instant};

use membership::MemberId;
use parking_lot::Mutex;

use crate::observer::Observer;

pub(crate) struct Status {
    local: MemberId,
    remote: MemberId,
    observer: Arc<dyn Observer>,
    active_since: Mutex<Option<Instant>>,
}

impl Status {
    pub(crate) fn new(local: MemberId, remote: MemberId, observer: Arc<dyn Observer>) -> Status {
        Status { local, remote, observer, active_since: Mutex::new(None) }
    }

    pub(crate) fn activate(&self) {
        let mut since = self.active_since.lock();
        if since.is_none() {
            *since = Some(Instant::now());
            self.observer.activated(self.local, self.remote);
            tracing::info!(peer_id = %self.remote, "peer became active");
        }
    }

    /// `action` failed on `source`, which is how etcd's log says it.
    pub(crate) fn deactivate(&self, action: &str, source: &str, reason: &dyn fmt::Display) {
        let mut since = self.active_since.lock();
        let error = format!("failed to {action} {} on {source} ({reason})", self.remote);
        if since.take().is_some() {
            self.observer.deactivated(self.local, self.remote);
            tracing::warn!(peer_id = %self.remote, error, "peer became inactive (message send to peer failed)");
        } else {
            tracing::debug!(peer_id = %self.remote, error, "peer deactivated again");
        }
    }

    pub(crate) fn active_since(&self) -> Option<Instant> {
        *self.active_since.lock()
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active_since().is_some()
    }
}

impl Drop for Status {
    /// A peer that was removed is no longer counted.
    fn drop(&mut self) {
        if self.active_since.get_mut().is_some() {
            self.observer.deactivated(self.local, self.remote);
        }
    }
}
