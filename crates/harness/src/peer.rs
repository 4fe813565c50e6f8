//! Real peers, which `cargo xtask interop fetch` builds into a cache outside the tree.

use std::{env, io::Write, path::PathBuf};

/// The release of etcd that Lockgate is an equal member with.
pub const ETCD: &str = "3.7.3";

/// A program of a peer, such as `peer("bbolt-1.5.0", "bbolt")`. Without it the test is skipped, see [`skip`].
#[track_caller]
pub fn peer(dir: &str, program: &str) -> Option<PathBuf> {
    let found = find(dir, program);
    if found.is_none() {
        let path = peers_dir().join(dir).join(program);
        skip(&format!("{} is missing; set LOCKGATE_PEERS or run `cargo xtask interop fetch`", path.display()));
    }
    found
}

/// A program of a peer, if it is in the cache.
pub(crate) fn find(dir: &str, program: &str) -> Option<PathBuf> {
    let path = peers_dir().join(dir).join(program);
    path.is_file().then_some(path)
}

/// The directory of a release of etcd, with `etcd`, `etcdctl` and `etcdutl` in it.
#[track_caller]
pub fn etcd_dir(version: &str) -> Option<PathBuf> {
    let program = peer(&format!("etcd-{version}"), "etcd")?;
    program.parent().map(PathBuf::from)
}

/// Reports a test as skipped, even if it passes; with `LOCKGATE_REQUIRE_PEERS=1` the test fails instead.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(env::var_os("LOCKGATE_REQUIRE_PEERS").is_none_or(|value| value != "1"), "{reason}");
    // Unlike `eprintln!`, this is shown for a test that passes.
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {reason}");
}

/// `$LOCKGATE_PEERS`, or `lockgate/peers` in the user's cache.
pub fn peers_dir() -> PathBuf {
    let dir = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || dir("XDG_CACHE_HOME").unwrap_or_else(|| dir("HOME").unwrap_or_default().join(".cache"));
    dir("LOCKGATE_PEERS").unwrap_or_else(|| cache().join("lockgate/peers"))
}
