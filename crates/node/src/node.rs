//! A running member: threads behind one handle.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use failpoint::failpoint;
use lease::{Lessor, Renewal};
use membership::{Cluster, MemberId, may_log_request};
use parking_lot::{Mutex, RwLock};
use prost::Message as _;
use proto::{
    Version,
    etcdserverpb::{AlarmMember, AlarmType, InternalRaftRequest, LeaseCheckpoint, LeaseCheckpointRequest},
    membershippb::{Attributes, ClusterMemberAttrSetRequest},
};
use storage::Backend;
use tokio::sync::{oneshot, watch};

use crate::{
    apply::{Alarms, Gates, Quota, Response},
    bootstrap::Identity,
    data_dir::DataDir,
    error::{ProposeError, ReadError},
    gate_keeper::{FeatureFlags, GateKeeper},
    proposer::Proposer,
    raft_loop::{Input, Judged},
    shared::{Life, Shared},
    users::Users,
    world::{Network, Observer, Time},
};

/// Entries that may be committed but not yet applied before new requests are turned away.
const APPLY_LAG_MAX: u64 = 5000;

/// How a member runs.
pub struct NodeOptions {
    pub data_dir: DataDir,
    pub name: String,
    /// Who this member becomes if the data dir is new.
    pub identity: Option<Identity>,
    /// Makes a cluster of this member alone out of the data dir, for disasters.
    pub force_new_cluster: bool,
    pub learners_max: usize,
    pub client_urls: Vec<String>,
    pub binary_version: Version,
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
    /// How long simple tokens live after their last use; `None` where users have tokens of another kind.
    pub simple_token_ttl: Option<Duration>,
    /// Between two checkpoints of a lease, and the shortest TTL that is checkpointed.
    pub lease_checkpoint_interval: Duration,
    /// What this member proposes for the cluster features.
    pub features: FeatureFlags,
    pub observer: Arc<dyn Observer>,
}

/// Where the member stands.
#[derive(Debug, Clone, Copy)]
pub struct NodeStatus {
    pub term: u64,
    /// 0 if there is none.
    pub leader: u64,
    pub is_leader: bool,
    /// Of the last entry, committed or not.
    pub last_index: u64,
    pub commit_index: u64,
    pub applied_index: u64,
}

/// A running member. Dropping it does not stop it: call [`Node::stop`].
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    pub(crate) proposer: Proposer,
    pub(crate) backend: Backend,
    pub(crate) store: Arc<mvcc::Store>,
    pub(crate) lessor: Arc<Mutex<Lessor>>,
    pub(crate) cluster: Arc<RwLock<Cluster>>,
    pub(crate) users: Arc<Users>,
    pub(crate) alarms: Arc<Alarms>,
    pub(crate) gates: Arc<Gates>,
    pub(crate) keeper: Arc<GateKeeper>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) time: Time,
    pub(crate) quota: Quota,
    pub(crate) request_bytes_max: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) tick: Duration,
    pub(crate) election_timeout: Duration,
    pub(crate) name: String,
    pub(crate) client_urls: Vec<String>,
    /// Has served a linearizable read since its start.
    pub(crate) caught_up: AtomicBool,
    pub(crate) threads: Mutex<Option<Threads>>,
}

pub(crate) struct Threads {
    pub raft: JoinHandle<()>,
    pub apply: JoinHandle<()>,
    pub compactor: JoinHandle<()>,
    pub chores: JoinHandle<()>,
    pub stop_chores: mpsc::Sender<()>,
}

struct ForgetWait<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for ForgetWait<'_> {
    fn drop(&mut self) {
        self.shared.waits.forget(self.id);
    }
}

impl Node {
    /// Tells the cluster this member's name and URLs. Returns when that is applied: the member is ready to serve.
    pub async fn publish(&self) -> Result<(), ProposeError> {
        failpoint!("beforePublishing");
        let member_id = self.member_id().0;
        let (name, client_urls) = (self.name.clone(), self.client_urls.clone());
        let attributes = Attributes { name, client_urls, proposed_feature_gates: None };
        let request = ClusterMemberAttrSetRequest { member_id, member_attributes: Some(attributes) };
        self.propose_patiently(InternalRaftRequest { cluster_member_attr_set: Some(request), ..Default::default() })
            .await?;
        tracing::info!(
            local_member_id = %self.member_id(), name = %self.name, client_urls = ?self.client_urls,
            cluster_id = %self.cluster.read().id, "published local member to cluster through raft"
        );
        Ok(())
    }

    /// From here on this member proposes values for the cluster features. Returns when it has caught up, which comes
    /// first: until then it may be behind a change of the cluster version.
    pub async fn begin_proposing_features(&self) -> Result<(), ReadError> {
        self.catch_up().await?;
        self.keeper.begin();
        Ok(())
    }

    /// Returns when this member has applied all that was committed when it was asked, be it long after its start.
    pub async fn catch_up(&self) -> Result<(), ReadError> {
        loop {
            match self.read_index().await {
                Err(ReadError::Timeout) if self.shared.is_running() => continue,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.caught_up.store(true, Ordering::Release);
        Ok(())
    }

    /// Which cluster features are on.
    pub fn gates(&self) -> &Arc<Gates> {
        &self.gates
    }

    /// The entry that last turned a cluster feature on or off.
    pub fn gate_index(&self) -> u64 {
        self.cluster.read().gate().index
    }

    /// Whether the cluster has heard of this member's name: it has been here before.
    pub fn own_name_is_known(&self) -> bool {
        let cluster = self.cluster.read();
        cluster.member(cluster.local).is_some_and(|member| !member.name.is_empty())
    }

    /// What this member would propose at the current cluster version.
    pub fn own_features(&self) -> BTreeMap<String, bool> {
        self.cluster_version().map(|version| (self.keeper.own)(version)).unwrap_or_default()
    }

    /// Whether this member's proposal for the cluster features is still on its way.
    pub fn is_proposal_due(&self) -> bool {
        self.keeper.is_proposal_due()
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
    pub async fn propose(&self, mut request: InternalRaftRequest) -> Result<Response, ProposeError> {
        if self.shared.commit().saturating_sub(self.shared.applied.index()) > APPLY_LAG_MAX {
            return Err(ProposeError::TooManyRequests);
        }
        let id = self.proposer.name(&mut request);
        let judged = self.check_loggable(&request).await?;
        let data: Bytes = request.encode_to_vec().into();
        if data.len() > self.request_bytes_max {
            return Err(ProposeError::TooLarge);
        }
        self.propose_and_wait(id, Input::Propose { id, data, judged }).await
    }

    /// Nothing newer than the cluster version reaches the log. What is newer than any cluster needs to be is asked of the
    /// version that counts now, so this member must have caught up once since its start.
    async fn check_loggable(&self, request: &InternalRaftRequest) -> Result<Judged, ProposeError> {
        // What requires features needs a version for sure.
        let requires = request.header.as_ref().is_some_and(|header| !header.required_features.is_empty());
        if !requires && may_log_request(request, None).is_ok() {
            return Ok(if request.cluster_version_set.is_some() { Judged::Not } else { Judged::Plain });
        }
        if !self.caught_up.load(Ordering::Acquire) {
            self.read_index().await.map_err(|_| ProposeError::Timeout)?;
            self.caught_up.store(true, Ordering::Release);
        }
        let version = self.cluster_version();
        may_log_request(request, version).map_err(|why| ProposeError::NotYet(Box::new(why)))?;
        Ok(if request.cluster_version_set.is_some() { Judged::Not } else { Judged::At(version) })
    }

    /// Sends a proposal and returns its result when this member has applied it.
    pub(crate) async fn propose_and_wait(&self, id: u64, input: Input) -> Result<Response, ProposeError> {
        if !self.shared.is_running() {
            return Err(ProposeError::Stopped);
        }
        let receiver = self.shared.waits.register(id);
        // A caller may go away, and its proposal be lost on its way to the leader: then nobody would ever answer.
        let forget = ForgetWait { shared: &self.shared, id };
        self.proposer.send(input);
        let answered = tokio::time::timeout(self.request_timeout, receiver).await;
        if answered.is_ok() {
            std::mem::forget(forget);
        }
        match answered {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) if self.shared.is_running() => {
                self.shared.observer.proposal_failed();
                Err(ProposeError::Timeout)
            }
            Ok(Err(_)) => Err(ProposeError::Stopped),
            Err(_) => {
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
        if self.shared.may_read_alone() {
            return Ok(());
        }
        let (done, receiver) = oneshot::channel();
        if self.shared.reads.push(done) {
            self.proposer.send(Input::Reads);
        }
        match tokio::time::timeout(self.request_timeout, receiver).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(ReadError::Stopped),
            Err(_) => Err(ReadError::Timeout),
        }
    }

    /// Renews a lease. `Ok(None)` if it does not exist or has ended. Only the leader can.
    pub async fn renew_lease(&self, id: i64) -> Result<Option<i64>, ProposeError> {
        let deadline = self.time.now() + self.request_timeout;
        while self.time.now() < deadline {
            let Some(term) = self.shared.standing().leads_in() else { return Err(ProposeError::NotLeader) };
            if self.shared.ticked.must_ask(self.time.now(), term) {
                // There may be another leader, who lets the lease go.
                self.read_index().await.map_err(|_| ProposeError::Timeout)?;
                self.shared.ticked.asked();
                if self.shared.standing().leads_in() != Some(term) {
                    return Err(ProposeError::NotLeader);
                }
            }
            failpoint!("beforeCheckpointInLeaseRenew");
            let renewal = self.lessor.lock().renew(self.time.elapsed(), id);
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

    /// Whether this member has no vote.
    pub fn is_learner(&self) -> bool {
        self.shared.is_learner()
    }

    pub fn cluster_version(&self) -> Option<Version> {
        self.gates.cluster_version()
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
        self.time.elapsed()
    }

    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Users and roles, as far as this member has applied.
    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Whose simple token it is. A token of an entry that this member has not applied yet is waited for; one of an entry that
    /// never comes is nobody's when the time is up.
    pub async fn user_of_token(&self, token: &str) -> Option<String> {
        let reached = self.shared.applied.reached(auth::token::index_of(token)?);
        let known = tokio::time::timeout(self.request_timeout, reached).await.unwrap_or(false);
        known.then(|| self.users.user_of(self.time.elapsed(), token)).flatten()
    }

    pub fn alarms(&self) -> Vec<AlarmMember> {
        self.alarms.list(AlarmType::None as i32)
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
        let standing = self.shared.standing();
        let raft = standing.raft();
        NodeStatus {
            term: raft.term,
            leader: self.shared.leader(),
            is_leader: raft.is_leader,
            last_index: raft.last,
            commit_index: raft.commit,
            applied_index: self.shared.applied.index(),
        }
    }

    /// Why the member stopped by itself, if it did.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Whether the member ended because the cluster has removed it.
    pub fn was_removed(&self) -> bool {
        self.shared.was_removed()
    }

    /// Changes when the member stops or fails.
    pub fn life(&self) -> watch::Receiver<Life> {
        self.shared.life()
    }

    /// How long a request may take before its caller is told that it failed.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
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
