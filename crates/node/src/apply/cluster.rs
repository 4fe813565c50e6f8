//! Applying cluster versions, member attributes, downgrade jobs and configuration changes.

use membership::{ChangeError, Cluster, Member, MemberId};
use prost::Message;
use proto::{
    Version,
    membershippb::{ClusterMemberAttrSetRequest, ClusterVersionSetRequest, DowngradeInfoSetRequest},
    raftpb::{self, ConfChangeType},
};
use storage::{
    Batch,
    schema::{self, MemberRecord},
};

use super::{Effect, Outcome, Response, State};
use crate::error::{ApplyError, FatalError};

impl State {
    /// The file follows the cluster version: going up, both change in this batch, before any field of the new version
    /// can be written.
    pub(super) fn cluster_version_set(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        request: &ClusterVersionSetRequest,
    ) -> Result<Result<Response, ApplyError>, FatalError> {
        let version: Version = request
            .ver
            .parse()
            .map_err(|_| FatalError::BadEntry { index, why: format!("{:?} is not a version", request.ver) })?;
        if version > self.binary_version {
            return Err(FatalError::ClusterTooNew { binary: self.binary_version, cluster: version });
        }
        let old = self.cluster.read().version();
        self.cluster.write().set_version(version);
        schema::cluster::put_version(batch, version);
        if old.is_none_or(|old| old <= version) && version >= schema::version::V3_6 {
            schema::meta::put_storage_version(batch, version);
        }
        match old {
            Some(old) if old == version => {}
            Some(old) => tracing::info!(from = %old, to = %version, "updated cluster version"),
            None => tracing::info!(cluster_version = %version, "set initial cluster version"),
        }
        Ok(Ok(Response::None))
    }

    pub(super) fn member_attr_set(
        &mut self,
        batch: &mut Batch<'_>,
        request: ClusterMemberAttrSetRequest,
    ) -> Result<Response, ApplyError> {
        let id = MemberId(request.member_id);
        let attributes = request.member_attributes.unwrap_or_default();
        let mut cluster = self.cluster.write();
        match cluster.set_attributes(id, attributes.name, attributes.client_urls) {
            Some(member) => schema::member::put(batch, &record(member)),
            None => tracing::warn!(member = %id, "skipped attributes of a member that is not in the cluster"),
        }
        Ok(Response::None)
    }

    pub(super) fn downgrade_info_set(
        &mut self,
        batch: &mut Batch<'_>,
        request: DowngradeInfoSetRequest,
    ) -> Result<Response, ApplyError> {
        let target_version = if request.enabled { request.ver } else { String::new() };
        schema::cluster::put_downgrade(batch, &schema::cluster::Downgrade { target_version, enabled: request.enabled });
        Ok(Response::None)
    }

    pub(super) fn apply_conf_change(
        &mut self,
        batch: &mut Batch<'_>,
        entry: &raftpb::Entry,
    ) -> Result<Outcome, FatalError> {
        let bad = |why: String| FatalError::BadEntry { index: entry.index(), why };
        let data = entry.data.clone().unwrap_or_default();
        let change = raftpb::ConfChange::decode(data).map_err(|e| bad(e.to_string()))?;
        let result = self.change_members(batch, &change).map_err(bad)?;
        if let Err(error) = &result {
            tracing::warn!(%error, index = entry.index(), "skipped a configuration change");
        }
        let refused = result.is_err();
        if !refused {
            // With the members it follows from, so that no crash can part them.
            schema::meta::put_conf_state(batch, &conf_state(&self.cluster.read()));
        }
        let request_id = change.id();
        let result = result.map(|()| Response::None).map_err(ApplyError::from);
        Ok(Outcome { request_id, result, effect: Effect::ConfChange { change, refused } })
    }

    /// The outer error is an entry that cannot be read, the inner one a change that is refused.
    fn change_members(
        &mut self,
        batch: &mut Batch<'_>,
        change: &raftpb::ConfChange,
    ) -> Result<Result<(), ChangeError>, String> {
        let id = MemberId(change.node_id());
        let mut cluster = self.cluster.write();
        if change.r#type() == ConfChangeType::ConfChangeRemoveNode {
            return Ok(cluster.remove(id).map(|()| schema::member::remove(batch, id.0)));
        }
        let context = change.context.clone().unwrap_or_default();
        let promote = is_promotion(&context);
        let member = MemberRecord::from_json(&context).map_err(|e| format!("bad member: {e}"))?;
        let member = member_of(member);
        if member.id != id {
            return Err(format!("the change is for {id} but holds member {}", member.id));
        }
        let changed = match change.r#type() {
            ConfChangeType::ConfChangeUpdateNode => cluster.update_peer_urls(&member).cloned(),
            _ if promote => cluster.promote(id).cloned(),
            _ => cluster.add(member.clone()).map(|()| member),
        };
        Ok(changed.map(|member| {
            tracing::info!(member = %member.id, peer_urls = ?member.peer_urls, learner = member.is_learner, "added member");
            schema::member::put(batch, &record(&member));
        }))
    }
}

/// The configuration that the members make.
pub(crate) fn conf_state(cluster: &Cluster) -> raftpb::ConfState {
    raftpb::ConfState {
        voters: cluster.voters().map(|id| id.0).collect(),
        learners: cluster.learners().map(|id| id.0).collect(),
        auto_leave: Some(false),
        ..Default::default()
    }
}

/// The member as the schema writes it.
pub(crate) fn record(member: &Member) -> MemberRecord {
    MemberRecord {
        id: member.id.0,
        peer_urls: member.peer_urls.clone(),
        is_learner: member.is_learner,
        name: member.name.clone(),
        client_urls: member.client_urls.clone(),
    }
}

pub(crate) fn member_of(record: MemberRecord) -> Member {
    Member {
        id: MemberId(record.id),
        peer_urls: record.peer_urls,
        is_learner: record.is_learner,
        name: record.name,
        client_urls: record.client_urls,
    }
}

/// A promotion is an addition whose member has the key `isPromote`.
fn is_promotion(context: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Flag {
        #[serde(rename = "isPromote", default)]
        promote: bool,
    }
    serde_json::from_slice::<Flag>(context).is_ok_and(|f| f.promote)
}
