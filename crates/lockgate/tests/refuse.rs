//! Starts that are refused, with a clear error, exit code 1 and an unchanged data dir.

use crate::common::{BINARY, channel, place, wait_for_feature};

use std::fs;

use bytes::Bytes;
use client::Put;
use harness::{Member, Place, asynchronous::until};
use prost::Message;
use proto::{
    etcdserverpb::{IncrementRequest, InternalRaftRequest, RequestHeader, kv_client::KvClient},
    membershippb::Feature,
    raftpb::{ConfChange, ConfChangeType, Entry, EntryType, HardState},
};
use storage::{Backend, Bucket, schema};
use wal::Wal;

/// A data dir that a stopped member has written.
fn used() -> Place {
    let place = place();
    let member = place.start(&[]);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(async {
        let client = member.client().await;
        client.put(Put::new("key", "value")).await.expect("put");
    });
    let ended = member.stop();
    assert_eq!(ended.by_signal(), Some(15), "{}", ended.log);
    place
}

fn refused(place: &Place, flags: &[&str], expected: &str) {
    let before = place.contents();
    let Err(ended) = place.try_start(flags) else { panic!("the member starts; expected {expected:?}") };
    let error = ended.log.lines().rfind(|line| line.starts_with("lockgate: ")).unwrap_or_default();
    assert!(error.contains(expected), "expected {expected:?} in:\n{}", ended.log);
    assert_eq!(ended.status.code(), Some(1));
    assert!(before == place.contents(), "the data dir was changed");
}

fn overwrite(path: &std::path::Path, at: usize, bytes: &[u8]) {
    let mut file = fs::read(path).expect("read");
    file[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, file).expect("write");
}

fn change_db(place: &Place, change: impl FnOnce(&mut storage::Batch<'_>)) {
    let backend = Backend::open(&place.db(), storage::Options::default()).expect("open");
    change(&mut backend.write());
    backend.close().expect("close");
}

/// Appends an entry as a member would, so that it is in the log and not in the database.
fn append(place: &Place, kind: EntryType, data: Vec<u8>) {
    let at = Wal::valid_snapshots(&place.wal()).expect("snapshots").pop().unwrap_or_default();
    let (mut log, read) = Wal::open(&place.wal(), &at, wal::Options::default()).expect("open");
    let (index, term) = (read.entries.last().expect("entries").index() + 1, read.hard_state.term());
    let data = Some(Bytes::from(data));
    let entry = Entry { index: Some(index), term: Some(term), r#type: Some(kind as i32), data };
    let state = HardState { commit: Some(index), ..read.hard_state };
    log.save(Some(&state), &[entry]).expect("save");
    log.close().expect("close");
}

#[test]
fn foreign_dir() {
    let place = place();
    fs::create_dir(place.data()).expect("dir");
    fs::write(place.data().join("thesis.tex"), b"x").expect("write");
    refused(&place, &[], "is not an etcd data dir: it holds thesis.tex");
}

#[test]
fn damaged_files() {
    let place = used();
    let segment = place.wal().join("0000000000000000-0000000000000000.wal");
    let (log, db) = (fs::read(&segment).expect("read"), fs::read(place.db()).expect("read"));

    overwrite(&segment, 200, &[0xff; 4]);
    refused(&place, &[], "wal: corrupt record");
    fs::write(&segment, &log).expect("write");

    overwrite(&place.db(), 0, &[0; 8192]);
    refused(&place, &[], "is not a bbolt file");
    fs::write(place.db(), &db[..9000]).expect("write");
    refused(&place, &[], "is cut short");
    fs::write(place.db(), &db).expect("write");
    (2..db.len() / 4096).for_each(|page| overwrite(&place.db(), page * 4096 + 8, &[0xff; 8]));
    refused(&place, &[], "is corrupt");

    fs::remove_file(place.db()).expect("remove");
    refused(&place, &[], "of the backend is missing");
    fs::write(place.db(), &db).expect("write");
    fs::remove_dir_all(place.wal()).expect("remove");
    refused(&place, &[], "the log in");
}

#[test]
fn newer_version() {
    let place = used();
    change_db(&place, |batch| batch.put(Bucket::Meta, &b"storageVersion"[..], &b"3.9.0"[..]));
    refused(&place, &[], "3.9");
}

/// After `member add` of a member that never starts, the only running member has no quorum, unless it is forced to be a
/// new cluster.
#[test]
fn second_member_in_the_log() {
    let place = used();
    let change = ConfChange {
        id: Some(1),
        r#type: Some(ConfChangeType::ConfChangeAddNode as i32),
        node_id: Some(7),
        context: Some(Bytes::from_static(br#"{"id":7,"peerURLs":["http://127.0.0.1:1"],"name":""}"#)),
    };
    append(&place, EntryType::EntryConfChange, change.encode_to_vec());
    let alone = place.start(&["--force-new-cluster"]);
    alone.stop();
    place.start(&[]).stop();
}

/// A forced new cluster has no gate; entries that were committed before belong to the old gate.
#[test]
fn forced_with_a_feature_in_the_log() {
    const ON: &str = "--cluster-feature-gates=AtomicIncrement=true";
    let place = place();
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let request = IncrementRequest { key: "n".into(), delta: 1, ..Default::default() };
    let increment = async |member: &Member| {
        KvClient::new(channel(member).await).increment(request.clone()).await.map(|answer| answer.into_inner().value)
    };
    let member = place.start(&[ON]);
    runtime.block_on(until("the feature is on", async || increment(&member).await.is_ok()));
    member.stop();
    let header = Some(RequestHeader { id: 7, ..Default::default() });
    let entry = InternalRaftRequest { header, increment: Some(request.clone()), ..Default::default() };
    append(&place, EntryType::EntryNormal, entry.encode_to_vec());
    let alone = place.start(&["--force-new-cluster"]);
    let (found, refused) = runtime.block_on(async {
        let found = alone.client().await.get("n").await.expect("get").kvs;
        (found[0].value.clone(), increment(&alone).await)
    });
    assert_eq!(found, "2", "the committed entry was applied");
    assert!(refused.is_err(), "no member proposes the feature");
    alone.stop();
}

/// A newer binary has turned the feature on with the agreement of all members; this one could not apply its entries.
#[test]
fn a_feature_that_is_on_and_unknown() {
    let (place, flags) = (place(), ["--cluster-feature-gates=AtomicIncrement=true"]);
    let member = place.start(&flags);
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    runtime.block_on(async { wait_for_feature(&member.client().await, "AtomicIncrement", true).await });
    member.stop();
    change_db(&place, |batch| {
        let stored = schema::gate::load(batch).expect("gate");
        let mut gate = stored.gate.expect("a gate");
        gate.enabled.push("FromTheFuture".into());
        schema::gate::put_gate(batch, &gate);
        for (member, mut proposal) in stored.proposals {
            proposal.features.push(Feature { name: "FromTheFuture".into(), enabled: true });
            schema::gate::put_proposal(batch, member, &proposal);
        }
    });
    refused(&place, &flags, "the cluster feature FromTheFuture is on, and this binary (3.8) does not know it");
}

#[test]
fn unknown_request_in_the_log() {
    let place = used();
    append(&place, EntryType::EntryNormal, b"\x08\x01\x12\x03PUT".to_vec());
    refused(&place, &[], "which this version cannot apply");
}

/// A commit index beyond the last entry means that the end of the log was lost.
#[test]
fn log_without_its_end() {
    let place = used();
    let at = Wal::valid_snapshots(&place.wal()).expect("snapshots").pop().unwrap_or_default();
    let (mut log, read) = Wal::open(&place.wal(), &at, wal::Options::default()).expect("open");
    let state = HardState { commit: Some(read.hard_state.commit() + 5), ..read.hard_state };
    log.save(Some(&state), &[]).expect("save");
    log.close().expect("close");
    refused(&place, &[], "entries are missing from the log");
}

#[test]
fn transport_security() {
    let place = used();
    refused(&place, &["--cert-file=/c", "--key-file=/k"], "TLS is not supported by this version");
}

/// A temporary file of a defragmentation is kept while another member runs on the data dir.
#[test]
fn temporary_files_of_a_running_member_are_kept() {
    let place = used();
    let running = place.start(&[]);
    let unfinished = place.data().join("member/snap/db.tmp.1");
    fs::write(&unfinished, b"x").expect("write");
    let second_place = Place::at(BINARY, &place.data());
    let mut second = second_place.spawn(&[]);
    // Logged after ten seconds of waiting for the lock, so in particular after everything that comes before the lock.
    second.wait_log("db file is flocked by another process");
    assert!(unfinished.exists());
    second.kill();
    running.kill();
    place.start(&[]).kill();
    assert!(!unfinished.exists(), "the next start removes it");
}
