//! Random requests against the store and against a plain model of it, with restarts in between.

use crate::support;

use proto::etcdserverpb::{CompactionRequest, HashKvRequest, RangeRequest};
use support::{
    model::Model,
    random::{Generator, Op},
    store::TestStore,
};

fn seeds(n: u64) -> std::ops::Range<u64> {
    match std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..n,
    }
}

#[test]
fn answers_as_the_model() {
    for seed in seeds(30) {
        let (mut store, mut model, mut generator) = (TestStore::new(), Model::new(), Generator::new(seed));
        generator.keys = 3 + seed % 10;
        for n in 0..400 {
            generator.revision = model.revision();
            generator.compact_revision = model.compact_revision;
            let op = generator.op();
            let got = store.run(&op);
            if let Some(want) = model.run(&op) {
                assert_eq!(got, want, "SEED={seed}, request {n}: {op:?}");
            }
            assert_eq!(store.store.revision(), model.revision());
            if n % 50 == 49 {
                check_all(&mut store, &model, seed);
                let mut again = store.reopened();
                check_same(&mut store, &mut again, seed);
                if seed % 2 == 0 {
                    store = again;
                }
            }
        }
    }
}

/// Every revision that is not compacted reads as the model has it, and leases have the keys they should.
fn check_all(store: &mut TestStore, model: &Model, seed: u64) {
    for revision in model.compact_revision.max(1)..=model.revision() {
        let all = all_at(revision);
        let got = store.store.range(&all).expect("readable").into_response();
        let want: Vec<_> = model.states[revision as usize].values().cloned().collect();
        assert_eq!(got.kvs, want, "SEED={seed}, at {revision}");
    }
    let leased = model.state().values().filter(|kv| kv.lease != 0).map(|kv| (kv.lease, kv.key.clone()));
    assert_eq!(store.leases.attached, leased.collect(), "SEED={seed}");
    let stats = store.store.stats();
    assert_eq!(stats.keys, model.state().len() as u64, "SEED={seed}");
}

/// A store read back from the file is the store that wrote it.
fn check_same(store: &mut TestStore, again: &mut TestStore, seed: u64) {
    assert_eq!(again.leases, store.leases, "SEED={seed}");
    let (a, b) = (store.store.stats(), again.store.stats());
    assert_eq!(
        (a.revision, a.compact_revision, a.keys, a.indexed_keys, a.revisions),
        (b.revision, b.compact_revision, b.keys, b.indexed_keys, b.revisions),
        "SEED={seed}"
    );
    for revision in [0, -1].into_iter().chain((a.compact_revision.max(1)..=a.revision).step_by(3)) {
        let hash = mvcc::hash_file(&again.backend.view(), revision, &mut |_| {}).expect("hashes");
        let little = mvcc::hash_file_within(&again.backend.view(), revision, 2, &mut |_| {}).expect("hashes");
        assert_eq!(little, hash, "with room for two keys at a time");
        assert_eq!(hash, again.store.hash_kv(revision).expect("hashes"), "SEED={seed}, hash of the file at {revision}");
    }
    for revision in a.compact_revision.max(1)..=a.revision {
        for op in [Op::Range(all_at(revision)), Op::Hash(HashKvRequest { revision })] {
            // The hash that a compaction left behind is not kept over a restart.
            if !matches!(op, Op::Hash(_)) || revision != a.compact_revision {
                assert_eq!(again.run(&op), store.run(&op), "SEED={seed}, {op:?}");
            }
        }
    }
}

fn all_at(revision: i64) -> RangeRequest {
    RangeRequest { key: "\0".into(), range_end: "\0".into(), revision, ..Default::default() }
}

/// A compaction that stops half-way, at any point, is taken up again and comes to the same end.
#[test]
fn interrupted_compactions_are_taken_up() {
    for seed in seeds(20) {
        let (mut store, mut generator) = (TestStore::new(), Generator::new(seed));
        while store.store.revision() < 120 {
            let _ = store.run(&if generator.random.one_in(2) {
                Op::Put(generator.put())
            } else {
                Op::Delete(generator.delete())
            });
        }
        let revision = 120 - (seed as i64 % 20);
        let mut whole = copy(&store);
        whole.run(&Op::Compact(CompactionRequest { revision, physical: true })).expect("compacts");

        let mut batch = store.backend.write();
        let mut job = store.store.compact(&mut batch, revision).expect("compacts");
        drop(batch);
        for _ in 0..seed {
            job.step(&store.store, 5);
        }
        drop(job);
        let mut store = store.reopened();
        assert_eq!(store.store.compact_revision(), revision);
        assert!(store.store.revision() >= revision);
        if let Some(mut job) = store.store.pending_compaction() {
            assert_eq!(job.revision(), revision);
            while !job.step(&store.store, 5).done {}
        }
        assert!(store.store.pending_compaction().is_none());
        let mut again = store.reopened();
        assert!(again.store.pending_compaction().is_none());
        for op in [Op::Range(all_at(0)), Op::Hash(HashKvRequest { revision: 0 })] {
            let want = whole.run(&op);
            assert_eq!(store.run(&op), want, "SEED={seed}");
            assert_eq!(again.run(&op), want, "SEED={seed}");
        }
    }
}

/// The same contents in another file.
fn copy(store: &TestStore) -> TestStore {
    use storage::Read;
    let to = support::store::backend();
    let mut batch = to.write();
    for bucket in [storage::Bucket::Key, storage::Bucket::Meta] {
        let mut all = Vec::new();
        store.backend.view().scan(bucket, b"", b"", &mut |k, v| {
            all.push((k.to_vec(), v.to_vec()));
            std::ops::ControlFlow::Continue(())
        });
        for (k, v) in all {
            batch.put(bucket, k, v);
        }
    }
    drop(batch);
    TestStore::open(to, mvcc::Options::default())
}
