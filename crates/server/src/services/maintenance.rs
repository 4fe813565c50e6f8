//! Maintenance: status, alarms, defragmentation, hashes, snapshots, downgrade.

use std::time::{Duration, Instant};

use membership::MemberId;
use node::Response as Applied;
use proto::{
    Version,
    etcdserverpb::{
        AlarmMember, AlarmRequest, AlarmResponse, AlarmType, DefragmentRequest, DefragmentResponse, DowngradeInfo,
        DowngradeRequest, DowngradeResponse, FeatureGateHistoryRequest, FeatureGateStatusRequest,
        FeatureGateStatusResponse, HashKvRequest, HashKvResponse, HashRequest, HashResponse, InternalRaftRequest,
        MoveLeaderRequest, MoveLeaderResponse, SnapshotRequest, StatusRequest, StatusResponse,
        alarm_request::AlarmAction, downgrade_request::DowngradeAction, maintenance_server::Maintenance,
    },
    membershippb::DowngradeInfoSetRequest,
};
use storage::schema;
use tonic::{Request, Response, Status};

use super::{Context, feature_gate::GateHistory, mismatch};
use crate::{VERSION, snapshot::Pieces, status};

/// How often it is looked whether the file has come down.
const SETTLE_LOOK: Duration = Duration::from_millis(50);

pub(crate) struct MaintenanceService(pub Context);

#[tonic::async_trait]
impl Maintenance for MaintenanceService {
    type SnapshotStream = Pieces;
    type FeatureGateHistoryStream = GateHistory;

    async fn feature_gate_status(
        &self,
        request: Request<FeatureGateStatusRequest>,
    ) -> Result<Response<FeatureGateStatusResponse>, Status> {
        self.0.require_login().await?;
        self.0.feature_gate_status(request.get_ref()).await.map(Response::new)
    }

    async fn feature_gate_history(
        &self,
        request: Request<FeatureGateHistoryRequest>,
    ) -> Result<Response<GateHistory>, Status> {
        self.0.require_login().await?;
        self.0.feature_gate_history(request.get_ref()).map(Response::new)
    }

    async fn alarm(&self, request: Request<AlarmRequest>) -> Result<Response<AlarmResponse>, Status> {
        let request = request.into_inner();
        match request.action() {
            AlarmAction::Get => self.0.require_login().await?,
            AlarmAction::Activate | AlarmAction::Deactivate => self.0.require_admin().await?,
        }
        let alarm = InternalRaftRequest { alarm: Some(request), ..Default::default() };
        match self.0.propose(alarm).await? {
            Applied::Alarm(mut response) => {
                response.header = self.0.fill(response.header);
                Ok(Response::new(response))
            }
            other => Err(mismatch(&other)),
        }
    }

    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.0.require_login().await?;
        let node = &self.0.node;
        let at = node.status();
        let view = node.backend().view();
        let storage_version = schema::meta::storage_version(&view).ok().flatten();
        let downgrade = schema::cluster::downgrade(&view).ok().flatten().unwrap_or_default();
        let mut errors = Vec::new();
        if at.leader == 0 {
            errors.push(status::no_leader().message().to_owned());
        }
        errors.extend(node.alarms().iter().map(alarm_text));
        Ok(Response::new(StatusResponse {
            header: Some(self.0.header()),
            version: VERSION.into(),
            db_size: node.backend().size() as i64,
            leader: at.leader,
            raft_index: at.commit_index,
            raft_term: at.term,
            raft_applied_index: at.applied_index,
            errors,
            db_size_in_use: node.backend().size_in_use() as i64,
            is_learner: node.is_learner(),
            storage_version: storage_version.map(|v| v.stored()).unwrap_or_default(),
            db_size_quota: node.quota().bytes_max().map_or(-1, |max| max as i64),
            downgrade_info: Some(DowngradeInfo {
                enabled: downgrade.enabled,
                target_version: downgrade.target_version,
            }),
        }))
    }

    async fn defragment(&self, _: Request<DefragmentRequest>) -> Result<Response<DefragmentResponse>, Status> {
        self.0.require_admin().await?;
        let backend = self.0.node.backend().clone();
        tracing::info!("starting defragment");
        let done = tokio::task::spawn_blocking(move || backend.defrag()).await;
        match done.map_err(|e| status::unknown(e.to_string()))? {
            Ok(report) => {
                tracing::info!(?report, "finished defragment");
                Ok(Response::new(DefragmentResponse { header: None }))
            }
            Err(error) => {
                tracing::warn!(%error, "failed to defragment");
                Err(status::unknown(error.to_string()))
            }
        }
    }

    async fn hash(&self, _: Request<HashRequest>) -> Result<Response<HashResponse>, Status> {
        self.0.require_admin().await?;
        let (backend, store) = (self.0.node.backend().clone(), self.0.node.store().clone());
        let begin = Instant::now();
        let hash = tokio::task::spawn_blocking(move || (backend.hash(), store.revision())).await;
        self.0.metrics.mvcc.hash.observe(begin.elapsed().as_secs_f64());
        let (hash, revision) = hash.map_err(|e| status::unknown(e.to_string()))?;
        let hash = hash.map_err(|e| status::unknown(e.to_string()))?;
        Ok(Response::new(HashResponse { header: Some(self.0.header_at(revision)), hash }))
    }

    async fn hash_kv(&self, request: Request<HashKvRequest>) -> Result<Response<HashKvResponse>, Status> {
        self.0.require_admin().await?;
        let (store, revision) = (self.0.node.store().clone(), request.into_inner().revision);
        let begin = Instant::now();
        let hash = tokio::task::spawn_blocking(move || store.hash_kv(revision)).await;
        self.0.metrics.mvcc.hash_rev.observe(begin.elapsed().as_secs_f64());
        let hash = hash.map_err(|e| status::unknown(e.to_string()))?.map_err(|e| status::from_mvcc(&e))?;
        Ok(Response::new(HashKvResponse {
            header: Some(self.0.header_at(hash.revision)),
            hash: hash.hash,
            compact_revision: hash.compact_revision,
            hash_revision: hash.hash_revision,
        }))
    }

    async fn snapshot(&self, _: Request<SnapshotRequest>) -> Result<Response<Self::SnapshotStream>, Status> {
        self.0.require_admin().await?;
        self.0.wait_until_storage_is_settled().await?;
        let backend = self.0.node.backend().clone();
        let pieces = tokio::task::spawn_blocking(move || Pieces::open(&backend)).await;
        Ok(Response::new(pieces.map_err(|e| status::unknown(e.to_string()))??))
    }

    async fn move_leader(&self, request: Request<MoveLeaderRequest>) -> Result<Response<MoveLeaderResponse>, Status> {
        self.0.require_admin().await?;
        let target = request.into_inner().target_id;
        if self.0.node.status().leader != self.0.member_id() {
            return Err(status::not_leader());
        }
        if target == self.0.member_id() {
            return Ok(Response::new(MoveLeaderResponse { header: None }));
        }
        let node = &self.0.node;
        node.move_leader(MemberId(target), node.request_timeout()).await.map_err(status::from_move)?;
        Ok(Response::new(MoveLeaderResponse { header: None }))
    }

    async fn downgrade(&self, request: Request<DowngradeRequest>) -> Result<Response<DowngradeResponse>, Status> {
        self.0.require_admin().await?;
        let request = request.into_inner();
        match DowngradeAction::try_from(request.action) {
            Ok(DowngradeAction::Validate) => self.downgrade_validate(&request.version).await,
            Ok(DowngradeAction::Enable) => self.downgrade_enable(&request.version).await,
            Ok(DowngradeAction::Cancel) => self.downgrade_cancel().await,
            Err(_) => Err(status::unknown("etcdserver: unknown method")),
        }
    }
}

impl MaintenanceService {
    /// As in etcd: that there was nothing to cancel is logged, and no error.
    async fn downgrade_cancel(&self) -> Result<Response<DowngradeResponse>, Status> {
        let job = schema::cluster::downgrade(&self.0.node.backend().view()).ok().flatten().unwrap_or_default();
        if job.enabled {
            let downgrade_info_set = Some(DowngradeInfoSetRequest::default());
            self.0.propose(InternalRaftRequest { downgrade_info_set, ..Default::default() }).await?;
        } else {
            tracing::warn!(error = status::no_inflight_downgrade().message(), "failed to cancel downgrade");
        }
        let version = self.0.node.cluster_version().map(|v| v.to_string()).unwrap_or_default();
        Ok(Response::new(DowngradeResponse { header: Some(self.0.header()), version }))
    }

    async fn downgrade_enable(&self, target: &str) -> Result<Response<DowngradeResponse>, Status> {
        let validated = self.downgrade_validate(target).await?;
        let target: Version = target.parse().map_err(|_| status::wrong_downgrade_version_format())?;
        let downgrade_info_set = Some(DowngradeInfoSetRequest { enabled: true, ver: target.stored() });
        self.0.propose(InternalRaftRequest { downgrade_info_set, ..Default::default() }).await?;
        tracing::info!(target_version = %target, "downgrade is enabled");
        Ok(validated)
    }

    async fn downgrade_validate(&self, target: &str) -> Result<Response<DowngradeResponse>, Status> {
        self.0.linearize().await?;
        let target: Version = target.parse().map_err(|_| status::wrong_downgrade_version_format())?;
        let current = self.0.node.cluster_version().ok_or_else(status::cluster_version_unavailable)?;
        let allowed = Version::new(current.major, current.minor.saturating_sub(1));
        // A Lockgate member could not follow the cluster below its minimum, and would refuse its own data dir.
        if target != allowed || target < membership::JOIN_VERSION_MIN {
            return Err(status::invalid_downgrade_target_version());
        }
        let view = self.0.node.backend().view();
        let job = schema::cluster::downgrade(&view).ok().flatten().unwrap_or_default();
        if job.enabled {
            return Err(status::downgrade_in_process());
        }
        Ok(Response::new(DowngradeResponse { header: Some(self.0.header()), version: current.to_string() }))
    }
}

impl Context {
    /// While the file is on its way down from one version to another, a copy of it would fit neither.
    async fn wait_until_storage_is_settled(&self) -> Result<(), Status> {
        let deadline = Instant::now() + self.node.request_timeout();
        loop {
            let storage = schema::meta::storage_version(&self.node.backend().view()).ok().flatten();
            match (storage, self.node.cluster_version()) {
                (Some(storage), Some(cluster)) if storage > cluster && Instant::now() < deadline => {}
                (Some(storage), Some(cluster)) if storage > cluster => {
                    return Err(status::storage_on_its_way(storage, cluster));
                }
                _ => return Ok(()),
            }
            tokio::time::sleep(SETTLE_LOOK).await;
        }
    }
}

/// As Go prints the message.
fn alarm_text(alarm: &AlarmMember) -> String {
    let kind = AlarmType::try_from(alarm.alarm);
    let kind = kind.map_or_else(|_| alarm.alarm.to_string(), |kind| kind.as_str_name().to_owned());
    format!("memberID:{}  alarm:{kind}", alarm.member_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_printed_by_name_or_number() {
        let text = |alarm| alarm_text(&AlarmMember { member_id: 7, alarm });
        assert_eq!(text(1), "memberID:7  alarm:NOSPACE");
        assert_eq!(text(9), "memberID:7  alarm:9");
        assert_eq!(text(-3), "memberID:7  alarm:-3");
    }
}
