//! The initial cluster of a member that has no data yet, checked as etcd checks it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, ToSocketAddrs};

use super::error::ConfigError;
use super::url::{self, Url};
use super::{ClusterState, Config};

/// What a member without data is told of its cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitialCluster {
    /// Every member: name to peer URLs.
    pub members: BTreeMap<String, Vec<Url>>,
    pub token: String,
    pub state: ClusterState,
}

impl Config {
    /// Call this on the effective configuration (see `with_bound`) when the data dir holds no member; with data, the
    /// `initial-*` flags are not read.
    pub fn verify_bootstrap(&self) -> Result<InitialCluster, ConfigError> {
        let cluster = parse(&self.initial_cluster)?;
        let Some(own) = cluster.get(&self.name) else {
            return Err(ConfigError::NoLocalName(self.name.clone()));
        };
        self.check_ports(&cluster)?;
        if self.initial_cluster_state == ClusterState::New {
            self.check_advertised(own)?;
        }
        if has_duplicates(&cluster) {
            return Err(ConfigError::DuplicateUrl(show(&cluster)));
        }
        if let Some(url) = cluster.values().flatten().find(|url| url.is_tls()) {
            return Err(ConfigError::TlsUrl { flag: "initial-cluster", url: url.to_string() });
        }
        Ok(InitialCluster {
            members: cluster,
            token: self.initial_cluster_token.clone(),
            state: self.initial_cluster_state,
        })
    }

    /// After binding, port 0 is left only where it has no meaning.
    fn check_ports(&self, cluster: &BTreeMap<String, Vec<Url>>) -> Result<(), ConfigError> {
        for (name, urls) in cluster {
            if let Some(url) = urls.iter().find(|url| url.has_port_zero()) {
                let (is_own, name, url) = (*name == self.name, name.clone(), url.clone());
                return Err(if is_own {
                    ConfigError::OwnPortZero { name, url }
                } else {
                    ConfigError::OtherPortZero { name, url }
                });
            }
        }
        Ok(())
    }

    /// What the member advertises and what the cluster lists must be the same, if need be after name resolution.
    fn check_advertised(&self, listed: &[Url]) -> Result<(), ConfigError> {
        let advertised = &self.advertise_peer_urls;
        if listed == advertised.as_slice() || resolve(listed).is_some_and(|set| Some(set) == resolve(advertised)) {
            return Ok(());
        }
        let missing = difference(listed, advertised);
        if !missing.is_empty() {
            let missing = missing.iter().map(|url| format!("{}={url}", self.name)).collect::<Vec<_>>().join(",");
            return Err(ConfigError::NotAdvertised { missing, advertised: url::join(advertised) });
        }
        let missing = difference(advertised, listed);
        Err(ConfigError::NotInCluster { missing: missing.join(","), cluster: self.initial_cluster.clone() })
    }
}

/// `name=url` pairs; a name may come several times.
fn parse(text: &str) -> Result<BTreeMap<String, Vec<Url>>, ConfigError> {
    let mut cluster: BTreeMap<String, Vec<Url>> = BTreeMap::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let (name, url) = pair.split_once('=').unwrap_or((pair, ""));
        let url = Url::parse(url).map_err(ConfigError::BadInitialCluster)?;
        cluster.entry(name.to_owned()).or_default().push(url);
    }
    cluster.values_mut().for_each(|urls| urls.sort());
    Ok(cluster)
}

fn has_duplicates(cluster: &BTreeMap<String, Vec<Url>>) -> bool {
    let mut seen = BTreeSet::new();
    !cluster.values().flatten().all(|url| seen.insert(url.as_str()))
}

fn show(cluster: &BTreeMap<String, Vec<Url>>) -> String {
    let pairs = cluster.iter().flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}")));
    pairs.collect::<Vec<_>>().join(",")
}

fn difference(a: &[Url], b: &[Url]) -> Vec<String> {
    a.iter().filter(|url| !b.contains(url)).map(Url::to_string).collect()
}

/// Addresses behind the URLs, or `None` if one cannot be found.
fn resolve(urls: &[Url]) -> Option<BTreeSet<SocketAddr>> {
    let mut addresses = BTreeSet::new();
    for url in urls.iter().filter(|url| !url.is_unix()) {
        // The first address stands for the host, as in etcd.
        addresses.insert((url.host.as_str(), url.port).to_socket_addrs().ok()?.next()?);
    }
    Some(addresses).filter(|set| !set.is_empty())
}
