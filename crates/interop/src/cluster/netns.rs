//! Hosts as network namespaces on one bridge, whose links can be cut, made deaf in one direction, or slowed down.
//!
//! One direction is cut by a neighbour entry that leads nowhere: packets leave and nobody takes them, as on a bad line.
//! It needs no packet filter, which not every machine has.
//!
//! **Invariant.** A network has a number that no other network on this machine has: the kernel refuses a second bridge of
//! the same name. All names and addresses follow from the number, and the bridge is removed last, also if this program is
//! killed.

use std::process::{Command, id};

use anyhow::{Context, Result, bail};
use harness::AtEnd;

use super::{super::tool, member::Host};

/// An address on the bridge's network that no host has.
const NOWHERE: &str = "02:00:00:00:00:99";
/// Third byte of addresses.
const NUMBERS: u32 = 250;

/// Removes a network: `$1` is its tag, `$2` the number of hosts. Members that die at the same moment hold nothing: a
/// namespace that still has a process loses its name at once, and its links with the process.
const REMOVE: &str = r#"n=0
while [ "$n" -lt "$2" ]; do
    ip link del "$1v$n"
    ip netns del "$1-$n"
    n=$((n+1))
done
ip link del "$1b""#;

/// A bridge with hosts. Dropping it removes all of them.
pub(super) struct Net {
    number: u32,
    hosts: usize,
    _removal: AtEnd,
}

impl Net {
    /// A bridge with that many hosts; an error says what this machine does not allow.
    pub(super) fn new(hosts: usize) -> Result<Net> {
        let number = reserve()?;
        let removal = AtEnd::run(REMOVE, &[&tag(number), &hosts.to_string()]);
        let net = Net { number, hosts, _removal: removal };
        let (bridge, address) = (bridge(number), format!("10.77.{number}.254/24"));
        ip(&["addr", "add", &address, "dev", &bridge])?;
        ip(&["link", "set", &bridge, "up"])?;
        for n in 0..hosts {
            net.add_host(n)?;
        }
        Ok(net)
    }

    fn add_host(&self, n: usize) -> Result<()> {
        let (netns, link, inner) = (self.netns(n), self.link(n), format!("{}i", self.link(n)));
        let address = format!("{}/24", self.ip(n));
        ip(&["netns", "add", &netns])?;
        ip(&["link", "add", &link, "type", "veth", "peer", "name", &inner])?;
        ip(&["link", "set", &inner, "netns", &netns, "name", "eth0"])?;
        ip(&["link", "set", &link, "master", &bridge(self.number), "up"])?;
        ip(&["-n", &netns, "addr", "add", &address, "dev", "eth0"])?;
        ip(&["-n", &netns, "link", "set", "eth0", "up"])?;
        ip(&["-n", &netns, "link", "set", "lo", "up"])
    }

    pub(super) fn host(&self, n: usize) -> Host {
        Host { ip: Some(self.ip(n)), netns: Some(self.netns(n)) }
    }

    pub(super) fn hosts(&self) -> Vec<Host> {
        (0..self.hosts).map(|n| self.host(n)).collect()
    }

    fn netns(&self, n: usize) -> String {
        format!("{}-{n}", tag(self.number))
    }

    fn link(&self, n: usize) -> String {
        format!("{}v{n}", tag(self.number))
    }

    fn ip(&self, n: usize) -> String {
        format!("10.77.{}.{}", self.number, n + 1)
    }

    /// Pulls the plug: neither members nor clients reach the host.
    pub(super) fn unplug(&self, n: usize) -> Result<()> {
        ip(&["link", "set", &self.link(n), "down"])
    }

    pub(super) fn plug(&self, n: usize) -> Result<()> {
        ip(&["link", "set", &self.link(n), "up"])
    }

    /// Packets from one host to the other are lost; the other direction and clients are not affected.
    pub(super) fn lose(&self, from: usize, to: usize) -> Result<()> {
        let (netns, to) = (self.netns(from), self.ip(to));
        ip(&["-n", &netns, "neigh", "replace", &to, "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent"])
    }

    pub(super) fn heal(&self, from: usize, to: usize) -> Result<()> {
        ip(&["-n", &self.netns(from), "neigh", "del", &self.ip(to), "dev", "eth0"])
    }

    /// Cuts a host off from the other hosts, both ways; clients still reach it.
    pub(super) fn isolate(&self, n: usize) -> Result<()> {
        self.with_others(n, &|from, to| self.lose(from, to))
    }

    pub(super) fn rejoin(&self, n: usize) -> Result<()> {
        self.with_others(n, &|from, to| self.heal(from, to))
    }

    fn with_others(&self, n: usize, act: &dyn Fn(usize, usize) -> Result<()>) -> Result<()> {
        for other in (0..self.hosts).filter(|other| *other != n) {
            act(n, other)?;
            act(other, n)?;
        }
        Ok(())
    }

    /// Slows the host's link down: by delay if this kernel has netem, else by rate. Returns which.
    pub(super) fn slow(&self, n: usize) -> Result<&'static str> {
        let link = self.link(n);
        let netem = ["qdisc", "add", "dev", &link, "root", "netem", "delay", "80ms", "30ms"];
        if run("tc", &netem).is_ok() {
            return Ok("80 ms of delay");
        }
        run(
            "tc",
            &["qdisc", "add", "dev", &link, "root", "tbf", "rate", "256kbit", "burst", "4kb", "latency", "800ms"],
        )?;
        Ok("256 kbit/s, no netem here")
    }

    pub(super) fn unslow(&self, n: usize) -> Result<()> {
        run("tc", &["qdisc", "del", "dev", &self.link(n), "root"])
    }
}

/// Creates a bridge and returns its number.
fn reserve() -> Result<u32> {
    for n in 0..NUMBERS {
        // Programs that run at the same time begin at different numbers.
        let number = id().wrapping_mul(97).wrapping_add(n) % NUMBERS;
        match ip(&["link", "add", &bridge(number), "type", "bridge"]) {
            Ok(()) => return Ok(number),
            Err(error) if error.to_string().contains("File exists") => {}
            Err(error) => return Err(error),
        }
    }
    bail!("all {NUMBERS} bridges {} to {} exist", bridge(0), bridge(NUMBERS - 1))
}

/// The beginning of all names of a network.
fn tag(number: u32) -> String {
    format!("lockgate{number}")
}

fn bridge(number: u32) -> String {
    format!("{}b", tag(number))
}

fn ip(words: &[&str]) -> Result<()> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(words);
    let output = tool::output(command).with_context(|| format!("failed to run `{program}`"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed (namespaces need root and iproute2): {}", words.join(" "), error.trim());
    }
    Ok(())
}
