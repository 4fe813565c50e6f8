//! Apply: one committed entry becomes a change of replicated state.
//!
//! **Invariant:** what an entry changes depends on the state and the entry alone, so that every member writes the same
//! bytes; the entry's index and term are recorded in the same batch. What only this member knows (its clock, its quota, who
//! waits for the answer) may shape the answer, never the change.

mod alarm;
mod auth;
pub(crate) mod cluster;
pub(crate) mod gate;
mod increment;
mod kv;
mod lease;
pub mod quota;
#[cfg(test)]
mod required_tests;
#[cfg(test)]
pub(crate) mod test_state;

use std::sync::Arc;

use bytes::Bytes;
use failpoint::failpoint;
use membership::{ATOMIC_INCREMENT, Cluster, NotYet, Reason, may_log_data};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use proto::{
    etcdserverpb::{
        AlarmResponse, CompactionResponse, DeleteRangeResponse, IncrementResponse, InternalRaftRequest,
        LeaseCheckpointResponse, LeaseGrantResponse, LeaseRevokeResponse, PutResponse, ResponseHeader, TxnResponse,
    },
    raftpb,
};
use storage::{Backend, Batch};
use tokio::sync::oneshot;

pub(crate) use self::{alarm::Alarms, auth::Auth};
pub use self::{
    auth::AuthAnswer,
    gate::{Gates, change_record},
    increment::IncrementError,
    quota::Quota,
};
use crate::{
    error::{ApplyError, FatalError},
    world::{Observer, Time},
};

/// From this cluster version on there is no member that is not ours.
const OURS_ALONE: proto::Version = proto::Version::new(3, 8);

/// What a request is answered with.
#[derive(Debug)]
pub enum Response {
    Put(PutResponse),
    DeleteRange(DeleteRangeResponse),
    Txn(TxnResponse),
    /// `finished` is told when the keys are gone for good.
    Compaction {
        response: CompactionResponse,
        finished: Option<oneshot::Receiver<()>>,
    },
    Increment(IncrementResponse),
    LeaseGrant(LeaseGrantResponse),
    LeaseRevoke(LeaseRevokeResponse),
    LeaseCheckpoint(LeaseCheckpointResponse),
    Alarm(AlarmResponse),
    Auth(AuthAnswer),
    /// Nothing to tell: versions, attributes, empty entries.
    None,
}

/// The result of one entry, and what the node must do besides.
pub(crate) struct Outcome {
    /// 0 for entries without a request.
    pub request_id: u64,
    pub result: Result<Response, ApplyError>,
    pub effect: Effect,
}

/// What follows from an entry outside of replicated state.
pub(crate) enum Effect {
    None,
    /// Keys may be deleted up to the compaction's revision.
    Compact(mvcc::CompactionJob),
    /// The core's configuration must follow; `refused` changes still count as seen.
    ConfChange {
        change: raftpb::ConfChange,
        refused: bool,
    },
    /// The first entry of a leader's term.
    LeaderStart,
    /// The cluster version has come down, and the file must follow.
    VersionLowered,
}

/// The replicated state of a member, and what apply needs to know of the member itself.
pub(crate) struct State {
    pub backend: Backend,
    pub store: Arc<mvcc::Store>,
    pub lessor: Arc<Mutex<::lease::Lessor>>,
    pub cluster: Arc<RwLock<Cluster>>,
    pub gates: Arc<Gates>,
    pub alarms: Arc<Alarms>,
    pub auth: Auth,
    pub quota: Quota,
    pub binary_version: proto::Version,
    /// The first entry of a cluster that was forced to begin anew: it has neither gate nor proposals. What was committed
    /// before it is applied under the gate that it was committed under.
    pub begins_anew: Option<u64>,
    /// The lessor's.
    pub time: Time,
    pub observer: Arc<dyn Observer>,
}

impl State {
    /// Applies one entry.
    pub(crate) fn apply(&mut self, entry: &raftpb::Entry) -> Result<Outcome, FatalError> {
        let backend = self.backend.clone();
        let mut batch = backend.write();
        if self.begins_anew == Some(entry.index()) {
            self.forget_gate(&mut batch, entry.index());
        }
        let outcome = match entry.r#type() {
            raftpb::EntryType::EntryNormal => {
                failpoint!("beforeApplyOneEntryNormal");
                self.apply_normal(&mut batch, entry)
            }
            raftpb::EntryType::EntryConfChange => {
                failpoint!("beforeApplyOneConfChange");
                self.apply_conf_change(&mut batch, entry)
            }
            raftpb::EntryType::EntryConfChangeV2 => Err(FatalError::UnknownRequest {
                index: entry.index(),
                what: "a joint configuration change; etcd never writes one".into(),
            }),
        }?;
        batch.set_consistent(entry.index(), entry.term());
        Ok(outcome)
    }

    fn apply_normal(&mut self, batch: &mut Batch<'_>, entry: &raftpb::Entry) -> Result<Outcome, FatalError> {
        let data = match &entry.data {
            Some(data) if !data.is_empty() => data.clone(),
            _ => return Ok(Outcome { request_id: 0, result: Ok(Response::None), effect: Effect::LeaderStart }),
        };
        let bad = |why: String| FatalError::BadEntry { index: entry.index(), why };
        let refused = self.check_version(&data, entry.index())?;
        let request = InternalRaftRequest::decode(data).map_err(|e| bad(e.to_string()))?;
        let request_id = match (request.id, &request.header) {
            (0, Some(header)) => header.id,
            (0, None) => return Err(bad("the request has neither id nor header".into())),
            (id, _) => id,
        };
        if let Some(why) = refused {
            tracing::error!(%why, index = entry.index(), "skipped an entry");
            return Ok(Outcome { request_id, result: Err(ApplyError::NotYet(Box::new(why))), effect: Effect::None });
        }
        // Who may not ask learns nothing of features.
        if let Err(error) = self.admit(&request) {
            return Ok(Outcome { request_id, result: Err(error), effect: Effect::None });
        }
        if let Some(off) = self.missing_feature(&request) {
            return Ok(Outcome { request_id, result: Err(ApplyError::FeatureOff(off)), effect: Effect::None });
        }
        let mut effect = Effect::None;
        let (begin, name) = (self.time.now(), request_name(&request));
        let result = self.dispatch(batch, entry.index(), request, &mut effect)?;
        // As in etcd: that a revision is gone is an answer, and no failure.
        let success = matches!(result, Ok(_) | Err(ApplyError::Mvcc(mvcc::Error::Compacted { .. })));
        self.observer.applied(name, success, self.time.now().saturating_duration_since(begin));
        if let Err(ApplyError::Mvcc(error @ mvcc::Error::Missing { .. })) = &result {
            // Only this member's file is damaged: others would answer otherwise.
            return Err(FatalError::Damaged { index: entry.index(), what: error.to_string() });
        }
        Ok(Outcome { request_id, result, effect })
    }

    /// An entry that is newer than the cluster version is skipped, alike on every member. One with parts that this
    /// binary does not know is applied without them as long as etcd may be among the members, which does so too.
    fn check_version(&self, data: &Bytes, index: u64) -> Result<Option<NotYet>, FatalError> {
        let version = self.cluster.read().version();
        match may_log_data(data, version) {
            Err(why @ NotYet { reason: Reason::Newer { .. }, .. }) => Ok(Some(why)),
            Err(why @ NotYet { reason: Reason::Unknown { .. }, .. }) if version >= Some(OURS_ALONE) => {
                Err(FatalError::UnknownRequest { index, what: why.to_string() })
            }
            Ok(()) | Err(_) => Ok(None),
        }
    }

    fn dispatch(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        r: InternalRaftRequest,
        effect: &mut Effect,
    ) -> Result<Result<Response, ApplyError>, FatalError> {
        if let Some(r) = r.cluster_version_set {
            return self.cluster_version_set(batch, index, &r, effect);
        }
        if let Some(r) = r.cluster_member_attr_set {
            return self.member_attr_set(batch, index, r).map(Ok);
        }
        if let Some(r) = r.downgrade_info_set {
            return Ok(self.downgrade_info_set(batch, r));
        }
        let corrupt = self.alarms.corrupt();
        Ok(if let Some(r) = r.put {
            self.guard(corrupt).and_then(|()| self.put(batch, &r)).map(Response::Put)
        } else if let Some(r) = r.txn {
            self.guard(corrupt).and_then(|()| self.txn(batch, &r)).map(Response::Txn)
        } else if let Some(r) = r.delete_range {
            self.guard(corrupt).and_then(|()| self.delete_range(batch, &r)).map(Response::DeleteRange)
        } else if let Some(r) = r.increment {
            self.guard(corrupt).and_then(|()| self.increment(batch, &r)).map(Response::Increment)
        } else if let Some(r) = r.compaction {
            let response = self.guard(corrupt).and_then(|()| self.compaction(batch, &r, effect));
            response.map(|response| Response::Compaction { response, finished: None })
        } else if let Some(r) = r.lease_grant {
            self.guard(corrupt).and_then(|()| self.lease_grant(batch, &r)).map(Response::LeaseGrant)
        } else if let Some(r) = r.lease_revoke {
            self.guard(corrupt).and_then(|()| self.lease_revoke(batch, &r)).map(Response::LeaseRevoke)
        } else if let Some(r) = r.lease_checkpoint {
            self.lease_checkpoint(batch, &r).map(Response::LeaseCheckpoint)
        } else if let Some(r) = r.alarm {
            Ok(Response::Alarm(self.alarm(batch, &r)))
        } else if r.range.is_some() || r.downgrade_version_test.is_some() {
            // Reads through the log and etcd's test requests change nothing.
            Ok(Response::None)
        } else if let Some(result) = self.auth_request(batch, index, &r)? {
            result
        } else {
            return Err(FatalError::UnknownRequest { index, what: crate::bootstrap::UNKNOWN_KIND.into() });
        })
    }

    /// A feature that the request requires, or belongs to, and that is off as of this entry.
    fn missing_feature(&self, request: &InternalRaftRequest) -> Option<String> {
        let required = request.header.as_ref().map_or(&[][..], |header| &header.required_features);
        let own = request.increment.as_ref().map(|_| ATOMIC_INCREMENT).filter(|feature| !self.gates.has(*feature));
        let off = required.iter().find(|name| !self.gates.enabled().has_named(name));
        own.map(|feature| feature.name().to_owned())
            .or_else(|| off.map(|name| String::from_utf8_lossy(name).into_owned()))
    }

    /// With a CORRUPT alarm no key may be touched any more.
    fn guard(&self, corrupt: bool) -> Result<(), ApplyError> {
        if corrupt { Err(ApplyError::Corrupt) } else { Ok(()) }
    }

    /// The revision; the server fills in the rest.
    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision: self.store.revision(), ..Default::default() })
    }
}

/// What a request asks for, in the words of etcd's metrics.
pub fn request_name(r: &InternalRaftRequest) -> &'static str {
    let names = [
        (r.put.is_some(), "Put"),
        (r.txn.is_some(), "Txn"),
        (r.delete_range.is_some(), "DeleteRange"),
        (r.compaction.is_some(), "Compaction"),
        (r.lease_grant.is_some(), "LeaseGrant"),
        (r.lease_revoke.is_some(), "LeaseRevoke"),
        (r.lease_checkpoint.is_some(), "LeaseCheckpoint"),
        (r.alarm.is_some(), "Alarm"),
        (r.range.is_some(), "Range"),
        (r.cluster_version_set.is_some(), "ClusterVersionSet"),
        (r.cluster_member_attr_set.is_some(), "ClusterMemberAttrSet"),
        (r.downgrade_info_set.is_some(), "DowngradeInfoSet"),
        (r.downgrade_version_test.is_some(), "DowngradeVersionTest"),
        (r.increment.is_some(), "Increment"),
        (r.authenticate.is_some(), "Authenticate"),
        (r.auth_enable.is_some(), "AuthEnable"),
        (r.auth_disable.is_some(), "AuthDisable"),
        (r.auth_status.is_some(), "AuthStatus"),
        (r.auth_user_add.is_some(), "AuthUserAdd"),
        (r.auth_user_delete.is_some(), "AuthUserDelete"),
        (r.auth_user_change_password.is_some(), "AuthUserChangePassword"),
        (r.auth_user_grant_role.is_some(), "AuthUserGrantRole"),
        (r.auth_user_get.is_some(), "AuthUserGet"),
        (r.auth_user_revoke_role.is_some(), "AuthUserRevokeRole"),
        (r.auth_user_list.is_some(), "AuthUserList"),
        (r.auth_role_add.is_some(), "AuthRoleAdd"),
        (r.auth_role_grant_permission.is_some(), "AuthRoleGrantPermission"),
        (r.auth_role_get.is_some(), "AuthRoleGet"),
        (r.auth_role_revoke_permission.is_some(), "AuthRoleRevokePermission"),
        (r.auth_role_delete.is_some(), "AuthRoleDelete"),
        (r.auth_role_list.is_some(), "AuthRoleList"),
    ];
    names.into_iter().find(|(is, _)| *is).map_or("unknown", |(_, name)| name)
}
