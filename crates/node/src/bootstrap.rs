//! From a data dir to a member ready to run: a new cluster, or one that goes on.
//!
//! Everything that can refuse a dir is looked at before anything in it is changed.

use std::collections::{BTreeMap, BTreeSet};

use membership::{BootstrapError, Cluster, ClusterId, Member, MemberId, members_of_new_cluster};
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
    apply::cluster::{member_of, record},
    data_dir::{DataDir, DataDirError},
};

/// Who this member is, for a cluster that does not exist yet.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Every member of the new cluster: name to peer URLs.
    pub initial_cluster: BTreeMap<String, Vec<String>>,
    pub token: String,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    #[error("failed to open the database {path}")]
    Backend { path: String, source: storage::OpenError },
    #[error("failed to read the log in {path}")]
    Log { path: String, source: wal::Error },
    #[error("{0}")]
    Version(Judgement),
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
    #[error("entry {index} in the log removes this member from its cluster; start with a new data dir")]
    Removed { index: u64 },
    #[error("the log's metadata cannot be read: {0}")]
    Metadata(String),
    #[error(
        "authentication is enabled in this data dir, and this version does not support it: \
         disable it with the etcd that wrote the dir (`etcdctl auth disable`), or go on with that etcd"
    )]
    AuthEnabled,
    #[error(
        "the data dir belongs to a cluster of {members} members; this version runs clusters of one. \
         Remove the other members first, or restore a snapshot into a new data dir"
    )]
    ManyMembers { members: usize },
    #[error(
        "entry {index} in the log holds {what}, which this version cannot apply; start the etcd that wrote it once"
    )]
    UnsupportedEntry { index: u64, what: String },
    #[error("member {0} is not in the data dir's own list of members")]
    NotAMember(MemberId),
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
}

pub(crate) struct BootstrapOptions {
    pub data_dir: DataDir,
    pub name: String,
    pub identity: Option<Identity>,
    pub binary_version: Version,
    pub backend: storage::Options,
    pub wal: wal::Options,
}

pub(crate) fn bootstrap(options: BootstrapOptions) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    dir.check()?;
    let have_log = Wal::exists(&dir.wal());
    if have_log && !dir.db().exists() {
        return Err(StartError::DatabaseMissing { path: dir.db().display().to_string() });
    }
    let members = match &options.identity {
        Some(identity) => members_of_new_cluster(&identity.initial_cluster, &identity.token)?,
        None if have_log => BTreeMap::new(),
        None => return Err(BootstrapError::NameMissing(options.name.clone()).into()),
    };
    dir.create()?;
    let backend = Backend::open(&dir.db(), options.backend.clone())
        .map_err(|source| StartError::Backend { path: dir.db().display().to_string(), source })?;
    check_database(&backend, &options)?;
    let booted = if have_log { restart(backend, &options, members) } else { start_new(backend, &options, members) }?;
    // Only with the database's lock in hand: the files of a process that runs on this dir are not left over.
    dir.remove_leftovers();
    Ok(booted)
}

/// Refuses databases this binary must not serve.
fn check_database(backend: &Backend, options: &BootstrapOptions) -> Result<(), StartError> {
    let view = backend.view();
    let judgement = schema::version::judge(schema::version::detect(&view)?, options.binary_version);
    if judgement != Judgement::Start {
        return Err(StartError::Version(judgement));
    }
    if schema::auth::enabled(&view) {
        return Err(StartError::AuthEnabled);
    }
    let members = schema::member::all(&view)?.len();
    if members > 1 {
        return Err(StartError::ManyMembers { members });
    }
    Ok(())
}

fn start_new(
    backend: Backend,
    options: &BootstrapOptions,
    members: BTreeMap<MemberId, Member>,
) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    let (index, _) = schema::meta::consistent(&backend.view())?;
    if index > 0 {
        let (path, wal) = (dir.db().display().to_string(), dir.wal().display().to_string());
        return Err(StartError::LogMissing { path, wal, index });
    }
    let cluster = new_cluster(options, &members)?;
    let metadata = wal::Metadata { node_id: cluster.local.0, cluster_id: cluster.id.0 };
    let mut wal = Wal::create(&dir.wal(), &metadata.encode(), options.wal).map_err(|e| log_error(dir, e))?;
    tracing::info!(
        local_member_id = %cluster.local, cluster_id = %cluster.id, data_dir = %dir.root().display(),
        "starting a new cluster"
    );
    let (hard_state, entries) = first_entries(&members);
    wal.save(Some(&hard_state), &entries).map_err(|e| log_error(dir, e))?;
    Ok(Bootstrapped { backend, wal, cluster, hard_state, entries, snapshot: (0, 0), consistent_index: 0 })
}

fn new_cluster(options: &BootstrapOptions, members: &BTreeMap<MemberId, Member>) -> Result<Cluster, StartError> {
    let name = &options.name;
    let local = members.values().find(|m| m.name == *name).map(|m| m.id);
    let local = local.ok_or_else(|| BootstrapError::NameMissing(name.clone()))?;
    if members.len() > 1 {
        return Err(StartError::ManyMembers { members: members.len() });
    }
    let id = ClusterId::compute(members.keys().copied());
    // The members come in by the log's first entries, like every later change.
    Ok(Cluster::new(id, local, BTreeMap::new(), BTreeSet::new(), None))
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

fn restart(
    backend: Backend,
    options: &BootstrapOptions,
    new_members: BTreeMap<MemberId, Member>,
) -> Result<Bootstrapped, StartError> {
    let dir = &options.data_dir;
    let (index, _) = schema::meta::consistent(&backend.view())?;
    let snapshots = Wal::valid_snapshots(&dir.wal()).map_err(|e| log_error(dir, e))?;
    let at = snapshots.last().cloned().unwrap_or_default();
    let path = || dir.db().display().to_string();
    if index < at.index() {
        return Err(StartError::DatabaseBehind { path: path(), index, snapshot: at.index() });
    }
    // A first look that changes nothing: what is refused stays as it is.
    let read = Wal::read(&dir.wal(), &at).map_err(|e| log_error(dir, e))?;
    let metadata = wal::Metadata::decode(&read.metadata).map_err(|e| StartError::Metadata(e.to_string()))?;
    check_log(&read, metadata.node_id, index, at.index())?;
    drop(read);
    let cluster = load_cluster(&backend, metadata, index)?;
    let (mut wal, read) = Wal::open(&dir.wal(), &at, options.wal).map_err(|e| log_error(dir, e))?;
    let (mut hard_state, mut entries) = (read.hard_state, read.entries);
    if entries.is_empty() && at.index() == 0 && new_members.contains_key(&cluster.local) {
        // The first start was cut off between the making of the log and its first entries.
        (hard_state, entries) = first_entries(&new_members);
        wal.save(Some(&hard_state), &entries).map_err(|e| log_error(dir, e))?;
    }
    // The commit index is not synced by itself; what is in the database was committed.
    hard_state.commit = Some(hard_state.commit().max(index).max(at.index()));
    tracing::info!(
        local_member_id = %cluster.local, cluster_id = %cluster.id, commit_index = hard_state.commit(),
        consistent_index = index, entries = entries.len(), data_dir = %dir.root().display(), "restarting local member"
    );
    let snapshot = (at.index(), at.term());
    Ok(Bootstrapped { backend, wal, cluster, hard_state, entries, snapshot, consistent_index: index })
}

/// Refuses logs that cannot be all of what was written, and entries that are not in the database yet and that this
/// version could not apply.
fn check_log(log: &wal::ReadAll, local: u64, index: u64, snapshot: u64) -> Result<(), StartError> {
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
            EntryType::EntryConfChange => check_conf_change(entry, local)?,
            EntryType::EntryConfChangeV2 => return Err(unsupported(entry, "a joint configuration change".into())),
        }
    }
    Ok(())
}

fn check_request(entry: &raftpb::Entry) -> Result<(), StartError> {
    let Some(data) = entry.data.clone().filter(|d| !d.is_empty()) else { return Ok(()) };
    let request = InternalRaftRequest::decode(data)
        .map_err(|_| unsupported(entry, "a request of the v2 API or of an unknown kind".into()))?;
    if is_supported(&request) { Ok(()) } else { Err(unsupported(entry, describe_unsupported(&request))) }
}

/// With a second voter this member could not decide anything alone any more.
fn check_conf_change(entry: &raftpb::Entry, local: u64) -> Result<(), StartError> {
    let change = raftpb::ConfChange::decode(entry.data.clone().unwrap_or_default())
        .map_err(|_| unsupported(entry, "a configuration change that cannot be read".into()))?;
    match change.r#type() {
        _ if change.node_id() != local => Err(StartError::ManyMembers { members: 2 }),
        ConfChangeType::ConfChangeRemoveNode => Err(StartError::Removed { index: entry.index() }),
        _ => Ok(()),
    }
}

fn unsupported(entry: &raftpb::Entry, what: String) -> StartError {
    StartError::UnsupportedEntry { index: entry.index(), what }
}

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
}

/// What a request that apply does not know is about.
pub(crate) fn describe_unsupported(r: &InternalRaftRequest) -> String {
    let text = format!("{r:?}");
    let auth = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|w| w.starts_with("auth_") && { text.contains(&format!("{w}: Some")) });
    if auth { "an authentication request".into() } else { "a request of an unknown kind".into() }
}

fn load_cluster(backend: &Backend, metadata: wal::Metadata, index: u64) -> Result<Cluster, StartError> {
    let view = backend.view();
    let members: BTreeMap<_, _> =
        schema::member::all(&view)?.into_iter().map(|r| (MemberId(r.id), member_of(r))).collect();
    let removed = schema::member::removed(&view)?.into_iter().map(MemberId).collect();
    let version = schema::cluster::version(&view)?;
    let local = MemberId(metadata.node_id);
    if index > 0 && !members.contains_key(&local) {
        return Err(StartError::NotAMember(local));
    }
    Ok(Cluster::new(ClusterId(metadata.cluster_id), local, members, removed, version))
}

fn log_error(dir: &DataDir, source: wal::Error) -> StartError {
    StartError::Log { path: dir.wal().display().to_string(), source }
}

/// The snapshot record for a log that starts at `index`.
pub fn snapshot_record(index: u64, term: u64, conf_state: raftpb::ConfState) -> walpb::Snapshot {
    walpb::Snapshot { index: Some(index), term: Some(term), conf_state: Some(conf_state) }
}
