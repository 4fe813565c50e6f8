//! Writing random keys with many clients, and what came of it.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use client::{Client, Put};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

#[derive(Default)]
pub(super) struct Outcome {
    pub latencies: Vec<Duration>,
    pub errors: BTreeMap<String, usize>,
    pub took: Duration,
}

impl Outcome {
    pub(super) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }

    pub(super) fn slowest(&self) -> f64 {
        self.latencies.iter().max().map_or(0.0, Duration::as_secs_f64)
    }

    pub(super) fn deviation(&self) -> f64 {
        let count = self.latencies.len().max(1) as f64;
        let mean = self.latencies.iter().map(Duration::as_secs_f64).sum::<f64>() / count;
        let square = |latency: &Duration| (latency.as_secs_f64() - mean).powi(2);
        (self.latencies.iter().map(square).sum::<f64>() / count).sqrt()
    }

    fn add(&mut self, other: Outcome) {
        self.latencies.extend(other.latencies);
        other.errors.into_iter().for_each(|(error, count)| *self.errors.entry(error).or_default() += count);
    }
}

pub(super) struct Keys {
    prefix: String,
    key_bytes: usize,
    random: RandomState,
    count: u64,
}

impl Keys {
    pub(super) fn new(prefix: &str, key_bytes: usize) -> Keys {
        Keys { prefix: prefix.to_owned(), key_bytes, random: RandomState::new(), count: 0 }
    }

    /// The prefix, eight random bytes, and zeros up to the size.
    pub(super) fn next(&mut self) -> Vec<u8> {
        let mut hasher = self.random.build_hasher();
        hasher.write_u64(self.count);
        self.count += 1;
        let mut key = self.prefix.clone().into_bytes();
        key.extend_from_slice(&hasher.finish().to_be_bytes());
        key.resize(self.prefix.len() + self.key_bytes, 0);
        key
    }
}

/// Each client writes one key after the other, as they come, until there are no more.
pub(super) async fn write(
    clients: &[Client],
    keys: mpsc::Receiver<Vec<u8>>,
    value_bytes: usize,
    done: impl Fn() + Clone + Send + 'static,
) -> Outcome {
    let keys = Arc::new(Mutex::new(keys));
    let value = bytes::Bytes::from(vec![0; value_bytes]);
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for client in clients {
        let (client, keys, value, done) = (client.clone(), Arc::clone(&keys), value.clone(), done.clone());
        tasks.spawn(async move {
            let mut outcome = Outcome::default();
            loop {
                let next = keys.lock().await.recv().await;
                let Some(key) = next else { return outcome };
                let start = Instant::now();
                match client.put(Put::new(key, value.clone())).await {
                    Ok(_) => outcome.latencies.push(start.elapsed()),
                    Err(error) => *outcome.errors.entry(error.to_string()).or_default() += 1,
                }
                done();
            }
        });
    }
    let mut outcome = Outcome::default();
    while let Some(Ok(part)) = tasks.join_next().await {
        outcome.add(part);
    }
    outcome.took = start.elapsed();
    outcome
}
