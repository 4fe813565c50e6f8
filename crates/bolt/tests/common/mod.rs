//! What several tests share: a seeded generator, a model of a database, comparing the two, the real `bbolt` tool.
#![allow(dead_code, reason = "each test file uses a part")]

mod rng;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

use bolt::{Db, Options, ReadTx};

#[allow(unused_imports, reason = "each test file uses a part")]
pub use self::rng::Rng;

pub type Model = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// How many seeds to try: `usual`, or as often as `LOCKGATE_SEED_FACTOR` says for a longer run.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("LOCKGATE_SEED_FACTOR").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    0..usual * factor
}

pub fn options() -> Options {
    Options { no_sync: true, lock_timeout: Some(std::time::Duration::ZERO), ..Options::default() }
}

pub fn open(path: &Path) -> Db {
    Db::open(path, options()).expect("open")
}

/// Everything a view shows.
pub fn contents(tx: &ReadTx) -> Model {
    let mut model = Model::new();
    for name in tx.buckets().expect("names") {
        let bucket = tx.bucket(&name).expect("bucket").expect("named bucket");
        let pairs = bucket.iter().map(|pair| pair.map(|(k, v)| (k.to_vec(), v.to_vec()))).collect::<Result<_, _>>();
        model.insert(name, pairs.expect("pairs"));
    }
    model
}

pub fn assert_sound(tx: &ReadTx) {
    assert_eq!(tx.check(), []);
}

/// The real tool, or `None` with a printed reason. With `LOCKGATE_REQUIRE_PEERS=1` its absence is a failure.
pub fn peer(dir: &str, program: &str) -> Option<PathBuf> {
    let cache = || match std::env::var_os("XDG_CACHE_HOME") {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache"),
    };
    let peers = std::env::var_os("LOCKGATE_PEERS").map_or_else(|| cache().join("lockgate/peers"), PathBuf::from);
    let path = peers.join(dir).join(program);
    if path.exists() {
        return Some(path);
    }
    let required = std::env::var_os("LOCKGATE_REQUIRE_PEERS").is_some_and(|v| v == "1");
    assert!(!required, "{} is required but absent", path.display());
    eprintln!("SKIPPED: no {}; set LOCKGATE_PEERS to a directory that has it", path.display());
    None
}

/// Lets Go's tool check a file; `false` if the tool is absent.
pub fn go_check(path: &Path) -> bool {
    let Some(bbolt) = peer("bbolt-1.5.0", "bbolt") else { return false };
    let out = Command::new(bbolt).arg("check").arg(path).output().expect("run bbolt");
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success() && text.trim() == "OK", "bbolt check {}: {text}", path.display());
    true
}
