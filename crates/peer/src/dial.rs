//! How a connection to a peer comes about: the one place that knows what lies under HTTP.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use tokio::net::{TcpSocket, TcpStream, lookup_host};

use crate::url::{PeerUrl, Scheme};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error("{0} needs TLS, which members do not speak to each other; use http")]
    Tls(PeerUrl),
    #[error("failed to look up {url}")]
    Lookup { url: PeerUrl, source: io::Error },
    #[error("failed to connect to {url}")]
    Connect { url: PeerUrl, source: io::Error },
    #[error("failed to connect to {url} within {timeout:?}")]
    Timeout { url: PeerUrl, timeout: Duration },
}

/// A stream to the host of `url`, coming from `local` if given.
pub(crate) async fn dial(url: &PeerUrl, local: Option<IpAddr>, timeout: Duration) -> Result<TcpStream, DialError> {
    if url.scheme() == Scheme::Https {
        return Err(DialError::Tls(url.clone()));
    }
    let stream = tokio::time::timeout(timeout, connect(url, local))
        .await
        .map_err(|_| DialError::Timeout { url: url.clone(), timeout })??;
    accept(&stream);
    Ok(stream)
}

/// What is done to a stream of either direction: raft's messages are small and wait for each other.
pub(crate) fn accept(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY on a peer connection");
    }
}

async fn connect(url: &PeerUrl, local: Option<IpAddr>) -> Result<TcpStream, DialError> {
    let lookup = |source| DialError::Lookup { url: url.clone(), source };
    let addresses = lookup_host(url.authority()).await.map_err(lookup)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in addresses {
        match connect_to(address, local).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(DialError::Connect { url: url.clone(), source: last })
}

async fn connect_to(address: SocketAddr, local: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(local) = local.filter(|local| local.is_ipv4() == address.is_ipv4()) {
        socket.bind(SocketAddr::new(local, 0))?;
    }
    socket.connect(address).await
}
