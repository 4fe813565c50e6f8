//! Scripts of requests, each run twice: with the state kept in memory, and with it read from the file before every line.
//!
//! A line is `[user@revision] request`; `lease ID KEY` says that a key hangs on a lease; `show` prints what the file holds.
//! After `---` comes what each line led to. `UPDATE_GOLDENFILES=1 cargo test` rewrites it.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

use std::{collections::BTreeMap, fs, path::Path};

use auth::{Order, Store};
use bytes::Bytes;
use proto::{
    authpb::{Permission, UserAddOptions, permission::Type},
    etcdserverpb::{request_op::Request, *},
};
use storage::{Backend, schema};

#[test]
fn scripts() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/scripts");
    let mut count = 0;
    for file in fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (script, expected) = text.split_once("---\n").unwrap_or((&text, ""));
        let [found, reloaded] = [false, true].map(|reload| run(script, reload));
        assert_eq!(found, reloaded, "{}: memory and file differ", path.display());
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            fs::write(&path, format!("{script}---\n{found}")).unwrap();
        } else {
            assert_eq!(found, expected, "{}", path.display());
        }
        count += 1;
    }
    assert!(count > 0, "no scripts");
}

fn run(script: &str, reload: bool) -> String {
    let dir = harness::tempdir();
    let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let mut world = World { store: load(&backend), backend, leases: BTreeMap::new() };
    let mut out = String::new();
    for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if reload {
            world.store = load(&world.backend);
        }
        out += &format!("{line}\n{}", world.line(line));
    }
    out
}

fn load(backend: &Backend) -> Store {
    Store::load(&backend.view(), Order::BeginAndEnd).unwrap()
}

struct World {
    backend: Backend,
    store: Store,
    leases: BTreeMap<i64, Vec<Bytes>>,
}

impl World {
    fn line(&mut self, line: &str) -> String {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["show"] => self.show(),
            ["lease", id, key] => {
                self.leases.entry(id.parse().unwrap()).or_default().push(bytes(key));
                String::new()
            }
            [who, ref request @ ..] if who.contains('@') => {
                let (username, revision) = who.split_once('@').unwrap();
                let auth_revision = revision.parse().unwrap();
                self.apply(RequestHeader { username: username.into(), auth_revision, ..Default::default() }, request)
            }
            ref request => self.apply(RequestHeader::default(), request),
        }
    }

    fn apply(&mut self, header: RequestHeader, words: &[&str]) -> String {
        let request = InternalRaftRequest { header: Some(header), ..parse(words) };
        let keys_of = |id, visit: &mut dyn FnMut(&[u8]) -> bool| {
            let _ = self.leases.get(&id).is_none_or(|keys| keys.iter().all(|key| visit(key)));
        };
        if let Err(error) = self.store.check(&request, &keys_of) {
            return format!("  refused: {error}\n");
        }
        match self.store.decide(&request, [0; 16]) {
            None => "  allowed\n".into(),
            Some(Err(error)) => format!("  error: {error}\n"),
            Some(Ok(change)) => {
                let mut batch = self.backend.write();
                change.write(&mut batch);
                drop(batch);
                let what = if change.writes.is_empty() { "nothing" } else { "done" };
                self.store.take(change);
                format!("  {what}, at {}\n", self.store.revision())
            }
        }
    }

    /// The file, not the memory.
    fn show(&self) -> String {
        let view = self.backend.view();
        let on = if schema::auth::enabled(&view) { "on" } else { "off" };
        let mut out = format!("  {on}, at {}\n", schema::auth::revision(&view).unwrap());
        for user in schema::auth::users(&view).unwrap() {
            let options = user.options.map_or("none", |o| if o.no_password { "no password" } else { "default" });
            let password = String::from_utf8_lossy(&user.password).chars().take(7).collect::<String>();
            out += &format!("  user {} {:?} {password:?} options {options}\n", text(&user.name), user.roles);
        }
        for role in schema::auth::roles(&view).unwrap() {
            let permissions = role.key_permission.iter().map(|p| {
                let kind = Type::try_from(p.perm_type).unwrap().as_str_name();
                format!(" {kind} {}..{}", text(&p.key), text(&p.range_end))
            });
            out += &format!("  role {}:{}\n", text(&role.name), permissions.collect::<Vec<_>>().join(","));
        }
        out
    }
}

/// `0` stands for the byte, `-` for nothing.
fn bytes(word: &str) -> Bytes {
    match word {
        "0" => Bytes::from_static(b"\0"),
        "-" => Bytes::new(),
        word => Bytes::copy_from_slice(word.as_bytes()),
    }
}

fn text(bytes: &[u8]) -> String {
    if bytes == b"\0" { "0".into() } else { String::from_utf8_lossy(bytes).into_owned() }
}

fn parse(words: &[&str]) -> InternalRaftRequest {
    let mut r = InternalRaftRequest::default();
    let name = |word: &str| if word == "-" { String::new() } else { word.to_owned() };
    match *words {
        ["enable"] => r.auth_enable = Some(AuthEnableRequest {}),
        ["disable"] => r.auth_disable = Some(AuthDisableRequest {}),
        ["user", "add", user, ref rest @ ..] => {
            let mut add = AuthUserAddRequest { name: name(user), ..Default::default() };
            for word in rest {
                match word.split_once('=').unwrap_or((word, "")) {
                    ("hash", text) => add.hashed_password = text.into(),
                    ("plain", text) => add.password = text.into(),
                    ("no-password", _) => add.options = Some(UserAddOptions { no_password: true }),
                    other => panic!("{other:?}"),
                }
            }
            r.auth_user_add = Some(add);
        }
        ["user", "delete", user] => r.auth_user_delete = Some(AuthUserDeleteRequest { name: name(user) }),
        ["user", "password", user, hash] => {
            let change =
                AuthUserChangePasswordRequest { name: name(user), hashed_password: hash.into(), ..Default::default() };
            r.auth_user_change_password = Some(change);
        }
        ["user", "grant", user, role] => {
            r.auth_user_grant_role = Some(AuthUserGrantRoleRequest { user: name(user), role: name(role) })
        }
        ["user", "revoke", user, role] => {
            r.auth_user_revoke_role = Some(AuthUserRevokeRoleRequest { name: name(user), role: name(role) })
        }
        ["role", "add", role] => r.auth_role_add = Some(AuthRoleAddRequest { name: name(role) }),
        ["role", "delete", role] => r.auth_role_delete = Some(AuthRoleDeleteRequest { role: name(role) }),
        ["role", "grant", role] => {
            r.auth_role_grant_permission = Some(AuthRoleGrantPermissionRequest { name: name(role), perm: None })
        }
        ["role", "grant", role, kind, key, ref end @ ..] => {
            let perm_type = Type::from_str_name(&kind.to_uppercase()).unwrap() as i32;
            let perm = Permission { perm_type, key: bytes(key), range_end: one(end) };
            r.auth_role_grant_permission = Some(AuthRoleGrantPermissionRequest { name: name(role), perm: Some(perm) });
        }
        ["role", "revoke", role, key, ref end @ ..] => {
            let revoke = AuthRoleRevokePermissionRequest { role: name(role), key: bytes(key), range_end: one(end) };
            r.auth_role_revoke_permission = Some(revoke);
        }
        ["user", "list"] => r.auth_user_list = Some(AuthUserListRequest {}),
        ["login"] => r.authenticate = Some(InternalAuthenticateRequest::default()),
        ["compact"] => r.compaction = Some(CompactionRequest::default()),
        ["alarm"] => r.alarm = Some(AlarmRequest::default()),
        ["lease-grant"] => r.lease_grant = Some(LeaseGrantRequest::default()),
        ["lease-revoke", id] => r.lease_revoke = Some(LeaseRevokeRequest { id: id.parse().unwrap() }),
        ["increment", key] => r.increment = Some(IncrementRequest { key: bytes(key), ..Default::default() }),
        ["txn", ref rest @ ..] => r.txn = Some(txn(rest)),
        ref op => match operation(op) {
            Request::RequestPut(put) => r.put = Some(put),
            Request::RequestRange(range) => r.range = Some(range),
            Request::RequestDeleteRange(delete) => r.delete_range = Some(delete),
            Request::RequestTxn(txn) => r.txn = Some(txn),
        },
    }
    r
}

fn one(words: &[&str]) -> Bytes {
    words.first().map_or_else(Bytes::new, |word| bytes(word))
}

/// `[if KEY END]... [then OP]... [else OP]...`
fn txn(words: &[&str]) -> TxnRequest {
    let mut txn = TxnRequest::default();
    for part in words.chunk_by(|_, next| !["if", "then", "else"].contains(next)) {
        let op = || RequestOp { request: Some(operation(&part[1..])) };
        match part[0] {
            "if" => txn.compare.push(Compare { key: bytes(part[1]), range_end: one(&part[2..]), ..Default::default() }),
            "then" => txn.success.push(op()),
            _ => txn.failure.push(op()),
        }
    }
    txn
}

fn operation(words: &[&str]) -> Request {
    let prev_kv = words.contains(&"prev");
    let words: Vec<_> = words.iter().filter(|word| **word != "prev").copied().collect();
    match words[..] {
        ["put", key] => Request::RequestPut(PutRequest { key: bytes(key), prev_kv, ..Default::default() }),
        ["put", key, lease] => {
            let lease = lease.parse().unwrap();
            Request::RequestPut(PutRequest { key: bytes(key), lease, prev_kv, ..Default::default() })
        }
        ["get", key, ref end @ ..] => {
            Request::RequestRange(RangeRequest { key: bytes(key), range_end: one(end), ..Default::default() })
        }
        ["delete", key, ref end @ ..] => {
            let range_end = one(end);
            Request::RequestDeleteRange(DeleteRangeRequest { key: bytes(key), range_end, prev_kv })
        }
        ["nested", ref op @ ..] => {
            let op = RequestOp { request: Some(operation(op)) };
            Request::RequestTxn(TxnRequest { failure: vec![op], ..Default::default() })
        }
        ref other => panic!("{other:?}"),
    }
}
