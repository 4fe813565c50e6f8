//! All listeners of a member, bound before the data dir is touched.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

use super::{ListenError, Listener, bind_peer};
use crate::{
    config::{Bound, Config, Url},
    ports_file::{Ports, reachable},
};

/// The listeners of each kind, in the order of the URLs in the configuration.
pub(crate) struct Listeners {
    pub client: Vec<Listener>,
    pub client_http: Vec<Listener>,
    pub metrics: Vec<Listener>,
    pub peer: Vec<TcpListener>,
}

impl Listeners {
    pub(crate) async fn bind(config: &Config) -> Result<Listeners, ListenError> {
        let client = bind_all(&config.listen_client_urls, config).await?;
        let client_http = bind_all(&config.listen_client_http_urls, config).await?;
        let metrics = bind_all(&config.listen_metrics_urls, config).await?;
        let mut peer = Vec::new();
        for url in &config.listen_peer_urls {
            peer.push(bind_peer(url, config).await?);
        }
        Ok(Listeners { client, client_http, metrics, peer })
    }

    pub(crate) fn bound(&self) -> Result<Bound, ListenError> {
        let all = || {
            Ok(Bound {
                client: addresses(&self.client)?,
                client_http: addresses(&self.client_http)?,
                metrics: addresses(&self.metrics)?,
                peer: self.peer.iter().map(|listener| listener.local_addr().map(Some)).collect::<io::Result<_>>()?,
            })
        };
        all().map_err(ListenError::Address)
    }
}

fn addresses(listeners: &[Listener]) -> io::Result<Vec<Option<SocketAddr>>> {
    listeners.iter().map(Listener::address).collect()
}

async fn bind_all(urls: &[Url], config: &Config) -> Result<Vec<Listener>, ListenError> {
    let mut listeners = Vec::new();
    for url in urls {
        listeners.push(Listener::bind(url, config).await?);
    }
    Ok(listeners)
}

/// What the ports file says of a member.
pub(crate) fn ports(config: &Config, bound: &Bound) -> Ports {
    let mut ports = Ports::default();
    for (kind, urls, addresses) in kinds(config, bound) {
        let urls = urls.iter().zip(addresses).map(|(url, address)| match address.map(reachable) {
            Some(address) => url.with_host(&address.ip().to_string(), address.port()).to_string(),
            None => url.to_string(),
        });
        ports = ports.with(kind, urls.collect());
    }
    ports
}

/// Logs a line for each listener. `config` is the effective configuration, so its URLs have the bound ports.
pub(crate) fn log(config: &Config, bound: &Bound) {
    for (kind, urls, _) in kinds(config, bound) {
        for url in urls {
            tracing::info!(kind, address = %url, "listening");
        }
    }
}

type Kind<'a> = (&'static str, &'a [Url], &'a [Option<SocketAddr>]);

fn kinds<'a>(config: &'a Config, bound: &'a Bound) -> [Kind<'a>; 4] {
    [
        ("client", &config.listen_client_urls, &bound.client),
        ("client-http", &config.listen_client_http_urls, &bound.client_http),
        ("metrics", &config.listen_metrics_urls, &bound.metrics),
        ("peer", &config.listen_peer_urls, &bound.peer),
    ]
}
