//! Care of members: status, alarms, defragmentation, hashes, leadership, downgrade.

use proto::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, DowngradeRequest,
    DowngradeResponse, HashKvRequest, HashKvResponse, HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse,
    SnapshotRequest, StatusRequest, StatusResponse, alarm_request::AlarmAction, downgrade_request::DowngradeAction,
    maintenance_client::MaintenanceClient,
};

use crate::{Client, Result, Snapshot, call::rpc};

/// Calls that mean one member go to whichever is next in turn; use [`Client::only`] to choose it.
impl Client {
    pub async fn status(&self) -> Result<StatusResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::status, StatusRequest {})
    }

    pub async fn alarms(&self) -> Result<AlarmResponse> {
        let request = AlarmRequest { action: AlarmAction::Get.into(), ..Default::default() };
        rpc!(self.caller, Repeatable, MaintenanceClient::alarm, request)
    }

    pub async fn disarm(&self, alarm: AlarmMember) -> Result<AlarmResponse> {
        let AlarmMember { member_id, alarm } = alarm;
        let request = AlarmRequest { action: AlarmAction::Deactivate.into(), member_id, alarm };
        rpc!(self.caller, Once, MaintenanceClient::alarm, request)
    }

    /// Disarms every alarm there is and returns those it disarmed.
    pub async fn disarm_all(&self) -> Result<Vec<AlarmMember>> {
        let mut disarmed = Vec::new();
        for alarm in self.alarms().await?.alarms {
            disarmed.extend(self.disarm(alarm).await?.alarms);
        }
        Ok(disarmed)
    }

    pub async fn defragment(&self) -> Result<DefragmentResponse> {
        rpc!(self.caller, Once, MaintenanceClient::defragment, DefragmentRequest {})
    }

    pub async fn hash(&self) -> Result<HashResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::hash, HashRequest {})
    }

    /// The hash of all keys up to `revision`; 0 means the latest.
    pub async fn hash_kv(&self, revision: i64) -> Result<HashKvResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::hash_kv, HashKvRequest { revision })
    }

    /// Must be sent to the leader.
    pub async fn move_leader(&self, target: u64) -> Result<MoveLeaderResponse> {
        rpc!(self.caller, Once, MaintenanceClient::move_leader, MoveLeaderRequest { target_id: target })
    }

    pub async fn downgrade(&self, action: DowngradeAction, version: &str) -> Result<DowngradeResponse> {
        let request = DowngradeRequest { action: action.into(), version: version.to_owned() };
        rpc!(self.caller, Once, MaintenanceClient::downgrade, request)
    }

    /// A copy of one member's database as a stream of pieces.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        // The client's timeout is for answers; a copy takes as long as it takes.
        let caller = self.with_timeout(None).caller;
        let stream = rpc!(caller, Repeatable, MaintenanceClient::snapshot, SnapshotRequest {})?;
        Snapshot::open(stream).await
    }
}
