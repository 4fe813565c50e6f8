//! The load that is checked: clients of all members that read, write and swap a few keys, put many once, and write down
//! their requests, the answers, and the times of both.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use client::{Client, Compare, ConnectOptions, Get, Put, Txn};
use linear::{Effect, Operation, Value};
use random::Random;
use tokio::{runtime::Runtime, task::JoinHandle};

use super::super::wait::until_some;

const WORKERS: u64 = 8;
/// Keys that all work on; few, so that they meet.
pub(crate) const SHARED: u64 = 5;
/// Short, so that a client does not stay with a member that is gone.
const ANSWER_MAX: Duration = Duration::from_millis(800);
const PAUSE: Duration = Duration::from_millis(4);
/// A client leaves a member alone that failed it, as a balancer does; else most of its time would go there.
const REST: Duration = Duration::from_millis(1000);

/// A client's request for one shared key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub key: u64,
    pub operation: Operation,
    /// The answer says that it has written.
    pub wrote: bool,
    /// The store's, as the answer says it.
    pub revision: Option<u64>,
}

#[derive(Default)]
pub(crate) struct History {
    pub events: Vec<Event>,
    /// Keys that are written once: the revision, unless no answer came.
    pub single: BTreeMap<String, Option<u64>>,
}

impl History {
    pub(crate) fn acknowledged(&self) -> usize {
        let shared = self.events.iter().filter(|event| event.wrote).count();
        shared + self.single.values().flatten().count()
    }

    pub(crate) fn unknown(&self) -> usize {
        let open = |event: &&Event| event.operation.answer.is_none() && event.operation.effect != Effect::Read;
        self.events.iter().filter(open).count() + self.single.values().filter(|revision| revision.is_none()).count()
    }
}

pub(crate) struct Traffic {
    runtime: Runtime,
    workers: Vec<JoinHandle<History>>,
    shared: Arc<Shared>,
}

struct Shared {
    stop: AtomicBool,
    hold: AtomicBool,
    /// Workers with a request under way.
    busy: AtomicUsize,
    /// Answered writes.
    acknowledged: AtomicUsize,
    endpoints: Mutex<Vec<String>>,
    clock: Instant,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn pick(&self, rng: &mut Random) -> String {
        let endpoints = self.endpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        endpoints[rng.below(endpoints.len() as u64) as usize].clone()
    }
}

impl Traffic {
    pub(crate) fn start(endpoints: Vec<String>, seed: u64) -> Result<Traffic> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (stop, hold, busy, acknowledged) = Default::default();
        let clock = Instant::now();
        let shared = Arc::new(Shared { stop, hold, busy, acknowledged, endpoints: Mutex::new(endpoints), clock });
        let spawn = |worker| {
            let rng = Random::new(seed.wrapping_mul(1000).wrapping_add(worker));
            let (clients, resting, seen) = Default::default();
            let worker = Worker { shared: shared.clone(), worker, rng, clients, resting, seen };
            runtime.spawn(worker.run())
        };
        let workers = (0..WORKERS).map(spawn).collect();
        Ok(Traffic { runtime, workers, shared })
    }

    /// Members have come or gone.
    pub(crate) fn set_endpoints(&self, endpoints: Vec<String>) {
        *self.shared.endpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = endpoints;
    }

    /// Sends nothing more until `resume`, and returns when nothing is under way.
    pub(crate) fn hold(&self) -> Result<()> {
        self.shared.hold.store(true, Ordering::SeqCst);
        until_some("no request is under way", || Ok((self.shared.busy.load(Ordering::SeqCst) == 0).then_some(())))
    }

    pub(crate) fn resume(&self) {
        self.shared.hold.store(false, Ordering::SeqCst);
    }

    /// Waits until so many writes were acknowledged since the start.
    pub(crate) fn wait_acknowledged(&self, count: usize) -> Result<()> {
        let acknowledged = || self.shared.acknowledged.load(Ordering::Relaxed);
        until_some(&format!("{count} writes are acknowledged"), || Ok((acknowledged() >= count).then_some(())))
    }

    pub(crate) fn stop(self) -> Result<Finished> {
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
pub(crate) struct Finished {
    pub runtime: Runtime,
    pub history: History,
    /// After every event.
    pub now: u64,
}

struct Worker {
    shared: Arc<Shared>,
    worker: u64,
    rng: Random,
    clients: BTreeMap<String, Client>,
    /// Members that failed, and when.
    resting: BTreeMap<String, Instant>,
    /// The value that a shared key had when last seen.
    seen: BTreeMap<u64, Value>,
}

impl Worker {
    async fn run(mut self) -> History {
        let mut history = History::default();
        let mut n = 0;
        while !self.shared.stop.load(Ordering::Relaxed) {
            tokio::time::sleep(PAUSE).await;
            self.shared.busy.fetch_add(1, Ordering::SeqCst);
            // Only now, as a hold waits for those that are busy.
            if !self.shared.hold.load(Ordering::SeqCst) {
                n += 1;
                self.step(n, &mut history).await;
            }
            self.shared.busy.fetch_sub(1, Ordering::SeqCst);
        }
        history
    }

    /// Sends one request.
    async fn step(&mut self, n: u64, history: &mut History) {
        let endpoint = self.pick();
        let Ok(client) = self.client(&endpoint).await else { return };
        let (answered, wrote) = match self.rng.below(10) {
            0..3 => {
                let answered = self.put_once(&client, n, history).await;
                (answered, answered)
            }
            choice => {
                let event = self.on_shared(&client, choice, self.worker << 40 | n).await;
                history.events.push(event);
                (event.operation.answer.is_some(), event.wrote)
            }
        };
        self.shared.acknowledged.fetch_add(usize::from(wrote), Ordering::Relaxed);
        if !answered {
            self.resting.insert(endpoint, Instant::now());
        }
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
        let effect = match choice {
            3..6 => Effect::Read,
            6..8 => Effect::Write(Some(value)),
            _ => Effect::Swap { expected: self.seen.get(&key).copied(), new: value },
        };
        let call = self.shared.now();
        let answer = perform(client, &shared_key(key), effect).await.ok();
        let returned = self.shared.now();
        if let Some(answer) = &answer {
            match if answer.wrote { Some(value) } else { answer.seen.flatten() } {
                Some(value) => self.seen.insert(key, value),
                None => self.seen.remove(&key),
            };
        }
        let client = self.worker as usize;
        let operation = Operation { client, effect, seen: None, call, answer: None };
        let Some(Answer { seen, wrote, revision }) = answer else {
            return Event { key, operation, wrote: false, revision: None };
        };
        Event { key, operation: Operation { seen, answer: Some(returned), ..operation }, wrote, revision }
    }
}

pub(crate) async fn connect(endpoint: &str, limit: Duration) -> client::Result<Client> {
    let options = ConnectOptions::new().dial_timeout(limit / 2).request_timeout(limit);
    Client::connect([endpoint], options).await
}

pub(crate) fn shared_key(key: u64) -> String {
    format!("shared/{key}")
}

/// The answer to a client.
struct Answer {
    seen: Option<Option<Value>>,
    wrote: bool,
    revision: Option<u64>,
}

async fn perform(client: &Client, key: &str, effect: Effect) -> client::Result<Answer> {
    match effect {
        Effect::Read => {
            let answer = client.get(Get::key(key.to_owned())).await?;
            Ok(Answer { seen: Some(value_of(&answer.kvs)), wrote: false, revision: revision(answer.header) })
        }
        Effect::Write(value) => {
            let text = value.map(|value| value.to_string()).unwrap_or_default();
            let answer = client.put(Put::new(key.to_owned(), text)).await?;
            Ok(Answer { seen: None, wrote: true, revision: revision(answer.header) })
        }
        Effect::Swap { expected, new } => swap(client, key, expected, new).await,
    }
}

async fn swap(client: &Client, key: &str, expected: Option<Value>, new: Value) -> client::Result<Answer> {
    let is_old = match expected {
        None => Compare::create_revision(key.to_owned()).eq(0),
        Some(old) => Compare::value(key.to_owned()).eq(old.to_string()),
    };
    let txn = Txn::new()
        .when([is_old])
        .and_then([Put::new(key.to_owned(), new.to_string()).into()])
        .or_else([Get::key(key.to_owned()).into()]);
    let answer = client.txn(txn).await?;
    let revision = revision(answer.header);
    if answer.succeeded {
        return Ok(Answer { seen: Some(expected), wrote: true, revision });
    }
    let range = answer.responses.into_iter().find_map(|op| match op.response {
        Some(client::pb::response_op::Response::ResponseRange(range)) => Some(range),
        _ => None,
    });
    Ok(Answer { seen: Some(value_of(&range.unwrap_or_default().kvs)), wrote: false, revision })
}

pub(crate) fn value_of(kvs: &[client::mvccpb::KeyValue]) -> Option<Value> {
    let text = kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
    // A value that nobody wrote fails the check as such.
    text.map(|text| text.parse().unwrap_or(u64::MAX))
}

fn revision(header: Option<client::pb::ResponseHeader>) -> Option<u64> {
    header.and_then(|header| u64::try_from(header.revision).ok())
}
