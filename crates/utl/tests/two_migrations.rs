//! Two migrations of one data dir at the same time.

use std::{
    fs, io,
    io::{PipeReader, PipeWriter, Write},
    path::Path,
    process::{Command, Stdio},
};

use harness::{tempdir, until};
use rustix::fs::{OFlags, fcntl_setfl};

use crate::support::{lockgateutl, made};

/// A pipe that takes nothing until it is read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    while writer.write(&[b' '; 512]).is_ok() {}
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    (reader, writer)
}

fn has_open(process: u32, path: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target == path))
}

/// The first one has looked at the dir and waits to print its plan while the second one migrates the dir.
#[test]
fn a_plan_for_a_database_that_was_replaced_is_not_carried_out() {
    let temp = tempdir();
    let dir = made::dir(&temp.path().join("data"), None, &made::log_of_3_5(), 6);
    let database = fs::canonicalize(dir.db()).unwrap();
    let migrate = |target: &str| {
        let mut command = Command::new(lockgateutl());
        command.args(["migrate", "-y", "--target-version", target, "--data-dir"]).arg(dir.root());
        command
    };
    let (mut reader, writer) = full_pipe();
    let first = migrate("3.7").stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    until("the first migration has opened the database", || has_open(first.id(), &database));
    assert!(migrate("3.6").output().unwrap().status.success());
    let before = made::bytes(dir.root());
    io::copy(&mut reader, &mut io::sink()).unwrap();
    let output = first.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("was replaced by another migration"), "{said}");
    assert_eq!(made::bytes(dir.root()), before);
}
