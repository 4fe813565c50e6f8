//! A running member: threads behind one handle.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use lease::{Lessor, Renewal};
use membership::{Cluster, MemberId};
use parking_lot::{Mutex, RwLock};
use proto::{
    Version,
    etcdserverpb::{AlarmMember, AlarmType, InternalRaftRequest, LeaseCheckpoint, LeaseCheckpointRequest},
    membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest},
};
use raft::eraftpb::ConfState;
use storage::Backend;
use tokio::sync::{oneshot, watch};

use crate::{
    apply::{Alarms, Quota, Response, State},
    apply_loop::{ApplyLoop, ApplyOptions},
    bootstrap::{BootstrapOptions, Bootstrapped, Identity, StartError, bootstrap},
    chores::Chores,
    compactor::{CompactionTask, Compactor},
    convert,
    core::{Core, CoreOptions},
    data_dir::DataDir,
    error::{FatalError, ProposeError, ReadError},
    log_store::LogStore,
    proposer::Proposer,
    raft_loop::{Input, RaftLoop},
    request_id::RequestIds,
    shared::{Life, Shared},
    slog_bridge,
    wal_log::WalLog,
    world::Observer,
};

/// Entries that may be committed but not yet applied before new requests are turned away.
const APPLY_LAG_MAX: u64 = 5000;

/// How a member runs.
pub struct NodeOptions {
    pub data_dir: DataDir,
    pub name: String,
    /// Who founds a new cluster; not needed when the data dir holds a member.
    pub identity: Option<Identity>,
    pub client_urls: Vec<String>,
    pub binary_version: Version,
    /// The cluster version a new cluster starts at.
    pub initial_version: Version,
    pub backend: storage::Options,
    pub wal: wal::Options,
    pub store: mvcc::Options,
    pub quota: Quota,
    pub tick: Duration,
    pub election_ticks: usize,
    pub pre_vote: bool,
    pub snapshot_count: u64,
    pub catch_up_entries: u64,
    pub wals_max: Option<usize>,
    pub request_bytes_max: usize,
    pub slow_apply: Duration,
    pub compaction_batch: usize,
    pub compaction_pause: Duration,
    /// Free space in the file from which on it is defragmented at start.
    pub defrag_threshold_bytes: Option<u64>,
    pub lease_checkpoints: bool,
    pub observer: Arc<dyn Observer>,
}

/// Where the member stands.
#[derive(Debug, Clone, Copy)]
pub struct NodeStatus {
    pub term: u64,
    /// 0 if there is none.
    pub leader: u64,
    pub is_leader: bool,
    pub commit_index: u64,
    pub applied_index: u64,
}

/// A running member. Dropping it does not stop it: call [`Node::stop`].
pub struct Node {
    shared: Arc<Shared>,
    proposer: Proposer,
    backend: Backend,
    store: Arc<mvcc::Store>,
    lessor: Arc<Mutex<Lessor>>,
    cluster: Arc<RwLock<Cluster>>,
    alarms: Arc<Alarms>,
    epoch: Instant,
    quota: Quota,
    request_bytes_max: usize,
    request_timeout: Duration,
    name: String,
    client_urls: Vec<String>,
    initial_version: Version,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    raft: JoinHandle<()>,
    apply: JoinHandle<()>,
    compactor: JoinHandle<()>,
    chores: JoinHandle<()>,
    stop_chores: mpsc::Sender<()>,
}

impl Node {
    /// Opens the data dir and starts the member's threads. Nothing is served before [`Node::publish`].
    pub fn start(options: NodeOptions) -> Result<Node, StartError> {
        let booted = bootstrap(BootstrapOptions {
            data_dir: options.data_dir.clone(),
            name: options.name.clone(),
            identity: options.identity.clone(),
            binary_version: options.binary_version,
            backend: options.backend.clone(),
            wal: options.wal,
        })?;
        defrag_at_start(&booted.backend, options.defrag_threshold_bytes)?;
        let epoch = Instant::now();
        let parts = Parts::load(&booted, &options)?;
        let shared = Arc::new(Shared::new(booted.consistent_index, options.observer.clone()));
        let (inputs, inputs_rx) = mpsc::channel();
        let (to_apply, to_apply_rx) = mpsc::channel();
        let (compactor, compactor_rx) = mpsc::channel();
        let (stop_chores, stop_rx) = mpsc::channel();
        let ids = Arc::new(RequestIds::new(booted.cluster.local.0, SystemTime::now()));
        let proposer = Proposer { inputs, ids };
        if let Some(job) = parts.store.pending_compaction() {
            tracing::info!(compact_revision = job.revision(), "resume scheduled compaction");
            let _ = compactor.send(CompactionTask { job, done: oneshot::channel().0 });
        }
        let core = start_core(&booted, &options)?;
        let cluster = Arc::new(RwLock::new(booted.cluster));
        let backend = booted.backend;
        let election_timeout = options.tick * options.election_ticks as u32;

        let raft = RaftLoop::new(
            core,
            WalLog(booted.wal),
            inputs_rx,
            to_apply,
            shared.clone(),
            parts.lessor.clone(),
            options.tick,
            options.catch_up_entries,
        );
        let apply = ApplyLoop {
            state: State {
                backend: backend.clone(),
                store: parts.store.clone(),
                lessor: parts.lessor.clone(),
                cluster: cluster.clone(),
                alarms: parts.alarms.clone(),
                quota: options.quota,
                binary_version: options.binary_version,
                epoch,
                observer: options.observer.clone(),
            },
            entries: to_apply_rx,
            proposer: proposer.clone(),
            compactor,
            shared: shared.clone(),
            options: ApplyOptions {
                snapshot_count: options.snapshot_count,
                slow: options.slow_apply,
                election_timeout,
                lease_checkpoints: options.lease_checkpoints,
            },
            snapshot_index: booted.snapshot.0,
        };
        let compactor = Compactor {
            tasks: compactor_rx,
            store: parts.store.clone(),
            backend: backend.clone(),
            shared: shared.clone(),
            batch_limit: options.compaction_batch,
            pause: options.compaction_pause,
        };
        let chores = Chores {
            lessor: parts.lessor.clone(),
            proposer: proposer.clone(),
            shared: shared.clone(),
            epoch,
            wal_dir: options.data_dir.wal(),
            wals_max: options.wals_max,
            stop: stop_rx,
        };
        fail_with_backend(&backend, &shared);
        let threads = Threads {
            raft: spawn("raft", &shared, move || raft.run())?,
            apply: spawn("apply", &shared, move || apply.run())?,
            compactor: spawn("compactor", &shared, move || compactor.run())?,
            chores: spawn("chores", &shared, move || chores.run())?,
            stop_chores,
        };
        Ok(Node {
            shared,
            proposer,
            backend,
            store: parts.store,
            lessor: parts.lessor,
            cluster,
            alarms: parts.alarms,
            epoch,
            quota: options.quota,
            request_bytes_max: options.request_bytes_max,
            request_timeout: Duration::from_secs(5) + 2 * election_timeout,
            name: options.name,
            client_urls: options.client_urls,
            initial_version: options.initial_version,
            threads: Mutex::new(Some(threads)),
        })
    }

    /// Tells the cluster this member's name and URLs, and decides the version of a new cluster. Returns when both are
    /// applied: the member is ready to serve.
    pub async fn publish(&self) -> Result<(), ProposeError> {
        let member_id = self.member_id().0;
        let attributes = Attributes { name: self.name.clone(), client_urls: self.client_urls.clone() };
        let request = ClusterMemberAttrSetRequest { member_id, member_attributes: Some(attributes) };
        self.propose_patiently(InternalRaftRequest { cluster_member_attr_set: Some(request), ..Default::default() })
            .await?;
        tracing::info!(
            local_member_id = %self.member_id(), name = %self.name, client_urls = ?self.client_urls,
            cluster_id = %self.cluster.read().id, "published local member to cluster through raft"
        );
        if self.cluster.read().version().is_none() {
            let ver = format!("{}.0", self.initial_version);
            let request = ClusterVersionSetRequest { ver };
            self.propose_patiently(InternalRaftRequest { cluster_version_set: Some(request), ..Default::default() })
                .await?;
        }
        Ok(())
    }

    async fn propose_patiently(&self, request: InternalRaftRequest) -> Result<Response, ProposeError> {
        loop {
            match self.propose(request.clone()).await {
                Err(ProposeError::Timeout | ProposeError::TooManyRequests) => continue,
                other => return other,
            }
        }
    }

    /// Proposes a request and returns its result when this member has applied it.
    pub async fn propose(&self, request: InternalRaftRequest) -> Result<Response, ProposeError> {
        if self.shared.commit().saturating_sub(self.shared.applied.index()) > APPLY_LAG_MAX {
            return Err(ProposeError::TooManyRequests);
        }
        let (id, data) = self.proposer.encode(request);
        if data.len() > self.request_bytes_max {
            return Err(ProposeError::TooLarge);
        }
        if !self.shared.is_running() {
            return Err(ProposeError::Stopped);
        }
        let receiver = self.shared.waits.register(id);
        self.proposer.send(Input::Propose { id, data });
        match tokio::time::timeout(self.request_timeout, receiver).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) if self.shared.is_running() => {
                self.shared.observer.proposal_failed();
                Err(ProposeError::Timeout)
            }
            Ok(Err(_)) => Err(ProposeError::Stopped),
            Err(_) => {
                self.shared.waits.forget(id);
                self.shared.observer.proposal_failed();
                Err(ProposeError::Timeout)
            }
        }
    }

    /// Proposes a request whose result nobody waits for.
    pub fn propose_quietly(&self, request: InternalRaftRequest) {
        self.proposer.send_request(request);
    }

    /// Returns when a read of this member's state is linearizable.
    pub async fn read_index(&self) -> Result<(), ReadError> {
        // Alone, every write that was ever answered is applied here: nothing to ask.
        if self.shared.is_sole_leader() {
            return Ok(());
        }
        let (done, receiver) = oneshot::channel();
        self.proposer.send(Input::ReadIndex { done });
        match tokio::time::timeout(self.request_timeout, receiver).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ReadError::Stopped),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// Renews a lease. `Ok(None)` if it does not exist or has ended.
    pub async fn renew_lease(&self, id: i64) -> Result<Option<i64>, ProposeError> {
        let deadline = Instant::now() + self.request_timeout;
        while Instant::now() < deadline {
            let renewal = self.lessor.lock().renew(self.epoch.elapsed(), id);
            match renewal {
                Ok(Renewal::Renewed(ttl)) => {
                    self.shared.observer.lease_renewed();
                    return Ok(Some(ttl));
                }
                Ok(Renewal::ClearCheckpoint) => {
                    let checkpoints = vec![LeaseCheckpoint { id, remaining_ttl: 0 }];
                    let lease_checkpoint = Some(LeaseCheckpointRequest { checkpoints });
                    self.propose(InternalRaftRequest { lease_checkpoint, ..Default::default() }).await?;
                }
                Err(lease::Error::NotFound) => {
                    // It may be granted by an entry that is committed but not yet applied.
                    self.read_index().await.map_err(|_| ProposeError::Timeout)?;
                    if !self.lessor.lock().exists(id) {
                        return Ok(None);
                    }
                }
                // An ended lease is gone for sure only when its revocation is applied.
                Ok(Renewal::Ended) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Err(ProposeError::Timeout)
    }

    /// An id for a lease whose client gave none.
    pub fn next_lease_id(&self) -> i64 {
        loop {
            let id = (self.proposer.ids.next() & (i64::MAX as u64)) as i64;
            if id != 0 {
                return id;
            }
        }
    }

    pub fn member_id(&self) -> MemberId {
        self.cluster.read().local
    }

    pub fn cluster(&self) -> Cluster {
        self.cluster.read().clone()
    }

    pub fn cluster_version(&self) -> Option<Version> {
        self.cluster.read().version()
    }

    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    pub fn store(&self) -> &Arc<mvcc::Store> {
        &self.store
    }

    pub fn lessor(&self) -> &Mutex<Lessor> {
        &self.lessor
    }

    /// The lessor's time.
    pub fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    pub fn quota(&self) -> Quota {
        self.quota
    }

    pub fn alarms(&self) -> Vec<AlarmMember> {
        self.alarms.list(AlarmType::None)
    }

    pub fn has_no_space_alarm(&self) -> bool {
        self.alarms.no_space()
    }

    pub fn term(&self) -> u64 {
        self.shared.term()
    }

    pub fn pending_proposals(&self) -> usize {
        self.shared.waits.len()
    }

    pub fn status(&self) -> NodeStatus {
        let status = self.shared.status();
        NodeStatus {
            term: status.term,
            leader: self.shared.leader(),
            is_leader: status.is_leader,
            commit_index: status.commit,
            applied_index: self.shared.applied.index(),
        }
    }

    /// Why the member stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Changes when the member stops or fails.
    pub fn life(&self) -> watch::Receiver<Life> {
        self.shared.life()
    }

    /// Stops the threads, commits the file and lets go of it.
    pub fn stop(&self) {
        let Some(threads) = self.threads.lock().take() else { return };
        drop(threads.stop_chores);
        self.proposer.send(Input::Stop);
        for (name, thread) in [("raft", threads.raft), ("apply", threads.apply), ("chores", threads.chores)] {
            if thread.join().is_err() {
                tracing::error!(thread = name, "ended by a panic");
            }
        }
        if threads.compactor.join().is_err() {
            tracing::error!(thread = "compactor", "ended by a panic");
        }
        if let Err(error) = self.backend.close() {
            tracing::error!(%error, "failed to close the database");
        }
    }
}

/// State loaded from the file.
struct Parts {
    store: Arc<mvcc::Store>,
    lessor: Arc<Mutex<Lessor>>,
    alarms: Arc<Alarms>,
}

impl Parts {
    fn load(booted: &Bootstrapped, options: &NodeOptions) -> Result<Parts, StartError> {
        let view = booted.backend.view();
        let alarms = Alarms::new(storage::schema::alarm::all(&view)?);
        // As in etcd: a lease must outlive an election, with some room.
        let ttl_min = (options.tick * (3 * options.election_ticks as u32 / 2)).as_secs_f64().ceil() as i64;
        let mut lessor = Lessor::load(&view, lease::Options { ttl_min, ..Default::default() })?;
        drop(view);
        let store = mvcc::Store::open(booted.backend.clone(), options.store.clone(), |id, key| lessor.attach(id, key))?;
        // Building the index has touched every page; most of them are not read again soon.
        booted.backend.release_memory();
        Ok(Parts { store: Arc::new(store), lessor: Arc::new(Mutex::new(lessor)), alarms: Arc::new(alarms) })
    }
}

fn defrag_at_start(backend: &Backend, threshold: Option<u64>) -> Result<(), StartError> {
    let free = backend.size().saturating_sub(backend.size_in_use());
    if threshold.is_none_or(|threshold| free < threshold) {
        return Ok(());
    }
    tracing::info!(free_bytes = free, "defragmenting before start");
    backend.defrag().map(|_| ()).map_err(|e| StartError::Core(format!("failed to defragment: {e}")))
}

fn start_core(booted: &Bootstrapped, options: &NodeOptions) -> Result<Core, StartError> {
    // A new cluster's members come in by the log; the core needs them to elect anyone.
    let voters = match booted.cluster.voters().map(|id| id.0).collect::<Vec<_>>() {
        voters if voters.is_empty() => vec![booted.cluster.local.0],
        voters => voters,
    };
    let conf_state =
        ConfState { voters, learners: booted.cluster.learners().map(|id| id.0).collect(), ..Default::default() };
    let entries = booted.entries.iter().map(convert::entry_to_core).collect();
    let store = LogStore::new(booted.snapshot, convert::hard_state_to_core(&booted.hard_state), conf_state, entries);
    let core_options = CoreOptions {
        id: booted.cluster.local.0,
        election_ticks: options.election_ticks,
        pre_vote: options.pre_vote,
        applied: booted.consistent_index,
    };
    Core::new(&core_options, store, &slog_bridge::logger()).map_err(|e| StartError::Core(e.to_string()))
}

/// What is applied but cannot reach the file any more must not be answered, so the member ends with its database.
fn fail_with_backend(backend: &Backend, shared: &Arc<Shared>) {
    let shared = shared.clone();
    backend.on_failure(move |failure| {
        shared.fail(FatalError::Backend(failure.clone()));
        shared.close();
    });
}

/// A thread without which the member cannot go on: if it panics, the member fails instead of falling silent.
fn spawn(
    name: &'static str,
    shared: &Arc<Shared>,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StartError> {
    let shared = shared.clone();
    let guarded = move || {
        if std::panic::catch_unwind(AssertUnwindSafe(run)).is_err() {
            shared.fail(FatalError::Panicked(name));
            shared.close();
        }
    };
    let thread = std::thread::Builder::new().name(name.into()).spawn(guarded);
    thread.map_err(|e| StartError::Core(format!("failed to start the {name} thread: {e}")))
}
