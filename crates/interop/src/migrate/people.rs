//! Several users at once, each with random requests, while roles and users change below them.

use std::{collections::BTreeMap, thread};

use anyhow::{Context, Result, anyhow};
use random::Random;
use serde_json::{Value, json};

use super::{
    super::{base64, http::Http, server::Server},
    users::outcome,
};

const CHANGES: u32 = 220;
const REQUESTS: u32 = 150;
const NAMES: [&str; 5] = ["alice", "bob", "carol", "dave", "erin"];
const ROLES: [&str; 5] = ["r0", "r1", "r2", "many", "root"];
/// Few and near each other, so that permissions begin alike, touch and overlap.
const KEYS: [&str; 8] = ["a", "b", "c", "ca", "k/1", "k/2", "x", "z"];

/// Changes overtake requests that were sent before, so entries are old when they are applied.
pub(super) fn at_random(server: &Server, seed: u64) -> Result<()> {
    let mut http = server.http()?;
    let mut root = Root { token: String::new(), rng: Random::new(seed) };
    root.found(&mut http)?;
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let endpoint = server.endpoint.clone();
            thread::spawn(move || ask(&endpoint, Random::new(seed * 100 + number)))
        })
        .collect();
    for _ in 0..CHANGES {
        let (path, body) = root.change();
        root.post(&mut http, path, &body)?;
    }
    let mut counts = Counts::new();
    for thread in threads {
        for (answer, count) in thread.join().map_err(|_| anyhow!("a user's thread panicked"))?? {
            *counts.entry(answer).or_default() += count;
        }
    }
    println!("   answers: {counts:?}");
    // So that the end of the scenario finds it on.
    root.post(&mut http, "auth/enable", &json!({}))
}

/// How often users got which answer.
type Counts = BTreeMap<String, u32>;

struct Root {
    token: String,
    rng: Random,
}

impl Root {
    fn found(&mut self, http: &mut Http) -> Result<()> {
        for (path, body) in [
            ("auth/user/add", json!({"name": "root", "password": "secret-0"})),
            ("auth/user/grant", json!({"user": "root", "role": "root"})),
            ("auth/user/add", json!({"name": "alice", "password": "secret-0"})),
            ("auth/role/add", json!({"name": "many"})),
            ("auth/user/grant", json!({"user": "alice", "role": "many"})),
        ] {
            http.call(&format!("/v3/{path}"), &body)?;
        }
        // A list long enough for its order among equals to depend on how it is sorted.
        for _ in 0..30 {
            let body = json!({"name": "many", "perm": self.permission()});
            http.post("/v3/auth/role/grant", &body.to_string())?;
        }
        http.call("/v3/auth/enable", &json!({}))?;
        self.token = http.log_in("root", "secret-0")?.context("root cannot log in")?;
        Ok(())
    }

    /// Refused requests are part of the load.
    fn post(&mut self, http: &mut Http, path: &str, body: &Value) -> Result<()> {
        http.post_as(&self.token, &format!("/v3/{path}"), &body.to_string())?;
        if path == "auth/disable" {
            http.post("/v3/kv/put", &json!({"key": base64(b"off"), "value": base64(b"1")}).to_string())?;
            http.call("/v3/auth/enable", &json!({}))?;
        }
        // Turning it off forgets all tokens.
        if let Some(token) = http.log_in("root", "secret-0")? {
            self.token = token;
        }
        Ok(())
    }

    fn change(&mut self) -> (&'static str, Value) {
        let (user, role) = (one(&mut self.rng, &NAMES), one(&mut self.rng, &ROLES));
        let password = format!("secret-{}", self.rng.below(3));
        match self.rng.below(100) {
            0..12 => ("auth/user/add", json!({"name": user, "password": password})),
            12..15 => ("auth/user/add", json!({"name": user, "options": {"no_password": true}})),
            15..20 => ("auth/user/delete", json!({"name": user})),
            20..28 => ("auth/user/changepw", json!({"name": user, "password": password})),
            28..48 => ("auth/user/grant", json!({"user": user, "role": role})),
            48..56 => ("auth/user/revoke", json!({"name": user, "role": role})),
            56..66 => ("auth/role/add", json!({"name": role})),
            66..69 => ("auth/role/delete", json!({"role": role})),
            69..90 => ("auth/role/grant", json!({"name": role, "perm": self.permission()})),
            90..96 => {
                let mut revoke = self.permission();
                revoke["role"] = json!(role);
                revoke.as_object_mut().map(|fields| fields.remove("permType"));
                ("auth/role/revoke", revoke)
            }
            96..98 => ("auth/disable", json!({})),
            _ => ("auth/user/delete", json!({"name": "root"})),
        }
    }

    fn permission(&mut self) -> Value {
        let kind = one(&mut self.rng, &["READ", "WRITE", "READWRITE"]);
        let mut permission = range(&mut self.rng);
        permission["permType"] = json!(kind);
        permission
    }
}

/// A user after the other: logs in, asks for this and that.
fn ask(endpoint: &str, mut rng: Random) -> Result<Counts> {
    let (mut http, mut counts) = (Http::connect(endpoint)?, Counts::new());
    let mut token = String::new();
    for number in 0..REQUESTS {
        if number % 5 == 0 {
            let password = format!("secret-{}", rng.below(3));
            // Whoever is not let in asks with the token of before, or with none.
            if let Some(found) = http.log_in(one(&mut rng, &NAMES), &password)? {
                token = found;
            } else if let Some(found) = http.log_in("alice", "secret-0")? {
                token = found;
            }
        }
        let (path, body) = request(&mut rng);
        let answer = http.post_as(&token, path, &body.to_string())?;
        *counts.entry(outcome(&answer)).or_default() += 1;
    }
    Ok(counts)
}

fn request(rng: &mut Random) -> (&'static str, Value) {
    match rng.below(100) {
        0..40 => ("/v3/kv/put", put(rng)),
        40..55 => ("/v3/kv/deleterange", delete(rng)),
        55..85 => ("/v3/kv/txn", txn(rng, 0)),
        85..92 => ("/v3/lease/grant", json!({"ID": lease(rng), "TTL": 36000})),
        92..98 => ("/v3/lease/revoke", json!({"ID": lease(rng)})),
        _ => ("/v3/kv/range", range(rng)),
    }
}

fn put(rng: &mut Random) -> Value {
    let mut put = json!({"key": base64(one(rng, &KEYS).as_bytes()), "value": base64(&rng.next().to_be_bytes())});
    if rng.below(3) == 0 {
        put["lease"] = json!(lease(rng));
    }
    put["prev_kv"] = json!(rng.below(3) == 0);
    put
}

fn delete(rng: &mut Random) -> Value {
    let mut delete = range(rng);
    delete["prev_kv"] = json!(rng.below(3) == 0);
    delete
}

fn txn(rng: &mut Random, depth: u32) -> Value {
    let mut compare = range(rng);
    compare["target"] = json!("VERSION");
    compare["result"] = json!("GREATER");
    let branch = |rng: &mut Random| match rng.below(4 - u64::from(depth > 0)) {
        0 => json!({"request_put": put(rng)}),
        1 => json!({"request_delete_range": delete(rng)}),
        2 => json!({"request_range": range(rng)}),
        _ => json!({"request_txn": txn(rng, depth + 1)}),
    };
    // A delete of what a put writes would be refused before it is logged: one write in each branch.
    json!({"compare": [compare], "success": [branch(rng)], "failure": [branch(rng), {"request_range": range(rng)}]})
}

/// One key, some, all from one on; some end before they begin, which touches nothing but is judged.
fn range(rng: &mut Random) -> Value {
    let (key, end) = (one(rng, &KEYS), one(rng, &KEYS));
    match rng.below(4) {
        0 => json!({"key": base64(key.as_bytes())}),
        1 => json!({"key": base64(key.as_bytes()), "range_end": base64(b"\0")}),
        _ => json!({"key": base64(key.as_bytes()), "range_end": base64(end.as_bytes())}),
    }
}

fn lease(rng: &mut Random) -> u64 {
    71 + rng.below(5)
}

fn one<'a>(rng: &mut Random, list: &[&'a str]) -> &'a str {
    list[rng.below(list.len() as u64) as usize]
}
