//! Applying cluster versions, member attributes, downgrade jobs and configuration changes.

use membership::{Change, ChangeError, Changed, Cluster, ClusterId, Downgrade, Member, MemberId};
use prost::Message;
use proto::{
    Version,
    membershippb::{ClusterMemberAttrSetRequest, ClusterVersionSetRequest, DowngradeInfoSetRequest},
    raftpb,
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
        outcome: &mut Effect,
    ) -> Result<Result<Response, ApplyError>, FatalError> {
        let version: Version = request
            .ver
            .parse()
            .map_err(|_| FatalError::BadEntry { index, why: format!("{:?} is not a version", request.ver) })?;
        if version > self.binary_version {
            return Err(FatalError::ClusterTooNew { binary: self.binary_version, cluster: version });
        }
        if let Some(decision) = &request.feature_gates {
            // The version is what the decision was made for, and moves nothing.
            self.feature_gate_decision(batch, index, &request.ver, decision)?;
            return Ok(Ok(Response::None));
        }
        let old = self.cluster.read().version();
        let effect = {
            let mut cluster = self.cluster.write();
            let effect = cluster.apply_version(index, version);
            self.gates.follow_version(&cluster);
            effect
        };
        self.write_gate(batch, index, &effect)?;
        schema::cluster::put_version(batch, version);
        if old.is_none_or(|old| old <= version) && version >= schema::version::V3_6 {
            schema::meta::put_storage_version(batch, version);
        }
        if old.is_some_and(|old| old > version) {
            *outcome = Effect::VersionLowered;
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
        index: u64,
        request: ClusterMemberAttrSetRequest,
    ) -> Result<Response, FatalError> {
        let id = MemberId(request.member_id);
        let attributes = request.member_attributes.unwrap_or_default();
        match self.cluster.write().set_attributes(id, attributes.name, attributes.client_urls) {
            Some(member) => schema::member::put(batch, &record(member)),
            None => tracing::warn!(member = %id, "skipped attributes of a member that is not in the cluster"),
        }
        if let Some(proposal) = &attributes.proposed_feature_gates {
            self.feature_gate_proposal(batch, index, id, proposal)?;
        }
        Ok(Response::None)
    }

    pub(super) fn downgrade_info_set(
        &mut self,
        batch: &mut Batch<'_>,
        request: DowngradeInfoSetRequest,
    ) -> Result<Response, ApplyError> {
        let mut cluster = self.cluster.write();
        let job = cluster.set_downgrade(request.enabled, request.ver);
        let job = schema::cluster::Downgrade { target_version: job.target.clone(), enabled: job.enabled };
        schema::cluster::put_downgrade(batch, &job);
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
        let members_change = Change::decode(&change).map_err(|e| bad(e.to_string()))?;
        let result = self.change_members(batch, entry.index(), members_change)?;
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

    fn change_members(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        change: Change,
    ) -> Result<Result<(), ChangeError>, FatalError> {
        let mut cluster = self.cluster.write();
        let (cluster_id, local) = (cluster.id, cluster.local);
        let (changed, effect) = match cluster.apply_at(index, change) {
            Ok(done) => done,
            Err(refused) => return Ok(Err(refused)),
        };
        drop(cluster);
        match &changed {
            Changed::Removed(id) => schema::member::remove(batch, id.0),
            Changed::Added(member) | Changed::Promoted(member) | Changed::Updated(member) => {
                schema::member::put(batch, &record(member));
            }
        }
        tracing::info!(%cluster_id, local_member_id = %local, ?changed, "changed the members of the cluster");
        self.write_gate(batch, index, &effect)?;
        Ok(Ok(()))
    }
}

/// The cluster as a database has it.
pub(crate) fn load_cluster(
    view: &storage::View,
    id: ClusterId,
    local: MemberId,
) -> Result<Cluster, schema::DecodeError> {
    let members = schema::member::all(view)?.into_iter().map(|r| (MemberId(r.id), member_of(r))).collect();
    let removed = schema::member::removed(view)?.into_iter().map(MemberId).collect();
    let job = schema::cluster::downgrade(view)?.unwrap_or_default();
    let downgrade = Downgrade { enabled: job.enabled, target: job.target_version };
    let cluster = Cluster::new(id, local, members, removed, schema::cluster::version(view)?);
    Ok(cluster.with_downgrade(downgrade).with_gate(super::gate::load(view)?))
}

/// The configuration that the members make.
pub(crate) fn conf_state(cluster: &Cluster) -> raftpb::ConfState {
    membership::conf_state_of(cluster.members())
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
