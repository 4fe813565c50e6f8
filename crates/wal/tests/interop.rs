//! Logs go back and forth between this crate and real etcd releases.

use crate::support;

use std::{fs, path::Path};

use harness::{Member, Place};
use prost::Message;
use proto::{
    etcdserverpb::{InternalRaftRequest, PutRequest, RequestHeader},
    raftpb::Entry,
    walpb,
};
use support::{entry, origin, state};
use wal::{Error, Metadata, Options, Wal, snapfile};

const SMALL: Options = Options { segment_bytes: 16_384, no_sync: false };

fn put_entry(term: u64, index: u64, key: &str, value: &str) -> Entry {
    let put = PutRequest { key: key.to_owned().into(), value: value.to_owned().into(), ..PutRequest::default() };
    let header = RequestHeader { id: 1 << 40 | index, ..RequestHeader::default() };
    let request = InternalRaftRequest { header: Some(header), put: Some(put), ..InternalRaftRequest::default() };
    entry(term, index, request.encode_to_vec())
}

/// The value of the key that ends in `i`; of many sizes, so that records lie across pages in many ways.
fn value(i: u64) -> String {
    "v".repeat(i as usize * 7 % 900)
}

/// Keys put by the entries of a log, in order.
fn keys(entries: &[Entry]) -> Vec<String> {
    let put = |entry: &Entry| InternalRaftRequest::decode(entry.data.clone()?).ok()?.put;
    entries.iter().filter_map(put).map(|put| String::from_utf8_lossy(&put.key).into_owned()).collect()
}

fn expected_keys(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix}{i}")).collect()
}

/// The newest snapshot to start from, as a server would choose it.
fn newest(wal_dir: &Path) -> walpb::Snapshot {
    Wal::valid_snapshots(wal_dir).unwrap().pop().unwrap()
}

/// Appends committed puts in small segments.
fn append_puts(wal_dir: &Path, prefix: &str, count: u64) {
    let (mut wal, all) = Wal::open(wal_dir, &newest(wal_dir), SMALL).unwrap();
    let (term, vote) = (all.hard_state.term(), all.hard_state.vote());
    let first = wal.last_index() + 1;
    let mut cuts = 0;
    for i in 0..count {
        let put = put_entry(term, first + i, &format!("{prefix}{i}"), &value(i));
        cuts += usize::from(wal.save(Some(&state(term, vote, first + i - 1)), &[put]).unwrap().cut);
    }
    wal.save(Some(&state(term, vote, first + count - 1)), &[]).unwrap();
    wal.close().unwrap();
    assert!(cuts > 1, "etcd shall read segments that we began");
}

/// The whole log of `wal_dir` again, every byte of it by our hand.
fn rewrite(wal_dir: &Path) {
    let all = Wal::read(wal_dir, &origin()).unwrap();
    fs::remove_dir_all(wal_dir).unwrap();
    let mut wal = Wal::create(wal_dir, &all.metadata, SMALL).unwrap();
    for batch in all.entries.chunks(7) {
        wal.save(None, batch).unwrap();
    }
    wal.save(Some(&all.hard_state), &[]).unwrap();
    wal.close().unwrap();
}

/// Cuts the last segment inside its last record.
fn tear(wal_dir: &Path) {
    let mut names: Vec<_> = fs::read_dir(wal_dir).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|e| e == "wal"));
    let path = names.into_iter().max().unwrap();
    let bytes = fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    fs::write(&path, &bytes[..used - 3]).unwrap();
}

fn put(etcd: &Member, key: &str, value: &str) {
    etcd.etcdctl(&["put", key, value]).ok();
}

fn get(etcd: &Member, key: &str) -> String {
    etcd.etcdctl(&["get", "--print-value-only", key]).ok().trim_end().to_owned()
}

fn back_and_forth(version: &str) {
    let Some(programs) = harness::etcd_dir(version) else { return };
    let place = Place::new(programs.join("etcd"));
    let (wal_dir, db) = (place.wal(), place.db());

    // Theirs, read by us.
    let etcd = place.start(&[]);
    for i in 0..6 {
        put(&etcd, &format!("theirs{i}"), &"x".repeat(i * 700));
    }
    assert!(matches!(Wal::open(&wal_dir, &origin(), SMALL), Err(Error::Locked { .. })), "etcd holds it");
    etcd.kill();
    let all = Wal::read(&wal_dir, &newest(&wal_dir)).unwrap();
    assert_eq!(keys(&all.entries), expected_keys("theirs", 6));
    assert_eq!(Metadata::decode(&all.metadata).unwrap().node_id, all.hard_state.vote());

    let (held, _) = Wal::open(&wal_dir, &newest(&wal_dir), SMALL).unwrap();
    let log = place.spawn(&[]).wait_end().log;
    assert!(log.contains("file already locked"), "we hold it: {log}");
    drop(held);

    // Ours after theirs, read by them.
    append_puts(&wal_dir, "ours", 120);
    let etcd = place.start(&[]);
    assert_eq!(get(&etcd, "ours119"), value(119));
    put(&etcd, "theirs6", "after ours");
    etcd.kill();

    // All ours: etcd builds its whole state from nothing but a log that we wrote.
    rewrite(&wal_dir);
    fs::remove_file(&db).unwrap();
    let etcd = place.start(&[]);
    assert_eq!(get(&etcd, "theirs5"), "x".repeat(3500));
    assert_eq!(get(&etcd, "theirs6"), "after ours");
    assert_eq!(get(&etcd, "ours100"), value(100));
    put(&etcd, "theirs7", "after a log of ours");
    etcd.kill();

    // Theirs, torn, repaired by us; then ours, torn, repaired by them.
    tear(&wal_dir);
    append_puts(&wal_dir, "repaired", 120);
    tear(&wal_dir);
    let etcd = place.start(&[]);
    assert_eq!(get(&etcd, "repaired118"), value(118));
    put(&etcd, "theirs8", "after their repair");
    etcd.kill();
    let all = Wal::read(&wal_dir, &newest(&wal_dir)).unwrap();
    assert_eq!(keys(&all.entries).last().map(String::as_str), Some("theirs8"));
}

#[test]
fn etcd_3_7_back_and_forth() {
    back_and_forth("3.7.3");
}

#[test]
fn etcd_3_6_back_and_forth() {
    back_and_forth("3.6.16");
}

#[test]
fn etcd_3_5_back_and_forth() {
    back_and_forth("3.5.33");
}

/// A directory with snapshots: `.snap` files match the log, and one written again by us is taken.
fn snapshots(version: &str) {
    let Some(programs) = harness::etcd_dir(version) else { return };
    let place = Place::new(programs.join("etcd"));
    let (wal_dir, snap_dir) = (place.wal(), place.data().join("member/snap"));
    let few = ["--snapshot-count", "5"];
    let etcd = place.start(&few);
    for i in 0..20 {
        put(&etcd, &format!("k{i}"), "v");
    }
    etcd.kill();

    let listed = Wal::valid_snapshots(&wal_dir).unwrap();
    assert!(listed.len() > 2, "{listed:?}");
    let snapshot = snapfile::load_newest(&snap_dir, &listed).unwrap();
    let metadata = snapshot.metadata.clone().unwrap();
    assert!(snapshot.data().starts_with(b"{\"Root\":"));
    let record = listed.iter().find(|record| record.index() == metadata.index()).unwrap();
    assert_eq!((&record.conf_state, record.term()), (&metadata.conf_state, metadata.term()));

    // Not always the newest file: the state that commits it may still have been in etcd's memory.
    let path = snap_dir.join(snapfile::file_name(&snapshot));
    assert!(snapfile::list(&snap_dir).unwrap().contains(&path));
    assert_eq!(snapfile::encode(&snapshot), fs::read(path).unwrap(), "the same bytes again");
    snapfile::save(&snap_dir, &snapshot).unwrap();

    let (wal, all) = Wal::open(&wal_dir, record, SMALL).unwrap();
    assert_eq!(all.entries.first().map_or(record.index() + 1, Entry::index), record.index() + 1);
    drop(wal);
    append_puts(&wal_dir, "ours", 120);
    let etcd = place.start(&few);
    assert_eq!(get(&etcd, "ours119"), value(119));
    assert_eq!(get(&etcd, "k19"), "v");
}

#[test]
fn etcd_3_7_snapshots() {
    snapshots("3.7.3");
}

#[test]
fn etcd_3_6_snapshots() {
    snapshots("3.6.16");
}

#[test]
fn etcd_3_5_snapshots() {
    snapshots("3.5.33");
}
