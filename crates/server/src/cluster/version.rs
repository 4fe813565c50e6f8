//! The leader's care for the cluster version: every few seconds it asks all members, and raises the version when the
//! slowest of them has come up.

use std::time::Duration;

use futures_util::future::join_all;
use membership::{Answers, Member, MemberVersions, VersionDecision, decide_cluster_version, is_downgrade_done};
use proto::{
    Version,
    etcdserverpb::InternalRaftRequest,
    membershippb::{ClusterVersionSetRequest, DowngradeInfoSetRequest},
};

use super::Part;
use crate::{BINARY_VERSION, VERSION};

/// As in etcd: a little less than the time after which a silent connection is given up.
const INTERVAL: Duration = Duration::from_secs(4);
/// How often it is looked whether this member has begun to lead.
const LOOK: Duration = Duration::from_millis(50);

impl Part {
    /// Runs as long as the member does.
    pub(crate) async fn watch_version(self) {
        let mut term = 0;
        let mut next = tokio::time::Instant::now();
        // A raise that the last look called for.
        let mut raise = None;
        loop {
            tokio::time::sleep(LOOK).await;
            let at = self.node.status();
            let is_new = at.term != term;
            if !at.is_leader || (!is_new && tokio::time::Instant::now() < next) {
                continue;
            }
            // A new leader that has not committed in its term may not know the version yet.
            if self.node.read_index().await.is_err() {
                continue;
            }
            term = at.term;
            next = tokio::time::Instant::now() + INTERVAL;
            raise = self.look(raise).await;
        }
    }

    /// Ends the downgrade job when every member runs its target. Runs as long as the member does; acts while it leads.
    pub(crate) async fn watch_downgrade(self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            let cluster = self.node.cluster();
            if !self.node.status().is_leader || !cluster.downgrade().enabled {
                continue;
            }
            let answers = self.ask_versions(&cluster.members().cloned().collect::<Vec<_>>()).await;
            if is_downgrade_done(cluster.downgrade(), &answers) {
                self.end_downgrade().await;
            }
        }
    }

    async fn end_downgrade(&self) {
        let downgrade_info_set = Some(DowngradeInfoSetRequest::default());
        match self.node.propose(InternalRaftRequest { downgrade_info_set, ..Default::default() }).await {
            Ok(_) => tracing::info!("the cluster has been downgraded"),
            Err(error) => tracing::warn!(%error, "failed to end the downgrade"),
        }
    }

    /// One look at the members. A version that was decided before rises only if two looks in a row call for it: a
    /// member that is restarted with an older binary in between must find a cluster it can work in.
    async fn look(&self, wanted: Option<Version>) -> Option<Version> {
        let cluster = self.node.cluster();
        let answers = self.ask_versions(&cluster.members().cloned().collect::<Vec<_>>()).await;
        let current = cluster.version();
        let (decision, notes) = decide_cluster_version(current, cluster.downgrade(), BINARY_VERSION, &answers);
        for note in notes {
            tracing::warn!(%note, "the cluster version is not decided anew");
        }
        match decision {
            VersionDecision::Keep => None,
            VersionDecision::InvalidTarget(error) => {
                tracing::error!(%error, "invalid downgrade target");
                None
            }
            VersionDecision::Set(version) => {
                let version = version.min(self.options.version_max);
                if current.is_some_and(|current| version == current) {
                    return None;
                }
                let rises = current.is_some_and(|current| version > current);
                if rises && wanted != Some(version) {
                    return Some(version);
                }
                self.set_version(version).await;
                None
            }
        }
    }

    async fn set_version(&self, version: Version) {
        let request = ClusterVersionSetRequest { ver: version.stored(), feature_gates: None };
        let request = InternalRaftRequest { cluster_version_set: Some(request), ..Default::default() };
        match self.node.propose(request).await {
            Ok(_) => tracing::info!(cluster_version = %version, "cluster version is set"),
            Err(error) => tracing::warn!(%error, cluster_version = %version, "failed to set the cluster version"),
        }
    }

    /// What each member says of its version; this one's own answer among them.
    pub(crate) async fn ask_versions(&self, members: &[Member]) -> Answers {
        let local = self.node.member_id();
        let asked = members.iter().map(|member| async move {
            if member.id == local {
                let cluster = self.node.cluster_version().map_or("not_decided".into(), |v| v.stored());
                return (member.id, Some(MemberVersions { is_ours: true, server: VERSION.into(), cluster }));
            }
            let versions = self.control.fetch_version(&member.peer_urls, self.timeout()).await.ok();
            let says = |v: peer::Versions| MemberVersions {
                is_ours: v.lockgate.is_some(),
                server: v.server,
                cluster: v.cluster,
            };
            (member.id, versions.map(says))
        });
        join_all(asked).await.into_iter().collect()
    }
}
