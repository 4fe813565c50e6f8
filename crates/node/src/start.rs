//! Putting a member together: from options to running threads.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::AtomicBool, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use auth::token::SimpleTokens;
use lease::Lessor;
use membership::{ClusterId, Member, MemberId};
use parking_lot::{Mutex, RwLock};
use raft::eraftpb::ConfState;
use storage::Backend;

use crate::{
    apply::{Alarms, Auth, Gates, State},
    apply_loop::{ApplyLoop, ApplyOptions},
    bootstrap::{BootstrapOptions, Bootstrapped, StartError, bootstrap},
    chores::Chores,
    compactor::Compactor,
    convert,
    core::{Core, CoreOptions},
    error::FatalError,
    gate_keeper::GateKeeper,
    log_store::LogStore,
    node::{Node, NodeOptions, Threads},
    offline,
    proposer::Proposer,
    raft_loop::{RaftLoop, RaftParts},
    request_id::RequestIds,
    shared::Shared,
    slog_bridge,
    users::Users,
    wal_log::WalLog,
    world::{Network, Time, World},
};

/// Who the member is, once its data dir is open.
#[derive(Debug, Clone)]
pub struct Introduction {
    pub local: MemberId,
    pub cluster: ClusterId,
    /// Whom to talk to first: the members on record, or those that a new or joined cluster is said to have.
    pub members: Vec<Member>,
}

impl Node {
    /// Opens the data dir and starts the member's threads; `connect` makes the way to the others. Nothing is served
    /// before [`Node::publish`].
    pub fn start(
        options: NodeOptions,
        connect: impl FnOnce(&Introduction) -> Arc<dyn Network>,
    ) -> Result<Node, StartError> {
        let Assembled { node, raft, apply, compactor, chores, stop_chores } =
            Assembled::new(options, World::system(), connect)?;
        let shared = &node.shared;
        let threads = Threads {
            raft: spawn("raft", shared, move || raft.run())?,
            apply: spawn("apply", shared, move || apply.run())?,
            compactor: spawn("compactor", shared, move || compactor.run())?,
            chores: spawn("chores", shared, move || chores.run())?,
            stop_chores,
        };
        *node.threads.lock() = Some(threads);
        Ok(node)
    }
}

/// A member put together, of which nothing runs yet.
pub(crate) struct Assembled {
    pub node: Node,
    pub raft: RaftLoop<WalLog>,
    pub apply: ApplyLoop,
    pub compactor: Compactor,
    pub chores: Chores,
    /// The chores end with it.
    pub stop_chores: mpsc::Sender<()>,
}

impl Assembled {
    pub(crate) fn new(
        options: NodeOptions,
        world: World,
        connect: impl FnOnce(&Introduction) -> Arc<dyn Network>,
    ) -> Result<Assembled, StartError> {
        let booted = bootstrap(BootstrapOptions {
            data_dir: options.data_dir.clone(),
            name: options.name.clone(),
            identity: options.identity.clone(),
            force_new_cluster: options.force_new_cluster,
            learners_max: options.learners_max,
            binary_version: options.binary_version,
            backend: options.backend.clone(),
            wal: options.wal,
            log_disk: world.log_disk.clone(),
            check_features: options.features.check.clone(),
        })?;
        defrag_at_start(&booted.backend, options.defrag_threshold_bytes)?;
        let time = Time::begin(world.clock.clone());
        let parts = Parts::load(&booted, &options)?;
        let introduction = Introduction {
            local: booted.cluster.local,
            cluster: booted.cluster.id,
            members: booted.first_members.clone(),
        };
        let network = connect(&introduction);
        network.set_members(introduction.members);
        let shared = Arc::new(Shared::new(booted.consistent_index, options.observer.clone(), time.now(), options.tick));
        shared.set_learner(booted.cluster.is_local_learner());
        let (inputs, inputs_rx) = mpsc::channel();
        let (to_apply, to_apply_rx) = mpsc::channel();
        let (compactor, compactor_rx) = mpsc::channel();
        let (stop_chores, stop_rx) = mpsc::channel();
        let ids = Arc::new(RequestIds::new(booted.cluster.local.0, world.started));
        let proposer = Proposer { inputs, ids: ids.clone() };
        let core = start_core(&booted, &options, world.seed)?;
        let cluster = Arc::new(RwLock::new(booted.cluster));
        let backend = booted.backend;
        let gates = Arc::new(Gates::new(&cluster.read()));
        let keeper = Arc::new(GateKeeper::new(
            (cluster.clone(), shared.clone()),
            (proposer.clone(), time.clone()),
            options.features.own.clone(),
            (options.name.clone(), options.client_urls.clone()),
        ));
        let election_timeout = options.tick * options.election_ticks as u32;
        let request_timeout = Duration::from_secs(5) + 2 * election_timeout;

        let mut raft = RaftLoop::new(RaftParts {
            core,
            log: WalLog(booted.wal),
            inputs: inputs_rx,
            to_apply,
            shared: shared.clone(),
            lessor: parts.lessor.clone(),
            network: network.clone(),
            cluster: cluster.clone(),
            ids,
            time: time.clone(),
            tick: options.tick,
            catch_up_entries: options.catch_up_entries,
            request_timeout,
        });
        raft.note_log(&booted.entries);
        let apply = ApplyLoop {
            state: State {
                backend: backend.clone(),
                store: parts.store.clone(),
                lessor: parts.lessor.clone(),
                cluster: cluster.clone(),
                gates: gates.clone(),
                alarms: parts.alarms.clone(),
                auth: Auth { users: parts.users.clone(), salt: offline::random_salt },
                quota: options.quota,
                binary_version: options.binary_version,
                begins_anew: booted.begins_anew,
                time: time.clone(),
                observer: options.observer.clone(),
            },
            entries: to_apply_rx,
            core: Box::new(proposer.clone()),
            proposer: proposer.clone(),
            compactor,
            shared: shared.clone(),
            keeper: keeper.clone(),
            options: ApplyOptions {
                snapshot_count: options.snapshot_count,
                slow: options.slow_apply,
                election_timeout,
                lease_checkpoints: options.lease_checkpoints,
            },
            network: network.clone(),
            data_dir: options.data_dir.clone(),
            snapshot_index: booted.snapshot.0,
            lower_due: false,
        };
        apply.resume_compaction();
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
            users: parts.users.clone(),
            proposer: proposer.clone(),
            shared: shared.clone(),
            keeper: keeper.clone(),
            time: time.clone(),
            log_disk: world.log_disk,
            wal_dir: options.data_dir.wal(),
            wals_max: options.wals_max,
            stop: stop_rx,
        };
        fail_with_backend(&backend, &shared);
        let node = Node {
            shared,
            proposer,
            backend,
            store: parts.store,
            lessor: parts.lessor,
            users: parts.users,
            cluster,
            alarms: parts.alarms,
            gates,
            keeper,
            network,
            time,
            quota: options.quota,
            request_bytes_max: options.request_bytes_max,
            request_timeout,
            tick: options.tick,
            election_timeout,
            name: options.name,
            client_urls: options.client_urls,
            caught_up: AtomicBool::new(false),
            threads: Mutex::new(None),
        };
        Ok(Assembled { node, raft, apply, compactor, chores, stop_chores })
    }
}

/// State loaded from the file.
struct Parts {
    store: Arc<mvcc::Store>,
    lessor: Arc<Mutex<Lessor>>,
    alarms: Arc<Alarms>,
    users: Arc<Users>,
}

impl Parts {
    fn load(booted: &Bootstrapped, options: &NodeOptions) -> Result<Parts, StartError> {
        let view = booted.backend.view();
        let alarms = Alarms::new(storage::schema::alarm::all(&view)?);
        // As in etcd: a lease must outlive an election, with some room.
        let ttl_min = (options.tick * (3 * options.election_ticks as u32 / 2)).as_secs_f64().ceil() as i64;
        let mut lessor =
            Lessor::load(&view, lease::Options { ttl_min, checkpoint_interval: options.lease_checkpoint_interval })?;
        let tokens = options.simple_token_ttl.map(SimpleTokens::new);
        let users = Users::new(auth::Store::load(&view, auth::Order::BeginAndEnd)?, tokens);
        drop(view);
        let store = mvcc::Store::open(booted.backend.clone(), options.store.clone(), |id, key| lessor.attach(id, key))?;
        // Building the index has touched every page; most of them are not read again soon.
        booted.backend.release_memory();
        Ok(Parts {
            store: Arc::new(store),
            lessor: Arc::new(Mutex::new(lessor)),
            alarms: Arc::new(alarms),
            users: Arc::new(users),
        })
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

fn start_core(booted: &Bootstrapped, options: &NodeOptions, seed: u64) -> Result<Core, StartError> {
    // As of the database. What a new cluster's first entries say comes in as they are applied: they are committed.
    let conf_state = ConfState {
        voters: booted.cluster.voters().map(|id| id.0).collect(),
        learners: booted.cluster.learners().map(|id| id.0).collect(),
        ..Default::default()
    };
    let entries = booted.entries.iter().map(convert::entry_to_core).collect();
    let store = LogStore::new(booted.snapshot, convert::hard_state_to_core(&booted.hard_state), conf_state, entries);
    let core_options = CoreOptions {
        id: booted.cluster.local.0,
        election_ticks: options.election_ticks,
        pre_vote: options.pre_vote,
        applied: booted.consistent_index,
        // Another one for each member and each start, so that members do not stand for election at the same moment.
        seed: booted.cluster.local.0 ^ seed,
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
    #[expect(clippy::disallowed_methods, reason = "the one place that starts threads")]
    let thread = std::thread::Builder::new().name(name.into()).spawn(guarded);
    thread.map_err(|e| StartError::Core(format!("failed to start the {name} thread: {e}")))
}
