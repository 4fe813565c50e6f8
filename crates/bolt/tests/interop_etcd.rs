//! Data files of real etcd releases: read by this engine, written on, and served by etcd again.

use crate::common;

use std::process::Command;

use common::{assert_sound, contents, go_check, open};
use harness::{Member, Output, Place};

fn etcdctl(etcd: &Member, args: &[&str], input: &str) -> String {
    let mut command = Command::new(etcd.program().with_file_name("etcdctl"));
    Output::with_input(command.args(["--endpoints", etcd.address()]).args(args), input).ok()
}

/// The hash of all keys and revisions, as etcd itself computes it.
fn hash(etcd: &Member) -> String {
    let json = etcdctl(etcd, &["endpoint", "hashkv", "-w", "json"], "");
    let hash = json.split("\"hash\":").nth(1).expect("a hash");
    hash.split([',', '}']).next().expect("a number").to_string()
}

fn load(etcd: &Member) {
    for part in 0..12 {
        let puts: String =
            (0..120).map(|i| format!("put /load/{part:02}/{i:03} {}\n", "v".repeat(1 + i * 9))).collect();
        etcdctl(etcd, &["txn"], &format!("\n{puts}\n\n"));
    }
    etcdctl(etcd, &["del", "--prefix", "/load/03"], "");
    etcdctl(etcd, &["lease", "grant", "3000"], "");
    etcdctl(etcd, &["compaction", "6"], "");
    etcdctl(etcd, &["put", "/load/last", "one"], "");
}

fn back_and_forth(release: &str) {
    let Some(program) = harness::peer(release, "etcd") else { return };
    let place = Place::new(program);
    let etcd = place.start(&[]);
    load(&etcd);
    let expected = hash(&etcd);
    etcd.stop();

    let path = place.db();
    let db = open(&path);
    assert_sound(&db.begin_read());
    let before = contents(&db.begin_read());
    assert!(before[&b"key"[..]].len() > 1200, "{} revisions", before[&b"key"[..]].len());
    assert_eq!(before[&b"lease"[..]].len(), 1);
    // Rewrite every value, and leave traces in a bucket of our own that is dropped again.
    for (name, pairs) in &before {
        let mut tx = db.begin_write().expect("begin");
        pairs.iter().for_each(|(key, value)| tx.put(name, key, value).expect("put"));
        let mut scratch = tx.create_bucket_if_missing(b"scratch").expect("create");
        (0..2000u64).for_each(|i| scratch.put(&i.to_be_bytes(), &[1; 60]).expect("put"));
        tx.commit().expect("commit");
        let mut tx = db.begin_write().expect("begin");
        assert!(tx.delete_bucket(b"scratch").expect("delete"));
        tx.commit().expect("commit");
    }
    assert!(contents(&db.begin_read()) == before);
    drop(db);
    go_check(&path);

    let etcd = place.start(&[]);
    assert_eq!(hash(&etcd), expected, "etcd sees the same keys and revisions");
    etcdctl(&etcd, &["put", "after", "bolt"], "");
    etcdctl(&etcd, &["defrag"], "");
    assert_eq!(etcdctl(&etcd, &["get", "--print-value-only", "after"], ""), "bolt\n");
    etcd.stop();

    let db = open(&path);
    assert_sound(&db.begin_read());
    assert!(contents(&db.begin_read())[&b"key"[..]].values().any(|kv| kv.ends_with(b"bolt")));
    // A compacted copy of ours is as good to etcd as its own file.
    let compact = place.dir().join("compact");
    bolt::compact(&db.begin_read(), &compact, bolt::Options::default(), 10 << 20, &mut |_| {}).expect("compact");
    drop(db);
    std::fs::rename(&compact, &path).expect("rename");
    let etcd = place.start(&[]);
    assert_eq!(etcdctl(&etcd, &["get", "--print-value-only", "after"], ""), "bolt\n");
    etcd.stop();
}

#[test]
fn etcd_3_7() {
    back_and_forth("etcd-3.7.3");
}

#[test]
fn etcd_3_6() {
    back_and_forth("etcd-3.6.16");
}

#[test]
fn etcd_3_5() {
    back_and_forth("etcd-3.5.33");
}
