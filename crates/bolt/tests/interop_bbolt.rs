//! Files going back and forth between this engine and Go's `bbolt` tool.

use crate::common;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use bolt::{Db, Error, Options};
use common::{Model, assert_sound, contents, go_check, open, options};
use harness::peer;
use random::Random;

fn bbolt(args: &[&str]) -> Option<String> {
    let out = Command::new(peer("bbolt-1.5.0", "bbolt")?).args(args).output().expect("run bbolt");
    assert!(out.status.success(), "bbolt {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// A file made by Go's own benchmark, which leaves free pages and a stored free list.
fn bench(dir: &Path, mode: &str, page_size: &str) -> Option<PathBuf> {
    let path = dir.join(format!("{mode}-{page_size}"));
    let sizes = ["--count", "3000", "--batch-size", "300", "--page-size", page_size, "--value-size", "70"];
    let args = ["bench", "--work", "--read-mode", "seq", "--write-mode", mode, "--path", text(&path)];
    bbolt(&[&args[..], &sizes[..]].concat())?;
    Some(path)
}

#[test]
fn files_of_go_are_read_and_written_on() {
    let dir = harness::tempdir();
    for (mode, page_size) in [("seq", "4096"), ("rnd", "4096"), ("rnd", "16384")] {
        let Some(path) = bench(dir.path(), mode, page_size) else { return };
        let db = open(&path);
        assert_sound(&db.begin_read());
        let mut model = contents(&db.begin_read());
        let name = model.keys().next().expect("a bucket").clone();
        assert_eq!(model[&name].len(), 3000);
        let mut rng = Random::new(5);
        for _ in 0..10 {
            work(&db, &name, model.get_mut(&name).expect("bucket"), &mut rng);
        }
        assert!(contents(&db.begin_read()) == model);
        drop(db);
        go_check(&path);
        assert!(contents(&open(&path).begin_read()) == model);
    }
}

fn work(db: &Db, name: &[u8], pairs: &mut std::collections::BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut Random) {
    let mut tx = db.begin_write().expect("begin");
    for _ in 0..200 {
        let key = rng.bytes(8);
        match pairs.range(key.clone()..).next().map(|(key, _)| key.clone()).filter(|_| rng.one_in(2)) {
            Some(key) => {
                assert!(tx.delete(name, &key).expect("delete"));
                pairs.remove(&key);
            }
            None => {
                let value = rng.bytes(300);
                tx.put(name, &key, &value).expect("put");
                pairs.insert(key, value);
            }
        }
    }
    tx.commit().expect("commit");
}

#[test]
fn go_copies_our_files_to_the_same_contents() {
    let dir = harness::tempdir();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    let (db, mut rng, mut model) = (open(&ours), Random::new(8), Model::new());
    let mut tx = db.begin_write().expect("begin");
    for i in 0..30u64 {
        let name = format!("bucket {i}").into_bytes();
        let mut bucket = tx.create_bucket_if_missing(&name).expect("create");
        let pairs = model.entry(name).or_default();
        for _ in 0..i * i {
            let len = rng.below(if i == 29 { 9000 } else { 60 }) as usize;
            let (key, value) = (rng.bytes(9), rng.bytes(len));
            bucket.put(&key, &value).expect("put");
            pairs.insert(key, value);
        }
    }
    tx.commit().expect("commit");
    drop(db);
    if bbolt(&["compact", "-o", text(&theirs), text(&ours)]).is_none() {
        return;
    }
    // Go wrote inline buckets and a stored free list here.
    let copied = open(&theirs);
    assert_sound(&copied.begin_read());
    assert!(contents(&copied.begin_read()) == model);
    // And what both tools say about one file agrees.
    let names = bbolt(&["buckets", text(&ours)]).expect("the tool is there");
    assert_eq!(
        names.lines().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>(),
        open(&ours).begin_read().buckets().expect("names")
    );
    let pages = bbolt(&["pages", text(&ours)]).expect("the tool is there");
    let free = pages.lines().filter(|line| line.contains(" free ")).count() as u64;
    assert_eq!(free, open(&ours).stats().free_pages, "{pages}");
}

#[test]
fn nested_buckets_are_read_kept_and_not_written() {
    let dir = harness::tempdir();
    let Some(path) = bench(dir.path(), "seq-nest", "4096") else { return };
    let db = open(&path);
    let view = db.begin_read();
    assert_sound(&view);
    let name = view.buckets().expect("names").remove(0);
    let outer = view.bucket(&name).expect("read").expect("bucket");
    let mut cursor = outer.cursor();
    let (nested, value) = cursor.first().expect("first").expect("an item");
    assert!(cursor.is_bucket() && value.is_empty());
    assert_eq!(outer.get(nested).expect("get"), None);
    assert_eq!(outer.iter().count(), 0, "all items are buckets");
    let inner = outer.bucket(nested).expect("read").expect("nested");
    assert_eq!(inner.iter().filter(Result::is_ok).count(), 300);
    let nested = nested.to_vec();
    let to = dir.path().join("compact");
    let refused = bolt::compact(&view, &to, options(), 1 << 20, &mut |_| {});
    assert!(matches!(refused, Err(Error::IsBucket { .. })));

    let mut tx = db.begin_write().expect("begin");
    assert!(matches!(tx.put(&name, &nested, b"v"), Err(Error::IsBucket { .. })));
    assert!(matches!(tx.delete(&name, &nested), Err(Error::IsBucket { .. })));
    (0..500u64).for_each(|i| tx.put(&name, format!("plain {i}").as_bytes(), &[1; 50]).expect("put"));
    tx.commit().expect("commit");
    assert_sound(&db.begin_read());
    drop(view);
    drop(db);
    go_check(&path);

    let db = Db::open(&path, Options { ..options() }).expect("reopen");
    let view = db.begin_read();
    let outer = view.bucket(&name).expect("read").expect("bucket");
    assert_eq!(outer.iter().count(), 500);
    assert_eq!(outer.bucket(&nested).expect("read").expect("nested").iter().count(), 300);
    drop(view);
    let mut tx = db.begin_write().expect("begin");
    assert!(tx.delete_bucket(&name).expect("delete"));
    tx.commit().expect("commit");
    drop(db.begin_write().expect("begin"));
    assert_eq!(db.stats().pages - db.stats().free_pages, 3, "nested buckets went with their parent");
    drop(db);
    go_check(&path);
}
