//! Snapshots and data dirs go back and forth between lockgateutl, lockgate, and real etcd with its own tools.

use crate::support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use support::{CURRENT, Member, Peers, free_port, ours, peer, restore, tool};
use tempfile::TempDir;

struct Taken {
    dir: TempDir,
    file: PathBuf,
    contents: (Vec<(String, String, i64)>, i64),
}

/// A snapshot of a filled etcd, saved by its own tool.
fn take_from_etcd(version: &str) -> Option<Taken> {
    let (etcd, etcdctl) = (peer(version, "etcd")?, peer(version, "etcdctl")?);
    let dir = tempfile::tempdir().unwrap();
    let member = Member::etcd(&etcd, &dir.path().join("first"), &[]);
    member.fill();
    if version > "3.6" {
        member.wait_versioned();
    }
    let (contents, file) = (member.contents(), dir.path().join("s.db"));
    tool(&etcdctl, ["--endpoints", member.endpoint(), "snapshot", "save", text(&file)]).ok();
    member.stop();
    Some(Taken { dir, file, contents })
}

fn take_from_lockgate() -> Taken {
    let dir = tempfile::tempdir().unwrap();
    let member = Member::lockgate(&dir.path().join("first"), &["--initial-cluster-version", "3.7"]);
    member.fill();
    member.wait_versioned();
    let (contents, file) = (member.contents(), dir.path().join("s.db"));
    member.snapshot(&file);
    member.stop();
    Taken { dir, file, contents }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Both tools print the same about a file; etcdutl gets a copy, since it writes to what it hashes.
fn compare_tools(etcdutl: &Path, taken: &Taken) {
    let copy = taken.dir.path().join("copy.db");
    for format in ["simple", "table", "json", "fields"] {
        let status = |program: &Path| tool(program, ["snapshot", "status", text(&taken.file), "-w", format]).ok();
        assert_eq!(status(&ours()), status(etcdutl));
        for rev in ["0", "-1", "60", "61", "80", "100", "130"] {
            fs::copy(&taken.file, &copy).unwrap();
            let hash = |program: &Path| tool(program, ["hashkv", text(&copy), "--rev", rev, "-w", format]).ok();
            assert_eq!(hash(&ours()), hash(etcdutl), "at {rev}");
        }
    }
}

#[test]
fn snapshots_of_etcd_look_the_same_and_restore_to_the_same() {
    let (Some(etcd), Some(etcdutl)) = (peer(CURRENT, "etcd"), peer(CURRENT, "etcdutl")) else { return };
    let Some(taken) = take_from_etcd(CURRENT) else { return };
    compare_tools(&etcdutl, &taken);
    let (by_us, by_etcdutl) = (taken.dir.path().join("by-us"), taken.dir.path().join("by-etcdutl"));
    restore(&ours(), &taken.file, &by_us, &[]).ok();
    restore(&etcdutl, &taken.file, &by_etcdutl, &[]).ok();
    let log = "member/wal/0000000000000000-0000000000000000.wal";
    assert_eq!(fs::read(by_us.join(log)).unwrap(), fs::read(by_etcdutl.join(log)).unwrap());
    for data in [&by_us, &by_etcdutl] {
        let member = Member::etcd(&etcd, data, &[]);
        assert_eq!(member.contents(), taken.contents);
        member.put("more", "to come");
        member.stop();
    }
    // Our own member goes on with what etcd has written since.
    for data in [&by_us, &by_etcdutl] {
        assert_eq!(Member::lockgate(data, &[]).contents().1, taken.contents.1 + 1);
    }
}

#[test]
fn snapshots_of_lockgate_are_etcds_to_restore() {
    let (Some(etcd), Some(etcdutl)) = (peer(CURRENT, "etcd"), peer(CURRENT, "etcdutl")) else { return };
    let taken = take_from_lockgate();
    compare_tools(&etcdutl, &taken);
    for program in [etcdutl, ours()] {
        let data = taken.dir.path().join("data");
        restore(&program, &taken.file, &data, &[]).ok();
        let member = Member::etcd(&etcd, &data, &[]);
        assert_eq!(member.contents(), taken.contents);
        member.stop();
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn raised_revisions_are_etcds() {
    let (Some(etcd), Some(etcdutl)) = (peer(CURRENT, "etcd"), peer(CURRENT, "etcdutl")) else { return };
    let taken = take_from_lockgate();
    let mut hashes = Vec::new();
    for program in [etcdutl, ours()] {
        for is_etcd in [true, false] {
            let data = taken.dir.path().join("data");
            restore(&program, &taken.file, &data, &["--bump-revision", "1000", "--mark-compacted"]).ok();
            hashes.push(tool(&ours(), ["hashkv", "--data-dir", text(&data)]).ok());
            for _ in 0..2 {
                let member = if is_etcd { Member::etcd(&etcd, &data, &[]) } else { Member::lockgate(&data, &[]) };
                assert_eq!(member.contents(), (taken.contents.0.clone(), taken.contents.1 + 1000));
                hashes.push(member.hash_kv(0));
                member.stop();
            }
            fs::remove_dir_all(data).unwrap();
        }
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}

#[test]
fn older_releases_start_on_what_is_restored_from_their_snapshots() {
    for version in ["3.6.16", "3.5.33"] {
        let (Some(etcd), Some(taken)) = (peer(version, "etcd"), take_from_etcd(version)) else { continue };
        let data = taken.dir.path().join("again");
        restore(&ours(), &taken.file, &data, &[]).ok();
        for _ in 0..2 {
            let member = Member::etcd(&etcd, &data, &[]);
            assert_eq!(member.contents(), taken.contents, "{version}");
            member.stop();
        }
    }
}

#[test]
fn three_members_start_from_one_snapshot() {
    let (Some(etcd), Some(taken)) = (peer(CURRENT, "etcd"), take_from_etcd(CURRENT)) else { return };
    let urls: Vec<_> = (0..3).map(|_| format!("http://127.0.0.1:{}", free_port())).collect();
    let cluster: Vec<_> = urls.iter().enumerate().map(|(i, url)| format!("m{i}={url}")).collect();
    let begin = |i: usize| {
        let (name, data) = (format!("m{i}"), taken.dir.path().join(format!("m{i}")));
        let peers = Peers { name, listen: urls[i].clone(), advertise: urls[i].clone(), cluster: cluster.join(",") };
        let args = ["snapshot", "restore", text(&taken.file), "--data-dir", text(&data), "--name", &peers.name];
        let flags = ["--initial-cluster", &peers.cluster, "--initial-advertise-peer-urls", &peers.advertise];
        tool(&ours(), args.into_iter().chain(flags)).ok();
        Member::etcd_begin(&etcd, &data, &peers, &[])
    };
    let begun: Vec<_> = (0..3).map(begin).collect();
    let members: Vec<_> = begun.into_iter().map(Member::ready).collect();
    members[0].put("more", "to come");
    for member in &members {
        let contents = member.contents();
        assert_eq!(contents.0.len(), taken.contents.0.len() + 1);
        assert_eq!(contents.1, taken.contents.1 + 1);
    }
}

#[test]
fn etcd_opens_what_we_defragment() {
    let Some(etcd) = peer(CURRENT, "etcd") else { return };
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let member = Member::etcd(&etcd, &data, &[]);
    let value = "v".repeat(100_000);
    (0..40).for_each(|_| member.put("large", &value));
    member.fill();
    let contents = member.contents();
    member.stop();
    let db = data.join("member/snap/db");
    let before = fs::metadata(&db).unwrap().len();
    tool(&ours(), ["defrag", "--data-dir", text(&data)]).ok();
    let after = fs::metadata(&db).unwrap().len();
    assert!(after * 2 < before, "{before} to {after} bytes");
    let member = Member::etcd(&etcd, &data, &[]);
    assert_eq!(member.contents(), contents);
    member.put("more", "to come");
}
