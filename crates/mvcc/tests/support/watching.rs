//! Random watchers on slow streams, checked against the list of all events.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use mvcc::{Created, Filters, KeyRange, Options, WatchItem, WatchSpec, WatchStream};
use prost::Message;
use proto::{
    etcdserverpb::{CompactionRequest, ResponseHeader, WatchResponse},
    mvccpb::{Event, KeyValue},
};

use super::{
    Random,
    model::Model,
    random::{Generator, Op},
    store::TestStore,
};

pub(crate) struct Stream {
    pub stream: WatchStream,
    pub notified: Arc<AtomicBool>,
    pub watchers: BTreeMap<i64, Watcher>,
}

/// What a watcher should see and has seen.
pub(crate) struct Watcher {
    pub spec: WatchSpec,
    /// The first revision it is to be told of.
    pub from: i64,
    pub seen: Vec<Event>,
    pub compacted: Option<i64>,
}

impl Watcher {
    pub(crate) fn expects(&self, model: &Model) -> Vec<(i64, Bytes, Option<KeyValue>)> {
        let range = KeyRange::new(&self.spec.key, &self.spec.range_end);
        let filters = self.spec.filters;
        let wanted = |(revision, key, put): &&(i64, Bytes, Option<KeyValue>)| {
            let filtered = if put.is_some() { filters.no_put } else { filters.no_delete };
            *revision >= self.from && range.contains(key) && !filtered
        };
        model.events.iter().filter(wanted).cloned().collect()
    }

    fn last_seen(&self) -> i64 {
        self.seen.last().and_then(|e| e.kv.as_ref()).map_or(0, |kv| kv.mod_revision)
    }
}

pub(crate) struct Run {
    pub seed: u64,
    pub store: TestStore,
    pub model: Model,
    pub generator: Generator,
    pub random: Random,
    pub streams: Vec<Stream>,
    pub lagged: bool,
}

impl Run {
    pub(crate) fn new(seed: u64) -> Self {
        Run::on(super::store::backend(), seed)
    }

    pub(crate) fn on(backend: storage::Backend, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = Options {
            watch_queue_items_max: 1 + random.below(6) as usize,
            watch_queue_bytes_max: 20 + random.below(500) as usize,
            watch_merge_bytes_max: if random.one_in(3) { 0 } else { random.below(200) as usize },
            watch_catch_up_bytes_max: 1 + random.below(300) as usize,
            watch_catch_up_changes_max: 1 + random.below(20) as usize,
            ..Options::default()
        };
        let mut generator = Generator::new(seed);
        generator.keys = 4;
        let (store, model) = (TestStore::open(backend, options), Model::new());
        Run { seed, store, model, generator, random, streams: Vec::new(), lagged: false }
    }

    pub(crate) fn step(&mut self) {
        match self.random.below(100) {
            0..45 => self.change(),
            45..47 => self.compact(),
            47..50 => self.open_stream(),
            50..58 => self.watch(),
            58..60 => self.cancel(),
            60..63 => self.progress(),
            _ => self.pull(),
        }
    }

    pub(crate) fn op(&mut self) -> Op {
        self.generator.revision = self.model.revision();
        self.generator.compact_revision = self.model.compact_revision;
        match self.random.below(4) {
            0 => Op::Delete(self.generator.delete()),
            1 => Op::Txn(self.generator.txn(1)),
            _ => Op::Put(self.generator.put()),
        }
    }

    fn change(&mut self) {
        let op = self.op();
        let got = self.store.run(&op);
        assert_eq!(Some(got), self.model.run(&op), "SEED={}", self.seed);
        self.lagged |= self.store.store.stats().slow_watchers > 0;
    }

    pub(crate) fn compact(&mut self) {
        let revision = self.model.revision() - self.random.below(10) as i64;
        let op = Op::Compact(CompactionRequest { revision, physical: true });
        if self.store.run(&op).is_ok() {
            self.model.run(&op);
        }
    }

    fn open_stream(&mut self) {
        let notified = Arc::new(AtomicBool::new(false));
        let flag = notified.clone();
        let stream = self.store.store.watch_stream(move || flag.store(true, Ordering::SeqCst));
        self.streams.push(Stream { stream, notified, watchers: BTreeMap::new() });
        if self.streams.len() as u64 > 1 + self.seed % 4 {
            self.streams.remove(0);
        }
    }

    fn watch(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let (n, r) = (self.random.below(self.streams.len() as u64) as usize, &mut self.random);
        let stream = &mut self.streams[n];
        let current = self.model.revision();
        let key = Bytes::copy_from_slice(&[b'a' + r.below(4) as u8]);
        let range_end = match r.below(4) {
            0 => Bytes::new(),
            1 => Bytes::from_static(b"\0"),
            _ => Bytes::copy_from_slice(&[key[0] + 1 + r.below(3) as u8]),
        };
        let start_revision = match r.below(4) {
            0 => 0,
            1 => current + r.below(5) as i64,
            _ => 1 + r.below(current as u64) as i64,
        };
        let id = if r.one_in(4) { 1 + r.below(20) as i64 } else { 0 };
        let filters = Filters { no_put: r.one_in(6), no_delete: r.one_in(6) };
        let mut spec = WatchSpec { id, key, range_end, start_revision, filters, prev_kv: r.one_in(2) };
        // Often one that wants what another wants: such are told together.
        let others = stream.watchers.len() as u64;
        if others > 0 && !r.one_in(3) {
            let like = stream.watchers.values().nth(r.below(others) as usize).map(|watcher| watcher.spec.clone());
            spec = WatchSpec { id, start_revision, ..like.unwrap_or(spec) };
        }
        let taken = stream.watchers.contains_key(&spec.id);
        match stream.stream.watch(spec.clone()) {
            Ok(Created { id, revision }) => {
                assert!(spec.id == 0 || spec.id == id);
                assert_eq!(revision, current, "SEED={}", self.seed);
                let from = if start_revision == 0 { current + 1 } else { start_revision };
                let watcher = Watcher { spec, from, seen: Vec::new(), compacted: None };
                assert!(stream.watchers.insert(id, watcher).is_none(), "SEED={}", self.seed);
            }
            Err(e) => assert!(taken && e == mvcc::WatchError::DuplicateId, "SEED={}: {e}", self.seed),
        }
    }

    fn cancel(&mut self) {
        let Some(stream) = self.streams.first_mut() else { return };
        let id = self.random.below(8) as i64;
        let there = stream.watchers.remove(&id).is_some();
        assert_eq!(stream.stream.cancel(id).is_ok(), there, "SEED={}", self.seed);
    }

    fn progress(&mut self) {
        for stream in &self.streams {
            stream.stream.progress_all();
            if let Some(id) = stream.watchers.keys().next() {
                stream.stream.progress(*id);
            }
        }
    }

    fn pull(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        let n = self.random.below(self.streams.len() as u64) as usize;
        let pulls = self.random.below(4);
        for _ in 0..pulls {
            let Some(item) = self.streams[n].stream.next() else {
                if self.random.one_in(3) {
                    self.streams[n].stream.hush();
                }
                break;
            };
            self.take(n, item);
        }
    }

    pub(crate) fn take(&mut self, n: usize, item: WatchItem) {
        let (seed, model) = (self.seed, &self.model);
        check_encoding(&item);
        let watchers = &mut self.streams[n].watchers;
        if item.events.is_empty() && item.compact_revision == 0 {
            let of =
                watchers.iter().filter(|(id, w)| item.watch_id == -1 || **id == item.watch_id && w.compacted.is_none());
            for (id, watcher) in of.filter(|(_, w)| w.compacted.is_none() && w.from <= item.revision) {
                let missed = watcher.expects(model).into_iter().skip(watcher.seen.len()).find(|e| e.0 <= item.revision);
                assert_eq!(missed, None, "SEED={seed}: progress {} before an event of {id}", item.revision);
            }
            return;
        }
        let watcher = watchers.get_mut(&item.watch_id).unwrap_or_else(|| panic!("SEED={seed}: {item:?} after the end"));
        assert_eq!(watcher.compacted, None, "SEED={seed}");
        if item.compact_revision != 0 {
            assert!(item.compact_revision <= model.compact_revision, "SEED={seed}");
            assert!(watcher.from.max(watcher.last_seen()) < item.compact_revision, "SEED={seed}: ended too early");
            watcher.compacted = Some(item.compact_revision);
            return;
        }
        let expects = watcher.expects(model);
        let before = watcher.last_seen();
        for bytes in item.events.iter() {
            let event = Event::decode(&bytes[..]).expect("an event");
            check_event(&event, &expects[watcher.seen.len()], watcher.spec.prev_kv, model, seed);
            watcher.seen.push(event);
        }
        let next = expects.get(watcher.seen.len()).map(|e| e.0);
        assert!(next.is_none_or(|next| next > watcher.last_seen()), "SEED={seed}: a revision was split");
        assert!(before < watcher.last_seen() && watcher.last_seen() <= item.revision, "SEED={seed}");
        assert!(item.revision <= model.revision());
    }

    /// Takes all there is; each stream is to notify of what comes after.
    pub(crate) fn pull_all(&mut self) {
        for n in 0..self.streams.len() {
            while let Some(item) = self.streams[n].stream.next() {
                self.take(n, item);
            }
            self.streams[n].notified.store(false, Ordering::SeqCst);
        }
    }

    /// Everything that is left comes, and whoever has something left was notified.
    pub(crate) fn finish(mut self) {
        self.pull_all();
        for _ in 0..10 {
            self.change();
        }
        let seed = self.seed;
        for n in 0..self.streams.len() {
            let waiting = |w: &Watcher| w.compacted.is_none() && w.expects(&self.model).len() > w.seen.len();
            if self.streams[n].watchers.values().any(waiting) {
                assert!(self.streams[n].notified.load(Ordering::SeqCst), "SEED={seed}: not notified");
            }
            while let Some(item) = self.streams[n].stream.next() {
                self.take(n, item);
            }
            for (id, w) in &self.streams[n].watchers {
                let expects = w.expects(&self.model);
                assert!(w.compacted.is_some() || w.seen.len() == expects.len(), "SEED={seed}: {id} misses events");
            }
        }
        let stats = self.store.store.stats();
        assert_eq!((stats.slow_watchers, stats.pending_events), (0, 0), "SEED={seed}");
        let watchers: usize = self.streams.iter().map(|s| s.watchers.len()).sum();
        assert_eq!((stats.watchers, stats.watch_streams), (watchers as u64, self.streams.len() as u64));
        self.streams.clear();
        let stats = self.store.store.stats();
        assert_eq!((stats.watchers, stats.watch_streams), (0, 0), "SEED={seed}");
    }
}

fn check_event(event: &Event, want: &(i64, Bytes, Option<KeyValue>), prev_kv: bool, model: &Model, seed: u64) {
    let (revision, key, put) = want;
    let deleted = KeyValue { key: key.clone(), mod_revision: *revision, ..Default::default() };
    assert_eq!(event.kv, Some(put.clone().unwrap_or(deleted)), "SEED={seed}");
    assert_eq!(event.r#type, i32::from(put.is_none()), "SEED={seed}");
    let created = put.as_ref().is_some_and(|kv| kv.create_revision == kv.mod_revision);
    let previous = model.states[*revision as usize - 1].get(key).filter(|_| prev_kv && !created);
    let compacted = *revision - 1 < model.compact_revision;
    let lost = compacted && event.prev_kv.is_none();
    assert!(event.prev_kv.as_ref() == previous || lost, "SEED={seed}: {event:?}, before it {previous:?}");
}

/// The spliced response is the one that the messages encode to.
fn check_encoding(item: &WatchItem) {
    let header = ResponseHeader { revision: item.revision, cluster_id: 5, ..Default::default() };
    let mut spliced = Vec::new();
    item.encode(header, &mut spliced);
    let events = item.events.iter().map(|e| Event::decode(&e[..]).expect("an event")).collect();
    let response = WatchResponse {
        header: Some(header),
        watch_id: item.watch_id,
        canceled: item.compact_revision != 0,
        compact_revision: item.compact_revision,
        events,
        ..Default::default()
    };
    assert_eq!(spliced, response.encode_to_vec());
    assert_eq!(spliced.len(), item.encoded_len(header, 0..item.events.len(), false));
}
