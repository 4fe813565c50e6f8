//! The member itself: its node, its way to the others, and the loops that care for the cluster.

use std::{sync::Arc, time::Duration};

use membership::{Cluster, gate::GATE_SINCE};
use node::{DataDir, Identity, Introduction, Node, NodeOptions, Quota};
use peer::{Control, Transport};
use proto::Version;
use tokio::{net::TcpListener, runtime::Handle, sync::watch, task::JoinSet};

use crate::{
    BINARY_VERSION, RunError, VERSION,
    cluster::{LeaderLost, Part, PartOptions, begin, learner},
    config::{AuthToken, Config},
    features::Features,
    metrics::Metrics,
    observer::{self, MetricsObserver},
    peers::{Local, PeerObserver, Wire},
};

/// The lowest cluster version that a peer may ask for, as etcd says it.
const MIN_CLUSTER_VERSION: &str = "3.0.0";

/// How often, and how many times, it is looked whether others are connected: five seconds, as in etcd.
const CONNECTED_LOOK: Duration = Duration::from_millis(50);
const CONNECTED_LOOKS_MAX: usize = 100;

pub(crate) struct Member {
    pub part: Part,
    wire: Arc<Wire>,
    data_dir: DataDir,
}

impl Member {
    /// Opens the data dir, or makes it, and starts the node. Nothing is sent or received yet.
    pub(crate) async fn start(
        config: &Config,
        features: &Features,
        metrics: &Arc<Metrics>,
    ) -> Result<Member, RunError> {
        let data_dir = DataDir::new(&config.data_dir, config.wal_dir.clone());
        // As etcd: an election may pass while a connection comes about.
        let dial_timeout = Duration::from_secs(1) + config.election_timeout;
        let control = Arc::new(Control::new(VERSION, None, dial_timeout));
        let identity = begin::identity(config, &data_dir, &control).await?;
        let options = node_options(config, data_dir.clone(), identity, features, metrics);
        let wires = Wires {
            peer_urls: config.advertise_peer_urls.iter().map(ToString::to_string).collect(),
            dial_timeout,
            read_timeout: config.raft_read_timeout,
            write_timeout: config.raft_write_timeout,
            metrics: metrics.clone(),
            runtime: Handle::current(),
        };
        let started = tokio::task::spawn_blocking(move || {
            let mut wire = None;
            let node = Node::start(options, |me| {
                let made = Arc::new(wires.wire(me));
                wire = Some(made.clone());
                made
            });
            node.map(|node| (Arc::new(node), wire))
        });
        let (node, wire) = started.await.map_err(|e| RunError::Failed(e.to_string()))??;
        let wire = wire.ok_or_else(|| RunError::Failed("the node was started without a network".into()))?;
        observer::attach(metrics, &node, features);
        let (major, minor) = config.initial_cluster_version;
        let options = PartOptions {
            strict_reconfig: config.strict_reconfig_check,
            version_max: Version::new(major as u16, minor as u16),
        };
        Ok(Member { part: Part { node, control, options, leader_lost: LeaderLost::default() }, wire, data_dir })
    }

    /// Others dial the peer URLs that the cluster records, and a start does not change these.
    pub(crate) fn warn_of_unknown_peer_urls(&self, config: &Config) {
        let bound: Vec<String> = config.advertise_peer_urls.iter().map(ToString::to_string).collect();
        if let Some(recorded) = outdated_peer_urls(&self.part.node.cluster(), &bound) {
            tracing::warn!(
                recorded = recorded.join(","),
                bound = bound.join(","),
                "the cluster records other peer URLs for this member than the bound ones, and the other members dial the \
                 recorded ones; give --listen-peer-urls the recorded port, or change the record with \
                 `lockgatectl member update`"
            );
        }
    }

    /// From here on peers reach this member, and it reaches them.
    pub(crate) fn serve_peers(&self, ports: impl Iterator<Item = (TcpListener, String)>, tasks: &mut JoinSet<()>) {
        self.wire.attach(Arc::new(Local { part: self.part.clone(), data_dir: self.data_dir.clone() }));
        for (listener, url) in ports {
            tracing::info!(address = %url, "serving peer traffic");
            tasks.spawn(peer::serve(listener, self.wire.transport().clone()));
        }
    }

    /// As soon as others are connected, if that is soon.
    pub(crate) fn shorten_first_election(&self, stopped: watch::Receiver<bool>) -> impl Future<Output = ()> + use<> {
        let (node, transport) = (self.part.node.clone(), self.wire.transport().clone());
        let work = async move {
            for _ in 0..CONNECTED_LOOKS_MAX {
                tokio::time::sleep(CONNECTED_LOOK).await;
                if transport.active_peers() > 1 {
                    return node.shorten_first_election();
                }
            }
        };
        until_stopped(work, stopped)
    }

    /// Becomes a member that others know of. Waits for a leader as long as it takes.
    pub(crate) async fn join(&self, features: &Features) -> Result<(), RunError> {
        let node = &self.part.node;
        if features.enabled("InitialCorruptCheck") {
            self.part.check_at_start().await.map_err(RunError::Failed)?;
        }
        self.compare_learner().await?;
        // Why the member has stopped says more than that it has.
        node.publish().await.map_err(|e| node.failure().map_or(RunError::Publish(e), RunError::Failed))
    }

    /// A learner that comes for the first time must want what the cluster has on. Later differences are only shown.
    async fn compare_learner(&self) -> Result<(), RunError> {
        let node = &self.part.node;
        if node.own_name_is_known() {
            return Ok(());
        }
        let failed = |e: node::ReadError| RunError::Failed(node.failure().unwrap_or_else(|| e.to_string()));
        node.catch_up().await.map_err(failed)?;
        let cluster = node.cluster();
        if !cluster.is_local_learner() || node.own_name_is_known() {
            return Ok(());
        }
        let differences = membership::gate::learner_differences(&cluster, &node.own_features());
        if differences.is_empty() { Ok(()) } else { Err(RunError::LearnerDiffers(learner::describe(&differences))) }
    }

    /// Starts the loops that only a leader acts in; every member may come to lead.
    pub(crate) fn keep_watch(
        &self,
        config: &Config,
        features: &Features,
        tasks: &mut JoinSet<()>,
        stopped: &watch::Receiver<bool>,
    ) {
        tasks.spawn(until_stopped(self.part.clone().watch_version(), stopped.clone()));
        let node = self.part.node.clone();
        let propose = async move {
            if let Err(error) = node.begin_proposing_features().await {
                tracing::warn!(%error, "this member proposes no cluster features");
            }
        };
        tasks.spawn(until_stopped(propose, stopped.clone()));
        if let Some(interval) = config.downgrade_check_time {
            tasks.spawn(until_stopped(self.part.clone().watch_downgrade(interval), stopped.clone()));
        }
        tasks.spawn(until_stopped(self.watch_foreigners(), stopped.clone()));
        tasks.spawn(until_stopped(self.part.clone().watch_learner_features(), stopped.clone()));
        let lost = self.part.leader_lost.clone();
        let lost = lost.watch(self.part.node.clone(), config.election_timeout);
        tasks.spawn(until_stopped(lost, stopped.clone()));
        if let Some(interval) = config.corrupt_check_time {
            tasks.spawn(until_stopped(self.part.clone().watch_corruption(interval), stopped.clone()));
        }
        if features.enabled("CompactHashCheck") {
            let interval = config.compact_hash_check_time;
            tasks.spawn(until_stopped(self.part.clone().watch_compactions(interval), stopped.clone()));
        }
    }

    /// When the cluster reaches a version that only members of ours can follow, streams of others end.
    fn watch_foreigners(&self) -> impl Future<Output = ()> + use<> {
        let (node, wire) = (self.part.node.clone(), self.wire.clone());
        let mut changed = node.gates().subscribe();
        async move {
            let mut was_alone = false;
            loop {
                let is_alone = node.cluster_version().is_some_and(|version| version >= GATE_SINCE);
                if is_alone && !was_alone {
                    wire.transport().detach_foreign();
                }
                was_alone = is_alone;
                if changed.changed().await.is_err() {
                    return;
                }
            }
        }
    }

    /// So that the cluster need not wait for an election when this member stops.
    pub(crate) async fn hand_over(&self) {
        if let Err(error) = self.part.node.hand_over_leadership().await {
            tracing::warn!(%error, "leadership transfer failed");
        }
    }

    pub(crate) fn disconnect(&self) {
        self.wire.transport().stop();
    }

    pub(crate) async fn stop(&self) {
        let node = self.part.node.clone();
        if tokio::task::spawn_blocking(move || node.stop()).await.is_err() {
            tracing::error!("failed to stop the member");
        }
    }
}

/// The recorded peer URLs of this member, if others dial them and the member does not advertise the same.
fn outdated_peer_urls<'a>(cluster: &'a Cluster, advertised: &[String]) -> Option<&'a [String]> {
    let recorded = &cluster.member(cluster.local)?.peer_urls;
    let is_same = recorded.len() == advertised.len() && recorded.iter().all(|url| advertised.contains(url));
    (cluster.members().count() > 1 && !is_same).then_some(recorded)
}

async fn until_stopped(work: impl Future<Output = ()>, mut stopped: watch::Receiver<bool>) {
    tokio::select! {
        () = work => {}
        _ = stopped.changed() => {}
    }
}

/// What connections are made with.
struct Wires {
    peer_urls: Vec<String>,
    dial_timeout: Duration,
    read_timeout: Duration,
    write_timeout: Duration,
    metrics: Arc<Metrics>,
    runtime: Handle,
}

impl Wires {
    fn wire(self, me: &Introduction) -> Wire {
        let identity = peer::Identity {
            local: me.local,
            cluster: me.cluster,
            server_version: VERSION.into(),
            min_cluster_version: MIN_CLUSTER_VERSION.into(),
            peer_urls: self.peer_urls,
            lockgate_version: VERSION.into(),
        };
        let mut options = peer::Options::new(identity);
        options.dial_timeout = self.dial_timeout;
        options.read_timeout = self.read_timeout;
        options.write_timeout = self.write_timeout;
        Wire::new(Transport::new(options, Arc::new(PeerObserver(self.metrics)), self.runtime))
    }
}

fn node_options(
    config: &Config,
    data_dir: DataDir,
    identity: Option<Identity>,
    features: &Features,
    metrics: &Arc<Metrics>,
) -> NodeOptions {
    let observer = Arc::new(MetricsObserver(metrics.clone()));
    NodeOptions {
        data_dir,
        name: config.name.clone(),
        identity,
        force_new_cluster: config.force_new_cluster,
        learners_max: config.max_learners,
        client_urls: config.advertise_client_urls.iter().map(ToString::to_string).collect(),
        binary_version: BINARY_VERSION,
        backend: storage::Options {
            batch_interval: config.backend_batch_interval,
            batch_limit: config.backend_batch_limit,
            unsafe_no_sync: config.unsafe_no_fsync,
            observer: Some(observer.clone()),
            ..Default::default()
        },
        wal: wal::Options { no_sync: config.unsafe_no_fsync, ..Default::default() },
        store: mvcc::Options::default(),
        quota: Quota::new(config.quota_backend_bytes),
        tick: config.heartbeat_interval,
        election_ticks: config.election_ticks() as usize,
        pre_vote: config.pre_vote,
        snapshot_count: config.snapshot_count,
        catch_up_entries: config.snapshot_catchup_entries,
        wals_max: (config.max_wals > 0).then_some(config.max_wals as usize),
        request_bytes_max: config.max_request_bytes,
        slow_apply: config.warning_apply_duration,
        compaction_batch: config.compaction_batch_limit,
        compaction_pause: config.compaction_sleep_interval,
        defrag_threshold_bytes: config.bootstrap_defrag_threshold_bytes,
        lease_checkpoints: features.enabled("LeaseCheckpoint"),
        lease_checkpoint_interval: config.lease_checkpoint_interval,
        simple_token_ttl: (config.auth_token == AuthToken::Simple).then_some(config.auth_token_ttl),
        features: features.cluster_flags(),
        observer,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use membership::{ClusterId, MemberId};

    use super::*;

    fn cluster(members: &[(u64, &[&str])]) -> Cluster {
        let member = |(id, urls): &(u64, &[&str])| {
            let peer_urls = urls.iter().map(ToString::to_string).collect();
            (MemberId(*id), membership::Member { id: MemberId(*id), peer_urls, ..Default::default() })
        };
        let members = members.iter().map(member).collect();
        Cluster::new(ClusterId(9), MemberId(1), members, BTreeSet::new(), None)
    }

    #[test_case::test_case(&[(1, &["http://a:1"])], &["http://a:2"] => false; "nobody else dials it")]
    #[test_case::test_case(&[(1, &["http://a:1"]), (2, &["http://b:1"])], &["http://a:2"] => true; "others dial the old port")]
    #[test_case::test_case(&[(1, &["http://a:1"]), (2, &["http://b:1"])], &["http://a:1"] => false; "the port is the same")]
    #[test_case::test_case(&[(1, &["http://a:1", "http://c:1"]), (2, &["http://b:1"])], &["http://c:1", "http://a:1"] => false;
        "order does not count")]
    #[test_case::test_case(&[(2, &["http://b:1"]), (3, &["http://c:1"])], &["http://a:1"] => false; "it is no member")]
    fn peer_urls_can_be_outdated(members: &[(u64, &[&str])], advertised: &[&str]) -> bool {
        let advertised: Vec<String> = advertised.iter().map(ToString::to_string).collect();
        outdated_peer_urls(&cluster(members), &advertised).is_some()
    }
}
