//! Database files of any content: pages of the engine, and rows of the schema on sound pages.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use bolt::{Db, Options};
use bytes::Bytes;
use fuzz::{damage, pieces};
use storage::{Backend, Bucket, schema};

/// A small file with what etcd keeps: keys of several pages, and one row or two in the other buckets.
static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let db = Db::open(&path, Options { page_size: Some(4096), ..options() }).expect("open");
    let mut tx = db.begin_write().expect("begin");
    for bucket in Bucket::ALL {
        tx.create_bucket_if_missing(bucket.name().as_bytes()).expect("bucket").put(b"k", b"v").expect("put");
    }
    let mut keys = tx.create_bucket_if_missing(b"key").expect("bucket");
    for i in 2..60u64 {
        let key = [&i.to_be_bytes()[..], b"_", &[0; 8]].concat();
        keys.put(&key, &vec![i as u8; 40 * i as usize]).expect("put");
    }
    tx.commit().expect("commit");
    drop(db);
    fs::read(&path).expect("read")
});

fn options() -> Options {
    Options { mmap_bytes: 1 << 24, ..Options::default() }
}

struct File {
    _dir: harness::TempDir,
    path: PathBuf,
}

fn file(bytes: &[u8]) -> File {
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    fs::write(&path, bytes).expect("write");
    File { _dir: dir, path }
}

/// Opens, checks and walks; then, if there was nothing to complain about, writes.
fn exercise(path: &Path) {
    let before = fs::read(path).expect("read");
    let Ok(db) = Db::open(path, Options { read_only: true, create: false, ..options() }) else { return };
    let view = db.begin_read();
    let problems = view.check();
    for name in view.buckets().unwrap_or_default() {
        let Ok(Some(bucket)) = view.bucket(&name) else { continue };
        bucket.iter().take(2000).take_while(Result::is_ok).for_each(drop);
    }
    drop((view, db));
    assert_eq!(before, fs::read(path).expect("read"), "reading changes nothing");
    if !problems.is_empty() {
        return;
    }
    let Ok(db) = Db::open(path, Options { create: false, ..options() }) else { return };
    let Ok(mut tx) = db.begin_write() else { return };
    if let Ok(mut bucket) = tx.create_bucket_if_missing(b"key") {
        let _ = bucket.put(b"new", b"value");
    }
    if tx.commit().is_ok() {
        assert_eq!(db.begin_read().check().len(), 0, "a sound file stays sound");
    }
}

#[test]
fn file_of_any_bytes() {
    bolero::check!().with_iterations(1000).for_each(|input: &[u8]| {
        exercise(&file(input).path);
        // Large enough to hold two meta pages.
        exercise(&file(&[input, &vec![0; 16384]].concat()).path);
    });
}

#[test]
fn damaged_file() {
    bolero::check!().with_iterations(1500).with_max_len(64).for_each(|input: &[u8]| {
        let Some((seal, script)) = input.split_first() else { return };
        let mut bytes = damage(&FILE, script);
        if seal % 2 == 0 {
            seal_metas(&mut bytes);
        }
        exercise(&file(&bytes).path);
    });
}

/// Gives both meta pages right checksums, so that what they say is believed.
fn seal_metas(bytes: &mut [u8]) {
    for page in [0, 4096] {
        let Some(meta) = bytes.get_mut(page + 16..page + 80) else { return };
        let sum = meta[..56]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        meta[56..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Sound pages with rows that nobody writes: everything that is read at start and by the offline tool.
#[test]
fn strange_rows() {
    bolero::check!().with_iterations(400).for_each(|input: &[u8]| {
        let file = file(&FILE);
        let db = Db::open(&file.path, options()).expect("open");
        let mut tx = db.begin_write().expect("begin");
        for row in pieces(input) {
            let [bucket, key_len, rest @ ..] = row else { continue };
            let bucket = Bucket::ALL[*bucket as usize % Bucket::ALL.len()];
            let (key, value) = rest.split_at(rest.len().min(*key_len as usize % 24));
            let key = known_key(bucket, *key_len).unwrap_or(key);
            if let Ok(mut bucket) = tx.create_bucket_if_missing(bucket.name().as_bytes()) {
                let _ = bucket.put(key, value);
            }
        }
        tx.commit().expect("commit");
        drop(db);
        load(&file.path);
    });
}

/// Keys that are looked up by name, for half of the rows.
fn known_key(bucket: Bucket, pick: u8) -> Option<&'static [u8]> {
    const META: [&[u8]; 6] =
        [b"consistent_index", b"term", b"confState", b"storageVersion", b"scheduledCompactRev", b"finishedCompactRev"];
    match bucket {
        Bucket::Meta if pick < 200 => Some(META[pick as usize % META.len()]),
        Bucket::Cluster if pick < 200 => Some([&b"clusterVersion"[..], b"downgrade"][pick as usize % 2]),
        Bucket::Auth if pick < 200 => Some([&b"authEnabled"[..], b"authRevision"][pick as usize % 2]),
        _ => None,
    }
}

fn load(path: &Path) {
    let options = storage::Options { map_bytes: Some(1 << 24), unsafe_no_sync: true, ..Default::default() };
    let backend = match Backend::open(path, options) {
        Ok(backend) => backend,
        Err(_) => return,
    };
    let view = backend.view();
    let _ = schema::version::detect(&view).map(|found| schema::version::judge(found, proto::Version::new(3, 8)));
    let _ = (schema::meta::consistent(&view), schema::meta::conf_state(&view), schema::auth::enabled(&view));
    let _ = (schema::member::all(&view), schema::member::removed(&view), schema::alarm::all(&view));
    let _ = (schema::cluster::version(&view), schema::cluster::downgrade(&view));
    let _ = (schema::auth::users(&view), schema::auth::roles(&view), schema::auth::revision(&view));
    for bucket in Bucket::ALL {
        schema::dump::bucket(&view, bucket, &mut |line| {
            let _ = line;
            std::ops::ControlFlow::Continue(())
        });
    }
    let lessor = lease::Lessor::load(&view, lease::Options::default());
    drop(view);
    let Ok(mut lessor) = lessor else { return };
    lessor.promote(Duration::ZERO, Duration::from_secs(1), true);
    lessor.take_expired(Duration::from_secs(1 << 40));
    let store = mvcc::Store::open(backend.clone(), mvcc::Options::default(), |id, key: &Bytes| lessor.attach(id, key));
    if let Ok(store) = store {
        let all = proto::etcdserverpb::RangeRequest {
            key: Bytes::from_static(b"\0"),
            range_end: Bytes::from_static(b"\0"),
            ..Default::default()
        };
        let _ = store.range(&all).map(|range| range.into_response());
        let _ = store.hash_kv(0);
        if let Some(mut job) = store.pending_compaction() {
            (0..100).take_while(|_| !job.step(&store, 100).done).for_each(drop);
        }
    }
    let _ = backend.hash();
    let _ = backend.close();
}
