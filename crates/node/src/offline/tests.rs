//! Entries applied to a database of their own.

use bytes::Bytes;
use proto::{
    authpb::{Permission, permission::Type},
    etcdserverpb::{
        AuthEnableRequest, AuthRoleAddRequest, AuthRoleGrantPermissionRequest, AuthUserAddRequest,
        AuthUserGrantRoleRequest, InternalAuthenticateRequest, LeaseGrantRequest, LeaseRevokeRequest, PutRequest,
        RangeRequest, Request, RequestHeader, RequestOp,
    },
};

use test_case::test_case;

use super::*;

fn entry(index: u64, request: InternalRaftRequest) -> Entry {
    let request = InternalRaftRequest { header: Some(RequestHeader { id: index, ..Default::default() }), ..request };
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
    Offline::load(backend, (ClusterId(1), MemberId(7)), Version::new(3, 8), Touched::all()).unwrap()
}

#[test]
fn entries_come_into_the_database_with_their_index() {
    let dir = harness::tempdir();
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

/// An entry of a user whose member knew of `revision` changes.
fn of(index: u64, user: &str, revision: u64, request: InternalRaftRequest) -> Entry {
    let header = RequestHeader { id: index, username: user.into(), auth_revision: revision, ..Default::default() };
    normal(index, InternalRaftRequest { header: Some(header), ..request }.encode_to_vec())
}

/// Root, and alice who may read and write `a`; with authentication on at revision 6.
fn with_users(dir: &std::path::Path) -> Offline {
    let mut offline = load(dir, false);
    let none = InternalRaftRequest::default;
    let user =
        |name: &str| AuthUserAddRequest { name: name.into(), hashed_password: "YWJj".into(), ..Default::default() };
    let grant = |user: &str, role: &str| AuthUserGrantRoleRequest { user: user.into(), role: role.into() };
    let perm = Permission { perm_type: Type::Readwrite as i32, key: "a".into(), range_end: Bytes::new() };
    let requests = [
        InternalRaftRequest { auth_user_add: Some(user("root")), ..none() },
        InternalRaftRequest { auth_user_grant_role: Some(grant("root", "root")), ..none() },
        InternalRaftRequest { auth_user_add: Some(user("alice")), ..none() },
        InternalRaftRequest { auth_role_add: Some(AuthRoleAddRequest { name: "r".into() }), ..none() },
        InternalRaftRequest {
            auth_role_grant_permission: Some(AuthRoleGrantPermissionRequest { name: "r".into(), perm: Some(perm) }),
            ..none()
        },
        InternalRaftRequest { auth_user_grant_role: Some(grant("alice", "r")), ..none() },
        InternalRaftRequest { auth_enable: Some(AuthEnableRequest {}), ..none() },
    ];
    for (index, request) in (1..).zip(requests) {
        offline.apply(&entry(index, request)).unwrap();
    }
    offline
}

#[test]
fn users_change_and_are_asked_for_as_of_each_entry() {
    let dir = harness::tempdir();
    let mut offline = with_users(dir.path());
    let revision = |offline: &Offline| offline.state.store.revision();
    // Who, how many changes the member knew of, the key, and the store's revision afterwards.
    for (index, (user, known, key, after)) in (8..).zip([
        ("", 0, "a", 1),
        ("alice", 6, "a", 1),
        ("alice", 7, "b", 1),
        ("alice", 7, "a", 2),
        ("root", 7, "b", 3),
        ("root", 6, "b", 3),
    ]) {
        offline.apply(&of(index, user, known, put(key))).unwrap();
        assert_eq!(revision(&offline), after, "{user}@{known} puts {key}");
    }
    let role = || Some(AuthRoleAddRequest { name: "s".into() });
    offline.apply(&of(14, "alice", 7, InternalRaftRequest { auth_role_add: role(), ..Default::default() })).unwrap();
    offline.apply(&of(15, "root", 7, InternalRaftRequest { auth_role_add: role(), ..Default::default() })).unwrap();
    offline.apply(&of(16, "alice", 7, put("a"))).unwrap();
    assert_eq!(revision(&offline), 3, "what was known before the role came is old");
    let backend = offline.state.backend.clone();
    offline.finish().unwrap();
    let view = backend.view();
    assert_eq!(schema::meta::consistent(&view), Ok((16, 2)));
    assert!(schema::auth::enabled(&view));
    assert_eq!(schema::auth::revision(&view), Ok(8));
    assert_eq!(schema::auth::roles(&view).unwrap().len(), 2);
}

/// What hangs on a lease counts, whoever hung it there, also if that was before the tail.
#[test]
fn keys_of_leases_are_asked_for() {
    let dir = harness::tempdir();
    let mut offline = with_users(dir.path());
    let grant = LeaseGrantRequest { id: 5, ttl: 100 };
    offline.apply(&entry(8, InternalRaftRequest { lease_grant: Some(grant), ..Default::default() })).unwrap();
    let hung = |key: &'static str| {
        let put = PutRequest { key: key.into(), lease: 5, ..Default::default() };
        InternalRaftRequest { put: Some(put), ..Default::default() }
    };
    offline.apply(&of(9, "alice", 7, hung("a"))).unwrap();
    offline.apply(&of(10, "root", 7, hung("b"))).unwrap();
    assert_eq!(offline.state.store.revision(), 3);
    offline.finish().unwrap();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let mut offline = Offline::load(backend, (ClusterId(1), MemberId(7)), Version::new(3, 8), Touched::all()).unwrap();
    let revoke = || InternalRaftRequest { lease_revoke: Some(LeaseRevokeRequest { id: 5 }), ..Default::default() };
    offline.apply(&of(11, "alice", 7, hung("a"))).unwrap();
    offline.apply(&of(12, "alice", 7, revoke())).unwrap();
    assert_eq!(offline.state.store.revision(), 3, "b hangs on it, which alice may not write");
    offline.apply(&of(13, "root", 1, revoke())).unwrap();
    assert_eq!(offline.state.store.revision(), 4);
}

/// Read again, a transaction of 3.6 has no ranges left to judge; one of 3.7 has.
#[test_case("3.6.0", 2; "3.6")]
#[test_case("3.7.0", 1; "3.7")]
fn ranges_of_transactions_are_judged_since_3_7(version: &str, after: i64) {
    let dir = harness::tempdir();
    with_users(dir.path()).finish().unwrap();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    schema::cluster::put_version(&mut backend.write(), version.parse().unwrap());
    let mut offline = Offline::load(backend, (ClusterId(1), MemberId(7)), Version::new(3, 8), Touched::all()).unwrap();
    let op = |request| RequestOp { request: Some(request) };
    let range = RangeRequest { key: "b".into(), ..Default::default() };
    let put = PutRequest { key: "a".into(), ..Default::default() };
    let success = vec![op(request_op::Request::RequestRange(range)), op(request_op::Request::RequestPut(put))];
    let txn = Some(TxnRequest { success, ..Default::default() });
    offline.apply(&of(8, "alice", 7, InternalRaftRequest { txn, ..Default::default() })).unwrap();
    assert_eq!(offline.state.store.revision(), after);
}

#[test]
fn other_v2_requests_are_refused_by_index() {
    let dir = harness::tempdir();
    let mut offline = load(dir.path(), false);
    let key = Request { id: Some(1), method: Some("PUT".into()), path: Some("/1/k".into()), ..Default::default() };
    let error = offline.apply(&normal(8, key.encode_to_vec())).unwrap_err().to_string();
    assert!(error.contains("entry 8 ") && error.contains(r#"v2 API (PUT "/1/k")"#), "{error}");
}
