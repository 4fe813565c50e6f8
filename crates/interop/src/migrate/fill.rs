//! Data dirs with everything in them that a migration must keep, and what a client can see of it.

use std::path::Path;

use anyhow::Result;
use random::Random;
use serde_json::{Value, json};

use super::{
    super::{
        base64,
        http::Http,
        load::{self, contents},
        scenario::Lines,
        server::{End, Server},
    },
    Release,
};

const OPERATIONS: u32 = 400;
const BIG_BYTES: usize = 1_000_000;
pub(super) const ROOT_PASSWORD: &str = "root-secret";
pub(super) const USER_PASSWORD: &str = "alice-secret";

/// How a dir is made.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Wish {
    pub end: End,
    pub auth_on: bool,
    pub learner: bool,
}

impl Wish {
    pub(super) fn plain() -> Wish {
        Wish { end: End::Stop, auth_on: false, learner: true }
    }
}

/// Fills a new dir and returns what was in it at the end.
pub(super) fn fill(release: &Release, dir: &Path, seed: u64, wish: Wish) -> Result<Lines> {
    let mut server = Server::start(&release.server, dir)?;
    let mut http = server.http()?;
    for (key, byte) in [("big/1", b'x'), ("big/2", b'y'), ("big/1", b'z')] {
        let value = base64(&vec![byte; BIG_BYTES]);
        http.call("/v3/kv/put", &json!({"key": base64(key.as_bytes()), "value": value}))?;
    }
    load::run(&mut http, &mut Random::new(seed), OPERATIONS)?;
    add_users(&mut http)?;
    if wish.learner {
        let learner = json!({"peerURLs": ["http://127.0.0.1:1"], "isLearner": true});
        http.call("/v3/cluster/member/add", &learner)?;
    }
    // Last, as nothing can be put afterwards. (Its effect on what is under way is part of what entries do.)
    let member = http.call("/v3/cluster/member/list", &json!({}))?["header"]["member_id"].clone();
    http.call("/v3/maintenance/alarm", &json!({"action": "ACTIVATE", "memberID": member, "alarm": "NOSPACE"}))?;
    let found = seen(&mut http)?;
    if wish.auth_on {
        http.call("/v3/auth/enable", &json!({}))?;
    }
    // An open connection would hold up the stop.
    drop(http);
    server.check_alive()?;
    server.end(wish.end)?;
    Ok(found)
}

fn add_users(http: &mut Http) -> Result<()> {
    let range = json!({"permType": "READWRITE", "key": base64(b"k/"), "range_end": base64(b"k0")});
    for (path, body) in [
        ("/v3/auth/role/add", json!({"name": "root"})),
        ("/v3/auth/role/add", json!({"name": "keys"})),
        ("/v3/auth/role/grant", json!({"name": "keys", "perm": range})),
        ("/v3/auth/user/add", json!({"name": "root", "password": ROOT_PASSWORD})),
        ("/v3/auth/user/grant", json!({"user": "root", "role": "root"})),
        ("/v3/auth/user/add", json!({"name": "alice", "password": USER_PASSWORD})),
        ("/v3/auth/user/grant", json!({"user": "alice", "role": "keys"})),
    ] {
        http.call(path, &body)?;
    }
    Ok(())
}

/// Everything a client can see: keys at several revisions, hashes, leases, members, alarms, users and roles.
pub(super) fn seen(http: &mut Http) -> Result<Lines> {
    let mut lines = contents(http, true)?;
    for (_, answer) in lines.iter_mut().filter(|(name, _)| name.starts_with("hashkv")) {
        *answer = of_every_version(answer)?;
    }
    let list = http.call("/v3/cluster/member/list", &json!({}))?;
    let members: Vec<_> = list["members"].as_array().into_iter().flatten().map(member).collect();
    lines.push(("members".into(), Value::Array(members).to_string()));
    let alarms = http.call("/v3/maintenance/alarm", &json!({"action": "GET"}))?;
    lines.push(("alarms".into(), alarms["alarms"].to_string()));
    for (path, body, part) in [
        ("/v3/auth/user/list", json!({}), "users"),
        ("/v3/auth/role/list", json!({}), "roles"),
        ("/v3/auth/user/get", json!({"name": "alice"}), "roles"),
        ("/v3/auth/role/get", json!({"role": "keys"}), "perm"),
    ] {
        lines.push((path.into(), http.call(path, &body)?[part].to_string()));
    }
    Ok(lines)
}

/// 3.5 does not say the revision of a hash; the one that was asked for is in the step's name.
fn of_every_version(answer: &str) -> Result<String> {
    let mut answer: Value = serde_json::from_str(answer)?;
    answer.as_object_mut().map(|answer| answer.remove("hash_revision"));
    Ok(answer.to_string())
}

/// Client URLs are published again with every start, on another port.
fn member(member: &Value) -> Value {
    json!({
        "ID": member["ID"], "name": member["name"], "peerURLs": member["peerURLs"], "isLearner": member["isLearner"],
    })
}
