//! Ports that must be known before a server starts: those of a static cluster, and those of real peers.
//!
//! A server that can choose its own port listens on port 0 instead.

use std::{
    fs,
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::until_some;

/// The first port that is handed out; below are well-known ones.
const FIRST: u16 = 10_000;
/// The first port that Linux hands out for outgoing connections, unless it is configured otherwise.
const EPHEMERAL_FIRST_DEFAULT: u16 = 32_768;

/// A port on 127.0.0.1 that no other test program gets as long as this value lives.
///
/// It is below the range from which the kernel serves `bind(0)` and outgoing connections, so nobody else takes it by
/// accident. The reservation is an abstract Unix socket, which the kernel releases when the test program ends.
/// Invariant: keep it for longer than the server that listens on it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reserved: UnixListener,
}

impl Port {
    /// Reserves a port on which nobody listens.
    pub fn reserve() -> Port {
        let count = u32::from(ephemeral_first().saturating_sub(FIRST)).max(1);
        // Test programs that run at the same time begin at different ports.
        let begin = process::id().wrapping_mul(97);
        (0..count).find_map(|_| Port::try_reserve(FIRST + (begin.wrapping_add(next()) % count) as u16)).unwrap_or_else(
            || panic!("all ports of 127.0.0.1 from {FIRST} to {} are taken", u32::from(FIRST) + count - 1),
        )
    }

    /// Reserves a port that a program under test uses by default. Waits while another test program has it; returns `None`
    /// if a program that knows nothing of reservations listens there.
    pub fn exactly(number: u16) -> Option<Port> {
        let reserved = until_some(&format!("port {number} is not reserved"), || reserve(number));
        is_free(number).then_some(Port { number, _reserved: reserved })
    }

    fn try_reserve(number: u16) -> Option<Port> {
        let reserved = reserve(number)?;
        is_free(number).then_some(Port { number, _reserved: reserved })
    }

    pub fn number(&self) -> u16 {
        self.number
    }

    /// `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }

    /// `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }
}

fn reserve(number: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("lockgate-test-port-{number}")).ok()?;
    UnixListener::bind_addr(&name).ok()
}

/// Programs that know nothing of reservations may listen on loopback or on all addresses.
fn is_free(number: u16) -> bool {
    ["127.0.0.1", "0.0.0.0"].iter().all(|address| TcpListener::bind((*address, number)).is_ok())
}

fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The first port that the kernel hands out by itself.
fn ephemeral_first() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.filter(|first| *first > FIRST).unwrap_or(EPHEMERAL_FIRST_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_reserved_twice() {
        let port = Port::reserve();
        assert!(Port::try_reserve(port.number()).is_none());
        let number = port.number();
        drop(port);
        // Another test program may have it for a while.
        until_some("the port can be reserved again", || Port::try_reserve(number));
    }

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let port = Port::reserve();
        assert!(is_free(port.number()));
        let _listener = TcpListener::bind(port.address()).unwrap();
        assert!(!is_free(port.number()));
    }

    #[test]
    fn ports_are_outside_the_range_of_the_kernel() {
        let ports: Vec<Port> = (0..100).map(|_| Port::reserve()).collect();
        assert!(ports.iter().all(|port| (FIRST..ephemeral_first()).contains(&port.number())));
    }
}
