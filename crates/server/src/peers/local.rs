//! This member, as its peers see it.

use std::path::PathBuf;

use futures_util::future::{BoxFuture, FutureExt};
use membership::{ChangeError, Member, MemberId, ReconfigureError, gate::GATE_SINCE};
use node::{DataDir, ProposeError};
use peer::{ControlError, HashKv, ReceiveError, Versions};
use proto::{
    etcdserverpb::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse},
    raftpb::Message,
};
use storage::schema;

use crate::{
    VERSION,
    cluster::{LeaderError, Part, ReconfigureFailure, corruption::hash_kv},
};

pub(crate) struct Local {
    pub part: Part,
    pub data_dir: DataDir,
}

impl peer::Member for Local {
    fn receive(&self, message: Message) -> BoxFuture<'_, Result<(), ReceiveError>> {
        self.part.node.receive(message);
        std::future::ready(Ok(())).boxed()
    }

    fn receive_all(&self, messages: Vec<Message>) -> BoxFuture<'_, Result<(), ReceiveError>> {
        for message in messages {
            self.part.node.receive(message);
        }
        std::future::ready(Ok(())).boxed()
    }

    fn is_removed(&self, id: MemberId) -> bool {
        self.part.node.is_removed(id)
    }

    fn report_unreachable(&self, id: MemberId) {
        self.part.node.report_unreachable(id);
    }

    fn report_snapshot(&self, id: MemberId, sent: bool) {
        self.part.node.report_snapshot(id, sent);
    }

    fn removed_from_cluster(&self) {
        self.part.node.note_removed();
    }

    fn snapshot_dir(&self) -> PathBuf {
        self.data_dir.snap()
    }

    fn is_ours_alone(&self) -> bool {
        self.part.node.cluster_version().is_some_and(|version| version >= GATE_SINCE)
    }

    fn members(&self) -> Vec<Member> {
        self.part.node.cluster().members().cloned().collect()
    }

    fn versions(&self) -> Versions {
        let view = self.part.node.backend().view();
        let storage = schema::meta::storage_version(&view).ok().flatten();
        Versions {
            server: VERSION.into(),
            cluster: self.part.node.cluster_version().map_or("not_decided".into(), |v| v.stored()),
            storage: storage.map_or("unknown".into(), |v| v.stored()),
            lockgate: None,
        }
    }

    fn promote(&self, id: MemberId, _: Option<String>) -> BoxFuture<'_, Result<Vec<Member>, ControlError>> {
        async move {
            match self.part.promote_here(id).await {
                Ok(cluster) => Ok(cluster.members().cloned().collect()),
                Err(error) => Err(promote_error(&error)),
            }
        }
        .boxed()
    }

    fn hash_kv(&self, revision: i64) -> BoxFuture<'_, Result<HashKv, ControlError>> {
        async move {
            let store = self.part.node.store().clone();
            let hash = tokio::task::spawn_blocking(move || store.hash_kv(revision)).await;
            match hash.map_err(|e| ControlError::Other(e.to_string()))? {
                Ok(hash) => Ok(hash_kv(&hash)),
                Err(mvcc::Error::Compacted { .. }) => Err(ControlError::Compacted),
                Err(mvcc::Error::FutureRevision { .. }) => Err(ControlError::FutureRevision),
                Err(other) => Err(ControlError::Other(other.to_string())),
            }
        }
        .boxed()
    }

    fn renew_lease(&self, id: i64) -> BoxFuture<'_, Result<i64, ControlError>> {
        async move {
            match self.part.node.renew_lease(id).await {
                Ok(Some(ttl)) => Ok(ttl),
                Ok(None) => Err(ControlError::LeaseNotFound),
                Err(ProposeError::NotLeader) => Err(ControlError::NotPrimary),
                Err(ProposeError::Timeout) => Err(ControlError::LeaseTimeout),
                Err(other) => Err(ControlError::Other(other.to_string())),
            }
        }
        .boxed()
    }

    fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> BoxFuture<'_, Result<LeaseTimeToLiveResponse, ControlError>> {
        async move {
            match self.part.lease_time_to_live_here(&request).await {
                Ok(Some(response)) => Ok(response),
                Ok(None) => Err(ControlError::LeaseNotFound),
                Err(LeaderError::Here(ProposeError::NotLeader)) => Err(ControlError::NotPrimary),
                Err(LeaderError::Timeout) => Err(ControlError::LeaseTimeout),
                Err(other) => Err(ControlError::Other(other.to_string())),
            }
        }
        .boxed()
    }

    fn downgrade_enabled(&self) -> BoxFuture<'_, Result<bool, ControlError>> {
        async move {
            let read = self.part.node.read_index().await;
            read.map_err(|e| ControlError::Other(format!("failed linearized read: {e}")))?;
            // A joiner of etcd's only uses it to widen the range of versions it takes. Once the version has come down it must
            // not: then it would take no cluster at all.
            let cluster = self.part.node.cluster();
            Ok(cluster.downgrade().enabled && !cluster.is_at_downgrade_target())
        }
        .boxed()
    }
}

fn promote_error(error: &ReconfigureFailure) -> ControlError {
    match (error, error.change_error()) {
        (_, Some(ChangeError::IdNotFound)) => ControlError::MemberNotFound,
        (_, Some(ChangeError::NotLearner)) => ControlError::NotLearner,
        (ReconfigureFailure::Check(ReconfigureError::LearnerNotReady), _) => ControlError::LearnerNotReady,
        (ReconfigureFailure::Check(ReconfigureError::LearnerFeatures(_)), _)
        | (_, Some(ChangeError::LearnerFeatures)) => ControlError::LearnerFeatures(error.to_string()),
        (ReconfigureFailure::Propose(ProposeError::Timeout), _) => ControlError::Timeout,
        (other, _) => ControlError::Other(other.to_string()),
    }
}
