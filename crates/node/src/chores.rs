//! The chores thread: ends leases, sends checkpoints, looks after the feature gate, removes old log segments.

use std::{
    path::PathBuf,
    sync::{Arc, mpsc::Receiver},
    time::Duration,
};

use lease::Lessor;
use parking_lot::Mutex;
use proto::etcdserverpb::{InternalRaftRequest, LeaseCheckpointRequest, LeaseRevokeRequest};

use crate::{gate_keeper::GateKeeper, proposer::Proposer, shared::Shared, users::Users, world::Time};

const LEASE_INTERVAL: Duration = Duration::from_millis(500);
const PURGE_INTERVAL: Duration = Duration::from_secs(30);

pub(crate) struct Chores {
    pub lessor: Arc<Mutex<Lessor>>,
    pub users: Arc<Users>,
    pub proposer: Proposer,
    pub shared: Arc<Shared>,
    pub keeper: Arc<GateKeeper>,
    pub time: Time,
    pub log_disk: Arc<dyn wal::Disk>,
    pub wal_dir: PathBuf,
    /// Segments to keep; `None` keeps all.
    pub wals_max: Option<usize>,
    /// Closed when the node stops.
    pub stop: Receiver<()>,
}

impl Chores {
    pub(crate) fn run(self) {
        let mut next_purge = self.time.now() + PURGE_INTERVAL;
        while self.stop.recv_timeout(LEASE_INTERVAL) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            self.leases();
            self.keeper.tend();
            if self.time.now() >= next_purge {
                self.purge();
                next_purge = self.time.now() + PURGE_INTERVAL;
            }
        }
    }

    /// Lets ended leases go, through the log.
    pub(crate) fn leases(&self) {
        let now = self.time.elapsed();
        // Asked first: who loses the leadership from here on proposes nothing.
        let Some(term) = self.shared.standing().decides_in() else { return };
        let (expired, checkpoints) = {
            let mut lessor = self.lessor.lock();
            (lessor.take_expired(now), lessor.take_due_checkpoints(now))
        };
        for id in expired {
            self.shared.observer.lease_expired();
            let (header, lease_revoke) = (self.users.as_root(), Some(LeaseRevokeRequest { id }));
            let revoke = InternalRaftRequest { header, lease_revoke, ..Default::default() };
            self.proposer.send_as_leader(term, revoke);
        }
        if !checkpoints.is_empty() {
            let lease_checkpoint = Some(LeaseCheckpointRequest { checkpoints });
            self.proposer.send_as_leader(term, InternalRaftRequest { lease_checkpoint, ..Default::default() });
        }
    }

    pub(crate) fn purge(&self) {
        let Some(keep) = self.wals_max else { return };
        match wal::purge_on(&*self.log_disk, &self.wal_dir, keep) {
            Ok(removed) => {
                for path in removed {
                    tracing::info!(path = %path.display(), "purged");
                }
            }
            Err(error) => tracing::warn!(%error, "failed to purge log segments"),
        }
    }
}
