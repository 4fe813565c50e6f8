//! A file from another store is taken over: readers, watchers, leases and hashes go on as if the changes had been
//! made here.

use crate::support;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use mvcc::{CompactionJob, Error, OpenError, Options, Store, WatchSpec};
use prost::Message;
use proto::{
    etcdserverpb::{CompactionRequest, PutRequest, RangeRequest},
    mvccpb::Event,
};
use storage::Backend;
use support::{
    model::Model,
    random::Op,
    store::{TestLeases, TestStore},
    watching::Run,
};

fn seeds(n: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(n),
    }
}

fn all_at(revision: i64) -> RangeRequest {
    RangeRequest { key: "\0".into(), range_end: "\0".into(), revision, ..Default::default() }
}

fn open(path: &Path) -> Backend {
    Backend::open(path, storage::Options::default()).expect("a backend")
}

/// The file of a store as it is now, as a member sends it.
fn send(backend: &Backend, dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    let (mut snapshot, ..) = backend.snapshot_now().expect("a snapshot");
    let mut file = std::fs::File::create(&path).expect("a file");
    std::io::copy(&mut snapshot, &mut file).expect("copies");
    path
}

/// One store that falls behind, and another that has its file and goes on.
struct World {
    dir: harness::TempDir,
    behind: Run,
    /// Compactions that the store behind has begun and may not go on with.
    jobs: Vec<CompactionJob>,
}

impl World {
    fn new(seed: u64) -> World {
        let dir = harness::tempdir();
        let behind = Run::on(open(&dir.path().join("db")), seed);
        World { dir, behind, jobs: Vec::new() }
    }

    /// The store that goes on. Some of its changes still come to the one behind.
    fn ahead(&mut self) -> TestStore {
        let path = send(&self.behind.store.backend, self.dir.path(), "ahead");
        let mut ahead = TestStore::open(open(&path), Options::default());
        let (both, alone) = (self.behind.random.below(20), self.behind.random.below(60));
        for _ in 0..both {
            let op = self.behind.op();
            let want = self.behind.model.run(&op);
            assert_eq!(Some(self.behind.store.run(&op)), want);
            assert_eq!(Some(ahead.run(&op)), want);
        }
        for _ in 0..alone {
            if self.behind.random.one_in(25) {
                self.compact_ahead(&mut ahead);
            }
            let op = self.behind.op();
            assert_eq!(Some(ahead.run(&op)), self.behind.model.run(&op));
        }
        ahead
    }

    /// As far as it comes: the rest is for whoever gets the file.
    fn compact_ahead(&mut self, ahead: &mut TestStore) {
        let revision = ahead.store.revision() - self.behind.random.below(40) as i64;
        if let Some(mut job) = compact(ahead, &mut self.behind.model, revision) {
            for _ in 0..self.behind.random.below(12) {
                job.step(&ahead.store, 20);
            }
        }
    }

    fn begin_compaction(&mut self) {
        let Run { store, model, random, .. } = &mut self.behind;
        let revision = store.store.revision() - random.below(10) as i64;
        self.jobs.extend(compact(store, model, revision));
        let steps = random.below(5);
        if let Some(job) = self.jobs.last_mut() {
            for _ in 0..steps {
                job.step(&store.store, 5);
            }
        }
    }

    /// Nothing that an old compaction does may be seen: only hashes and files can tell.
    fn step_jobs(&mut self) {
        for job in &mut self.jobs {
            let progress = job.step(&self.behind.store.store, 5);
            assert_eq!((progress.done, progress.hash), (true, None));
        }
    }

    fn take_over(&mut self, ahead: &TestStore) {
        let received = send(&ahead.backend, self.dir.path(), "1.snap.db");
        let Run { store, seed, .. } = &mut self.behind;
        let seed = *seed;
        let before = (store.store.stats(), store.store.range(&all_at(0)), store.store.hash_kv(0));
        store.backend.take_over(&received).expect("takes it over");
        // Until it is read, all is as before, though the old file is gone.
        let now = (store.store.stats(), store.store.range(&all_at(0)), store.store.hash_kv(0));
        assert_eq!(now.0.revision, before.0.revision, "SEED={seed}");
        assert_eq!((&now.1, &now.2), (&before.1, &before.2), "SEED={seed}");
        if self.behind.random.one_in(2) {
            self.step_jobs_in_between();
        }
        let store = &mut self.behind.store;
        let mut leases = TestLeases::default();
        store.store.reload(|id, key| mvcc::Leases::attach(&mut leases, id, key)).expect("reads it");
        store.leases = leases;
        self.step_jobs();
        self.jobs.clear();
    }

    /// The index of before may still be compacted, the file no more.
    fn step_jobs_in_between(&mut self) {
        let hash = mvcc::hash_file(&self.behind.store.backend.view(), 0, &mut |_| {}).expect("hashes");
        for job in &mut self.jobs {
            while !job.step(&self.behind.store.store, 5).done {}
        }
        let after = mvcc::hash_file(&self.behind.store.backend.view(), 0, &mut |_| {}).expect("hashes");
        assert_eq!(hash, after);
    }

    /// The store is the one whose file it has.
    fn check(&mut self, ahead: &mut TestStore) {
        let (seed, store) = (self.behind.seed, &mut self.behind.store);
        assert_eq!(store.leases, ahead.leases, "SEED={seed}");
        assert_eq!(store.store.compaction_hashes(), [], "SEED={seed}");
        let mut opened = ahead.reopened();
        let (a, b) = (store.store.stats(), opened.store.stats());
        assert_eq!(
            (a.revision, a.compact_revision, a.keys, a.indexed_keys, a.revisions),
            (b.revision, b.compact_revision, b.keys, b.indexed_keys, b.revisions),
            "SEED={seed}"
        );
        for revision in a.compact_revision.max(1)..=a.revision {
            let got = store.store.range(&all_at(revision)).expect("readable").into_response();
            let want: Vec<_> = self.behind.model.states[revision as usize].values().cloned().collect();
            assert_eq!(got.kvs, want, "SEED={seed}, at {revision}");
            assert_eq!(store.store.hash_kv(revision), opened.store.hash_kv(revision), "SEED={seed}, at {revision}");
        }
        let compacted = store.store.range(&all_at(a.compact_revision - 1));
        assert!(a.compact_revision < 2 || matches!(compacted, Err(Error::Compacted { .. })), "SEED={seed}");
        let pending = [&mut *store, &mut opened].map(|s| s.store.pending_compaction());
        assert_eq!(pending[0].is_some(), pending[1].is_some(), "SEED={seed}");
        for (job, of) in pending.into_iter().zip([&mut *store, &mut opened]) {
            let Some(mut job) = job else { continue };
            while !job.step(&of.store, 7).done {}
            assert!(of.reopened().store.pending_compaction().is_none(), "SEED={seed}");
        }
        assert_eq!(store.store.hash_kv(0), opened.store.hash_kv(0), "SEED={seed}");
    }
}

/// Begins a compaction, if it can be.
fn compact(store: &mut TestStore, model: &mut Model, revision: i64) -> Option<CompactionJob> {
    let mut batch = store.backend.write();
    let job = store.store.compact(&mut batch, revision).ok()?;
    model.run(&Op::Compact(CompactionRequest { revision, physical: false }));
    Some(job)
}

#[test]
fn goes_on_as_if_the_changes_were_made_here() {
    let (mut lagged, mut compacted) = (0, 0);
    for seed in seeds(25) {
        let mut world = World::new(seed);
        for _ in 0..4 {
            for _ in 0..world.behind.random.below(150) {
                world.behind.step();
            }
            if world.behind.random.one_in(2) {
                world.begin_compaction();
            }
            let mut ahead = world.ahead();
            lagged += usize::from(world.behind.store.store.stats().slow_watchers > 0);
            if world.behind.random.one_in(2) {
                world.take_over(&ahead);
            } else {
                compacted += take_over_with_drained_watchers(&mut world, &ahead);
            }
            world.check(&mut ahead);
        }
        for _ in 0..50 {
            world.behind.step();
        }
        world.behind.finish();
    }
    assert!(lagged > 0 && compacted > 0 || std::env::var_os("SEED").is_some(), "{lagged} {compacted}");
}

/// Events by watcher, and the compact revision it was ended with.
type Told = BTreeMap<i64, (Vec<Event>, i64)>;

/// Every watcher gets what one on the other store gets that begins where this one is. Gives how many were too late.
fn take_over_with_drained_watchers(world: &mut World, ahead: &TestStore) -> usize {
    world.behind.pull_all();
    let next = world.behind.store.store.revision() + 1;
    world.take_over(ahead);
    let (seed, mut compacted) = (world.behind.seed, 0);
    for n in 0..world.behind.streams.len() {
        let other = ahead.store.watch_stream(|| {});
        let (mut got, mut want) = (Told::new(), Told::new());
        for (id, watcher) in world.behind.streams[n].watchers.iter().filter(|(_, w)| w.compacted.is_none()) {
            let start_revision = watcher.from.max(next);
            // An id of 0 lets the stream choose.
            let spec = WatchSpec { id: id + 1, start_revision, ..watcher.spec.clone() };
            other.watch(spec).expect("watches");
        }
        while let Some(item) = other.next() {
            note(&mut want, item.watch_id - 1, &item);
        }
        let notified = world.behind.streams[n].notified.load(Ordering::SeqCst);
        assert!(notified || want.is_empty(), "SEED={seed}: not notified");
        while let Some(item) = world.behind.streams[n].stream.next() {
            note(&mut got, item.watch_id, &item);
            world.behind.take(n, item);
        }
        assert_eq!(got, want, "SEED={seed}");
        compacted += want.values().filter(|w| w.1 != 0).count();
    }
    compacted
}

fn note(told: &mut Told, id: i64, item: &mvcc::WatchItem) {
    let entry = told.entry(id).or_default();
    entry.0.extend(item.events.iter().map(|e| Event::decode(&e[..]).expect("an event")));
    entry.1 = entry.1.max(item.compact_revision);
}

fn put(store: &mut TestStore, key: &str) {
    let put = PutRequest { key: key.to_owned().into(), ..Default::default() };
    store.run(&Op::Put(put)).expect("puts");
}

#[test]
fn a_watcher_of_the_future_goes_on_waiting() {
    let dir = harness::tempdir();
    let mut store = TestStore::open(open(&dir.path().join("db")), Options::default());
    put(&mut store, "a");
    let stream = store.store.watch_stream(|| {});
    for start_revision in [0, 4, 5, 9] {
        stream.watch(WatchSpec { key: "a".into(), start_revision, ..Default::default() }).expect("watches");
    }
    let mut ahead = TestStore::open(open(&send(&store.backend, dir.path(), "ahead")), Options::default());
    (0..2).for_each(|_| put(&mut ahead, "a"));
    store.backend.take_over(&send(&ahead.backend, dir.path(), "1.snap.db")).expect("takes it over");
    store.store.reload(|_, _| {}).expect("reads it");
    assert_eq!(store.store.stats().slow_watchers, 2);
    (0..6).for_each(|_| put(&mut store, "a"));
    let mut told: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    while let Some(item) = stream.next() {
        let events = item.events.iter().map(|e| Event::decode(&e[..]).expect("an event"));
        told.entry(item.watch_id).or_default().extend(events.filter_map(|e| Some(e.kv?.mod_revision)));
    }
    let want = [(0, 3), (1, 4), (2, 5), (3, 9)].map(|(id, from)| (id, (from..=10).collect()));
    assert_eq!(told, want.into());
}

#[test]
fn a_file_that_is_behind_is_refused() {
    let dir = harness::tempdir();
    let mut store = TestStore::open(open(&dir.path().join("db")), Options::default());
    (0..5).for_each(|_| put(&mut store, "a"));
    let old = send(&store.backend, dir.path(), "old");
    put(&mut store, "a");
    store.backend.take_over(&old).expect("takes it over");
    let refused = store.store.reload(|_, _| panic!("no key has a lease"));
    assert!(matches!(refused, Err(OpenError::Behind { found: 6, current: 7, .. })), "{refused:?}");
    // What was there is still to be read.
    let read = store.store.range(&all_at(0)).expect("reads").into_response();
    assert_eq!(read.kvs.iter().map(|kv| kv.version).collect::<Vec<_>>(), [6]);
}

#[test]
fn reload_without_another_file_changes_nothing() {
    let dir = harness::tempdir();
    let mut store = TestStore::open(open(&dir.path().join("db")), Options::default());
    (0..5).for_each(|_| put(&mut store, "a"));
    let hash = store.store.hash_kv(0);
    let other: Store = store.store.clone();
    store.store.reload(|_, _| {}).expect("reads it");
    put(&mut store, "b");
    assert_eq!((other.revision(), hash), (7, store.store.hash_kv(6).map(|h| mvcc::HashKv { revision: 6, ..h })));
}
