//! Files of real etcd read by this crate, and its files read by etcd's tools.

use crate::common;

use std::{ops::ControlFlow, path::Path, time::Duration};

use common::{check_units, open, put_unit};
use harness::{Member, Place};
use storage::{
    Backend, Bucket, Options, Version,
    schema::{
        self, cluster, lease, member, meta,
        version::{Found, Judgement, V3_5, V3_6, detect, judge},
    },
};

const SNAPSHOT_OFTEN: [&str; 2] = ["--snapshot-count", "30"];
const BINARY: Version = Version::new(3, 8);

#[test]
fn reads_files_of_etcd_3_7() {
    reads_files_of("3.7.3", Found::At(Version::new(3, 7)));
}

#[test]
fn reads_files_of_etcd_3_6() {
    reads_files_of("3.6.16", Found::At(V3_6));
}

#[test]
fn reads_files_of_etcd_3_5() {
    reads_files_of("3.5.33", Found::At(V3_5));
}

fn reads_files_of(version: &str, expected: Found) {
    let Some(bin) = harness::etcd_dir(version) else { return };
    let place = Place::new(bin.join("etcd"));
    let etcd = place.start(&SNAPSHOT_OFTEN);
    populate(&etcd);
    // Releases before 3.6 have no storage version; later ones write it some seconds after the cluster version.
    if version != "3.5.33" {
        let version = format!("\"storage\":\"{}.0\"", &version[..3]);
        harness::until("the storage version is written", || {
            harness::request(etcd.address(), "GET", "/version", &[], "")
                .is_ok_and(|reply| reply.body.contains(&version))
        });
    }
    let hash = hash_of(&etcd);
    takes_over_what_etcd_sends(&etcd, &bin, place.dir(), hash);
    etcd.stop();

    let file = place.db();
    let before = std::fs::read(&file).unwrap();
    let tool = Backend::open_read_only(&file, Some(Duration::ZERO)).unwrap();
    let view = tool.view();
    assert_eq!(tool.hash().unwrap(), hash, "the hash of etcd");
    let lines = list(&view);
    assert!(lines.iter().all(|l| l.known), "{:#?}", lines.iter().filter(|l| !l.known).collect::<Vec<_>>());
    assert_eq!(detect(&view).unwrap(), expected);
    let start = expected == Found::At(Version::new(3, 7));
    assert_eq!(judge(expected, BINARY) == Judgement::Start, start);

    let (index, term) = meta::consistent(&view).unwrap();
    assert!(index > 60 && term >= 2, "{index} {term}");
    let members = member::all(&view).unwrap();
    assert_eq!(members.len(), 1);
    assert_eq!(members[0].name, place.name());
    assert_eq!(meta::conf_state(&view).unwrap().unwrap().voters, [members[0].id]);
    assert_eq!(cluster::version(&view).unwrap().unwrap().stored(), format!("{}.0", &version[..3]));
    assert_eq!(lease::all(&view).unwrap().len(), 1);
    assert_eq!(meta::finished_compact_rev(&view).unwrap(), Some(10));
    assert_eq!(meta::scheduled_compact_rev(&view).unwrap(), Some(10));
    assert_eq!(schema::auth::users(&view).unwrap().len(), 1);
    assert_eq!(schema::auth::roles(&view).unwrap()[0].name, "r1");
    assert!(!schema::auth::enabled(&view) && schema::auth::revision(&view).unwrap() > 1);
    assert!(lines.iter().any(|l| l.bucket == Bucket::Key && l.value.starts_with("delete \"k3\"")));
    drop((view, tool));
    assert!(before == std::fs::read(&file).unwrap(), "reading changed the file");

    same_bytes_when_we_write_it_again(&file);
    etcd_goes_on_after_us(&place, hash);
}

fn ctl(etcd: &Member, line: &str) -> String {
    etcd.etcdctl(&line.split(' ').collect::<Vec<_>>()).ok()
}

fn populate(etcd: &Member) {
    (1..=40).for_each(|n| drop(ctl(etcd, &format!("put k{n} v{n}"))));
    ctl(etcd, "del k3");
    ctl(etcd, "compaction --physical 10");
    let granted = ctl(etcd, "lease grant 10000");
    let id = granted.split(' ').nth(1).unwrap();
    ctl(etcd, &format!("put --lease={id} leased x"));
    ctl(etcd, "user add u1:secret");
    ctl(etcd, "role add r1");
    ctl(etcd, "role grant-permission r1 readwrite a b");
    ctl(etcd, "user grant-role u1 r1");
    (1..=20).for_each(|n| drop(ctl(etcd, &format!("put k{n} w{n}"))));
}

fn hash_of(etcd: &Member) -> u32 {
    let reply = harness::request(etcd.address(), "POST", "/v3/maintenance/hash", &[], "{}");
    let body = reply.expect("etcd answers").body;
    let json: serde_json::Value = serde_json::from_str(&body).unwrap();
    // Zero is left out, and would be a strange hash.
    json["hash"].as_u64().unwrap_or_else(|| panic!("no hash in {body}")) as u32
}

fn list(read: &impl storage::Read) -> Vec<schema::dump::Line> {
    let mut lines = Vec::new();
    for bucket in Bucket::ALL {
        schema::dump::bucket(read, bucket, &mut |line| {
            lines.push(line.unwrap());
            ControlFlow::Continue(())
        });
    }
    lines
}

/// Values that we decode and encode again are the bytes that etcd wrote.
fn same_bytes_when_we_write_it_again(file: &Path) {
    let tool = Backend::open_read_only(file, None).unwrap();
    let dir = harness::tempdir();
    let backend = open(dir.path());
    let (from, mut to) = (tool.view(), backend.write());
    member::all(&from).unwrap().iter().for_each(|m| member::put(&mut to, m));
    lease::all(&from).unwrap().iter().for_each(|l| lease::put(&mut to, l));
    schema::alarm::all(&from).unwrap().iter().for_each(|a| schema::alarm::put(&mut to, a));
    schema::auth::users(&from).unwrap().iter().for_each(|u| schema::auth::put_user(&mut to, u));
    schema::auth::roles(&from).unwrap().iter().for_each(|r| schema::auth::put_role(&mut to, r));
    schema::auth::put_revision(&mut to, schema::auth::revision(&from).unwrap());
    meta::put_conf_state(&mut to, &meta::conf_state(&from).unwrap().unwrap());
    if let Some(version) = meta::storage_version(&from).unwrap() {
        meta::put_storage_version(&mut to, version);
    }
    meta::put_scheduled_compact_rev(&mut to, meta::scheduled_compact_rev(&from).unwrap().unwrap());
    meta::put_finished_compact_rev(&mut to, meta::finished_compact_rev(&from).unwrap().unwrap());
    cluster::put_version(&mut to, cluster::version(&from).unwrap().unwrap());
    let (index, term) = meta::consistent(&from).unwrap();
    to.set_consistent(index, term);
    drop(to);
    for bucket in Bucket::ALL.into_iter().filter(|b| *b != Bucket::Key) {
        assert_eq!(common::all(&backend.view(), bucket), common::all(&from, bucket), "{}", bucket.name());
    }
}

/// What etcd sends a member that is behind: a saved snapshot without the checksum at its end.
fn takes_over_what_etcd_sends(etcd: &Member, bin: &Path, dir: &Path, hash: u32) {
    let snap = dir.join("ours/member/snap");
    std::fs::create_dir_all(&snap).unwrap();
    let received = snap.join("0000000000000030.snap.db");
    ctl(etcd, &format!("snapshot save {}", received.display()));
    let bytes = std::fs::read(&received).unwrap();
    std::fs::write(&received, &bytes[..bytes.len() - 32]).unwrap();
    let backend = open(&snap);
    put_unit(&backend, 1);
    backend.take_over(&received).unwrap();
    assert_eq!(backend.hash().unwrap(), hash);
    let (index, _) = meta::consistent(&backend.view()).unwrap();
    assert!(index > 30, "{index}");
    // And it can be written on, and read by etcd's tool.
    backend.write().set_consistent(index + 1, 9);
    backend.close().unwrap();
    drop(backend);
    assert_eq!(meta::consistent(&open(&snap).view()).unwrap(), (index + 1, 9));
    utl(bin, &["snapshot", "status", &snap.join("db").display().to_string()]);
}

/// We defragment its file, and the etcd that wrote it starts again and finds everything.
fn etcd_goes_on_after_us(place: &Place, hash: u32) {
    let backend = Backend::open(&place.db(), Options::default()).unwrap();
    let report = backend.defrag().unwrap();
    assert!(report.size_after < report.size_before);
    assert_eq!(backend.hash().unwrap(), hash);
    backend.close().unwrap();
    drop(backend);
    // With the same addresses, since its member record is hashed too.
    let etcd = place.start(&SNAPSHOT_OFTEN);
    assert_eq!(hash_of(&etcd), hash);
    assert_eq!(ctl(&etcd, "get k20 --print-value-only").trim(), "w20");
    etcd.stop();
}

#[test]
fn etcdutl_reads_and_defragments_our_file() {
    let Some(bin) = harness::etcd_dir("3.7.3") else { return };
    let dir = harness::tempdir();
    let snap = dir.path().join("member/snap");
    std::fs::create_dir_all(&snap).unwrap();
    let backend = open(&snap);
    (1..=3000).for_each(|n| put_unit(&backend, n));
    let hash = backend.hash().unwrap();
    // A streamed snapshot, and the file itself.
    let copy = dir.path().join("copy.db");
    std::io::copy(&mut backend.snapshot().unwrap(), &mut std::fs::File::create(&copy).unwrap()).unwrap();
    backend.close().unwrap();
    drop(backend);
    for file in [&copy, &snap.join("db")] {
        let status = utl(&bin, &["snapshot", "status", "-w", "json", &file.display().to_string()]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        assert_eq!(status["revision"], 3000, "{status}");
        assert!(status["totalSize"].as_u64().unwrap() > 1 << 20, "{status}");
    }
    utl(&bin, &["defrag", "--data-dir", &dir.path().display().to_string()]);
    let backend = open(&snap);
    assert_eq!(check_units(&backend.view()), 3000);
    assert_eq!(backend.hash().unwrap(), hash);
}

fn utl(bin: &Path, args: &[&str]) -> String {
    harness::run(&bin.join("etcdutl"), args).ok()
}
