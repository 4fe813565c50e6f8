//! From a data dir to a member ready to run: a new cluster, or one that goes on.
//!
//! Everything that can refuse a dir is looked at before anything in it is changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use membership::{
    BootstrapError, Cluster, ClusterId, Founding, Member, MemberId, ReconcileError, check_not_downgraded,
    gate::GateFinding, plan_reconciliation,
};
use prost::Message;
use proto::{
    Version,
    etcdserverpb::InternalRaftRequest,
    raftpb::{self, ConfChangeType, EntryType},
    walpb,
};
use storage::{
    Backend,
    schema::{self, version::Judgement},
};
use wal::Wal;

use crate::{
    apply::{
        cluster::{load_cluster, record},
        gate::{load as load_gate, put_all as put_gate},
    },
    data_dir::{DataDir, DataDirError},
    force,
    swap::{self, Recovered},
};

/// Who a member with a new data dir becomes.
#[derive(Debug, Clone)]
pub enum Identity {
    /// One of the founders of a cluster.
    Founder(Founding),
    /// A member that was added to a running cluster. Everything else comes to it from the leader.
    Joiner(Founding),
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Swap(#[from] swap::SwapError),
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    #[error("failed to open the database {path}")]
    Backend { path: String, source: storage::OpenError },
    #[error("failed to read the log in {path}")]
    Log { path: String, source: wal::Error },
    #[error("{}", judgement.advise(&data_dir.words()))]
    Version { judgement: Judgement, data_dir: DataDir },
    #[error("the database holds a value that cannot be read")]
    Schema(#[from] schema::DecodeError),
    #[error("failed to load the keys")]
    Store(#[from] mvcc::OpenError),
    #[error("{0}")]
    Core(String),
    #[error(
        "database file ({path}) of the backend is missing: the log is there, so the file was lost; restore a snapshot"
    )]
    DatabaseMissing { path: String },
    #[error(
        "{path} holds a database (index {index}) but the log in {wal} is missing; \
         give the log's directory with --wal-dir, or restore a snapshot into a new data dir"
    )]
    LogMissing { path: String, wal: String, index: u64 },
    #[error("database file ({path} index {index}) does not match with snapshot (index {snapshot})")]
    DatabaseBehind { path: String, index: u64, snapshot: u64 },
    #[error(
        "the log ends at index {last} but the database has applied index {index}: entries are missing from the log; \
         restore a snapshot"
    )]
    LogBehind { last: u64, index: u64 },
    #[error(
        "the log ends at index {last} but says that index {commit} was committed: entries are missing from the log; \
         restore a snapshot"
    )]
    LogCut { last: u64, commit: u64 },
    #[error(transparent)]
    Membership(#[from] ReconcileError),
    #[error(transparent)]
    Downgrade(#[from] membership::InvalidDowngrade),
    #[error("{0}")]
    Features(String),
    #[error(transparent)]
    UnknownFeature(#[from] membership::gate::UnknownFeature),
    #[error("the log's metadata cannot be read: {0}")]
    Metadata(String),
    #[error(
        "entry {index} in the log holds {what}, which this version cannot apply; start the etcd that wrote it once"
    )]
    UnsupportedEntry { index: u64, what: String },
}

/// What the node starts from.
pub(crate) struct Bootstrapped {
    pub backend: Backend,
    pub wal: Wal,
    pub cluster: Cluster,
    pub hard_state: raftpb::HardState,
    pub entries: Vec<raftpb::Entry>,
    /// Index and term of the log's last usable snapshot record.
    pub snapshot: (u64, u64),
    /// Entries up to here are in the database.
    pub consistent_index: u64,
    /// Whom to talk to first.
    pub first_members: Vec<Member>,
    /// See [`crate::apply::State::begins_anew`].
    pub begins_anew: Option<u64>,
}

pub(crate) struct BootstrapOptions {
    pub data_dir: DataDir,
    pub name: String,
    pub identity: Option<Identity>,
    pub force_new_cluster: bool,
    pub learners_max: usize,
    pub binary_version: Version,
    pub backend: storage::Options,
    pub wal: wal::Options,
    /// Where the log is.
    pub log_disk: Arc<dyn wal::Disk>,
    pub check_features: Arc<dyn Fn(Option<Version>) -> Result<(), String> + Send + Sync>,
}

pub(crate) fn bootstrap(options: BootstrapOptions) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    dir.check()?;
    swap::recover(dir)?;
    let (backend, have_log) = open_database(&options)?;
    check_database(&backend, &options)?;
    let booted = if have_log { restart(backend, &options) } else { start_new(backend, &options) }?;
    // Only with the database's lock in hand: the files of a process that runs on this dir are not left over.
    dir.remove_leftovers();
    Ok(booted)
}

/// Opens and locks the database, and returns whether there is a log.
///
/// A migration may begin at any time until this process has the lock of the database in place. While it swaps files
/// there is no database, so none is created next to a log; and the file that this process has locked may be the old
/// one.
fn open_database(options: &BootstrapOptions) -> Result<(Backend, bool), StartError> {
    let dir = &options.data_dir;
    loop {
        let have_database = dir.db().exists();
        let have_log = Wal::exists_on(&*options.log_disk, &dir.wal());
        if have_log && !have_database {
            if swap::recover_after_end(dir)? == Recovered::Nothing && !dir.db().exists() {
                return Err(StartError::DatabaseMissing { path: dir.db().display().to_string() });
            }
            continue;
        }
        if !have_log && options.identity.is_none() {
            return Err(BootstrapError::NameMissing(options.name.clone()).into());
        }
        dir.create()?;
        match Backend::open(&dir.db(), storage::Options { create: !have_log, ..options.backend.clone() }) {
            Ok(backend) if !swap::is_pending(dir)? => return Ok((backend, have_log)),
            Ok(backend) => drop(backend),
            Err(error) if error.is_missing() => {}
            Err(source) => return Err(StartError::Backend { path: dir.db().display().to_string(), source }),
        }
        swap::recover_after_end(dir)?;
    }
}

/// Refuses databases this binary must not serve.
fn check_database(backend: &Backend, options: &BootstrapOptions) -> Result<(), StartError> {
    let view = backend.view();
    let judgement = schema::version::judge(schema::version::detect(&view)?, options.binary_version);
    if judgement != Judgement::Start {
        return Err(StartError::Version { judgement, data_dir: options.data_dir.clone() });
    }
    (options.check_features)(schema::cluster::version(&view)?).map_err(StartError::Features)?;
    Ok(())
}

fn start_new(backend: Backend, options: &BootstrapOptions) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    let (index, _) = schema::meta::consistent(&backend.view())?;
    if index > 0 {
        let (path, wal) = (dir.db().display().to_string(), dir.wal().display().to_string());
        return Err(StartError::LogMissing { path, wal, index });
    }
    let Beginning { cluster, local, members, hard_state, entries } = beginning(options)?;
    let metadata = wal::Metadata { node_id: local.0, cluster_id: cluster.0 };
    let mut wal = Wal::create_on(options.log_disk.clone(), &dir.wal(), &metadata.encode(), options.wal)
        .map_err(|e| log_error(dir, e))?;
    wal.save(Some(&hard_state), &entries).map_err(|e| log_error(dir, e))?;
    // The members come in by the log's entries, like every later change.
    let cluster =
        Cluster::new(cluster, local, BTreeMap::new(), BTreeSet::new(), None).with_learners_max(options.learners_max);
    Ok(Bootstrapped {
        backend,
        wal,
        cluster,
        hard_state,
        entries,
        snapshot: (0, 0),
        consistent_index: 0,
        first_members: members,
        begins_anew: None,
    })
}

/// How a new log begins.
struct Beginning {
    cluster: ClusterId,
    local: MemberId,
    members: Vec<Member>,
    hard_state: raftpb::HardState,
    entries: Vec<raftpb::Entry>,
}

fn beginning(options: &BootstrapOptions) -> Result<Beginning, StartError> {
    let missing = || BootstrapError::NameMissing(options.name.clone());
    let (founding, (hard_state, entries)) = match options.identity.as_ref().ok_or_else(missing)? {
        Identity::Founder(founding) => (founding, first_entries(&founding.members)),
        Identity::Joiner(founding) => (founding, Default::default()),
    };
    let (local, cluster) = (founding.local, founding.cluster_id);
    tracing::info!(
        local_member_id = %local, cluster_id = %cluster, members = founding.members.len(),
        "starting local member with a new log"
    );
    Ok(Beginning { cluster, local, members: founding.members.values().cloned().collect(), hard_state, entries })
}

/// As etcd begins a log: one addition for each member, in term 1 and committed.
fn first_entries(members: &BTreeMap<MemberId, Member>) -> (raftpb::HardState, Vec<raftpb::Entry>) {
    let entries: Vec<_> = members
        .values()
        .zip(1..)
        .map(|(member, index)| {
            let change = raftpb::ConfChange {
                id: Some(0),
                r#type: Some(ConfChangeType::ConfChangeAddNode as i32),
                node_id: Some(member.id.0),
                context: Some(record(member).to_json().into()),
            };
            raftpb::Entry {
                term: Some(1),
                index: Some(index),
                r#type: Some(EntryType::EntryConfChange as i32),
                data: Some(change.encode_to_vec().into()),
            }
        })
        .collect();
    let state = raftpb::HardState { term: Some(1), vote: Some(0), commit: Some(entries.len() as u64) };
    (state, entries)
}

fn restart(backend: Backend, options: &BootstrapOptions) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    let disk = &options.log_disk;
    let snapshots = Wal::valid_snapshots_on(&**disk, &dir.wal()).map_err(|e| log_error(dir, e))?;
    let at = snapshots.into_iter().max_by_key(walpb::Snapshot::index).unwrap_or_default();
    let (index, term) = recover_received(&backend, options, &at)?;
    // A first look that changes nothing: what is refused stays as it is.
    let read = Wal::read_on(&**disk, &dir.wal(), &at).map_err(|e| log_error(dir, e))?;
    let metadata = wal::Metadata::decode(&read.metadata).map_err(|e| StartError::Metadata(e.to_string()))?;
    check_log(&read, index, at.index())?;
    drop(read);
    let (id, local) = (ClusterId(metadata.cluster_id), MemberId(metadata.node_id));
    let mut cluster = load_cluster(&backend.view(), id, local)?.with_learners_max(options.learners_max);
    reconcile(&backend.view(), &cluster, index)?;
    check_not_downgraded(options.binary_version, cluster.version())?;
    let findings = cluster.mend_gate(index, term);
    cluster.check_features_known(options.binary_version, membership::features::is_cluster_feature)?;
    write_mended_gate(&backend, &cluster, &findings).map_err(StartError::Core)?;
    let (mut wal, read) = Wal::open_on(disk.clone(), &dir.wal(), &at, options.wal).map_err(|e| log_error(dir, e))?;
    let (mut hard_state, mut entries) = (read.hard_state, read.entries);
    let mut first_members: Vec<_> = cluster.members().cloned().collect();
    if entries.is_empty() && at.index() == 0 && hard_state.term() == 0 {
        // The first start was cut off before anything was in the log. (A member that has joined may have voted before
        // its first entry came, which must not be forgotten.)
        if let Some(begin) =
            options.identity.as_ref().and_then(|_| beginning(options).ok()).filter(|b| b.local == local)
        {
            wal.save(Some(&begin.hard_state), &begin.entries).map_err(|e| log_error(dir, e))?;
            (hard_state, entries, first_members) = (begin.hard_state, begin.entries, begin.members);
        }
    }
    // The commit index is not synced by itself; what is in the database was committed.
    hard_state.commit = Some(hard_state.commit().max(index).max(at.index()));
    let begins_anew = options.force_new_cluster.then(|| hard_state.commit() + 1);
    if options.force_new_cluster {
        force::alone(&mut wal, &cluster, &mut hard_state, &mut entries).map_err(|e| log_error(dir, e))?;
        first_members.retain(|member| member.id == local);
    }
    tracing::info!(
        local_member_id = %local, cluster_id = %id, commit_index = hard_state.commit(),
        consistent_index = index, entries = entries.len(), data_dir = %dir.root().display(), "restarting local member"
    );
    let snapshot = (at.index(), at.term());
    Ok(Bootstrapped {
        backend,
        wal,
        cluster,
        hard_state,
        entries,
        snapshot,
        consistent_index: index,
        first_members,
        begins_anew,
    })
}

/// A gate that was put right must be so in the file too, before anything is applied: sent to another member, the old
/// one would be taken for sound there once its index has passed.
pub(crate) fn write_mended_gate(backend: &Backend, cluster: &Cluster, findings: &[GateFinding]) -> Result<(), String> {
    for finding in findings {
        tracing::error!(%finding, "the stored feature gate was put right");
    }
    if load_gate(&backend.view()).map_err(|e| e.to_string())? == *cluster.gate() {
        return Ok(());
    }
    let mut batch = backend.write();
    put_gate(&mut batch, cluster.gate());
    batch.commit().map_err(|e| e.to_string())
}

/// The database's index and its term. If the log has gone on from a received database that is not in place yet, it is
/// put there.
fn recover_received(
    backend: &Backend,
    options: &BootstrapOptions,
    at: &walpb::Snapshot,
) -> Result<(u64, u64), StartError> {
    let (dir, snapshot) = (&options.data_dir, at.index());
    let (mut index, mut term) = schema::meta::consistent(&backend.view())?;
    let received = dir.received(snapshot);
    if index < snapshot && received.exists() {
        tracing::info!(consistent_index = index, snapshot_index = snapshot, "recovering from a received database");
        // The process that wrote the snapshot record may have died before it was synced. Opening the log syncs it;
        // without it a power failure would leave a database that is ahead of its log.
        let opened = Wal::open_on(options.log_disk.clone(), &dir.wal(), at, options.wal);
        opened.map(drop).map_err(|e| log_error(dir, e))?;
        backend.take_over(&received).map_err(|e| StartError::Core(e.to_string()))?;
        (index, term) = schema::meta::consistent(&backend.view())?;
    }
    if index < snapshot {
        return Err(StartError::DatabaseBehind { path: dir.db().display().to_string(), index, snapshot });
    }
    Ok((index, term))
}

/// One truth for membership: the records of the members, as in etcd. What raft's stored configuration says
/// otherwise is told loudly, and written anew by the next change.
fn reconcile(view: &storage::View, cluster: &Cluster, index: u64) -> Result<(), StartError> {
    let members = cluster.members().map(|member| (member.id, member.clone())).collect();
    let stored = schema::meta::conf_state(view)?;
    let plan = plan_reconciliation(stored.as_ref(), &members, &cluster.removed().collect(), cluster.local, index)?;
    for finding in plan.findings {
        tracing::error!(%finding, "members and raft configuration differ");
    }
    Ok(())
}

/// Refuses logs that cannot be all of what was written, and entries that are not in the database yet and that this
/// version could not apply.
fn check_log(log: &wal::ReadAll, index: u64, snapshot: u64) -> Result<(), StartError> {
    let last = log.entries.last().map_or(snapshot, |e| e.index());
    if last < index {
        return Err(StartError::LogBehind { last, index });
    }
    if last < log.hard_state.commit() {
        return Err(StartError::LogCut { last, commit: log.hard_state.commit() });
    }
    for entry in log.entries.iter().filter(|e| e.index() > index) {
        match entry.r#type() {
            EntryType::EntryNormal => check_request(entry)?,
            EntryType::EntryConfChange => check_conf_change(entry)?,
            EntryType::EntryConfChangeV2 => return Err(unsupported(entry, "a joint configuration change".into())),
        }
    }
    Ok(())
}

fn check_request(entry: &raftpb::Entry) -> Result<(), StartError> {
    let Some(data) = entry.data.clone().filter(|d| !d.is_empty()) else { return Ok(()) };
    let request = InternalRaftRequest::decode(data)
        .map_err(|_| unsupported(entry, "a request of the v2 API or of an unknown kind".into()))?;
    if is_supported(&request) { Ok(()) } else { Err(unsupported(entry, UNKNOWN_KIND.into())) }
}

fn check_conf_change(entry: &raftpb::Entry) -> Result<(), StartError> {
    match raftpb::ConfChange::decode(entry.data.clone().unwrap_or_default()) {
        Ok(_) => Ok(()),
        Err(_) => Err(unsupported(entry, "a configuration change that cannot be read".into())),
    }
}

fn unsupported(entry: &raftpb::Entry, what: String) -> StartError {
    StartError::UnsupportedEntry { index: entry.index(), what }
}

/// What is said of a request that apply does not know.
pub(crate) const UNKNOWN_KIND: &str = "a request of an unknown kind";

/// Whether apply knows this request.
fn is_supported(r: &InternalRaftRequest) -> bool {
    r.range.is_some()
        || r.put.is_some()
        || r.delete_range.is_some()
        || r.txn.is_some()
        || r.compaction.is_some()
        || r.lease_grant.is_some()
        || r.lease_revoke.is_some()
        || r.lease_checkpoint.is_some()
        || r.alarm.is_some()
        || r.cluster_version_set.is_some()
        || r.cluster_member_attr_set.is_some()
        || r.downgrade_info_set.is_some()
        || r.downgrade_version_test.is_some()
        || r.increment.is_some()
        || is_about_users(r)
}

/// Whether a request is about users, roles or logins, be it a question.
fn is_about_users(r: &InternalRaftRequest) -> bool {
    auth::administers(r)
        || r.authenticate.is_some()
        || r.auth_status.is_some()
        || r.auth_user_get.is_some()
        || r.auth_role_get.is_some()
}

fn log_error(dir: &DataDir, source: wal::Error) -> StartError {
    StartError::Log { path: dir.wal().display().to_string(), source }
}

/// The snapshot record for a log that starts at `index`.
pub fn snapshot_record(index: u64, term: u64, conf_state: raftpb::ConfState) -> walpb::Snapshot {
    walpb::Snapshot { index: Some(index), term: Some(term), conf_state: Some(conf_state) }
}

#[cfg(test)]
mod tests;
