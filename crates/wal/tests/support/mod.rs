//! Builders shared by the tests of this crate.
#![allow(dead_code, reason = "every test file uses another part")]

pub mod memdisk;
pub mod peers;

use bytes::Bytes;
use proto::{
    raftpb::{ConfState, Entry, HardState},
    walpb,
};

pub fn entry(term: u64, index: u64, data: impl Into<Bytes>) -> Entry {
    let data = data.into();
    Entry { term: Some(term), index: Some(index), r#type: None, data: (!data.is_empty()).then_some(data) }
}

pub fn state(term: u64, vote: u64, commit: u64) -> HardState {
    HardState { term: Some(term), vote: Some(vote), commit: Some(commit) }
}

pub fn snapshot(index: u64, term: u64) -> walpb::Snapshot {
    let conf_state = ConfState { voters: vec![1], ..ConfState::default() };
    walpb::Snapshot { index: Some(index), term: Some(term), conf_state: Some(conf_state) }
}

/// The snapshot that every new log begins with.
pub fn origin() -> walpb::Snapshot {
    walpb::Snapshot { index: Some(0), term: Some(0), conf_state: None }
}

pub fn indexes(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(Entry::index).collect()
}
