//! Entries applied without a running member: what a log has committed comes into the database of a stopped one.
//!
//! The same code applies as in a member, so the bytes are the same. What a member could only apply together with what is
//! missing here (users and their permissions, a limit that its flags set) is refused by index, and never left out.

use std::sync::Arc;

use lease::Lessor;
use membership::{ChangeError, Cluster, ClusterId, MemberId};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use proto::{
    V2Change, V2Request, Version,
    etcdserverpb::InternalRaftRequest,
    raftpb::{ConfState, Entry, EntryType},
};
use storage::{Backend, schema};

use crate::{
    apply::{
        Alarms, Gates, Quota, State,
        cluster::{conf_state, load_cluster},
    },
    error::{ApplyError, FatalError},
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

/// The state of a stopped member.
pub struct Offline {
    state: State,
    authenticates: bool,
}

impl Offline {
    /// Loads the state, with the memory that a member would need for its keys.
    pub fn load(backend: Backend, id: ClusterId, local: MemberId, binary: Version) -> Result<Offline, OfflineError> {
        let view = backend.view();
        let cluster = load_cluster(&view, id, local)?;
        let alarms = Alarms::new(schema::alarm::all(&view)?);
        let mut lessor = Lessor::load(&view, lease::Options::default())?;
        let authenticates = schema::auth::enabled(&view);
        drop(view);
        let store = mvcc::Store::open(backend.clone(), mvcc::Options::default(), |id, key| lessor.attach(id, key))?;
        backend.release_memory();
        let state = State {
            backend,
            store: Arc::new(store),
            lessor: Arc::new(Mutex::new(lessor)),
            gates: Arc::new(Gates::new(&cluster)),
            cluster: Arc::new(RwLock::new(cluster)),
            alarms: Arc::new(alarms),
            quota: Quota::new(None),
            binary_version: binary,
            begins_anew: None,
            time: Time::begin(Arc::new(SystemClock)),
            observer: Arc::new(NoObserver),
        };
        Ok(Offline { state, authenticates })
    }

    /// Applies the next committed entry. After an error nothing more may be applied.
    pub fn apply(&mut self, entry: &Entry) -> Result<(), OfflineError> {
        let index = entry.index();
        let needs_etcd = |what: String| OfflineError::NeedsEtcd { index, what };
        let outcome = match what_is(entry, self.authenticates).map_err(needs_etcd)? {
            What::AsItIs => self.state.apply(entry),
            What::Instead(request) => {
                let data = Some(request.encode_to_vec().into());
                self.state.apply(&Entry { data, ..entry.clone() })
            }
            What::Nothing => {
                self.state.backend.write().set_consistent(index, entry.term());
                return Ok(());
            }
        };
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
    /// The request of today that stands for one of the v2 API.
    Instead(Box<InternalRaftRequest>),
    /// It changes nothing that is kept.
    Nothing,
}

/// `Err` says what only a running etcd can apply.
fn what_is(entry: &Entry, authenticates: bool) -> Result<What, String> {
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
    let Ok(request) = InternalRaftRequest::decode(data) else { return Ok(What::AsItIs) };
    if changes_users(&request) {
        return Err("a change of users, roles or authentication".into());
    }
    if reads_users(&request) {
        return Ok(What::Nothing);
    }
    if authenticates && asks_permission(&request) {
        return Err("a request whose user must be checked, as authentication is on".into());
    }
    Ok(What::AsItIs)
}

fn changes_users(r: &InternalRaftRequest) -> bool {
    r.auth_enable.is_some()
        || r.auth_disable.is_some()
        || r.auth_user_add.is_some()
        || r.auth_user_delete.is_some()
        || r.auth_user_change_password.is_some()
        || r.auth_user_grant_role.is_some()
        || r.auth_user_revoke_role.is_some()
        || r.auth_role_add.is_some()
        || r.auth_role_delete.is_some()
        || r.auth_role_grant_permission.is_some()
        || r.auth_role_revoke_permission.is_some()
}

/// Logins leave a token in the memory of members alone.
fn reads_users(r: &InternalRaftRequest) -> bool {
    r.authenticate.is_some()
        || r.auth_status.is_some()
        || r.auth_user_get.is_some()
        || r.auth_user_list.is_some()
        || r.auth_role_get.is_some()
        || r.auth_role_list.is_some()
}

/// With authentication on, etcd looks at the user's permissions again when it applies these.
fn asks_permission(r: &InternalRaftRequest) -> bool {
    r.put.is_some()
        || r.txn.is_some()
        || r.delete_range.is_some()
        || r.increment.is_some()
        || r.compaction.is_some()
        || r.lease_revoke.is_some()
        || r.lease_checkpoint.is_some()
        || r.alarm.is_some()
}

#[cfg(test)]
mod tests {
    use proto::etcdserverpb::{
        AuthRoleAddRequest, InternalAuthenticateRequest, PutRequest, RangeRequest, Request, RequestHeader,
    };

    use super::*;

    fn entry(index: u64, request: InternalRaftRequest) -> Entry {
        let request =
            InternalRaftRequest { header: Some(RequestHeader { id: index, ..Default::default() }), ..request };
        normal(index, request.encode_to_vec())
    }

    fn normal(index: u64, data: Vec<u8>) -> Entry {
        Entry { index: Some(index), term: Some(2), data: Some(data.into()), ..Default::default() }
    }

    fn put(key: &'static str) -> InternalRaftRequest {
        let put = PutRequest { key: key.into(), value: "v".into(), ..Default::default() };
        InternalRaftRequest { put: Some(put), ..Default::default() }
    }

    fn load(dir: &std::path::Path, authenticates: bool) -> Offline {
        let backend = Backend::open(&dir.join("db"), storage::Options::default()).unwrap();
        let mut batch = backend.write();
        schema::auth::put_enabled(&mut batch, authenticates);
        schema::member::put(&mut batch, &schema::MemberRecord { id: 7, ..Default::default() });
        batch.commit().unwrap();
        Offline::load(backend, ClusterId(1), MemberId(7), Version::new(3, 8)).unwrap()
    }

    #[test]
    fn entries_come_into_the_database_with_their_index() {
        let dir = tempfile::tempdir().unwrap();
        let mut offline = load(dir.path(), false);
        let v2 = |path: &str, val: &str| Request {
            id: Some(9),
            method: Some("PUT".into()),
            path: Some(path.into()),
            val: Some(val.into()),
            ..Default::default()
        };
        offline.apply(&entry(1, put("a"))).unwrap();
        offline.apply(&normal(2, v2("/0/members/7/attributes", r#"{"name":"n"}"#).encode_to_vec())).unwrap();
        offline.apply(&normal(3, v2("/0/version", "3.5.0").encode_to_vec())).unwrap();
        offline.apply(&normal(4, Vec::new())).unwrap();
        let login =
            InternalRaftRequest { authenticate: Some(InternalAuthenticateRequest::default()), ..Default::default() };
        offline.apply(&entry(5, login)).unwrap();
        let backend = offline.state.backend.clone();
        offline.finish().unwrap();
        let view = backend.view();
        assert_eq!(schema::meta::consistent(&view), Ok((5, 2)));
        assert_eq!(schema::cluster::version(&view), Ok(Some(Version::new(3, 5))));
        assert_eq!(schema::member::all(&view).unwrap()[0].name, "n");
        assert_eq!(mvcc::hash_file(&view, 0, &mut |_| ()).unwrap().hash_revision, 2);
    }

    #[test]
    fn what_needs_users_is_refused_by_index() {
        let dir = tempfile::tempdir().unwrap();
        let mut offline = load(dir.path(), true);
        let role = InternalRaftRequest { auth_role_add: Some(AuthRoleAddRequest::default()), ..Default::default() };
        let error = offline.apply(&entry(3, role)).unwrap_err().to_string();
        assert!(error.contains("entry 3 ") && error.contains("start the etcd that wrote it once"), "{error}");
        assert!(offline.apply(&entry(4, put("a"))).unwrap_err().to_string().contains("authentication is on"));
        let read = InternalRaftRequest { range: Some(RangeRequest::default()), ..Default::default() };
        offline.apply(&entry(5, read)).unwrap();
    }

    #[test]
    fn other_v2_requests_are_refused_by_index() {
        let dir = tempfile::tempdir().unwrap();
        let mut offline = load(dir.path(), false);
        let key = Request { id: Some(1), method: Some("PUT".into()), path: Some("/1/k".into()), ..Default::default() };
        let error = offline.apply(&normal(8, key.encode_to_vec())).unwrap_err().to_string();
        assert!(error.contains("entry 8 ") && error.contains(r#"v2 API (PUT "/1/k")"#), "{error}");
    }
}
