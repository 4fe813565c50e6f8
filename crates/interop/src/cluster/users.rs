//! Users in clusters of real etcd and Lockgate: under every leader, a login at one member is good at all of them, everybody gets the same
//! answer everywhere, and the same bytes are in every database.

use std::{ops::ControlFlow, path::Path};

use anyhow::{Context, Result, ensure};
use random::Random;
use serde_json::{Value, json};
use storage::{Backend, Read, schema::Bucket};

use super::{
    super::{base64, http::Http, load::number, wait::until_ok},
    Ending, Scenario, World,
    faults::{SHORT_LOG, took_snapshot},
    group::Group,
    member::Member,
    verdict,
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "mixed: users on etcd and ours", short: true, run: on_both },
    Scenario { name: "ours: users", short: false, run: on_ours },
];

const ROOT: (&str, &str) = ("root", "root");
const CHANGES: usize = 60;
/// More than a short log keeps.
const AWAY_PUTS: usize = 400;

fn on_both(world: &World, base: &Path) -> Result<Ending> {
    let group = Group::found(base, &[&world.etcd, &world.ours, &world.ours], &flags())?;
    run(world, group)
}

fn on_ours(world: &World, base: &Path) -> Result<Ending> {
    let group = Group::found(base, &[&world.ours, &world.ours, &world.ours], &flags())?;
    run(world, group)
}

fn flags() -> Vec<&'static str> {
    [&SHORT_LOG[..], &["--bcrypt-cost=4"]].concat()
}

fn run(world: &World, mut group: Group) -> Result<Ending> {
    add_users(&group.members[0])?;
    for member in &mut group.members {
        member.user = Some(ROOT);
    }
    let mut random = Random::new(world.seed);
    let mut answers = 0;
    for leader in 0..group.members.len() {
        group.move_leader(leader).with_context(|| format!("{} leads", group.members[leader].name))?;
        answers += same_everywhere(&group)?;
        lease_ends(&group).with_context(|| format!("{} leads", group.members[leader].name))?;
        change_at_random(&group, &mut random)?;
    }
    for away in [0, group.members.len() - 1] {
        comes_back(&mut group, away).with_context(|| format!("{} was away", group.members[away].name))?;
        answers += same_everywhere(&group)?;
    }
    group.check_hashes()?;
    verdict::check_logs(&group)?;
    let revision = number(&group.members[0].ask("/v3/auth/status", &json!({}))?["authRevision"])?;
    for member in &mut group.members {
        member.stop()?;
    }
    let stored: Vec<_> = group.members.iter().map(stored).collect::<Result<_>>()?;
    ensure!(stored.windows(2).all(|pair| pair[0] == pair[1]), "users differ on disk: {stored:#?}");
    let records = stored[0].len();
    Ok(Ending::Well(format!("{answers} answers agree; revision {revision}, {records} records of users equal on disk")))
}

/// root; alice, who may read and write `a`; bob, who may read it.
fn add_users(member: &Member) -> Result<()> {
    for (user, role) in [("root", "root"), ("alice", "writers"), ("bob", "readers")] {
        member.ask("/v3/auth/user/add", &json!({"name": user, "password": user}))?;
        member.ask("/v3/auth/role/add", &json!({"name": role}))?;
        member.ask("/v3/auth/user/grant", &json!({"user": user, "role": role}))?;
    }
    for (role, kind) in [("writers", "READWRITE"), ("readers", "READ")] {
        let perm = json!({"permType": kind, "key": base64(b"a"), "range_end": base64(b"b")});
        member.ask("/v3/auth/role/grant", &json!({"name": role, "perm": perm}))?;
    }
    member.ask("/v3/auth/enable", &json!({})).map(drop)
}

/// A token of every member, shown to every member: all give the same answer. Returns the number of answers.
fn same_everywhere(group: &Group) -> Result<usize> {
    let mut answers = 0;
    for user in ["", "alice", "bob", "root"] {
        let tokens = match user {
            "" => vec![String::new(), "abcdefghijklmnop.1".into()],
            user => group.members.iter().map(|member| token_of(member, user)).collect::<Result<Vec<_>>>()?,
        };
        for (path, body) in questions() {
            let mut told = Vec::new();
            for (member, token) in group.members.iter().flat_map(|m| tokens.iter().map(move |token| (m, token))) {
                let answer = Http::connect(&member.endpoint())?.post_as(token, path, &body.to_string())?;
                let nobody = if token.contains('.') { "wrong" } else { "none" };
                told.push((if user.is_empty() { nobody } else { user }, answer.status, message(&answer.body)));
            }
            answers += told.len();
            told.sort();
            told.dedup();
            // A request without a token has one answer, and a request with a wrong one another.
            let wanted = if user.is_empty() { 2 } else { 1 };
            ensure!(told.len() == wanted, "members differ about {path} {body}: {told:?}");
        }
    }
    Ok(answers)
}

fn questions() -> Vec<(&'static str, Value)> {
    let (a, x) = (base64(b"a"), base64(b"x"));
    vec![
        ("/v3/kv/range", json!({"key": a})),
        ("/v3/kv/range", json!({"key": a, "serializable": true})),
        ("/v3/kv/range", json!({"key": x})),
        ("/v3/kv/put", json!({"key": a, "value": a})),
        ("/v3/kv/put", json!({"key": x, "value": x})),
        ("/v3/kv/deleterange", json!({"key": x, "range_end": base64(b"y")})),
        ("/v3/kv/txn", json!({"success": [{"requestRange": {"key": a}}, {"requestRange": {"key": x}}]})),
        ("/v3/kv/txn", json!({"success": [{"requestPut": {"key": a, "value": a}}, {"requestRange": {"key": a}}]})),
        ("/v3/lease/leases", json!({})),
        ("/v3/lease/timetolive", json!({"ID": "12345", "keys": true})),
        ("/v3/lease/revoke", json!({"ID": "12345"})),
        ("/v3/auth/user/list", json!({})),
        ("/v3/auth/user/get", json!({"name": "alice"})),
        ("/v3/auth/role/get", json!({"role": "writers"})),
        ("/v3/auth/role/list", json!({})),
        ("/v3/auth/user/add", json!({"name": ""})),
        ("/v3/cluster/member/remove", json!({"ID": "12345"})),
        ("/v3/maintenance/alarm", json!({"action": "ACTIVATE", "alarm": "NONE"})),
        ("/v3/maintenance/hashkv", json!({"revision": "999999999"})),
    ]
}

/// The message of an answer, without the fields that differ between gateways.
fn message(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    value["message"].as_str().unwrap_or_default().to_owned()
}

fn token_of(member: &Member, user: &str) -> Result<String> {
    let token = Http::connect(&member.endpoint())?.log_in(user, user)?;
    token.with_context(|| format!("{user} cannot log in at {}", member.name))
}

/// The leader ends a lease in nobody's name but its own, on members of both kinds.
fn lease_ends(group: &Group) -> Result<()> {
    let first = &group.members[0];
    let lease = number(&first.ask("/v3/lease/grant", &json!({"TTL": 1}))?["ID"])?;
    let key = base64(b"leased");
    first.ask("/v3/kv/put", &json!({"key": key, "value": key, "lease": lease.to_string()}))?;
    until_ok("the key of a lease that has ended is gone", || {
        for member in &group.members {
            let found = member.ask("/v3/kv/range", &json!({"key": key}))?;
            ensure!(found["kvs"].is_null(), "{} still has the key of a lease that has ended", member.name);
        }
        Ok(())
    })
}

/// Users and roles come, change and go, through any member. What is refused is so everywhere: the databases are compared.
fn change_at_random(group: &Group, random: &mut Random) -> Result<()> {
    for _ in 0..CHANGES {
        let member = &group.members[random.below(group.members.len() as u64) as usize];
        let (user, role) = (format!("u{}", random.below(6)), format!("r{}", random.below(5)));
        let key = base64(format!("{}", random.below(4)).as_bytes());
        let kind = ["READ", "WRITE", "READWRITE"][random.below(3) as usize];
        let (path, body) = match random.below(9) {
            0 | 1 => ("user/add", json!({"name": user, "password": role})),
            2 => ("user/delete", json!({"name": user})),
            3 => ("user/changepw", json!({"name": user, "password": user})),
            4 => ("user/grant", json!({"user": user, "role": role})),
            5 => ("user/revoke", json!({"name": user, "role": role})),
            6 => ("role/add", json!({"name": role})),
            7 => ("role/delete", json!({"role": role})),
            _ => ("role/grant", json!({"name": role, "perm": {"permType": kind, "key": key}})),
        };
        let token = token_of(member, "root")?;
        Http::connect(&member.endpoint())?.post_as(&token, &format!("/v3/auth/{path}"), &body.to_string())?;
    }
    Ok(())
}

/// A member is away until the others' logs no longer reach back to it, while users change.
fn comes_back(group: &mut Group, away: usize) -> Result<()> {
    group.members[away].kill();
    let other = (away + 1) % group.members.len();
    // A member that knows no leader lets nobody log in.
    group.leader()?;
    group.wait_member(other)?;
    let token = token_of(&group.members[other], "root")?;
    let mut http = Http::connect(&group.members[other].endpoint())?;
    http.call_as(&token, "/v3/auth/user/add", &json!({"name": format!("away{away}"), "password": "x"}))?;
    for n in 0..AWAY_PUTS {
        http.call_as(&token, "/v3/kv/put", &json!({"key": base64(b"x"), "value": base64(n.to_string().as_bytes())}))?;
    }
    let said = group.members[away].log_text().len();
    group.restart(away);
    group.wait_member(away)?;
    took_snapshot(&group.members[away], said)
}

/// The bytes of users and roles.
fn stored(member: &Member) -> Result<Vec<(String, Vec<u8>)>> {
    let file = Backend::open_read_only(&member.dir.join("member/snap/db"), None)?;
    let mut found = Vec::new();
    for bucket in [Bucket::Auth, Bucket::AuthUsers, Bucket::AuthRoles] {
        file.view().scan(bucket, b"", b"", &mut |key, value| {
            found.push((format!("{bucket:?} {:?}", String::from_utf8_lossy(key)), value.to_vec()));
            ControlFlow::Continue(())
        });
    }
    Ok(found)
}
