//! Hosts as network namespaces on one bridge, whose links can be cut, made deaf in one direction, or slowed down.
//!
//! One direction is cut by a neighbour entry that leads nowhere: packets leave and nobody takes them, as on a bad line.
//! It needs no packet filter, which not every machine has.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::member::Host;

/// An address on the bridge's network that no host has.
const NOWHERE: &str = "02:00:00:00:00:99";

pub struct Net {
    tag: String,
    subnet: u32,
    hosts: usize,
}

impl Net {
    /// A bridge with that many hosts; an error says what this machine does not allow.
    pub fn new(hosts: usize) -> Result<Net> {
        let id = std::process::id() % 10_000;
        let net = Net { tag: format!("lg{id}"), subnet: id % 250, hosts };
        let (bridge, address) = (net.bridge(), format!("10.77.{}.254/24", net.subnet));
        ip(&["link", "add", &bridge, "type", "bridge"])?;
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
        ip(&["link", "set", &link, "master", &self.bridge(), "up"])?;
        ip(&["-n", &netns, "addr", "add", &address, "dev", "eth0"])?;
        ip(&["-n", &netns, "link", "set", "eth0", "up"])?;
        ip(&["-n", &netns, "link", "set", "lo", "up"])
    }

    pub fn host(&self, n: usize) -> Host {
        Host { ip: Some(self.ip(n)), netns: Some(self.netns(n)) }
    }

    pub fn hosts(&self) -> Vec<Host> {
        (0..self.hosts).map(|n| self.host(n)).collect()
    }

    fn bridge(&self) -> String {
        format!("{}b", self.tag)
    }

    fn netns(&self, n: usize) -> String {
        format!("{}-{n}", self.tag)
    }

    fn link(&self, n: usize) -> String {
        format!("{}v{n}", self.tag)
    }

    fn ip(&self, n: usize) -> String {
        format!("10.77.{}.{}", self.subnet, n + 1)
    }

    /// Pulls the plug: neither members nor clients reach the host.
    pub fn unplug(&self, n: usize) -> Result<()> {
        ip(&["link", "set", &self.link(n), "down"])
    }

    pub fn plug(&self, n: usize) -> Result<()> {
        ip(&["link", "set", &self.link(n), "up"])
    }

    /// What one host sends to the other is lost; the other direction and clients are not touched.
    pub fn lose(&self, from: usize, to: usize) -> Result<()> {
        let (netns, to) = (self.netns(from), self.ip(to));
        ip(&["-n", &netns, "neigh", "replace", &to, "lladdr", NOWHERE, "dev", "eth0", "nud", "permanent"])
    }

    pub fn heal(&self, from: usize, to: usize) -> Result<()> {
        ip(&["-n", &self.netns(from), "neigh", "del", &self.ip(to), "dev", "eth0"])
    }

    /// Cuts a host off from the other hosts, both ways; clients still reach it.
    pub fn isolate(&self, n: usize) -> Result<()> {
        self.with_others(n, &|from, to| self.lose(from, to))
    }

    pub fn rejoin(&self, n: usize) -> Result<()> {
        self.with_others(n, &|from, to| self.heal(from, to))
    }

    fn with_others(&self, n: usize, act: &dyn Fn(usize, usize) -> Result<()>) -> Result<()> {
        for other in (0..self.hosts).filter(|other| *other != n) {
            act(n, other)?;
            act(other, n)?;
        }
        Ok(())
    }

    /// Slows the host's link down: by delay if this kernel has netem, else by rate. How.
    pub fn slow(&self, n: usize) -> Result<&'static str> {
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

    pub fn unslow(&self, n: usize) -> Result<()> {
        run("tc", &["qdisc", "del", "dev", &self.link(n), "root"])
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for n in 0..self.hosts {
            let _ = ip(&["link", "del", &self.link(n)]);
            let _ = ip(&["netns", "del", &self.netns(n)]);
        }
        let _ = ip(&["link", "del", &self.bridge()]);
    }
}

fn ip(words: &[&str]) -> Result<()> {
    run("ip", words)
}

fn run(program: &str, words: &[&str]) -> Result<()> {
    let output = Command::new(program).args(words).output().with_context(|| format!("failed to run `{program}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed (namespaces need root and iproute2): {}", words.join(" "), complaint.trim());
    }
    Ok(())
}
