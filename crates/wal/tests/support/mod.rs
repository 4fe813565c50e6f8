//! Builders shared by the tests of this crate.
#![allow(dead_code, reason = "every test file uses another part")]

use bytes::Bytes;
use memdisk::{Cut, MemDisk};
use proto::{
    raftpb::{ConfState, Entry, HardState},
    walpb,
};

pub(crate) fn entry(term: u64, index: u64, data: impl Into<Bytes>) -> Entry {
    let data = data.into();
    Entry { term: Some(term), index: Some(index), r#type: None, data: (!data.is_empty()).then_some(data) }
}

pub(crate) fn state(term: u64, vote: u64, commit: u64) -> HardState {
    HardState { term: Some(term), vote: Some(vote), commit: Some(commit) }
}

pub(crate) fn snapshot(index: u64, term: u64) -> walpb::Snapshot {
    let conf_state = ConfState { voters: vec![1], ..ConfState::default() };
    walpb::Snapshot { index: Some(index), term: Some(term), conf_state: Some(conf_state) }
}

/// The snapshot that every new log begins with.
pub(crate) fn origin() -> walpb::Snapshot {
    walpb::Snapshot { index: Some(0), term: Some(0), conf_state: None }
}

pub(crate) fn indexes(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(Entry::index).collect()
}

/// The worst that a disk can do.
pub(crate) fn new_disk() -> MemDisk {
    MemDisk::new(Default::default(), Cut::MayReturn)
}

/// The operation after `count` more writes, syncs, renames and truncations fails, and all after it; a failing write leaves
/// `partial` of its bytes.
pub(crate) fn fail_after(disk: &MemDisk, count: u64, partial: usize) {
    disk.power().tear_at(partial);
    disk.power().cut_after(count + 1);
}

/// The disk after a power cut: of each unsynced sector, `keep` says whether it was written.
pub(crate) fn after_crash(disk: &MemDisk, keep: impl FnMut() -> bool) -> MemDisk {
    let after = disk.fork();
    after.crash(keep);
    after
}
