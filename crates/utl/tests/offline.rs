//! Snapshots and data dirs of Lockgate, without a real etcd.

use std::{
    fs,
    os::unix::fs::{FileExt, PermissionsExt},
    path::{Path, PathBuf},
};

use harness::{TempDir, tempdir};
use wal::Wal;

use crate::support::{Member, lockgateutl, names, restore, utl};

/// A snapshot of a filled Lockgate, and the contents that it served.
struct Taken {
    dir: TempDir,
    file: PathBuf,
    contents: (Vec<(String, String, i64)>, i64),
    hashes: Vec<(i64, String)>,
}

fn take() -> Taken {
    let dir = tempdir();
    let member = Member::lockgate(&dir.path().join("first"), &[]);
    member.fill();
    let (contents, file) = (member.contents(), dir.path().join("s.db"));
    // Revision 60 is left out: a running member reports the hash from the time before its compaction.
    let revisions = [0, 61, 77, 100, contents.1];
    let hashes = revisions.iter().map(|rev| (*rev, member.hash_kv(*rev))).collect();
    member.snapshot(&file);
    member.stop();
    Taken { dir, file, contents, hashes }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_restored_snapshot_serves_the_same_contents() {
    let taken = take();
    let before = fs::read(&taken.file).unwrap();
    for (rev, expected) in &taken.hashes {
        let found = utl(["hashkv", text(&taken.file), "--rev", &rev.to_string()]).ok();
        assert_eq!(found, *expected, "at {rev}");
    }
    let status = utl(["snapshot", "status", text(&taken.file), "-w", "fields"]).ok();
    let keys = taken.contents.0.len();
    assert!(status.contains(&format!("\"Revision\" : {}\n\"Keys\" : {keys}\n", taken.contents.1)), "{status}");
    let data = taken.dir.path().join("again");
    restore(&lockgateutl(), &taken.file, &data, &[]).ok();
    assert_eq!(fs::read(&taken.file).unwrap(), before, "the snapshot was only read");
    assert_eq!(names(&data), ["member"]);
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(utl(["hashkv", "--data-dir", text(&data)]).ok(), taken.hashes[0].1);
    let member = Member::lockgate(&data, &[]);
    assert_eq!(member.contents(), taken.contents);
    for (rev, expected) in &taken.hashes {
        assert_eq!(member.hash_kv(*rev), *expected, "at {rev}");
    }
    member.put("more", "to come");
    member.stop();
    let member = Member::lockgate(&data, &[]);
    assert_eq!(member.contents().1, taken.contents.1 + 1);
}

#[test]
fn a_raised_revision_is_served_and_everything_before_is_compacted() {
    let taken = take();
    let data = taken.dir.path().join("again");
    restore(&lockgateutl(), &taken.file, &data, &["--bump-revision", "1000", "--mark-compacted"]).ok();
    let raised = taken.contents.1 + 1000;
    let hash = utl(["hashkv", "--data-dir", text(&data)]).ok();
    assert!(hash.ends_with(&format!(", {raised}, {raised}\n")), "{hash}");
    for _ in 0..2 {
        let member = Member::lockgate(&data, &[]);
        assert_eq!(member.contents(), (taken.contents.0.clone(), raised));
        assert_eq!(member.hash_kv(0), hash);
        let error = member.get_at(taken.contents.1).unwrap_err();
        assert!(error.contains("required revision has been compacted"), "{error}");
        member.stop();
    }
    let member = Member::lockgate(&data, &[]);
    member.put("next", "");
    assert_eq!(member.contents().1, raised + 1);
}

#[test]
fn a_revision_is_not_raised_beyond_the_largest() {
    let taken = take();
    let data = taken.dir.path().join("again");
    let flags = ["--bump-revision", "9223372036854775807", "--mark-compacted"];
    let error = restore(&lockgateutl(), &taken.file, &data, &flags).error();
    assert!(error.contains("the largest revision"), "{error}");
    assert_eq!(names(taken.dir.path()), ["first", "s.db"]);
}

#[test]
fn a_damaged_snapshot_is_refused_and_leaves_nothing() {
    let taken = take();
    let good = fs::read(&taken.file).unwrap();
    let page = |n: usize| n * 4096;
    let flip = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        bytes
    };
    let all_metas_bad = {
        let mut bytes = flip(page(0) + 40);
        bytes[page(1) + 40] ^= 0xff;
        bytes
    };
    let skip = "--skip-hash-check";
    let cases: [(&str, Vec<u8>, &[&str], &str); 8] = [
        ("hash", flip(page(3)), &[], "Error: expected sha256 ["),
        ("metas", all_metas_bad, &[skip], "invalid database: both meta pages of "),
        ("no hash", good[..good.len() - 32].to_vec(), &[], "Error: snapshot missing hash but --skip-hash-check=false"),
        ("cut", good[..page(3)].to_vec(), &[skip], "is cut short"),
        ("text", b"not a database at all, by any means".repeat(900), &[skip], "is not a bbolt file"),
        ("short", b"x".to_vec(), &[skip], "too few for a snapshot"),
        ("empty", Vec::new(), &[], "too few for a snapshot"),
        // Page headers of trees, whose kinds then differ from the ones that the page above expects.
        (
            "pages",
            (2..good.len() / 4096).fold(good.clone(), |mut b, n| {
                b[page(n) + 8] ^= 0x3f;
                b
            }),
            &[skip],
            "orrupt",
        ),
    ];
    let work = tempdir();
    let data = work.path().join("data");
    for (name, bytes, flags, expected) in cases {
        let file = taken.dir.path().join("bad.db");
        fs::write(&file, bytes).unwrap();
        let ended = restore(&lockgateutl(), &file, &data, flags);
        assert_eq!(ended.code, Some(1), "{name}");
        let error = ended.error();
        let known = error.contains(expected) || name == "pages" && error.contains("integrity check failed");
        assert!(known, "{name}: {error}");
        assert!(names(work.path()).is_empty(), "{name} left {:?}", names(work.path()));
    }
}

#[test]
fn a_restore_overwrites_nothing() {
    let taken = take();
    let work = tempdir();
    let (data, wal) = (work.path().join("data"), work.path().join("wal"));
    fs::create_dir(&data).unwrap();
    fs::write(data.join("notes"), "mine").unwrap();
    let error = restore(&lockgateutl(), &taken.file, &data, &[]).error();
    assert_eq!(error, format!("Error: data-dir {:?} not empty or could not be read", text(&data)));
    assert_eq!(names(&data), ["notes"]);
    fs::remove_file(data.join("notes")).unwrap();
    fs::create_dir(&wal).unwrap();
    let error = restore(&lockgateutl(), &taken.file, &data, &["--wal-dir", text(&wal)]).error();
    assert_eq!(error, format!("Error: wal-dir {:?} exists", text(&wal)));
    // An empty directory, perhaps the root of a disk, keeps its permissions; the log may be in another one.
    fs::remove_dir(&wal).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o750)).unwrap();
    restore(&lockgateutl(), &taken.file, &data, &["--wal-dir", text(&wal)]).ok();
    assert_eq!(names(&data), ["member"]);
    assert_eq!(names(&data.join("member")), ["snap"]);
    assert_eq!(fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o750);
    let member = Member::lockgate(&data, &["--wal-dir", text(&wal)]);
    assert_eq!(member.contents(), taken.contents);
}

#[test]
fn files_of_a_running_member_are_not_touched() {
    let dir = tempdir();
    let data = dir.path().join("data");
    let member = Member::lockgate(&data, &[]);
    member.fill();
    let db = data.join("member/snap/db");
    let commands: [&[&str]; 4] = [
        &["hashkv", text(&db)],
        &["defrag", "--data-dir", text(&data)],
        &["snapshot", "status", text(&db)],
        &["snapshot", "restore", text(&db), "--skip-hash-check", "--data-dir", text(dir.path())],
    ];
    let other = tempdir();
    for command in commands {
        let mut args = vec!["--timeout", "300ms"];
        args.extend(command.iter().map(|arg| if *arg == text(dir.path()) { text(other.path()) } else { arg }));
        let ended = utl(args);
        assert_eq!(ended.code, Some(1));
        let error = ended.error();
        assert!(error.contains(text(&db)) && error.contains("is locked by another process"), "{error}");
        assert!(error.contains("stop the "), "{error}");
    }
    assert!(names(other.path()).is_empty());
    let contents = member.contents();
    member.stop();
    assert_eq!(Member::lockgate(&data, &[]).contents(), contents);
}

#[test]
fn defrag_shrinks_the_file_of_a_stopped_member() {
    let dir = tempdir();
    let data = dir.path().join("data");
    let member = Member::lockgate(&data, &[]);
    let value = "v".repeat(100_000);
    (0..40).for_each(|_| member.put("large", &value));
    member.fill();
    let (contents, hash) = (member.contents(), member.hash_kv(0));
    member.stop();
    let db = data.join("member/snap/db");
    let before = fs::metadata(&db).unwrap().len();
    let ended = utl(["defrag", "--data-dir", text(&data)]);
    assert!(ended.stderr.contains("finished defragmenting directory"), "{}", ended.stderr);
    assert_eq!(ended.ok(), "");
    let after = fs::metadata(&db).unwrap().len();
    assert!(after * 2 < before, "{before} to {after} bytes");
    assert_eq!(utl(["hashkv", "--data-dir", text(&data)]).ok(), hash);
    assert_eq!(Member::lockgate(&data, &[]).contents(), contents);
}

#[test]
fn damaged_pages_are_named() {
    let taken = take();
    let bytes = fs::read(&taken.file).unwrap().len() as u64;
    let file = fs::OpenOptions::new().write(true).open(&taken.file).unwrap();
    for page in 2..bytes / 4096 {
        file.write_all_at(&[0xff; 2], page * 4096 + 8).unwrap();
    }
    for command in [&["snapshot", "status"][..], &["hashkv"]] {
        let ended = utl(command.iter().copied().chain([text(&taken.file)]));
        assert_eq!(ended.code, Some(1));
        let error = ended.error();
        assert!(error.contains("page ") || error.contains("pages"), "{error}");
    }
}

#[test]
fn the_log_of_several_members_has_an_addition_for_each() {
    let taken = take();
    let data = taken.dir.path().join("again");
    let urls = ["a=http://127.0.0.1:1", "b=http://127.0.0.1:2", "c=http://127.0.0.1:3"].join(",");
    let args = ["snapshot", "restore", text(&taken.file), "--data-dir", text(&data), "--name", "b"];
    let flags = ["--initial-cluster", &urls, "--initial-advertise-peer-urls", "http://127.0.0.1:2"];
    utl(args.into_iter().chain(flags)).ok();
    let wal = data.join("member/wal");
    let at = Wal::valid_snapshots(&wal).unwrap().pop().unwrap();
    assert_eq!((at.index(), at.term()), (3, 1));
    let voters = at.conf_state.unwrap().voters;
    assert_eq!(voters.len(), 3);
    assert!(voters.is_sorted());
    let all = Wal::read(&wal, &Default::default()).unwrap();
    let state = all.hard_state;
    assert_eq!((state.term(), state.vote(), state.commit()), (1, voters[0], 3));
    assert_eq!(
        all.entries.iter().map(|entry| (entry.term(), entry.index())).collect::<Vec<_>>(),
        [(1, 1), (1, 2), (1, 3)]
    );
    let snap = wal::snapfile::load_newest(&data.join("member/snap"), &[at_record(3, 1)]).unwrap();
    assert_eq!(snap.metadata.unwrap().conf_state.unwrap().voters, voters);
}

fn at_record(index: u64, term: u64) -> proto::walpb::Snapshot {
    proto::walpb::Snapshot { index: Some(index), term: Some(term), conf_state: None }
}
