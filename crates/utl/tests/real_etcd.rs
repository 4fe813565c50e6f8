//! Snapshots and data dirs exchanged between lockgateutl, Lockgate, and real etcd with its own tools.

use std::{
    fs,
    path::{Path, PathBuf},
};

use harness::{ETCD, Place, TempDir, run, tempdir};

use crate::support::{Member, etcd, lockgateutl, restore, utl};

struct Taken {
    dir: TempDir,
    file: PathBuf,
    contents: (Vec<(String, String, i64)>, i64),
}

/// A snapshot of a filled etcd, saved by etcdctl.
fn take_from_etcd(version: &str) -> Option<Taken> {
    let (etcd, etcdctl) = (etcd(version, "etcd")?, etcd(version, "etcdctl")?);
    let dir = tempdir();
    let member = Member::etcd(&etcd, &dir.path().join("first"));
    member.fill();
    if version > "3.6" {
        member.wait_versioned();
    }
    let (contents, file) = (member.contents(), dir.path().join("s.db"));
    run(&etcdctl, ["--endpoints", member.address(), "snapshot", "save", text(&file)]).ok();
    member.stop();
    Some(Taken { dir, file, contents })
}

fn take_from_lockgate() -> Taken {
    let dir = tempdir();
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

/// Asserts that both tools print the same about a file. They get a copy, since etcdutl writes to the file that it hashes.
fn compare_tools(etcdutl: &Path, taken: &Taken) {
    let copy = taken.dir.path().join("copy.db");
    for format in ["simple", "table", "json", "fields"] {
        let status = |program: &Path| run(program, ["snapshot", "status", text(&taken.file), "-w", format]).ok();
        assert_eq!(status(&lockgateutl()), status(etcdutl));
        for rev in ["0", "-1", "60", "61", "80", "100", "130"] {
            fs::copy(&taken.file, &copy).unwrap();
            let hash = |program: &Path| run(program, ["hashkv", text(&copy), "--rev", rev, "-w", format]).ok();
            assert_eq!(hash(&lockgateutl()), hash(etcdutl), "at {rev}");
        }
    }
}

#[test]
fn snapshots_of_etcd_look_the_same_and_restore_to_the_same() {
    let (Some(etcd), Some(etcdutl)) = (etcd(ETCD, "etcd"), etcd(ETCD, "etcdutl")) else { return };
    let Some(taken) = take_from_etcd(ETCD) else { return };
    compare_tools(&etcdutl, &taken);
    let (by_lockgateutl, by_etcdutl) = (taken.dir.path().join("by-lockgateutl"), taken.dir.path().join("by-etcdutl"));
    restore(&lockgateutl(), &taken.file, &by_lockgateutl, &[]).ok();
    restore(&etcdutl, &taken.file, &by_etcdutl, &[]).ok();
    let log = "member/wal/0000000000000000-0000000000000000.wal";
    assert_eq!(fs::read(by_lockgateutl.join(log)).unwrap(), fs::read(by_etcdutl.join(log)).unwrap());
    for data in [&by_lockgateutl, &by_etcdutl] {
        let member = Member::etcd(&etcd, data);
        assert_eq!(member.contents(), taken.contents);
        member.put("more", "to come");
        member.stop();
    }
    // Lockgate continues with the data that etcd has written since.
    for data in [&by_lockgateutl, &by_etcdutl] {
        assert_eq!(Member::lockgate(data, &[]).contents().1, taken.contents.1 + 1);
    }
}

#[test]
fn etcd_serves_restored_snapshots_of_lockgate() {
    let (Some(etcd), Some(etcdutl)) = (etcd(ETCD, "etcd"), etcd(ETCD, "etcdutl")) else { return };
    let taken = take_from_lockgate();
    compare_tools(&etcdutl, &taken);
    for program in [etcdutl, lockgateutl()] {
        let data = taken.dir.path().join("data");
        restore(&program, &taken.file, &data, &[]).ok();
        let member = Member::etcd(&etcd, &data);
        assert_eq!(member.contents(), taken.contents);
        member.stop();
        fs::remove_dir_all(data).unwrap();
    }
}

#[test]
fn raised_revisions_equal_those_of_etcdutl() {
    let (Some(etcd), Some(etcdutl)) = (etcd(ETCD, "etcd"), etcd(ETCD, "etcdutl")) else { return };
    let taken = take_from_lockgate();
    let mut hashes = Vec::new();
    for program in [etcdutl, lockgateutl()] {
        for is_etcd in [true, false] {
            let data = taken.dir.path().join("data");
            restore(&program, &taken.file, &data, &["--bump-revision", "1000", "--mark-compacted"]).ok();
            hashes.push(utl(["hashkv", "--data-dir", text(&data)]).ok());
            for _ in 0..2 {
                let member = if is_etcd { Member::etcd(&etcd, &data) } else { Member::lockgate(&data, &[]) };
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
        let (Some(etcd), Some(taken)) = (etcd(version, "etcd"), take_from_etcd(version)) else { continue };
        let data = taken.dir.path().join("again");
        restore(&lockgateutl(), &taken.file, &data, &[]).ok();
        for _ in 0..2 {
            let member = Member::etcd(&etcd, &data);
            assert_eq!(member.contents(), taken.contents, "{version}");
            member.stop();
        }
    }
}

#[test]
fn three_members_start_from_one_snapshot() {
    let (Some(etcd), Some(taken)) = (etcd(ETCD, "etcd"), take_from_etcd(ETCD)) else { return };
    let mut places: Vec<_> = (0..3).map(|i| Place::of_cluster(&etcd, &format!("m{i}"))).collect();
    let cluster: Vec<_> = places.iter().map(Place::as_cluster_member).collect();
    let cluster = cluster.join(",");
    for place in &mut places {
        place.join(&cluster);
        let (data, url) = (place.data(), place.peer_url());
        let args = ["snapshot", "restore", text(&taken.file), "--data-dir", text(&data), "--name", place.name()];
        utl(args.into_iter().chain(["--initial-cluster", &cluster, "--initial-advertise-peer-urls", &url])).ok();
    }
    let spawned: Vec<_> = places.iter().map(|place| place.spawn(&[])).collect();
    let ready = spawned.into_iter().map(harness::Member::ready);
    let members: Vec<_> = ready.zip(places).map(|(member, place)| Member::of_place(member, place)).collect();
    members[0].put("more", "to come");
    for member in &members {
        let contents = member.contents();
        assert_eq!(contents.0.len(), taken.contents.0.len() + 1);
        assert_eq!(contents.1, taken.contents.1 + 1);
    }
}

#[test]
fn etcd_opens_a_file_that_lockgateutl_defragmented() {
    let Some(etcd) = etcd(ETCD, "etcd") else { return };
    let dir = tempdir();
    let data = dir.path().join("data");
    let member = Member::etcd(&etcd, &data);
    let value = "v".repeat(100_000);
    (0..40).for_each(|_| member.put("large", &value));
    member.fill();
    let contents = member.contents();
    member.stop();
    let db = data.join("member/snap/db");
    let before = fs::metadata(&db).unwrap().len();
    utl(["defrag", "--data-dir", text(&data)]).ok();
    let after = fs::metadata(&db).unwrap().len();
    assert!(after * 2 < before, "{before} to {after} bytes");
    let member = Member::etcd(&etcd, &data);
    assert_eq!(member.contents(), contents);
    member.put("more", "to come");
}
