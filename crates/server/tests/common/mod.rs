//! Finds the real etcd that tests compare with.

use std::net::TcpListener;
use std::path::PathBuf;

/// The binary of etcd 3.7.3, or `None` after saying why there is none.
pub fn etcd() -> Option<PathBuf> {
    let cache = || {
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        base.map(|dir| dir.join("lockgate/peers"))
    };
    let peers = std::env::var_os("LOCKGATE_PEERS").map(PathBuf::from).or_else(cache);
    let binary = peers.unwrap_or_default().join("etcd-3.7.3/etcd");
    if binary.is_file() {
        return Some(binary);
    }
    let required = std::env::var("LOCKGATE_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "LOCKGATE_REQUIRE_PEERS=1, but there is no {}", binary.display());
    eprintln!("SKIPPED: no real etcd at {}; set LOCKGATE_PEERS to a directory with etcd-3.7.3/etcd", binary.display());
    None
}

#[allow(dead_code, reason = "not every test listens")]
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").to_string()
}
