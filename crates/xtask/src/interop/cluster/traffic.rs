//! The load that is checked: clients of all members that read, write and swap a few keys, put many once, and write down
//! what they asked, what they were told, and when.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use client::{Client, Compare, ConnectOptions, Get, Put, Txn};
use tokio::{runtime::Runtime, task::JoinHandle};

use super::{
    super::load::Rng,
    linear::{Action, Operation, Outcome},
};

const WORKERS: u64 = 8;
/// Keys that all work on; few, so that they meet.
pub const SHARED: u64 = 5;
/// Short, so that a client does not stay with a member that is gone.
const ANSWER_MAX: Duration = Duration::from_millis(800);
const PAUSE: Duration = Duration::from_millis(4);
/// A client leaves a member alone that failed it, as a balancer does; else most of its time would go there.
const REST: Duration = Duration::from_millis(1000);

/// What one client did to one shared key.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub key: u64,
    pub operation: Operation,
    /// The store's, as the answer says it.
    pub revision: Option<u64>,
}

#[derive(Default)]
pub struct History {
    pub events: Vec<Event>,
    /// Keys that are written once: the revision, unless no answer came.
    pub single: BTreeMap<String, Option<u64>>,
}

impl History {
    pub fn acknowledged(&self) -> usize {
        let shared = self.events.iter().filter(|event| event.operation.outcome == Outcome::Done).count();
        shared + self.single.values().flatten().count()
    }

    pub fn unknown(&self) -> usize {
        let open =
            |event: &&Event| event.operation.outcome == Outcome::Unknown && event.operation.action != Action::Read;
        self.events.iter().filter(open).count() + self.single.values().filter(|revision| revision.is_none()).count()
    }
}

pub struct Traffic {
    runtime: Runtime,
    workers: Vec<JoinHandle<History>>,
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    hold: AtomicBool,
    endpoints: Mutex<Vec<String>>,
    clock: Instant,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn pick(&self, rng: &mut Rng) -> String {
        let endpoints = self.endpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        endpoints[rng.below(endpoints.len() as u64) as usize].clone()
    }
}

impl Traffic {
    pub fn start(endpoints: Vec<String>, seed: u64) -> Result<Traffic> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (stop, hold) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { stop, hold, endpoints: Mutex::new(endpoints), clock: Instant::now() });
        let spawn = |worker| {
            let rng = Rng(seed.wrapping_mul(1000).wrapping_add(worker));
            let (clients, resting, seen) = Default::default();
            let worker = Worker { shared: shared.clone(), worker, rng, clients, resting, seen };
            runtime.spawn(worker.run())
        };
        let workers = (0..WORKERS).map(spawn).collect();
        Ok(Traffic { runtime, workers, shared })
    }

    /// Members have come or gone.
    pub fn set_endpoints(&self, endpoints: Vec<String>) {
        *self.shared.endpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = endpoints;
    }

    /// Sends nothing more until `resume`, and returns when nothing is under way.
    pub fn hold(&self) {
        self.shared.hold.store(true, Ordering::Relaxed);
        thread::sleep(2 * ANSWER_MAX);
    }

    pub fn resume(&self) {
        self.shared.hold.store(false, Ordering::Relaxed);
    }

    pub fn stop(self) -> Result<Finished> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut history = History::default();
        for worker in self.workers {
            let part = self.runtime.block_on(worker).map_err(|error| anyhow!("a client failed: {error}"))?;
            history.events.extend(part.events);
            history.single.extend(part.single);
        }
        Ok(Finished { runtime: self.runtime, history, now: self.shared.now() })
    }
}

/// A history at its end, and what is needed to read what it has left behind.
pub struct Finished {
    pub runtime: Runtime,
    pub history: History,
    /// After every event.
    pub now: u64,
}

struct Worker {
    shared: Arc<Shared>,
    worker: u64,
    rng: Rng,
    clients: BTreeMap<String, Client>,
    /// Members that failed, and when.
    resting: BTreeMap<String, Instant>,
    /// The value that a shared key had when last seen.
    seen: BTreeMap<u64, u64>,
}

impl Worker {
    async fn run(mut self) -> History {
        let mut history = History::default();
        let mut n = 0;
        while !self.shared.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(PAUSE).await;
            if self.shared.hold.load(Ordering::Relaxed) {
                continue;
            }
            let endpoint = self.pick();
            let Ok(client) = self.client(&endpoint).await else { continue };
            n += 1;
            let answered = match self.rng.below(10) {
                0..3 => self.put_once(&client, n, &mut history).await,
                choice => {
                    let event = self.on_shared(&client, choice, self.worker << 40 | n).await;
                    history.events.push(event);
                    event.operation.outcome != Outcome::Unknown
                }
            };
            if !answered {
                self.resting.insert(endpoint, Instant::now());
            }
        }
        history
    }

    /// A member at random, rather one that answers.
    fn pick(&mut self) -> String {
        let mut endpoint = self.shared.pick(&mut self.rng);
        for _ in 0..4 {
            if self.resting.get(&endpoint).is_none_or(|since| since.elapsed() > REST) {
                break;
            }
            endpoint = self.shared.pick(&mut self.rng);
        }
        endpoint
    }

    async fn client(&mut self, endpoint: &str) -> client::Result<Client> {
        if let Some(client) = self.clients.get(endpoint) {
            return Ok(client.clone());
        }
        let client = connect(endpoint, ANSWER_MAX).await?;
        self.clients.insert(endpoint.to_owned(), client.clone());
        Ok(client)
    }

    async fn put_once(&self, client: &Client, n: u64, history: &mut History) -> bool {
        let key = format!("once/{}/{n:06}", self.worker);
        let answer = client.put(Put::new(key.clone(), key.clone())).await;
        let revision = answer.ok().and_then(|answer| revision(answer.header));
        history.single.insert(key, revision);
        revision.is_some()
    }

    async fn on_shared(&mut self, client: &Client, choice: u64, value: u64) -> Event {
        let key = self.rng.below(SHARED);
        let seen = self.seen.get(&key).copied().unwrap_or(0);
        let action = match choice {
            3..6 => Action::Read,
            6..8 => Action::Write(value),
            _ => Action::Swap(seen, value),
        };
        let invoked = self.shared.now();
        let answer = perform(client, &shared_key(key), action).await;
        let returned = self.shared.now();
        let (outcome, revision) = answer.unwrap_or((Outcome::Unknown, None));
        match (outcome, action) {
            (Outcome::Found(found), _) => drop(self.seen.insert(key, found)),
            (Outcome::Done, Action::Write(new) | Action::Swap(_, new)) => drop(self.seen.insert(key, new)),
            _ => {}
        }
        Event { key, operation: Operation { action, outcome, invoked, returned }, revision }
    }
}

pub async fn connect(endpoint: &str, limit: Duration) -> client::Result<Client> {
    let options = ConnectOptions::new().dial_timeout(limit / 2).request_timeout(limit);
    Client::connect([endpoint], options).await
}

pub fn shared_key(key: u64) -> String {
    format!("shared/{key}")
}

async fn perform(client: &Client, key: &str, action: Action) -> client::Result<(Outcome, Option<u64>)> {
    match action {
        Action::Read => {
            let answer = client.get(Get::key(key.to_owned())).await?;
            Ok((Outcome::Found(value_of(&answer.kvs)), revision(answer.header)))
        }
        Action::Write(value) => {
            let answer = client.put(Put::new(key.to_owned(), value.to_string())).await?;
            Ok((Outcome::Done, revision(answer.header)))
        }
        Action::Swap(old, new) => swap(client, key, old, new).await,
    }
}

async fn swap(client: &Client, key: &str, old: u64, new: u64) -> client::Result<(Outcome, Option<u64>)> {
    let is_old = match old {
        0 => Compare::create_revision(key.to_owned()).eq(0),
        old => Compare::value(key.to_owned()).eq(old.to_string()),
    };
    let txn = Txn::new()
        .when([is_old])
        .and_then([Put::new(key.to_owned(), new.to_string()).into()])
        .or_else([Get::key(key.to_owned()).into()]);
    let answer = client.txn(txn).await?;
    if answer.succeeded {
        return Ok((Outcome::Done, revision(answer.header)));
    }
    let range = answer.responses.into_iter().find_map(|op| match op.response {
        Some(client::pb::response_op::Response::ResponseRange(range)) => Some(range),
        _ => None,
    });
    Ok((Outcome::Found(value_of(&range.unwrap_or_default().kvs)), revision(answer.header)))
}

pub fn value_of(kvs: &[client::mvccpb::KeyValue]) -> u64 {
    let text = kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
    // A value that nobody wrote fails the check as such.
    text.map_or(0, |text| text.parse().unwrap_or(u64::MAX))
}

fn revision(header: Option<client::pb::ResponseHeader>) -> Option<u64> {
    header.and_then(|header| u64::try_from(header.revision).ok())
}
