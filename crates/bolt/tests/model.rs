//! Random work on several buckets beside a model made of BTreeMaps: with old views held, reopened now and then.

use crate::common;

use bolt::{Db, Options, ReadTx, WriteTx};
use common::{Model, assert_sound, contents, go_check, options, seeds};
use random::Random;

struct Run {
    rng: Random,
    model: Model,
    views: Vec<(ReadTx, Model)>,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run { rng: Random::new(seed), model: Model::new(), views: Vec::new() }
    }

    fn name(&mut self) -> Vec<u8> {
        format!("bucket-{}", self.rng.below(4)).into_bytes()
    }

    fn key(&mut self) -> Vec<u8> {
        match self.rng.below(20) {
            0 => {
                let len = 1 + self.rng.below(3000) as usize;
                self.rng.bytes(len)
            }
            1..10 => format!("k{:05}", self.rng.below(3000)).into_bytes(),
            _ => {
                let len = 1 + self.rng.below(12) as usize;
                self.rng.bytes(len)
            }
        }
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.rng.below(60) {
            0 => self.rng.below(30_000),
            1..10 => self.rng.below(1200),
            10..13 => 0,
            _ => self.rng.below(90),
        };
        self.rng.bytes(len as usize)
    }

    fn commit(&mut self, db: &Db) {
        let mut tx = db.begin_write().expect("begin");
        let before = self.model.clone();
        let ops = match self.rng.below(10) {
            0 => 2000,
            1..4 => 1 + self.rng.below(4),
            _ => 1 + self.rng.below(200),
        };
        let deletes_of_10 = [1, 3, 5, 9][self.rng.below(4) as usize];
        for _ in 0..ops {
            self.op(&mut tx, deletes_of_10);
        }
        self.compare_inside(&tx);
        if self.rng.one_in(8) {
            drop(tx);
            self.model = before;
        } else {
            tx.commit().expect("commit");
        }
    }

    fn op(&mut self, tx: &mut WriteTx, deletes_of_10: u64) {
        let name = self.name();
        if self.rng.one_in(400) {
            assert_eq!(tx.delete_bucket(&name).expect("delete bucket"), self.model.remove(&name).is_some());
        }
        if !self.model.contains_key(&name) {
            tx.create_bucket_if_missing(&name).expect("create");
            self.model.insert(name.clone(), Default::default());
        }
        if self.rng.one_in(50) {
            return self.delete_run(tx, &name);
        }
        let (key, value) = (self.key(), self.value());
        let bucket = self.model.get_mut(&name).expect("just made");
        if self.rng.below(10) < deletes_of_10 {
            // Mostly keys that exist: the first one from a random place on.
            let key = bucket.range(key.clone()..).next().map_or(key, |(key, _)| key.clone());
            assert_eq!(tx.delete(&name, &key).expect("delete"), bucket.remove(&key).is_some());
        } else {
            if self.rng.one_in(2) {
                let mut bucket = tx.bucket_mut(&name).expect("bucket");
                bucket.put_shared(&key, &value.clone().into()).expect("put");
            } else {
                tx.put(&name, &key, &value).expect("put");
            }
            bucket.insert(key, value);
        }
    }

    fn delete_run(&mut self, tx: &mut WriteTx, name: &[u8]) {
        let (from, n) = (self.key(), self.rng.below(400) as usize);
        let bucket = self.model.get_mut(name).expect("exists");
        let keys: Vec<_> = bucket.range(from..).take(n).map(|(key, _)| key.clone()).collect();
        for key in keys {
            assert!(tx.delete(name, &key).expect("delete"));
            bucket.remove(&key);
        }
    }

    fn compare_inside(&mut self, tx: &WriteTx) {
        let names: Vec<_> = self.model.keys().cloned().collect();
        assert_eq!(tx.buckets().expect("names"), names);
        for (name, pairs) in &self.model {
            let bucket = tx.bucket(name).expect("bucket").expect("exists");
            let found: Vec<_> = bucket.iter().map(|pair| pair.expect("pair")).collect();
            assert!(found.iter().copied().eq(pairs.iter().map(|(k, v)| (&k[..], &v[..]))));
        }
    }

    fn compare(&mut self, tx: &ReadTx) {
        assert!(contents(tx) == self.model, "contents differ");
        assert_sound(tx);
        for _ in 0..20 {
            let (name, key) = (self.name(), self.key());
            let Some(bucket) = tx.bucket(&name).expect("bucket") else { continue };
            let pairs = &self.model[&name];
            assert_eq!(bucket.get(&key).expect("get"), pairs.get(&key).map(|v| &v[..]));
            self.walk_from(bucket, &name, &key);
        }
    }

    fn walk_from(&self, bucket: bolt::Bucket<'_>, name: &[u8], key: &[u8]) {
        let pairs = &self.model[name];
        let mut cursor = bucket.cursor();
        let at = cursor.seek(key).expect("seek").map(|(k, _)| k.to_vec());
        assert_eq!(at.as_deref(), pairs.range(key.to_vec()..).next().map(|(k, _)| &k[..]));
        let Some(at) = at else { return };
        for (k, v) in pairs.range(..at).rev().take(30) {
            assert_eq!(cursor.prev().expect("prev"), Some((&k[..], &v[..])));
        }
        let last = bucket.cursor().last().expect("last").map(|(k, _)| k.to_vec());
        assert_eq!(last.as_ref(), pairs.keys().next_back());
    }
}

fn run(seed: u64, rounds: u32, page_size: usize) {
    println!("SEED {seed} page size {page_size}");
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let options = || Options { page_size: Some(page_size), ..options() };
    let mut db = Db::open(&path, options()).expect("open");
    let mut run = Run::new(seed);
    for round in 0..rounds {
        run.commit(&db);
        run.compare(&db.begin_read());
        if run.rng.one_in(5) {
            run.views.push((db.begin_read(), run.model.clone()));
        }
        if run.views.len() > 4 {
            let old = run.rng.below(5) as usize;
            let (view, model) = run.views.swap_remove(old);
            assert!(contents(&view) == model, "a held view changed");
            assert_sound(&view);
        }
        if round % 25 == 24 {
            run.views.clear();
            drop(db);
            go_check(&path);
            db = Db::open(&path, options()).expect("reopen");
        }
    }
    for (view, model) in &run.views {
        assert!(contents(view) == *model, "a held view changed");
    }
}

#[test]
fn random_work_4k_pages() {
    seeds(4).for_each(|seed| run(seed, 100, 4096));
}

#[test]
fn random_work_64k_pages() {
    seeds(2).for_each(|seed| run(1000 + seed, 75, 65536));
}
