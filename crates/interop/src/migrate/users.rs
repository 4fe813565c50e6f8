//! Users, roles and what was asked with authentication on, committed in the log and not in the database yet.
//!
//! A real server works; then its database is set back to what it was before, as if none of the work had been written to it
//! when the server was killed. On one copy the same real server replays the log, on the other our tool applies it: both
//! must come to the same bytes, and then allow and deny the same.

use std::{
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use storage::{Backend, Bucket, Read, schema};

use super::{
    super::{
        base64,
        http::Answer,
        report::{Step, pair},
        scenario::Lines,
        server::{Program, Server},
    },
    Release, Tools,
    trip::named,
};

/// Work for a server; the seed matters where it is random.
pub(super) type Work = fn(&Server, u64) -> Result<()>;

/// Fewer would prove little.
const ENTRIES_MIN: u64 = 60;
/// Logins that change nothing, so that what is before them is known to be committed.
const LAST_LOGINS: u32 = 3;
const PASSWORDS: [&str; 4] = ["secret-0", "secret-1", "secret-2", "wrong"];
const NAMES: [&str; 6] = ["root", "alice", "bob", "carol", "dave", "erin"];
const KEYS: [&str; 8] = ["a", "b", "c", "ca", "k/1", "k/2", "x", "z"];
/// A wrong index stays wrong however often it is started on.
const STARTS_MAX: usize = 4;
const BUCKETS: [Bucket; 4] = [Bucket::Auth, Bucket::AuthUsers, Bucket::AuthRoles, Bucket::Lease];

pub(super) fn waiting(tools: &Tools, from: &Release, to: &Release, work: Work, base: &Path) -> Result<Vec<Step>> {
    let quick = |release: &Release| Program { flags: vec!["--bcrypt-cost=4".into()], ..release.server.clone() };
    let (etcd, next) = (quick(from), quick(to));
    let dir = base.join("data");
    set_back(&etcd, &dir, work, tools.seed)?;
    let [replayed, migrated, returned] = ["replayed", "migrated", "returned"].map(|name| base.join(name));
    for copy in [&replayed, &migrated, &returned] {
        copy_dir(&dir, copy)?;
    }
    Server::start(&etcd, &replayed).context("the real server replays the log")?.stop()?;
    let mut steps = check_plan(&tools.migrate(&migrated, to.version, &[])?)?;
    steps.extend(named("after the migration", pair(held(tools, &replayed)?, held(tools, &migrated)?)));
    let found = allowed(&next, &migrated).context("the target's server on the migrated dir")?;
    steps.extend(named("who may do what", pair(allowed(&etcd, &replayed)?, found)));
    tools.migrate(&returned, to.version, &[])?;
    tools.migrate(&returned, from.version, &[])?;
    let [left, right] = started(tools, &etcd, [&dir, &returned], base)?;
    steps.extend(named("back again", pair(left, right)));
    Ok(steps)
}

/// The contents of two dirs after a start of the real server. How many entries a start adds, and in which term, is up to its clock, and it
/// may end before its database has the index of the last: where the dirs come apart by that alone, new copies are started.
fn started(tools: &Tools, etcd: &Program, dirs: [&Path; 2], beside: &Path) -> Result<[Lines; 2]> {
    let mut found = [Lines::new(), Lines::new()];
    for attempt in 0..STARTS_MAX {
        for (at, dir) in dirs.iter().enumerate() {
            let copy = beside.join(format!("started-{attempt}-{at}"));
            copy_dir(dir, &copy)?;
            Server::start(etcd, &copy)?.stop()?;
            found[at] = held(tools, &copy)?;
            found[at].push(("consistent index".into(), consistent(&copy)?));
        }
        if found[0].last() == found[1].last() {
            break;
        }
    }
    Ok(found)
}

/// Makes a dir whose database is older than its log.
fn set_back(program: &Program, dir: &Path, work: Work, seed: u64) -> Result<()> {
    let server = Server::start(program, dir)?;
    let mut http = server.http()?;
    for key in KEYS {
        http.call("/v3/kv/put", &json!({"key": base64(key.as_bytes()), "value": base64(b"before")}))?;
    }
    // Keys that hang on leases already count, too.
    http.call("/v3/lease/grant", &json!({"ID": 71, "TTL": 36000}))?;
    http.call("/v3/kv/put", &json!({"key": base64(b"z"), "value": base64(b"leased"), "lease": 71}))?;
    drop(http);
    server.stop()?;
    let (db, before) = (dir.join("member/snap/db"), dir.with_extension("db"));
    fs::copy(&db, &before)?;
    let mut server = Server::start(program, dir)?;
    work(&server, seed)?;
    let mut http = server.http()?;
    for _ in 0..LAST_LOGINS {
        http.log_in("root", PASSWORDS[0])?.context("root cannot log in")?;
    }
    drop(http);
    server.check_alive()?;
    server.kill();
    fs::rename(before, db)?;
    Ok(())
}

/// Every kind of change, and requests of everybody in between.
pub(super) fn by_script(server: &Server, _seed: u64) -> Result<()> {
    let mut http = server.http()?;
    let mut tokens = vec![("nobody", String::new())];
    for line in include_str!("users.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let [who, expected, path, body] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
            anyhow::bail!("{line:?}: not `who status path body`")
        };
        if path == "login" {
            let token = http.log_in(who, body)?;
            ensure!(token.is_some() == (expected == "200"), "{line}");
            tokens.extend(token.map(|token| (who, token)));
            continue;
        }
        let token = tokens.iter().rev().find(|(name, _)| *name == who).with_context(|| format!("{line}: no login"))?;
        let answer = http.post_as(&token.1, &format!("/v3/{path}"), &encoded(body)?.to_string())?;
        ensure!(answer.status.to_string() == expected, "{line}: {} {}", answer.status, answer.body);
    }
    Ok(())
}

/// Keys are written plainly in the script, and in base64 on the wire.
fn encoded(body: &str) -> Result<Value> {
    fn encode(value: &mut Value) {
        match value {
            Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match value {
                Value::String(text) if ["key", "range_end", "value"].contains(&name.as_str()) => {
                    *text = base64(text.as_bytes());
                }
                other => encode(other),
            }),
            Value::Array(items) => items.iter_mut().for_each(encode),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(body).with_context(|| body.to_owned())?;
    encode(&mut value);
    Ok(value)
}

/// The tool must have had something to do.
fn check_plan(plan: &str) -> Result<Vec<Step>> {
    let line = plan.lines().find(|line| line.contains("are applied")).context("nothing waited in the log")?;
    println!("   {}", line.trim());
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    let enough = matches!(numbers[..], [first, last] if last - first >= ENTRIES_MIN);
    Ok(vec![Step::new(format!("at least {ENTRIES_MIN} entries were applied"), "true", enough.to_string())])
}

/// The bytes of users, roles and leases, and the hash of all keys.
fn held(tools: &Tools, dir: &Path) -> Result<Lines> {
    let mut lines = vec![("hashkv".to_owned(), tools.hash(dir)?)];
    let file = Backend::open_read_only(&db(dir), None)?;
    for bucket in BUCKETS {
        file.view().scan(bucket, b"", b"", &mut |key, value| {
            lines.push((format!("{bucket:?} {:?}", String::from_utf8_lossy(key)), format!("{value:02x?}")));
            ControlFlow::Continue(())
        });
    }
    Ok(lines)
}

fn consistent(dir: &Path) -> Result<String> {
    Ok(format!("{:?}", schema::meta::consistent(&Backend::open_read_only(&db(dir), None)?.view())?))
}

/// The users that can log in, and what each of them may read, write and delete.
fn allowed(program: &Program, dir: &Path) -> Result<Lines> {
    let server = Server::start(program, dir)?;
    let mut http = server.http()?;
    let mut lines = Lines::new();
    for (name, password) in NAMES.iter().flat_map(|name| PASSWORDS.map(|password| (name, password))) {
        let token = http.log_in(name, password)?;
        lines.push((format!("{name} logs in with {password}"), token.is_some().to_string()));
        let Some(token) = token else { continue };
        for key in KEYS {
            let key = base64(key.as_bytes());
            for (path, body) in [
                ("/v3/kv/range", json!({"key": key})),
                ("/v3/kv/range", json!({"key": key, "range_end": base64(b"k0")})),
                ("/v3/kv/put", json!({"key": key, "value": base64(b"asked")})),
                ("/v3/kv/put", json!({"key": key, "lease": 71, "prev_kv": true})),
                ("/v3/kv/deleterange", json!({"key": key, "range_end": base64(b"\0")})),
            ] {
                let answer = http.post_as(&token, path, &body.to_string())?;
                lines.push((format!("{name} {path} {body}"), outcome(&answer)));
            }
        }
    }
    drop(http);
    server.stop()?;
    ensure!(lines.iter().any(|(_, answer)| answer == "allowed"), "nobody may do anything");
    Ok(lines)
}

/// Gateways of different releases put the same message into different fields besides.
pub(super) fn outcome(answer: &Answer) -> String {
    let said = || serde_json::from_str::<Value>(&answer.body).ok()?["message"].as_str().map(str::to_owned);
    if answer.status == 200 { "allowed".into() } else { said().unwrap_or_else(|| answer.body.clone()) }
}

fn db(dir: &Path) -> PathBuf {
    dir.join("member/snap/db")
}

fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    // Servers insist on it.
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    Ok(())
}
