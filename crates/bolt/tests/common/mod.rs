//! What several tests share: a seeded generator, a model of a database, comparing the two, the real `bbolt` tool.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{collections::BTreeMap, path::Path};

use bolt::{Db, Options, ReadTx};

pub(crate) type Model = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// How many seeds to try: `usual`, or as often as `LOCKGATE_SEED_FACTOR` says for a longer run.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("LOCKGATE_SEED_FACTOR").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    0..usual * factor
}

pub(crate) fn options() -> Options {
    Options { no_sync: true, lock_timeout: Some(std::time::Duration::ZERO), ..Options::default() }
}

pub(crate) fn open(path: &Path) -> Db {
    Db::open(path, options()).expect("open")
}

/// Everything a view shows.
pub(crate) fn contents(tx: &ReadTx) -> Model {
    let mut model = Model::new();
    for name in tx.buckets().expect("names") {
        let bucket = tx.bucket(&name).expect("bucket").expect("named bucket");
        let pairs = bucket.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec()))).collect::<Result<_, _>>();
        model.insert(name, pairs.expect("pairs"));
    }
    model
}

pub(crate) fn assert_sound(tx: &ReadTx) {
    assert_eq!(tx.check(), []);
}

/// Lets Go's tool check a file; `false` if the tool is absent.
pub(crate) fn go_check(path: &Path) -> bool {
    let Some(bbolt) = harness::peer("bbolt-1.5.0", "bbolt") else { return false };
    let out = harness::run(&bbolt, ["check".as_ref(), path.as_os_str()]);
    let text = out.stdout + &out.stderr;
    assert!(out.code == Some(0) && text.trim() == "OK", "bbolt check {}: {text}", path.display());
    true
}
