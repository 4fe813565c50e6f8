//! The configuration after binding: port 0 is replaced by the port that a listener got.

use std::net::SocketAddr;

use super::Config;
use super::error::ConfigError;
use super::url::Url;

/// The addresses that the listeners of a configuration got, in the order of its URLs. `None` stands for a unix socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    pub client: Vec<Option<SocketAddr>>,
    pub client_http: Vec<Option<SocketAddr>>,
    pub metrics: Vec<Option<SocketAddr>>,
    pub peer: Vec<Option<SocketAddr>>,
}

/// A port that was chosen by the system, with the host of its URL.
#[derive(Debug, Clone)]
struct Chosen {
    host: String,
    port: u16,
}

impl Config {
    /// The effective configuration. URLs with port 0 get the bound port: those to listen on, those that are advertised, and
    /// this member's in the initial cluster.
    ///
    /// An advertised URL follows the listener with the same host, else the next in order. Lists of URLs are sorted when they
    /// are read, so order alone would give the ports to the wrong hosts where only some hosts are the same.
    pub fn with_bound(mut self, bound: &Bound) -> Result<Config, ConfigError> {
        let clients = bind(&mut self.listen_client_urls, &bound.client);
        let peers = bind(&mut self.listen_peer_urls, &bound.peer);
        bind(&mut self.listen_client_http_urls, &bound.client_http);
        bind(&mut self.listen_metrics_urls, &bound.metrics);
        let unmatched = |flag, listen| move |url| ConfigError::AdvertisedPortZero { flag, listen, url };
        follow(&mut self.advertise_client_urls, clients)
            .map_err(unmatched("advertise-client-urls", "listen-client-urls"))?;
        let peers = follow(&mut self.advertise_peer_urls, peers)
            .map_err(unmatched("initial-advertise-peer-urls", "listen-peer-urls"))?;
        self.initial_cluster = follow_in_cluster(&self.initial_cluster, &self.name, peers);
        // A port may have changed the order, and the initial cluster is compared with a sorted list.
        self.advertise_client_urls.sort();
        self.advertise_peer_urls.sort();
        Ok(self)
    }
}

/// Sets the bound ports and returns those that the system chose.
fn bind(urls: &mut [Url], bound: &[Option<SocketAddr>]) -> Vec<Chosen> {
    let mut chosen = Vec::new();
    for (url, address) in urls.iter_mut().zip(bound) {
        if let Some(address) = address.filter(|_| url.has_port_zero()) {
            *url = url.with_host(&url.host, address.port());
            chosen.push(Chosen { host: url.host.clone(), port: url.port });
        }
    }
    chosen
}

/// Sets the ports of URLs with port 0 and returns these ports, or the first URL for which none is left.
fn follow(urls: &mut [Url], mut chosen: Vec<Chosen>) -> Result<Vec<Chosen>, Url> {
    let mut taken = Vec::new();
    let mut take = |url: &mut Url, chosen: Chosen| {
        *url = url.with_host(&url.host, chosen.port);
        taken.push(Chosen { host: url.host.clone(), port: url.port });
    };
    for url in urls.iter_mut().filter(|url| url.has_port_zero()) {
        if let Some(at) = chosen.iter().position(|chosen| chosen.host == url.host) {
            take(url, chosen.remove(at));
        }
    }
    let mut rest = chosen.into_iter();
    for url in urls.iter_mut().filter(|url| url.has_port_zero()) {
        take(url, rest.next().ok_or_else(|| url.clone())?);
    }
    Ok(taken)
}

/// The initial cluster with the advertised ports of this member. What cannot be read or has no port to follow stays:
/// `verify_bootstrap` refuses it if the initial cluster is read at all.
fn follow_in_cluster(cluster: &str, name: &str, advertised: Vec<Chosen>) -> String {
    let own = |pair: &str| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, url)| Url::parse(url));
    let mut urls: Vec<Url> = cluster.split(',').filter_map(|pair| own(pair)?.ok()).collect();
    if !urls.iter().any(Url::has_port_zero) || follow(&mut urls, advertised).is_err() {
        return cluster.to_owned();
    }
    let mut urls = urls.into_iter();
    let pairs = cluster.split(',').map(|pair| match own(pair) {
        Some(Ok(_)) => urls.next().map_or_else(|| pair.to_owned(), |url| format!("{name}={url}")),
        _ => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::config::Parsed;

    fn config(args: &str) -> Config {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        match Config::from_args_on(&args, &[], || Some([10, 9, 8, 7].into())) {
            Ok(Parsed::Run(config)) => *config,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    /// The system chooses ports upwards from 50001, over all listeners in the order of the fields.
    fn bound(config: &Config) -> Bound {
        let mut next = 50_000;
        let mut addresses = |urls: &[Url]| {
            let address = |url: &Url| {
                let host = if url.host == "localhost" { "127.0.0.1" } else { &url.host };
                // A unix socket has a path for a host.
                let ip = host.parse().ok()?;
                next += u16::from(url.port == 0);
                Some(SocketAddr::new(ip, if url.port == 0 { next } else { url.port }))
            };
            urls.iter().map(address).collect::<Vec<_>>()
        };
        Bound {
            client: addresses(&config.listen_client_urls),
            client_http: addresses(&config.listen_client_http_urls),
            metrics: addresses(&config.listen_metrics_urls),
            peer: addresses(&config.listen_peer_urls),
        }
    }

    fn effective(args: &str) -> Result<Config, ConfigError> {
        let config = config(args);
        let bound = bound(&config);
        config.with_bound(&bound)
    }

    fn clients(listen: &str, advertise: &str) -> String {
        match effective(&format!("--listen-client-urls={listen} --advertise-client-urls={advertise}")) {
            Ok(config) => {
                let join = super::super::url::join;
                format!("{} as {}", join(&config.listen_client_urls), join(&config.advertise_client_urls))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test_case("http://127.0.0.1:0", "http://127.0.0.1:0" => "http://127.0.0.1:50001 as http://127.0.0.1:50001")]
    #[test_case("http://localhost:", "http://a:" => "http://localhost:50001 as http://a:50001"; "an empty port is port 0")]
    #[test_case("http://[::1]:0", "http://[::1]:0" => "http://[::1]:50001 as http://[::1]:50001")]
    #[test_case("http://127.0.0.1:0", "http://127.0.0.1:7" => "http://127.0.0.1:50001 as http://127.0.0.1:7"; "a given port stays")]
    #[test_case("http://127.0.0.1:7", "http://127.0.0.1:7" => "http://127.0.0.1:7 as http://127.0.0.1:7")]
    #[test_case("http://127.0.0.1:0,http://127.0.0.2:0", "http://a:0,http://b:0"
        => "http://127.0.0.1:50001,http://127.0.0.2:50002 as http://a:50001,http://b:50002"; "in order")]
    #[test_case("http://127.0.0.1:0,http://127.0.0.1:7,http://127.0.0.2:0", "http://a:9,http://b:0,http://c:0"
        => "http://127.0.0.1:50001,http://127.0.0.1:7,http://127.0.0.2:50002 as http://a:9,http://b:50001,http://c:50002";
        "given ports do not count")]
    #[test_case("http://127.0.0.1:0,http://127.0.0.2:0", "http://127.0.0.2:0,http://a:0"
        => "http://127.0.0.1:50001,http://127.0.0.2:50002 as http://127.0.0.2:50002,http://a:50001"; "the same host first")]
    #[test_case("http://127.0.0.1:0,unix:///run/x", "http://127.0.0.1:0,unix:///run/x"
        => "http://127.0.0.1:50001,unix:///run/x as http://127.0.0.1:50001,unix:///run/x"; "sockets have no port")]
    #[test_case("http://127.0.0.1:0", "http://127.0.0.1:0,http://127.0.0.1:6"
        => "http://127.0.0.1:50001 as http://127.0.0.1:50001,http://127.0.0.1:6"; "sorted")]
    #[test_case("http://127.0.0.1:7", "http://127.0.0.1:0"
        => "--advertise-client-urls: http://127.0.0.1:0: port 0 stands for the port of a listener, and \
            --listen-client-urls has no URL with port 0 for it; give the port"; "nothing to follow")]
    #[test_case("http://127.0.0.1:0", "http://a:0,http://b:0"
        => "--advertise-client-urls: http://b:0: port 0 stands for the port of a listener, and \
            --listen-client-urls has no URL with port 0 for it; give the port"; "too few to follow")]
    #[test_case("unix:///run/x", "http://a:0"
        => "--advertise-client-urls: http://a:0: port 0 stands for the port of a listener, and \
            --listen-client-urls has no URL with port 0 for it; give the port"; "a socket has no port to follow")]
    fn client_urls(listen: &str, advertise: &str) -> String {
        clients(listen, advertise)
    }

    fn cluster(args: &str) -> String {
        let config = match effective(args) {
            Ok(config) => config,
            Err(error) => return error.to_string(),
        };
        match config.verify_bootstrap() {
            Ok(initial) => {
                let pairs =
                    initial.members.iter().map(|(name, urls)| format!("{name}={}", super::super::url::join(urls)));
                pairs.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test_case("--name=m --listen-peer-urls=http://127.0.0.1:0 --initial-advertise-peer-urls=http://127.0.0.1:0"
        => "m=http://127.0.0.1:50001"; "the default cluster")]
    #[test_case("--name=m --listen-peer-urls=http://0.0.0.0:0" => "m=http://10.9.8.7:50001"; "the machine's address")]
    #[test_case("--listen-peer-urls=http://127.0.0.1:0 --initial-advertise-peer-urls=http://127.0.0.1:0 \
        --initial-cluster=default=http://127.0.0.1:0" => "default=http://127.0.0.1:50001"; "its own entry")]
    #[test_case("--name=m --listen-peer-urls=http://127.0.0.1:0,http://127.0.0.2:0 \
        --initial-advertise-peer-urls=http://127.0.0.1:0,http://127.0.0.2:0 \
        --initial-cluster=m=http://127.0.0.2:0,o=http://127.0.0.1:9,m=http://127.0.0.1:0"
        => "m=http://127.0.0.1:50001,http://127.0.0.2:50002 o=http://127.0.0.1:9"; "two entries beside another member's")]
    #[test_case("--name=m --listen-peer-urls=http://127.0.0.1:0 --initial-advertise-peer-urls=http://127.0.0.1:0 \
        --initial-cluster=m=http://127.0.0.1:0,o=http://127.0.0.1:0"
        => "--initial-cluster: o=http://127.0.0.1:0: another member cannot be dialled at port 0; give the port that it \
            listens on"; "another member's entry")]
    #[test_case("--name=m --initial-cluster=m=http://localhost:0"
        => "--initial-cluster: m=http://localhost:0: port 0 stands for the port of a peer URL of this member, and \
            --initial-advertise-peer-urls has no URL with port 0 for it; give the port"; "nothing to follow")]
    #[test_case("--name=m --initial-advertise-peer-urls=http://localhost:0"
        => "--initial-advertise-peer-urls: http://localhost:0: port 0 stands for the port of a listener, and \
            --listen-peer-urls has no URL with port 0 for it; give the port"; "no listener to follow")]
    #[test_case("--name=m --listen-peer-urls=http://127.0.0.1:0 --initial-advertise-peer-urls=http://127.0.0.1:0 \
        --initial-cluster=m=http://127.0.0.1:0,o=nonsense"
        => "error setting up initial cluster: URL scheme must be http, https, unix, or unixs: nonsense"; "unreadable")]
    fn initial_cluster(args: &str) -> String {
        cluster(args)
    }

    #[test]
    fn listeners_that_nobody_advertises() {
        let config = effective(
            "--listen-client-http-urls=http://127.0.0.1:0 --listen-metrics-urls=http://127.0.0.1:0,http://127.0.0.2:0",
        );
        let config = config.expect("an effective configuration");
        assert_eq!(config.listen_client_http_urls[0].as_str(), "http://127.0.0.1:50001");
        assert_eq!(
            super::super::url::join(&config.listen_metrics_urls),
            "http://127.0.0.1:50002,http://127.0.0.2:50003"
        );
    }

    #[test]
    fn http_may_have_port_zero_next_to_clients_but_not_the_same_socket() {
        let flags = |url: &str| {
            let names = ["listen-client-urls", "advertise-client-urls", "listen-client-http-urls"];
            names.map(|name| format!("--{name}={url}"))
        };
        assert!(Config::from_args(&flags("http://127.0.0.1:0"), &[]).is_ok());
        assert!(Config::from_args(&flags("http://127.0.0.1:7"), &[]).is_err());
        assert!(Config::from_args(&flags("unix:///run/x"), &[]).is_err());
    }
}
