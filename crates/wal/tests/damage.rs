//! A log cut short at every byte, and with every bit flipped: the whole records before a tear are read, and damage is
//! an error that names its place, never a panic and never a shorter log.

use crate::support;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use memdisk::MemDisk;
use proptest::prelude::*;
use proto::raftpb::Entry;
use support::{entry, new_disk, origin, snapshot, state};
use wal::{Error, Options, Wal};

const OPTIONS: Options = Options { segment_bytes: 4096, no_sync: false };

fn dir() -> &'static Path {
    Path::new("/data/wal")
}

/// Two segments, the second with all kinds of records. The entries, and the path of the last segment.
fn log() -> (MemDisk, Vec<Entry>, PathBuf) {
    let disk = new_disk();
    let mut wal = Wal::create_on(Arc::new(disk.clone()), dir(), b"\x08\x07\x10\x09", OPTIONS).unwrap();
    let mut entries = Vec::new();
    let mut index = 0;
    let mut after_cut = 0;
    while after_cut < 14 {
        index += 1;
        // Sizes that put records across sectors at many offsets; the empty one is what a new leader writes.
        let size = [30, 0, 700, 5, 130, 64, 9][index as usize % 7];
        let data: Vec<u8> = (0..size).map(|at| (at * 7 + index * 31) as u8 | 1).collect();
        entries.push(entry(1 + index / 9, index, data));
        let saved = wal.save(Some(&state(1 + index / 9, 7, index - 1)), &entries[index as usize - 1..]).unwrap();
        after_cut += usize::from(saved.cut || after_cut > 0);
        if after_cut == 7 {
            wal.save_snapshot(&snapshot(index - 1, 1 + index / 9)).unwrap();
        }
    }
    wal.close().unwrap();
    let last = disk.paths().into_iter().rfind(|path| path.extension().is_some_and(|e| e == "wal")).unwrap();
    (disk, entries, last)
}

/// Offset after each record, and whether it is an entry.
fn boundaries(bytes: &[u8]) -> Vec<(usize, bool)> {
    let mut at = 0;
    let mut found = Vec::new();
    while let Some(word) = bytes.get(at..at + 8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).filter(|&w| w != 0)
    {
        let kind = bytes[at + 9];
        at += 8 + ((word & (u64::MAX >> 8)) as usize).next_multiple_of(8);
        found.push((at, kind == 2));
    }
    found
}

/// How many entries of the log are whole if the last segment ends at `cut`; `None` if not even its header is.
fn whole_entries(total: usize, bounds: &[(usize, bool)], cut: usize) -> Option<usize> {
    let lost = bounds.iter().filter(|&&(end, is_entry)| is_entry && end > cut).count();
    (bounds[1].0 <= cut).then_some(total - lost)
}

fn with(disk: &MemDisk, path: &Path, bytes: Vec<u8>) -> MemDisk {
    let copy = disk.fork();
    copy.put(path, bytes);
    copy
}

fn check_prefix(disk: &MemDisk, entries: &[Entry], whole: Option<usize>, what: &str) {
    let read = Wal::read_on(disk, dir(), &origin());
    let Some(whole) = whole else {
        assert!(read.is_err(), "{what}: a segment without header was read");
        return;
    };
    assert_eq!(read.unwrap_or_else(|e| panic!("{what}: {e}")).entries, entries[..whole], "{what}");
}

#[test]
fn every_cut_leaves_the_whole_records_before_it() {
    let (disk, entries, path) = log();
    let bytes = disk.bytes(&path).unwrap();
    let bounds = boundaries(&bytes);
    let used = bounds.last().unwrap().0;
    for cut in 0..=used + 16 {
        let whole = whole_entries(entries.len(), &bounds, cut);
        let short = with(&disk, &path, bytes[..cut].to_vec());
        check_prefix(&short, &entries, whole, &format!("cut at {cut}"));
    }
}

#[test]
fn every_lost_tail_of_sectors_leaves_the_whole_records_before_it() {
    let (disk, entries, path) = log();
    let bytes = disk.bytes(&path).unwrap();
    let bounds = boundaries(&bytes);
    for cut in (512..bytes.len()).step_by(512) {
        let mut zeroed = bytes.clone();
        zeroed[cut..].fill(0);
        let whole = whole_entries(entries.len(), &bounds, cut);
        check_prefix(&with(&disk, &path, zeroed), &entries, whole, &format!("zeros from {cut}"));
    }
}

#[test]
fn a_repaired_log_goes_on() {
    let (disk, entries, path) = log();
    let bytes = disk.bytes(&path).unwrap();
    let bounds = boundaries(&bytes);
    let used = bounds.last().unwrap().0;
    for cut in (bounds[1].0..used).step_by(13) {
        let whole = whole_entries(entries.len(), &bounds, cut).unwrap();
        let short = with(&disk, &path, bytes[..cut].to_vec());
        let (mut wal, all) = Wal::open_on(Arc::new(short.clone()), dir(), &origin(), OPTIONS).unwrap();
        assert_eq!(all.entries, entries[..whole]);
        let broken = PathBuf::from(format!("{}.broken", path.display()));
        let clean = cut == 0 || bounds.iter().any(|&(end, _)| end == cut);
        assert_eq!(all.torn.is_none(), clean, "cut at {cut}");
        if !clean {
            assert_eq!(short.bytes(&broken).unwrap(), bytes[..cut], "the copy holds what was there");
        }
        let next = entry(9, whole as u64 + 1, "next");
        wal.save(Some(&state(9, 7, 0).max_commit(&all.hard_state)), std::slice::from_ref(&next)).unwrap();
        drop(wal);
        let again = Wal::read_on(&short, dir(), &origin()).unwrap();
        assert_eq!(again.entries.last(), Some(&next));
        assert_eq!(again.entries.len(), whole + 1);
    }
}

trait MaxCommit {
    fn max_commit(self, other: &Self) -> Self;
}

impl MaxCommit for proto::raftpb::HardState {
    fn max_commit(mut self, other: &Self) -> Self {
        self.commit = self.commit.max(other.commit);
        self
    }
}

/// Records of an unsynced batch may survive behind a sector that did not. They are gone after opening.
#[test]
fn leftovers_behind_a_lost_sector_are_cleared() {
    let (disk, entries, path) = log();
    let bytes = disk.bytes(&path).unwrap();
    let bounds = boundaries(&bytes);
    let used = bounds.last().unwrap().0;
    for lost in (512..used / 512 * 512).step_by(512) {
        let mut torn = bytes.clone();
        torn[lost..lost + 512].fill(0);
        let torn = with(&disk, &path, torn);
        let whole = whole_entries(entries.len(), &bounds, lost).unwrap();
        check_prefix(&torn, &entries, Some(whole), &format!("lost sector at {lost}"));
        let (wal, all) = Wal::open_on(Arc::new(torn.clone()), dir(), &origin(), OPTIONS).unwrap();
        drop(wal);
        let end = bounds.iter().map(|&(end, _)| end).filter(|&end| end <= lost).max().unwrap();
        assert!(torn.bytes(&path).unwrap()[end..].iter().all(|&byte| byte == 0), "lost sector at {lost}");
        assert_eq!(all.entries.len(), whole);
    }
}

#[test]
fn every_flipped_bit_is_an_error_that_names_its_place() {
    let (disk, _, last) = log();
    for path in disk.paths().into_iter().filter(|path| path.extension().is_some_and(|e| e == "wal")) {
        let bytes = disk.bytes(&path).unwrap();
        let bounds = boundaries(&bytes);
        let used = bounds.last().unwrap().0;
        for bit in 0..used * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let flipped = with(&disk, &path, flipped);
            let error = match Wal::read_on(&flipped, dir(), &origin()) {
                Err(error) => error,
                Ok(all) => panic!("bit {bit} of {} flipped unseen: {:?}", path.display(), all.torn),
            };
            // A type that turned into another may show only in a later record, and a lost end in the next segment.
            let text = error.to_string();
            let places_allowed = [path.to_str().unwrap(), last.to_str().unwrap()];
            assert!(places_allowed.iter().any(|path| text.contains(path)), "bit {bit}: {text}");
            assert!(text.contains("at position: ") && text.contains("record "), "bit {bit}: {text}");
            if bit % 23 == 0 {
                let before = flipped.bytes(&last).unwrap();
                assert!(Wal::open_on(Arc::new(flipped.clone()), dir(), &origin(), OPTIONS).is_err());
                assert_eq!(flipped.bytes(&last).unwrap(), before, "a refused log is left as it is");
            }
        }
    }
}

#[test]
fn committed_entries_that_are_gone_are_missed() {
    let disk = new_disk();
    let mut wal = Wal::create_on(Arc::new(disk.clone()), dir(), b"", OPTIONS).unwrap();
    wal.save(Some(&state(1, 7, 5)), &[entry(1, 1, "only")]).unwrap();
    drop(wal);
    let error = Wal::open_on(Arc::new(disk), dir(), &origin(), OPTIONS).unwrap_err();
    assert!(matches!(error, Error::CommitBeyondLog { commit: 5, last: 1, .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bytes that nobody wrote: an answer or an error, no panic and no endless allocation.
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let disk = new_disk();
        disk.put(&dir().join("0000000000000000-0000000000000000.wal"), bytes);
        prop_assert!(Wal::read_on(&disk, dir(), &origin()).is_err());
    }

    /// Runs of a real log overwritten: whatever is read is a prefix of what was saved.
    #[test]
    fn overwritten_runs_never_yield_other_entries(
        at in 0..4000usize,
        run in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 1..1200),
    ) {
        let (disk, entries, path) = log();
        let mut bytes = disk.bytes(&path).unwrap();
        let at = at.min(bytes.len() - 1);
        let end = (at + run.len()).min(bytes.len());
        bytes[at..end].copy_from_slice(&run[..end - at]);
        if let Ok(all) = Wal::read_on(&with(&disk, &path, bytes), dir(), &origin()) {
            prop_assert!(entries.starts_with(&all.entries));
        }
    }
}
