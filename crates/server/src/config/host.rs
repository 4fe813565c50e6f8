//! The address to advertise when a member listens on all addresses and was told nothing else.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use super::notice::Notice;
use super::settings::Settings;
use super::url::Url;
use super::{Config, table};

/// Source address of the default route. Connecting a UDP socket only asks the routing table; nothing is sent.
pub(super) fn default_host() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address reserved for documentation: no network of its own, so the default route leads there.
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_unspecified() && !ip.is_loopback()).then_some(ip)
}

impl Config {
    /// Replaces default URLs by the machine's address where the listener is 0.0.0.0, and the default initial
    /// cluster by one with this member's name.
    pub(super) fn advertise_default_host(&mut self, settings: &Settings, host: fn() -> Option<IpAddr>) {
        let peer = advertised("initial-advertise-peer-urls", &self.advertise_peer_urls, &self.listen_peer_urls, host);
        if let Some(url) = &peer {
            self.advertise_peer_urls = vec![url.clone()];
        }
        if self.name != "default" && is_default(settings, "initial-cluster") {
            let pairs = self.advertise_peer_urls.iter().map(|url| format!("{}={url}", self.name));
            self.initial_cluster = pairs.collect::<Vec<_>>().join(",");
        }
        let client = advertised("advertise-client-urls", &self.advertise_client_urls, &self.listen_client_urls, host);
        if let Some(url) = &client {
            self.advertise_client_urls = vec![url.clone()];
        }
        if let Some(url) = peer.or(client) {
            self.notices.push(Notice::DefaultHost { host: url.host });
        }
    }
}

fn is_default(settings: &Settings, flag: &str) -> bool {
    table::find(flag).is_some_and(|flag| flag.default == settings.text(flag.name))
}

fn advertised(flag: &str, urls: &[Url], listen: &[Url], host: fn() -> Option<IpAddr>) -> Option<Url> {
    let default = table::find(flag)?.default;
    let ([url], Some(first)) = (urls, listen.first()) else { return None };
    if url.as_str() != default || first.host != "0.0.0.0" {
        return None;
    }
    Some(url.with_host(&host()?.to_string(), first.port))
}
