//! Applying puts, deletes, txns and compactions.

use bytes::Bytes;
use lease::Lessor;
use proto::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse,
    TxnRequest, TxnResponse,
};
use storage::Batch;

use super::{Effect, State, quota};
use crate::error::ApplyError;

impl State {
    pub(super) fn put(&mut self, batch: &mut Batch<'_>, request: &PutRequest) -> Result<PutResponse, ApplyError> {
        if self.alarms.no_space() {
            return Err(ApplyError::NoSpace);
        }
        let fits = self.quota.fits(&self.backend, quota::put_cost(request));
        let mut lessor = self.lessor.lock();
        let mut links = Links(&mut lessor);
        let mut txn = self.store.begin(batch, &mut links);
        let response = txn.put(request)?;
        txn.end();
        // As in etcd: the put that first goes over the quota is kept, and its sender is told.
        if fits { Ok(response) } else { Err(ApplyError::NoSpace) }
    }

    pub(super) fn txn(&mut self, batch: &mut Batch<'_>, request: &TxnRequest) -> Result<TxnResponse, ApplyError> {
        let cost = quota::txn_cost(request);
        if cost > 0 && self.alarms.no_space() {
            return Err(ApplyError::NoSpace);
        }
        let fits = self.quota.fits(&self.backend, cost);
        let mut lessor = self.lessor.lock();
        let mut links = Links(&mut lessor);
        let mut txn = self.store.begin(batch, &mut links);
        let response = txn.txn(request)?;
        txn.end();
        if fits { Ok(response) } else { Err(ApplyError::NoSpace) }
    }

    pub(super) fn delete_range(
        &mut self,
        batch: &mut Batch<'_>,
        request: &DeleteRangeRequest,
    ) -> Result<DeleteRangeResponse, ApplyError> {
        let mut lessor = self.lessor.lock();
        let mut links = Links(&mut lessor);
        let mut txn = self.store.begin(batch, &mut links);
        let response = txn.delete_range(request)?;
        txn.end();
        Ok(response)
    }

    pub(super) fn compaction(
        &mut self,
        batch: &mut Batch<'_>,
        request: &CompactionRequest,
        effect: &mut Effect,
    ) -> Result<CompactionResponse, ApplyError> {
        let job = self.store.compact(batch, request.revision)?;
        *effect = Effect::Compact(job);
        Ok(CompactionResponse { header: self.header() })
    }
}

/// The lessor as mvcc sees it.
pub(super) struct Links<'a>(pub &'a mut Lessor);

impl mvcc::Leases for Links<'_> {
    fn exists(&self, id: i64) -> bool {
        self.0.exists(id)
    }

    fn attach(&mut self, id: i64, key: &Bytes) {
        self.0.attach(id, key);
    }

    fn detach(&mut self, id: i64, key: &[u8]) {
        self.0.detach(id, key);
    }
}
