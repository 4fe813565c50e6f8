//! Members to take snapshots of and to start on restored files: lockgate inside this process, real etcd as its own.
#![allow(dead_code, unused_imports, reason = "each test binary uses its own part")]

pub mod made;
pub mod member;

use std::{
    env,
    ffi::OsStr,
    fs,
    io::Write,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
};

pub use member::{Member, Peers};

/// A release whose tools and formats are ours to match.
pub const CURRENT: &str = "3.7.3";

/// How a tool ended and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// What it printed, if it ended well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// What it complained about, without log lines.
    pub fn error(self) -> String {
        assert_ne!(self.code, Some(0), "it ended well and printed {}", self.stdout);
        let errors = self.stderr.lines().filter(|line| !line.contains("\tinfo\t"));
        errors.collect::<Vec<_>>().join("\n")
    }
}

pub fn utl(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    tool(Path::new(env!("CARGO_BIN_EXE_lockgateutl")), args)
}

pub fn tool(program: &Path, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    let output = Command::new(program).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// `snapshot restore` of a one-member cluster that [`Member`] starts on.
pub fn restore(program: &Path, snapshot: &Path, data: &Path, extra: &[&str]) -> Ended {
    let mut args: Vec<&OsStr> = vec!["snapshot".as_ref(), "restore".as_ref(), snapshot.as_ref()];
    args.extend(["--data-dir".as_ref(), data.as_os_str(), "--name".as_ref(), "m1".as_ref()]);
    args.extend(["--initial-cluster", "m1=http://127.0.0.1:2380"].map(OsStr::new));
    args.extend(["--initial-advertise-peer-urls", "http://127.0.0.1:2380"].map(OsStr::new));
    args.extend(extra.iter().map(OsStr::new));
    tool(program, args)
}

pub fn ours() -> PathBuf {
    env!("CARGO_BIN_EXE_lockgateutl").into()
}

/// A program of a real etcd release, or `None` after saying loudly why the test is skipped.
pub fn peer(version: &str, program: &str) -> Option<PathBuf> {
    let cache = || env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache");
    let default = || cache().unwrap_or_else(home).join("lockgate/peers");
    let root = env::var_os("LOCKGATE_PEERS").map(PathBuf::from).unwrap_or_else(default);
    let path = root.join(format!("etcd-{version}")).join(program);
    if path.is_file() {
        return Some(path);
    }
    let reason = format!("{} is missing; set LOCKGATE_PEERS or run `cargo xtask interop fetch`", path.display());
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
    // Not `eprintln!`, whose output a passing test swallows.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "\nSKIPPED: {reason}").unwrap();
    None
}

/// A port nobody listens on; from `LOCKGATE_TEST_PORTS=36000-36999` if that is set.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let range = env::var("LOCKGATE_TEST_PORTS").ok();
    let Some((first, last)) = range.as_deref().and_then(|range| range.split_once('-')) else {
        return TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    };
    let (first, last): (u16, u16) = (first.parse().unwrap(), last.parse().unwrap());
    // Test binaries that run side by side begin at different places.
    let offset = (std::process::id() as u16).wrapping_mul(37);
    loop {
        let n = offset.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = first + n % (last - first + 1);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Everything under a directory, by name.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
