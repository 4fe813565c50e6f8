//! Databases between members: sending one, and going on from a received one.

use failpoint::failpoint;
use membership::check_not_downgraded;
use prost::Message as _;
use proto::raftpb;
use storage::schema::version::{V3_6, V3_8};

use crate::{
    apply::cluster::{conf_state, load_cluster},
    apply_loop::ApplyLoop,
    bootstrap::write_mended_gate,
    error::FatalError,
    raft_loop::Input,
    world::Database,
};

impl ApplyLoop {
    /// Between two entries: the database is as of the last applied one, and the message says so.
    pub(crate) fn send_snapshot(&mut self, mut message: raftpb::Message) -> Result<(), FatalError> {
        let to = message.to();
        if !self.is_storage_settled() {
            // A member of the cluster's version could not open it. It is asked for again.
            tracing::info!(remote_peer_id = format!("{to:x}"), "not sending a database that is on its way down");
            self.proposer.send(Input::SnapshotSent { to, sent: false });
            return Ok(());
        }
        let snapshot = self.state.backend.snapshot_now();
        let (snapshot, index, term) = snapshot.map_err(|e| FatalError::SendSnapshot(e.to_string()))?;
        let members = conf_state(&self.state.cluster.read());
        let metadata = raftpb::SnapshotMetadata { conf_state: Some(members), index: Some(index), term: Some(term) };
        message.snapshot = Some(raftpb::Snapshot { data: None, metadata: Some(metadata) });
        tracing::info!(
            remote_peer_id = format!("{to:x}"),
            snapshot_index = index,
            bytes = snapshot.size(),
            message_bytes = message.encoded_len(),
            "sending database snapshot"
        );
        self.network.send_snapshot(message, Database { len: snapshot.size(), reader: Box::new(snapshot) });
        Ok(())
    }

    /// A received database is brought to the version of the cluster it is of. Nothing newer can follow it in the log.
    fn settle_received(&self, index: u64) -> Result<(), FatalError> {
        let Some(version) = self.state.cluster.read().version() else { return Ok(()) };
        check_not_downgraded(self.state.binary_version, Some(version))
            .map_err(|e| FatalError::ClusterTooNew { binary: e.binary, cluster: e.cluster })?;
        let failed = |e: storage::schema::DecodeError| FatalError::Damaged { index, what: e.to_string() };
        let storage = storage::schema::meta::storage_version(&self.state.backend.view()).map_err(failed)?;
        if storage == Some(version) || version < V3_6 {
            return Ok(());
        }
        tracing::info!(from = ?storage, to = %version, "brought a received database to the cluster version");
        let mut batch = self.state.backend.write();
        if version < V3_8 {
            storage::schema::gate::clear(&mut batch);
        }
        storage::schema::meta::put_storage_version(&mut batch, version);
        batch.commit().map_err(FatalError::Backend)
    }

    /// The log already says that the state is that of the received database: everything is loaded from it.
    pub(crate) fn take_over(&mut self, metadata: &raftpb::SnapshotMetadata) -> Result<(), FatalError> {
        let index = metadata.index();
        let path = self.data_dir.received(index);
        tracing::info!(incoming_leader_snapshot_index = index, path = %path.display(), "applying snapshot");
        let failed = |what: &'static str| move |e: String| FatalError::TakeOver { index, what, why: e };
        failpoint!("applyBeforeOpenSnapshot");
        self.state.backend.take_over(&path).map_err(|e| failed("take over the received database")(e.to_string()))?;
        failpoint!("applyAfterOpenSnapshot");
        let view = self.state.backend.view();
        let (found, term) = storage::schema::meta::consistent(&view)
            .map_err(|e| failed("read the received database")(e.to_string()))?;
        if found != index {
            return Err(failed("take over the received database")(format!("it is as of index {found}")));
        }
        let mut lessor = self.state.lessor.lock();
        lessor.reload(&view).map_err(|e| failed("load the leases")(e.to_string()))?;
        let store = &self.state.store;
        store.reload(|id, key| lessor.attach(id, key)).map_err(|e| failed("load the keys")(e.to_string()))?;
        drop(lessor);
        self.state.alarms.reload(&view).map_err(|e| failed("load the alarms")(e.to_string()))?;
        let users = auth::Store::load(&view, auth::Order::BeginAndEnd);
        self.state.auth.users.replace(users.map_err(|e| failed("load the users")(e.to_string()))?);
        let (id, local) = (self.state.cluster.read().id, self.state.cluster.read().local);
        let cluster = load_cluster(&view, id, local).map_err(|e| failed("load the members")(e.to_string()))?;
        let learners_max = self.state.cluster.read().learners_max();
        drop(view);
        let mut cluster = cluster.with_learners_max(learners_max);
        let findings = cluster.mend_gate(index, term);
        cluster.check_features_known(self.state.binary_version, membership::features::is_cluster_feature)?;
        write_mended_gate(&self.state.backend, &cluster, &findings).map_err(failed("write the feature gate"))?;
        self.state.gates.follow(&cluster, index);
        *self.state.cluster.write() = cluster;
        self.settle_received(index)?;
        self.resume_compaction();
        self.shared.set_applied_term(term);
        self.snapshot_index = index;
        self.data_dir.remove_received_before(index);
        self.shared.applied.advance(index);
        self.follow_members();
        self.follow_gate();
        self.proposer.send(Input::Applied);
        tracing::info!(snapshot_index = index, revision = self.state.store.revision(), "applied snapshot");
        Ok(())
    }
}
