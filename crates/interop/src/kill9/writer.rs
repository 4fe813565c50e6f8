//! The load: writers that put keys of their own and pairs of keys with a counter, until the server is killed under them.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::super::{base64, http::Http, load::number, server::Server};

pub(super) const WORKERS: u64 = 6;

/// One write: a key of its own, or a pair of keys and a counter in one txn.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub keys: Vec<String>,
    /// Worker and new value.
    pub counter: Option<(u64, u64)>,
}

pub(super) struct Outcome {
    pub done: Vec<(Write, u64)>,
    /// Sent, and the server died before it answered.
    pub pending: Option<Write>,
}

pub(super) fn load_and_kill(
    server: Server,
    round: u64,
    life: Duration,
    compact_at: Option<u64>,
    counters: &[(u64, u64)],
) -> Result<Vec<Outcome>> {
    let stopped = AtomicBool::new(false);
    let endpoint = server.endpoint.clone();
    thread::scope(|scope| {
        let work = |worker: u64| {
            let counter = counters.get(usize::try_from(worker).unwrap_or_default()).copied().unwrap_or_default();
            let (endpoint, stopped) = (&endpoint, &stopped);
            scope.spawn(move || write_until_killed(endpoint, worker, round, counter, stopped))
        };
        let workers: Vec<_> = (0..WORKERS).map(work).collect();
        thread::sleep(life / 2);
        if let Some(revision) = compact_at {
            let endpoint = &endpoint;
            // Refused if that is compacted already; the answer is lost with the server as a rule.
            scope.spawn(move || {
                let body = json!({"revision": revision, "physical": true}).to_string();
                Http::connect(endpoint).and_then(|mut http| http.post("/v3/kv/compaction", &body))
            });
        }
        thread::sleep(life / 2);
        server.kill();
        stopped.store(true, Ordering::Relaxed);
        let join = |worker: thread::ScopedJoinHandle<'_, Result<Outcome>>| {
            worker.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?
        };
        workers.into_iter().map(join).collect()
    })
}

fn write_until_killed(
    endpoint: &str,
    worker: u64,
    round: u64,
    mut counter: (u64, u64),
    stopped: &AtomicBool,
) -> Result<Outcome> {
    let mut done = Vec::new();
    let Ok(mut http) = Http::connect(endpoint) else { return Ok(Outcome { done, pending: None }) };
    for n in 0_u64.. {
        let name = format!("{}{n:05}", prefix(worker, round));
        let (write, path, body) = if n % 3 == 2 { pair_txn(&name, worker, counter) } else { single_put(&name) };
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let Ok(answer) = http.post(path, &body.to_string()) else {
            return Ok(Outcome { done, pending: Some(write) });
        };
        ensure!(answer.status == 200, "{name} was refused with {}: {}", answer.status, answer.body);
        let answer: Value = serde_json::from_str(&answer.body)?;
        ensure!(path.ends_with("put") || answer["succeeded"] == true, "the counter of {worker} is not {counter:?}");
        let revision = number(&answer["header"]["revision"])?;
        if let Some((_, value)) = write.counter {
            counter = (value, revision);
        }
        done.push((write, revision));
    }
    Ok(Outcome { done, pending: None })
}

fn single_put(name: &str) -> (Write, &'static str, Value) {
    let body = json!({"key": base64(name.as_bytes()), "value": base64(value_of(name).as_bytes())});
    (Write { keys: vec![name.to_owned()], counter: None }, "/v3/kv/put", body)
}

/// Two keys and the worker's counter, if that is what it was.
fn pair_txn(name: &str, worker: u64, (value, revision): (u64, u64)) -> (Write, &'static str, Value) {
    let keys = vec![format!("{name}/a"), format!("{name}/b")];
    let put = |key: &str, value: &str| json!({"request_put": {"key": base64(key.as_bytes()), "value": base64(value.as_bytes())}});
    let counter = format!("c/{worker}");
    let body = json!({
        "compare": [{"key": base64(counter.as_bytes()), "target": "MOD", "result": "EQUAL", "mod_revision": revision}],
        "success": [
            put(&keys[0], &value_of(&keys[0])),
            put(&counter, &(value + 1).to_string()),
            put(&keys[1], &value_of(&keys[1])),
        ],
    });
    (Write { keys, counter: Some((worker, value + 1)) }, "/v3/kv/txn", body)
}

/// The beginning of the keys of a worker in a round.
pub(super) fn prefix(worker: u64, round: u64) -> String {
    format!("k/{worker}/{round:04}/")
}

pub(super) fn value_of(key: &str) -> String {
    format!("value of {key} {}", "x".repeat(key.len() * 5))
}
