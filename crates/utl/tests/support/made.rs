//! Data dirs made without a server: any log over any database.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use node::DataDir;
use prost::Message;
use proto::{
    Version,
    etcdserverpb::{InternalRaftRequest, PutRequest, Request, RequestHeader},
    raftpb::{ConfChange, ConfChangeType, Entry, EntryType, HardState},
    walpb,
};
use storage::{Backend, Options, schema};
use wal::Wal;

pub(crate) const MEMBER: u64 = 7;

/// A dir whose log is `entries`, of which the first `commit` are committed, over a new database.
pub(crate) fn dir(root: &Path, wal: Option<PathBuf>, entries: &[Entry], commit: u64) -> DataDir {
    let dir = DataDir::new(root, wal);
    fs::create_dir_all(dir.snap()).unwrap();
    let metadata = wal::Metadata { node_id: MEMBER, cluster_id: 9 };
    let mut log = Wal::create(&dir.wal(), &metadata.encode(), wal::Options::default()).unwrap();
    let state = HardState { term: Some(1), vote: Some(MEMBER), commit: Some(commit) };
    log.save(Some(&state), entries).unwrap();
    log.close().unwrap();
    Backend::open(&dir.db(), Options::default()).unwrap().close().unwrap();
    dir
}

/// Appends entries that are not known to be committed to a log.
pub(crate) fn append(dir: &DataDir, entries: &[Entry]) {
    let snapshots = Wal::valid_snapshots(&dir.wal()).unwrap();
    let at: walpb::Snapshot = snapshots.into_iter().max_by_key(walpb::Snapshot::index).unwrap();
    let (mut log, read) = Wal::open(&dir.wal(), &at, wal::Options::default()).unwrap();
    let (last, term) = read.entries.last().map_or((at.index(), at.term()), |e| (e.index(), e.term()));
    let entries: Vec<_> = (last + 1..)
        .zip(entries)
        .map(|(index, entry)| Entry { index: Some(index), term: Some(term), ..entry.clone() })
        .collect();
    log.save(None, &entries).unwrap();
    log.close().unwrap();
}

/// The addition of the member, the first entry of every log.
pub(crate) fn first() -> Entry {
    let record =
        schema::MemberRecord { id: MEMBER, peer_urls: vec!["http://127.0.0.1:2380".into()], ..Default::default() };
    let change = ConfChange {
        id: Some(0),
        r#type: Some(ConfChangeType::ConfChangeAddNode as i32),
        node_id: Some(MEMBER),
        context: Some(record.to_json().into()),
    };
    Entry {
        index: Some(1),
        term: Some(1),
        r#type: Some(EntryType::EntryConfChange as i32),
        data: Some(change.encode_to_vec().into()),
    }
}

pub(crate) fn request(index: u64, request: InternalRaftRequest) -> Entry {
    let header = Some(RequestHeader { id: index, ..Default::default() });
    raw(index, InternalRaftRequest { header, ..request }.encode_to_vec())
}

pub(crate) fn raw(index: u64, data: Vec<u8>) -> Entry {
    Entry { index: Some(index), term: Some(1), data: Some(data.into()), ..Default::default() }
}

pub(crate) fn put(index: u64, key: &str) -> Entry {
    let put = PutRequest { key: key.to_owned().into(), value: "v".into(), ..Default::default() };
    request(index, InternalRaftRequest { put: Some(put), ..Default::default() })
}

pub(crate) fn v2_put(index: u64, path: &str, val: &str) -> Entry {
    let request = Request {
        id: Some(index),
        method: Some("PUT".into()),
        path: Some(path.into()),
        val: Some(val.into()),
        ..Default::default()
    };
    raw(index, request.encode_to_vec())
}

/// The first entries that etcd 3.5 writes: members publish themselves by the v2 API.
pub(crate) fn log_of_3_5() -> Vec<Entry> {
    vec![
        first(),
        raw(2, Vec::new()),
        v2_put(3, "/0/members/7/attributes", r#"{"name":"m1","clientURLs":["http://127.0.0.1:2379"]}"#),
        v2_put(4, "/0/version", "3.5.0"),
        put(5, "a"),
        put(6, "b"),
    ]
}

pub(crate) fn versions(dir: &DataDir) -> (Option<Version>, Option<Version>) {
    let file = Backend::open_read_only(&dir.db(), None).unwrap();
    (schema::meta::storage_version(&file.view()).unwrap(), schema::cluster::version(&file.view()).unwrap())
}

/// Every file below a directory, with its bytes.
pub(crate) fn bytes(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else {
                // Logs are allocated in advance; their entries are at the beginning.
                let mut bytes = fs::read(entry.path()).unwrap();
                bytes.truncate(1 << 20);
                found.insert(entry.path(), bytes);
            }
        }
    }
    found
}

/// Copies a directory tree.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
