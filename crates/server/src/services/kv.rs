//! KV: range, put, delete, txn, compaction.

use std::time::Instant;

use membership::ATOMIC_INCREMENT;
use mvcc::check;
use node::{Response as Applied, quota};
use proto::etcdserverpb::{
    AlarmRequest, AlarmType, CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse,
    IncrementRequest, IncrementResponse, InternalRaftRequest, PutRequest, PutResponse, RangeRequest, RangeResponse,
    TxnRequest, TxnResponse, alarm_request::AlarmAction, kv_server::Kv,
};
use tonic::{Request, Response, Status};

use super::{Context, mismatch, range_stream::RangeChunks};
use crate::{metrics::server::Op, status};

pub(crate) struct KvService(pub Context);

#[tonic::async_trait]
impl Kv for KvService {
    type RangeStreamStream = RangeChunks;

    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        let mut response = self.0.range(request.get_ref()).await?.into_response();
        response.header = self.0.fill(response.header);
        Ok(Response::new(response))
    }

    async fn range_stream(&self, request: Request<RangeRequest>) -> Result<Response<RangeChunks>, Status> {
        let request = request.into_inner();
        check::range_stream(&request).map_err(|e| status::from_check(&e))?;
        self.0.settle(!request.serializable).await?;
        let permit = self.0.permit(|users, who| users.may_read(who, &request.key, &request.range_end)).await?;
        Ok(Response::new(RangeChunks::new(self.0.clone(), request, permit)))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        self.0.put(request.into_inner()).await.map(Response::new)
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let request = request.into_inner();
        check::delete_range(&request).map_err(|e| status::from_check(&e))?;
        let delete = InternalRaftRequest { delete_range: Some(request), ..Default::default() };
        match self.0.propose(delete).await? {
            Applied::DeleteRange(mut response) => {
                response.header = self.0.fill(response.header);
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let request = request.into_inner();
        check::txn(&request, self.0.limits.txn_ops_max).map_err(|e| status::from_check(&e))?;
        let mut response = if mvcc::is_read_only(&request) {
            let begin = Instant::now();
            self.0.settle(!mvcc::is_serializable(&request)).await?;
            let keys_of = |id, visit: &mut dyn FnMut(&[u8]) -> bool| {
                self.0.node.lessor().lock().keys(id).iter().all(|key| visit(key));
            };
            let permit = self.0.permit(|users, who| users.may_txn(who, &request, &keys_of)).await?;
            let result = self.0.node.store().read_txn(&request);
            self.0.check_still(permit)?;
            let took = begin.elapsed().as_secs_f64();
            self.0.metrics.server.request_duration.observe(Op::ReadonlyTxn, result.is_ok(), took);
            result.map_err(|e| status::from_mvcc(&e))?
        } else {
            self.0.check_quota(quota::txn_cost(&request))?;
            let txn = InternalRaftRequest { txn: Some(request), ..Default::default() };
            match self.0.propose(txn).await? {
                Applied::Txn(response) => response,
                other => return Err(mismatch(&other)),
            }
        };
        response.header = self.0.fill(response.header);
        Ok(Response::new(response))
    }

    async fn increment(&self, request: Request<IncrementRequest>) -> Result<Response<IncrementResponse>, Status> {
        let request = request.into_inner();
        check::increment(&request).map_err(|e| status::from_check(&e))?;
        self.0.check_has_gate(ATOMIC_INCREMENT.name()).await?;
        self.0.check_quota(quota::increment_cost(&request))?;
        let increment = InternalRaftRequest { increment: Some(request), ..Default::default() };
        match self.0.propose(increment).await? {
            Applied::Increment(mut response) => {
                response.header = self.0.fill(response.header);
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }

    async fn compact(&self, request: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        self.0.require_admin().await?;
        let request = request.into_inner();
        let physical = request.physical;
        let compaction = InternalRaftRequest { compaction: Some(request), ..Default::default() };
        match self.0.propose(compaction).await? {
            Applied::Compaction { mut response, finished } => {
                if physical && let Some(finished) = finished {
                    // Closed without a word if the server stops first.
                    finished.await.map_err(|_| status::stopped())?;
                }
                response.header = Some(self.0.header());
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }
}

impl Context {
    pub(super) async fn put(&self, request: PutRequest) -> Result<PutResponse, Status> {
        check::put(&request).map_err(|e| status::from_check(&e))?;
        self.check_quota(quota::put_cost(&request))?;
        let put = InternalRaftRequest { put: Some(request), ..Default::default() };
        match self.propose(put).await? {
            Applied::Put(mut response) => {
                response.header = self.fill(response.header);
                Ok(response)
            }
            other => Err(mismatch(&other)),
        }
    }

    /// Turns a write away before it enters the log, and raises the alarm.
    pub(super) fn check_quota(&self, cost: u64) -> Result<(), Status> {
        if self.node.quota().fits(self.node.backend(), cost) {
            return Ok(());
        }
        if !self.node.has_no_space_alarm() {
            let alarm = AlarmRequest {
                action: AlarmAction::Activate as i32,
                member_id: self.member_id,
                alarm: AlarmType::Nospace as i32,
            };
            self.node.propose_quietly(InternalRaftRequest { alarm: Some(alarm), ..Default::default() });
        }
        Err(status::no_space())
    }
}
