//! Endpoints as users write them, turned into addresses that can be dialled.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::{ConnectOptions, Error, Result};

/// The least that gRPC clients allow themselves; etcd takes less than 5 s for an attack and hangs up.
const PING_INTERVAL_MIN: Duration = Duration::from_secs(10);

/// A channel to `endpoint` that dials when first used and again whenever the connection is gone.
pub(crate) fn channel(endpoint: &str, options: &ConnectOptions) -> Result<Channel> {
    Ok(builder(endpoint, options)?.connect_lazy())
}

pub(crate) fn builder(endpoint: &str, options: &ConnectOptions) -> Result<Endpoint> {
    let bad = |reason: String| Error::BadEndpoint { endpoint: endpoint.to_owned(), reason };
    let address = address(endpoint)?;
    let mut builder = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| bad(format!("{error}; write host:port or http://host:port")))?
        .connect_timeout(options.dial_timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(1 << 22);
    if let Some(time) = options.keep_alive_time {
        let time = time.max(PING_INTERVAL_MIN);
        builder = builder.http2_keep_alive_interval(time).keep_alive_timeout(options.keep_alive_timeout);
    }
    Ok(builder)
}

/// The `host:port` behind an endpoint.
pub(crate) fn address(endpoint: &str) -> Result<&str> {
    let bad = |reason: &str| Error::BadEndpoint { endpoint: endpoint.to_owned(), reason: reason.to_owned() };
    let address = match endpoint.split_once("://") {
        None if endpoint.starts_with("unix:") || endpoint.starts_with("unixs:") => {
            return Err(bad("unix sockets are not supported; use host:port or http://host:port"));
        }
        None => endpoint,
        Some(("http", rest)) => rest,
        Some(("https" | "unixs", _)) => {
            return Err(bad("TLS is not supported yet; use host:port or http://host:port"));
        }
        Some(("unix", _)) => return Err(bad("unix sockets are not supported; use host:port or http://host:port")),
        Some(_) => return Err(bad("unknown scheme; use host:port or http://host:port")),
    };
    let address = address.split('/').next().unwrap_or_default();
    if address.is_empty() {
        return Err(bad("it names no host; use host:port or http://host:port"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(address("127.0.0.1:2379").unwrap(), "127.0.0.1:2379");
        assert_eq!(address("http://[::1]:2379/").unwrap(), "[::1]:2379");
        for (endpoint, word) in
            [("https://a:1", "TLS"), ("unix:///run/x", "unix"), ("ftp://a", "scheme"), ("http://", "host")]
        {
            let text = address(endpoint).unwrap_err().to_string();
            assert!(text.contains(word) && text.contains(endpoint), "{text}");
        }
    }
}
