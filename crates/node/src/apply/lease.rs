//! Applying grants, revocations and checkpoints.

use proto::{
    Version,
    etcdserverpb::{
        LeaseCheckpointRequest, LeaseCheckpointResponse, LeaseGrantRequest, LeaseGrantResponse, LeaseRevokeRequest,
        LeaseRevokeResponse,
    },
};
use storage::Batch;

use super::{State, kv::Links, quota};
use crate::error::ApplyError;

/// From this cluster version on checkpoints are written to the file.
const PERSISTED_SINCE: Version = Version::new(3, 6);

impl State {
    pub(super) fn lease_grant(
        &mut self,
        batch: &mut Batch<'_>,
        request: &LeaseGrantRequest,
    ) -> Result<LeaseGrantResponse, ApplyError> {
        if self.alarms.no_space() {
            return Err(ApplyError::NoSpace);
        }
        let fits = self.quota.fits(&self.backend, quota::LEASE_COST);
        let ttl = self.lessor.lock().grant(batch, self.time.elapsed(), request.id, request.ttl)?;
        self.observer.lease_granted(ttl);
        if !fits {
            return Err(ApplyError::NoSpace);
        }
        Ok(LeaseGrantResponse { header: self.header(), id: request.id, ttl, error: String::new() })
    }

    /// Deletes the lease's keys, in order and at one revision, and the lease.
    pub(super) fn lease_revoke(
        &mut self,
        batch: &mut Batch<'_>,
        request: &LeaseRevokeRequest,
    ) -> Result<LeaseRevokeResponse, ApplyError> {
        let mut lessor = self.lessor.lock();
        let keys = lessor.revoke(batch, request.id)?;
        let mut links = Links(&mut lessor);
        let mut txn = self.store.begin(batch, &mut links);
        txn.delete_leased(request.id, keys)?;
        txn.end();
        drop(lessor);
        self.observer.lease_revoked();
        Ok(LeaseRevokeResponse { header: self.header() })
    }

    /// Stores remaining TTLs, whatever any flag of this member says: the entry decides.
    pub(super) fn lease_checkpoint(
        &mut self,
        batch: &mut Batch<'_>,
        request: &LeaseCheckpointRequest,
    ) -> Result<LeaseCheckpointResponse, ApplyError> {
        let persist = self.cluster.read().version().is_some_and(|v| v >= PERSISTED_SINCE);
        let now = self.time.elapsed();
        let mut lessor = self.lessor.lock();
        for c in &request.checkpoints {
            lessor.checkpoint(batch, now, c.id, c.remaining_ttl, persist)?;
        }
        Ok(LeaseCheckpointResponse { header: self.header() })
    }
}
