//! Members whose files the tool works on, and calls of the tool.

pub(crate) mod made;
pub(crate) mod member;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use harness::{Output, run};
pub(crate) use member::Member;

pub(crate) fn utl(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    run(&lockgateutl(), args)
}

/// `snapshot restore` of a one-member cluster that [`Member`] starts on.
pub(crate) fn restore(program: &Path, snapshot: &Path, data: &Path, extra: &[&str]) -> Output {
    let mut args: Vec<&OsStr> = vec!["snapshot".as_ref(), "restore".as_ref(), snapshot.as_ref()];
    args.extend(["--data-dir".as_ref(), data.as_os_str(), "--name".as_ref(), "m1".as_ref()]);
    args.extend(["--initial-cluster", "m1=http://127.0.0.1:2380"].map(OsStr::new));
    args.extend(["--initial-advertise-peer-urls", "http://127.0.0.1:2380"].map(OsStr::new));
    args.extend(extra.iter().map(OsStr::new));
    run(program, args)
}

pub(crate) fn lockgateutl() -> PathBuf {
    env!("CARGO_BIN_EXE_lockgateutl").into()
}

/// A program of a real etcd release; without it the test is skipped.
#[track_caller]
pub(crate) fn etcd(version: &str, program: &str) -> Option<PathBuf> {
    harness::peer(&format!("etcd-{version}"), program)
}

/// The sorted names in a directory.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
