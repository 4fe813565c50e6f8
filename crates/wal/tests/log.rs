//! The log on real files: append, cut, reopen, lock, release, purge, and the errors a user meets.

use crate::support;

use std::{fs, path::Path};

use support::{entry, indexes, origin, snapshot, state};
use wal::{Error, Metadata, Options, Wal, purge};

const SMALL: Options = Options { segment_bytes: 2048, no_sync: false };

fn metadata() -> Vec<u8> {
    Metadata { node_id: 7, cluster_id: 9 }.encode().to_vec()
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".tmp"));
    names.sort();
    names
}

/// A log of `count` entries in several segments.
fn filled(dir: &Path, count: u64) -> Wal {
    let mut wal = Wal::create(dir, &metadata(), SMALL).unwrap();
    for index in 1..=count {
        wal.save(Some(&state(1, 7, index - 1)), &[entry(1, index, vec![index as u8; 100])]).unwrap();
    }
    wal
}

#[test]
fn a_new_log_is_empty() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    assert!(!Wal::exists(&dir));
    Wal::create(&dir, &metadata(), Options::default()).unwrap().close().unwrap();
    assert!(Wal::exists(&dir));
    assert!(!tmp.path().join("wal.tmp").exists());
    assert_eq!(files(&dir), ["0000000000000000-0000000000000000.wal"]);
    assert_eq!(fs::metadata(dir.join(&files(&dir)[0])).unwrap().len(), 64_000_000);
    let all = Wal::read(&dir, &origin()).unwrap();
    assert_eq!(all.metadata, metadata());
    assert!(all.entries.is_empty() && all.torn.is_none());
    assert_eq!(Wal::valid_snapshots(&dir).unwrap(), [origin()]);
    assert!(matches!(Wal::create(&dir, &metadata(), SMALL), Err(Error::Exists { .. })));
}

#[test]
fn create_destroys_no_foreign_file() {
    let tmp = harness::tempdir();
    fs::write(tmp.path().join("keep"), "me").unwrap();
    assert!(matches!(Wal::create(tmp.path(), &metadata(), SMALL), Err(Error::NotEmpty { .. })));
    assert_eq!(fs::read(tmp.path().join("keep")).unwrap(), b"me");
    fs::rename(tmp.path().join("keep"), tmp.path().join("0.tmp")).unwrap();
    Wal::create(tmp.path(), &metadata(), SMALL).unwrap();
}

#[test]
fn segments_are_cut_and_read_as_one() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    filled(&dir, 100).close().unwrap();
    let names = files(&dir);
    assert!(names.len() > 5, "{names:?}");
    assert!(names[1].starts_with("0000000000000001-"));
    for name in &names[..names.len() - 1] {
        let size = fs::metadata(dir.join(name)).unwrap().len();
        assert!((2048..2400).contains(&size), "{name} was not cut to its length: {size}");
    }
    let (wal, all) = Wal::open(&dir, &origin(), SMALL).unwrap();
    assert_eq!(indexes(&all.entries), (1..=100).collect::<Vec<_>>());
    assert_eq!(all.entries[49], entry(1, 50, vec![50; 100]));
    assert_eq!(all.hard_state, state(1, 7, 99));
    assert_eq!((all.metadata.to_vec(), wal.last_index()), (metadata(), 100));
    assert_eq!(Wal::read(&dir, &origin()).unwrap(), all, "reading takes no lock");
}

#[test]
fn appending_goes_on_after_reopening() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    filled(&dir, 3).close().unwrap();
    for index in 4..40 {
        let (mut wal, all) = Wal::open(&dir, &origin(), SMALL).unwrap();
        assert_eq!(all.entries.len() as u64, index - 1);
        wal.save(None, &[entry(2, index, "more")]).unwrap();
        wal.close().unwrap();
    }
    assert_eq!(Wal::read(&dir, &origin()).unwrap().entries.len(), 39);
}

#[test]
fn a_later_entry_replaces_the_tail() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), SMALL).unwrap();
    let old: Vec<_> = (1..=20).map(|index| entry(1, index, vec![1; 200])).collect();
    wal.save(Some(&state(1, 7, 5)), &old).unwrap();
    wal.save(Some(&state(2, 1, 11)), &[entry(2, 12, "a"), entry(2, 13, "b")]).unwrap();
    assert_eq!(wal.last_index(), 13);
    let refused = wal.save(None, &[entry(2, 15, "hole")]);
    assert!(matches!(refused, Err(Error::InvalidEntry { index: 15, last: 13, .. })));
    for bad in [Some(1), Some(3)] {
        let refused = wal.save(None, &[proto::raftpb::Entry { r#type: bad, ..entry(2, 14, "") }]);
        assert!(matches!(refused, Err(Error::InvalidEntry { index: 14, .. })));
    }
    for back in [state(1, 7, 12), state(2, 1, 10)] {
        assert!(matches!(wal.save(Some(&back), &[]), Err(Error::InvalidState { .. })));
    }
    drop(wal);
    let all = Wal::read(&dir, &origin()).unwrap();
    assert_eq!(indexes(&all.entries), (1..=13).collect::<Vec<_>>());
    assert_eq!(all.entries[11].term(), 2);
}

#[test]
fn only_what_must_be_is_synced() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), Options::default()).unwrap();
    assert!(wal.save(Some(&state(1, 0, 0)), &[]).unwrap().sync.is_some(), "a new term");
    assert!(wal.save(Some(&state(1, 7, 0)), &[]).unwrap().sync.is_some(), "a new vote");
    assert!(wal.save(None, &[entry(1, 1, "x")]).unwrap().sync.is_some(), "an entry");
    assert!(wal.save(Some(&state(1, 7, 1)), &[]).unwrap().sync.is_none(), "a new commit alone");
    assert!(wal.save(None, &[]).unwrap().sync.is_none(), "nothing");
    assert!(wal.save(Some(&Default::default()), &[]).unwrap().sync.is_none(), "an empty state");
    wal.close().unwrap();
    assert_eq!(Wal::read(&dir, &origin()).unwrap().hard_state, state(1, 7, 1), "close writes the rest");
}

#[test]
fn snapshots_release_and_purge() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = filled(&dir, 100);
    let count = files(&dir).len();
    wal.save_snapshot(&snapshot(60, 1)).unwrap();
    wal.save_snapshot(&snapshot(200, 1)).unwrap();
    assert!(matches!(wal.save_snapshot(&origin_at(5)), Err(Error::InvalidSnapshot { .. })));
    assert_eq!(purge(&dir, 0).unwrap().len(), 0, "all are locked");
    assert_eq!(Wal::valid_snapshots(&dir).unwrap(), [origin(), snapshot(60, 1)], "200 is not committed");
    wal.release_to(60).unwrap();
    let removed = purge(&dir, 2).unwrap();
    assert!(removed.len() > 2 && removed.len() < count - 2, "{removed:?}");
    drop(wal);

    let (wal, all) = Wal::open(&dir, &snapshot(60, 1), SMALL).unwrap();
    assert_eq!(indexes(&all.entries), (61..=100).collect::<Vec<_>>());
    assert_eq!(wal.last_index(), 200);
    drop(wal);
    let missing = Wal::open(&dir, &origin(), SMALL).unwrap_err();
    assert!(matches!(missing, Error::NoSegmentFor { index: 0, .. }), "{missing}");
    assert_eq!(purge(&dir, 1).unwrap().len() + 1, count - removed.len());
}

fn origin_at(index: u64) -> proto::walpb::Snapshot {
    proto::walpb::Snapshot { index: Some(index), ..origin() }
}

#[test]
fn one_writer_at_a_time() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let wal = filled(&dir, 30);
    let error = Wal::open(&dir, &origin(), SMALL).unwrap_err();
    assert!(error.to_string().starts_with("wal: file already locked: "), "{error}");
    drop(wal);
    Wal::open(&dir, &origin(), SMALL).unwrap();
}

#[test]
fn errors_say_what_to_do() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    filled(&dir, 100).close().unwrap();
    let error = |result: Result<_, Error>| result.map(|_: wal::ReadAll| ()).unwrap_err().to_string();

    assert!(error(Wal::read(&dir, &snapshot(5, 1))).starts_with("wal: snapshot not found"));
    assert!(
        error(Wal::read(&dir, &proto::walpb::Snapshot { term: Some(3), ..origin() }))
            .starts_with("wal: snapshot mismatch")
    );
    assert!(error(Wal::read(tmp.path(), &origin())).starts_with("wal: file not found"));

    let other = tmp.path().join("other");
    Wal::create(&other, b"\x08\x01\x10\x01", SMALL).unwrap().close().unwrap();
    fs::rename(other.join(&files(&other)[0]), dir.join(&files(&dir)[0])).unwrap();
    assert!(error(Wal::read(&dir, &origin())).contains("crc mismatch"));

    fs::remove_file(dir.join(&files(&dir)[2])).unwrap();
    assert!(
        error(Wal::read(&dir, &origin())).starts_with("wal: file sequence numbers (starting from 0) do not increase")
    );
}

#[test]
fn a_missing_middle_is_not_passed_over() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    filled(&dir, 100).close().unwrap();
    let names = files(&dir);
    let path = dir.join(&names[2]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 40]).unwrap();
    let error = Wal::open(&dir, &origin(), SMALL).unwrap_err();
    assert!(matches!(error, Error::TornMiddle { .. }), "{error}");
    assert!(error.to_string().contains(&names[2]), "{error}");
}

#[test]
fn large_entries_spill_in_pages() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), Options::default()).unwrap();
    let entries: Vec<_> = (1..=5).map(|i| entry(1, i, vec![i as u8; 1_500_000 + i as usize])).collect();
    let saved = wal.save(Some(&state(1, 7, 0)), &entries).unwrap();
    assert!(saved.sync.is_some());
    // All of it is told, also what was written before the end.
    assert!((5 * 1_500_000..5 * 1_500_000 + 4096).contains(&saved.bytes), "{}", saved.bytes);
    drop(wal);
    assert_eq!(Wal::open(&dir, &origin(), Options::default()).unwrap().1.entries, entries);
}

/// A leader of a later term may send an entry of an earlier one: only along the log do terms never fall.
#[test]
fn what_was_overwritten_is_not_read_after_a_snapshot() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), SMALL).unwrap();
    wal.save(Some(&state(2, 7, 0)), &[1, 2, 3, 4, 5].map(|i| entry(2, i, vec![1]))).unwrap();
    // Another leader has other entries from 2 on, and the file covers them.
    wal.save(Some(&state(3, 7, 3)), &[2, 3].map(|i| entry(3, i, vec![2]))).unwrap();
    wal.save_snapshot(&snapshot(3, 3)).unwrap();
    wal.close().unwrap();
    let (mut wal, all) = Wal::open(&dir, &snapshot(3, 3), SMALL).unwrap();
    assert!(all.entries.is_empty(), "{:?}", indexes(&all.entries));
    wal.save(None, &[entry(3, 4, vec![3])]).unwrap();
    wal.close().unwrap();
    assert_eq!(Wal::read(&dir, &snapshot(3, 3)).unwrap().entries, [entry(3, 4, vec![3])]);
}

/// The entries after a received snapshot's index are of another log, unless they were written after it.
#[test]
fn a_received_snapshot_voids_the_entries_after_it() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), SMALL).unwrap();
    wal.save(Some(&state(2, 7, 0)), &[1, 2, 3, 4, 5].map(|i| entry(2, i, vec![1]))).unwrap();
    wal.save_snapshot(&snapshot(3, 4)).unwrap();
    wal.save(Some(&state(4, 7, 3)), &[]).unwrap();
    wal.close().unwrap();
    let (mut wal, all) = Wal::open(&dir, &snapshot(3, 4), SMALL).unwrap();
    assert!(all.entries.is_empty(), "{:?}", indexes(&all.entries));
    wal.save(None, &[entry(4, 4, vec![3])]).unwrap();
    wal.close().unwrap();
    assert_eq!(Wal::read(&dir, &snapshot(3, 4)).unwrap().entries, [entry(4, 4, vec![3])]);
}

#[test]
fn entries_one_at_a_time_are_those_that_were_not_replaced() {
    let tmp = harness::tempdir();
    let dir = tmp.path().join("wal");
    let mut wal = Wal::create(&dir, &metadata(), SMALL).unwrap();
    for index in 1..=30 {
        wal.save(Some(&state(1, 7, index.min(20))), &[entry(1, index, vec![index as u8; 100])]).unwrap();
    }
    // A later leader replaces the end, and another one does so again.
    wal.save(Some(&state(2, 7, 20)), &[entry(2, 25, vec![2; 50]), entry(2, 26, vec![2; 50])]).unwrap();
    wal.save(Some(&state(3, 7, 25)), &[entry(3, 26, vec![3; 50]), entry(3, 27, vec![3; 50])]).unwrap();
    // A member that is forced into a new cluster replaces entries by others of the same index and term.
    wal.save(None, &[entry(3, 27, vec![4; 50]), entry(3, 28, vec![4; 50])]).unwrap();
    wal.close().unwrap();
    let all = Wal::read(&dir, &origin()).unwrap();
    let (heads, places) = Wal::read_heads(&dir, &origin()).unwrap();
    assert!(heads.entries.iter().all(|entry| entry.data.is_none()));
    assert_eq!((heads.hard_state, indexes(&heads.entries)), (all.hard_state, indexes(&all.entries)));
    let mut seen = Vec::new();
    Wal::each_entry(&dir, &origin(), &places, |entry| {
        seen.push(entry);
        Ok::<_, Error>(())
    })
    .unwrap();
    assert_eq!(seen, all.entries);
    // Whoever visits may end it.
    let mut visited = 0;
    let ended = Wal::each_entry(&dir, &origin(), &places, |_| {
        visited += 1;
        Err(Error::FileNotFound { dir: dir.clone() })
    });
    assert!(matches!(ended, Err(Error::FileNotFound { .. })));
    assert_eq!(visited, 1);
    // A walk that does not find all entries is an error.
    fs::remove_file(dir.join(files(&dir).last().unwrap())).unwrap();
    let ended = Wal::each_entry(&dir, &origin(), &places, |_| Ok::<_, Error>(()));
    assert!(matches!(ended, Err(Error::Changed { .. })), "{ended:?}");
}
