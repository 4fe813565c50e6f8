//! Failures made at the backend's failpoints: what is told, and what is left in the file.
//!
//! Needs `cargo test -p storage --features failpoint/failpoints`; says so and passes otherwise.

use std::{path::Path, sync::Mutex};

use storage::{Backend, Bucket, Options, Read};

/// The points are the process's, so these tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn enabled() -> bool {
    if !failpoint::ENABLED {
        eprintln!("SKIPPED: failpoints are not compiled in; add --features failpoint/failpoints");
    }
    failpoint::ENABLED
}

fn open(path: &Path) -> Backend {
    Backend::open(path, Options::default()).expect("opens")
}

fn put(backend: &Backend, key: &'static str) -> Result<(), storage::Failure> {
    let mut batch = backend.write();
    batch.put(Bucket::Meta, key.as_bytes(), b"1".as_slice());
    batch.commit()
}

fn has(backend: &Backend, key: &str) -> bool {
    backend.view().get_with(Bucket::Meta, key.as_bytes(), |_| ()).is_some()
}

#[test]
fn a_commit_that_fails_before_its_meta_page_leaves_the_file_as_it_was() {
    if !enabled() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let dir = harness::tempdir();
    let path = dir.path().join("db");
    let backend = open(&path);
    put(&backend, "a").expect("commits");
    failpoint::enable("beforeCommit", "return").expect("a point");
    failpoint::enable("beforeWriteMetaError", "1*return(\"out of luck\")").expect("a point");
    let error = put(&backend, "b").expect_err("fails");
    let text = std::error::Error::source(&error).map_or(error.to_string(), |s| format!("{error}: {s}"));
    assert!(text.contains("meta page"), "{text}");
    // What fails once goes on failing: the state on disk is not known any more.
    put(&backend, "c").expect_err("fails");
    assert_eq!(failpoint::status("beforeCommit").expect("a point").1, 1);
    failpoint::disable("beforeCommit").expect("was set");
    drop(backend);
    let backend = open(&path);
    assert!(has(&backend, "a") && !has(&backend, "b"));
}

#[test]
fn a_defragmentation_that_fails_changes_nothing() {
    if !enabled() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let dir = harness::tempdir();
    let backend = open(&dir.path().join("db"));
    put(&backend, "a").expect("commits");
    for name in ["defragdbFail", "defragOpenFileError"] {
        failpoint::enable(name, "1*return(\"no\")").expect("a point");
        backend.defrag().expect_err("fails");
        put(&backend, name).expect("commits");
    }
    failpoint::enable("defragBeforeRename", "sleep(1)").expect("a point");
    backend.defrag().expect("goes through");
    assert_eq!(failpoint::status("defragBeforeRename").expect("a point").1, 1);
    assert!(has(&backend, "a") && has(&backend, "defragdbFail"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("the dir").count(), 1, "no copy is left behind");
}
