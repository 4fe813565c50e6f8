//! Care of members: status, alarms, defragmentation, hashes, leadership, downgrade.

use proto::etcdserverpb::{
    AlarmMember, AlarmRequest, AlarmResponse, DefragmentRequest, DefragmentResponse, DowngradeRequest,
    DowngradeResponse, HashKvRequest, HashKvResponse, HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse,
    SnapshotRequest, StatusRequest, StatusResponse, alarm_request::AlarmAction, downgrade_request::DowngradeAction,
    maintenance_client::MaintenanceClient,
};

use crate::{Client, Result, Snapshot, call::rpc};

/// Calls that address one member go to the next member in turn; use [`Client::only`] to choose one.
impl Client {
    /// Returns the state of one member: version, size of its database, leader, raft index and
    /// errors.
    pub async fn status(&self) -> Result<StatusResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::status, StatusRequest {})
    }

    /// Returns the alarms of all members.
    pub async fn alarms(&self) -> Result<AlarmResponse> {
        let request = AlarmRequest { action: AlarmAction::Get.into(), ..Default::default() };
        rpc!(self.caller, Repeatable, MaintenanceClient::alarm, request)
    }

    /// Clears an alarm of a member.
    pub async fn disarm(&self, alarm: AlarmMember) -> Result<AlarmResponse> {
        let AlarmMember { member_id, alarm } = alarm;
        let request = AlarmRequest { action: AlarmAction::Deactivate.into(), member_id, alarm };
        rpc!(self.caller, Once, MaintenanceClient::alarm, request)
    }

    /// Clears all alarms and returns those that it cleared.
    pub async fn disarm_all(&self) -> Result<Vec<AlarmMember>> {
        let mut disarmed = Vec::new();
        for alarm in self.alarms().await?.alarms {
            disarmed.extend(self.disarm(alarm).await?.alarms);
        }
        Ok(disarmed)
    }

    /// Rewrites the database of one member without free space. A Lockgate member continues to serve
    /// requests meanwhile; an etcd member blocks them.
    pub async fn defragment(&self) -> Result<DefragmentResponse> {
        rpc!(self.caller, Once, MaintenanceClient::defragment, DefragmentRequest {})
    }

    /// Returns the hash of one member's whole database, for tests: members with equal keys may have
    /// different hashes.
    pub async fn hash(&self) -> Result<HashResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::hash, HashRequest {})
    }

    /// Returns the hash of one member's keys up to `revision`; 0 means the latest. Equal for all
    /// members at one compaction revision.
    pub async fn hash_kv(&self, revision: i64) -> Result<HashKvResponse> {
        rpc!(self.caller, Repeatable, MaintenanceClient::hash_kv, HashKvRequest { revision })
    }

    /// Transfers the leadership to the member with the id `target`. Must be sent to the leader: see
    /// [`Client::only`].
    pub async fn move_leader(&self, target: u64) -> Result<MoveLeaderResponse> {
        rpc!(self.caller, Once, MaintenanceClient::move_leader, MoveLeaderRequest { target_id: target })
    }

    /// Validates, enables or cancels a downgrade of the cluster to `version`, such as `3.6.0`.
    pub async fn downgrade(&self, action: DowngradeAction, version: &str) -> Result<DowngradeResponse> {
        let request = DowngradeRequest { action: action.into(), version: version.to_owned() };
        rpc!(self.caller, Once, MaintenanceClient::downgrade, request)
    }

    /// Opens a stream of one member's database. The client's timeout applies to none of it.
    pub async fn snapshot(&self) -> Result<Snapshot> {
        // The client's timeout is for answers; a copy takes as long as it takes.
        let caller = self.with_timeout(None).caller;
        let stream = rpc!(caller, Repeatable, MaintenanceClient::snapshot, SnapshotRequest {})?;
        Snapshot::open(stream).await
    }
}
