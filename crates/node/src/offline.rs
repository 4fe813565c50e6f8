//! Entries applied without a running member: what a log has committed comes into the database of a stopped one.
//!
//! The same code applies as in a member, so the bytes are the same; users, roles and what they allow are part of it. What
//! depends on a limit that the member's flags set, or on the v2 API, is refused by index, and never left out.

mod touched;

use std::{cell::Cell, sync::Arc};

use auth::{Order, Salt};
use lease::Lessor;
use membership::{ChangeError, Cluster, ClusterId, MemberId};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use proto::{
    V2Change, V2Request, Version,
    etcdserverpb::{InternalRaftRequest, TxnRequest, request_op},
    raftpb::{ConfState, Entry, EntryType},
};
use storage::{Backend, schema};

use crate::{
    apply::{
        Alarms, Auth, Gates, Quota, State,
        cluster::{conf_state, load_cluster},
    },
    error::{ApplyError, FatalError},
    users::Users,
    world::{NoObserver, SystemClock, Time},
};

#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    #[error("the database holds a value that cannot be read")]
    Schema(#[from] schema::DecodeError),
    #[error("failed to load the keys")]
    Store(#[from] mvcc::OpenError),
    #[error(
        "entry {index} is committed but not in the database yet, and holds {what}, which can be applied by a running \
         etcd alone: start the etcd that wrote it once, and stop it"
    )]
    NeedsEtcd { index: u64, what: String },
    #[error("failed to apply entry {index}")]
    Apply { index: u64, source: FatalError },
    #[error("failed to write the database")]
    Backend(#[from] storage::Failure),
}

pub use self::touched::Touched;

/// The state of a stopped member.
pub struct Offline {
    state: State,
    /// Whether ranges in transactions are dropped, see [`without_ranges`].
    drops_ranges: bool,
    release: Release,
}

/// From this cluster version on etcd judges all ranges of a transaction wherever it is applied, and orders permissions
/// that begin alike by their end.
const JUDGES_RANGES_SINCE: Version = Version::new(3, 7);

impl Offline {
    /// Loads the state; of keys what is touched by what will be applied, in memory or, if it is much, beside the database.
    pub fn load(
        backend: Backend,
        members: (ClusterId, MemberId),
        binary: Version,
        touched: Touched,
    ) -> Result<Offline, OfflineError> {
        Offline::load_with(backend, members, binary, touched, mvcc::Options::default())
    }

    fn load_with(
        backend: Backend,
        (id, local): (ClusterId, MemberId),
        binary: Version,
        mut touched: Touched,
        options: mvcc::Options,
    ) -> Result<Offline, OfflineError> {
        let view = backend.view();
        let cluster = load_cluster(&view, id, local)?;
        let alarms = Alarms::new(schema::alarm::all(&view)?);
        let lessor = Lessor::load(&view, lease::Options::default())?;
        let drops_ranges = cluster.version().is_none_or(|version| version < JUDGES_RANGES_SINCE);
        let order = if drops_ranges { Order::Begin } else { Order::BeginAndEnd };
        let users = Arc::new(Users::new(auth::Store::load(&view, order)?, None));
        let auth = Auth { users, salt: random_salt };
        let release = Release::default();
        if touched.seeks_leases() {
            mvcc::each_leased(&view, |key, lease| {
                release.count(&backend);
                if touched.has_lease(lease) {
                    touched.add_key(key);
                }
            })?;
        }
        drop(view);
        let wanted = |key: &[u8]| {
            release.count(&backend);
            touched.has(key)
        };
        // Keys of a lease that is not there hang on none, also if one with its id is granted later.
        let leased = |id| touched.has_lease(id) && lessor.exists(id);
        let store = mvcc::Store::open_replay(backend.clone(), options, &wanted, &leased)?;
        backend.release_memory();
        let state = State {
            backend,
            store: Arc::new(store),
            lessor: Arc::new(Mutex::new(lessor)),
            gates: Arc::new(Gates::new(&cluster)),
            cluster: Arc::new(RwLock::new(cluster)),
            alarms: Arc::new(alarms),
            auth,
            quota: Quota::new(None),
            binary_version: binary,
            begins_anew: None,
            time: Time::begin(Arc::new(SystemClock)),
            observer: Arc::new(NoObserver),
        };
        Ok(Offline { state, drops_ranges, release: Release::default() })
    }

    /// Applies the next committed entry. After an error nothing more may be applied.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), OfflineError> {
        let index = entry.index();
        self.release.count(&self.state.backend);
        let needs_etcd = |what: String| OfflineError::NeedsEtcd { index, what };
        let outcome = match what_is(entry, self.drops_ranges).map_err(needs_etcd)? {
            What::AsItIs => self.state.apply(entry),
            What::Instead(request) => {
                let data = Some(request.encode_to_vec().into());
                self.state.apply(&Entry { data, ..entry.clone() })
            }
        };
        // What was looked for on a disk that failed seems not to be there.
        if let Some(failure) = self.state.backend.failed() {
            return Err(failure.clone().into());
        }
        let outcome = outcome.map_err(|source| OfflineError::Apply { index, source })?;
        match outcome.result {
            // How many are allowed is a flag of the members; another limit than the default would give another result.
            Err(ApplyError::Membership(ChangeError::TooManyLearners)) => {
                Err(needs_etcd("one more learner than the default of --max-learners allows".into()))
            }
            // Everything else is an answer that every member gave alike.
            _ => Ok(()),
        }
    }

    /// Makes everything durable.
    pub fn finish(self) -> Result<(), OfflineError> {
        Ok(self.state.backend.commit()?)
    }
}

/// Lets go of what reading has mapped in, now and then, so that a large file does not take its size in memory.
#[derive(Default)]
struct Release(Cell<u32>);

impl Release {
    /// Of large values each maps in pages of its own.
    const EVERY: u32 = 32;

    /// One more record was read.
    fn count(&self, backend: &Backend) {
        self.0.set((self.0.get() + 1) % Release::EVERY);
        if self.0.get() == 0 {
            backend.release_memory();
        }
    }
}

/// The cluster in a database: members, versions, downgrade job.
pub fn cluster_of(view: &storage::View, id: ClusterId, local: MemberId) -> Result<Cluster, schema::DecodeError> {
    load_cluster(view, id, local)
}

/// The configuration that the members of a database make.
pub fn conf_state_of(cluster: &Cluster) -> ConfState {
    conf_state(cluster)
}

/// What to apply for an entry.
enum What {
    AsItIs,
    /// The request of today that stands for one of the v2 API, or a transaction without its ranges.
    Instead(Box<InternalRaftRequest>),
}

/// `Err` says what only a running etcd can apply.
fn what_is(entry: &Entry, drops_ranges: bool) -> Result<What, String> {
    let data = entry.data.clone().unwrap_or_default();
    if entry.r#type() != EntryType::EntryNormal || data.is_empty() {
        return Ok(What::AsItIs);
    }
    if let Some(request) = V2Request::recognise(&data) {
        return match request.change() {
            V2Change::Today(request) => Ok(What::Instead(request)),
            V2Change::Unsupported(what) => Err(format!("a request of the v2 API ({what})")),
        };
    }
    let transaction = InternalRaftRequest::decode(data).ok().filter(|_| drops_ranges).and_then(without_ranges);
    Ok(transaction.map_or(What::AsItIs, |request| What::Instead(Box::new(request))))
}

/// Where nobody waits for the answer, which is always so when a log is read again, etcd before 3.7 drops the ranges of a
/// transaction, though not those of transactions in it, before it asks whether its user may do all of it and whether its
/// revisions are there. `None` if there is nothing to drop.
fn without_ranges(mut request: InternalRaftRequest) -> Option<InternalRaftRequest> {
    let txn = request.txn.as_mut()?;
    let count = |txn: &TxnRequest| txn.success.len() + txn.failure.len();
    let before = count(txn);
    for branch in [&mut txn.success, &mut txn.failure] {
        branch.retain(|op| !matches!(op.request, Some(request_op::Request::RequestRange(_))));
    }
    (count(txn) < before).then_some(request)
}

pub(crate) fn random_salt() -> Result<Salt, String> {
    let mut salt = Salt::default();
    getrandom::fill(&mut salt).map_err(|e| e.to_string())?;
    Ok(salt)
}

#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod tests;
