//! Listening and serving: gRPC over HTTP/2 and HTTP/1.1 on one port.

mod corked;
mod drain;
mod frame;
pub(crate) mod listeners;
mod ping_policy;
mod policed;

use std::{future::poll_fn, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpSocket, UnixListener},
    sync::{mpsc, watch},
};

pub(crate) use self::drain::Drain;
use self::{corked::Corked, policed::Policed};
use crate::{
    config::{Config, Scheme, Url},
    front::Front,
    wakeups::Executor,
    workers::Workers,
};

/// HTTP/2 flow-control windows: large enough that a list or a snapshot does not wait for the client's updates.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("listen tcp {addr}: bind: {cause}{}", hint(cause))]
    Bind { addr: String, cause: io::Error },
    #[error("failed to find the address of a listener: {0}")]
    Address(io::Error),
    #[error("failed to find an address for {host}: {cause}")]
    Resolve { host: String, cause: io::Error },
    #[error("--listen-peer-urls: {url}: members reach each other over TCP; use an http:// URL")]
    PeerSocket { url: String },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another process listens there: stop it, or give other URLs with --listen-client-urls"
        }
        io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
        _ => "",
    }
}

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub(crate) async fn bind(url: &Url, config: &Config) -> Result<Listener, ListenError> {
        match url.scheme {
            Scheme::Unix | Scheme::Unixs => bind_unix(url),
            Scheme::Http | Scheme::Https => bind_tcp(url, config).await.map(Listener::Tcp),
        }
    }

    /// The bound address; `None` for a unix socket.
    pub(crate) fn address(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(Some),
            Listener::Unix(..) => Ok(None),
        }
    }
}

/// The port for other members, which speak etcd's peer protocol over TCP.
pub(crate) async fn bind_peer(url: &Url, config: &Config) -> Result<TcpListener, ListenError> {
    match url.scheme {
        Scheme::Http | Scheme::Https => bind_tcp(url, config).await,
        Scheme::Unix | Scheme::Unixs => Err(ListenError::PeerSocket { url: url.to_string() }),
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bind_unix(url: &Url) -> Result<Listener, ListenError> {
    let path = PathBuf::from(&url.host);
    // A socket left by a killed process stands in the way; one that answers belongs to somebody.
    if std::os::unix::net::UnixStream::connect(&path).is_err() {
        let _ = std::fs::remove_file(&path);
    }
    match UnixListener::bind(&path) {
        Ok(listener) => Ok(Listener::Unix(listener, path)),
        Err(cause) => Err(ListenError::Bind { addr: url.host.clone(), cause }),
    }
}

async fn bind_tcp(url: &Url, config: &Config) -> Result<TcpListener, ListenError> {
    let host = format!("{}:{}", bracketed(&url.host), url.port);
    let resolve = |cause| ListenError::Resolve { host: host.clone(), cause };
    let mut addresses = tokio::net::lookup_host(&host).await.map_err(resolve)?;
    let none = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let addr = addresses.next().ok_or_else(|| resolve(none()))?;
    bind_addr(addr, config).map_err(|cause| ListenError::Bind { addr: addr.to_string(), cause })
}

fn bind_addr(addr: SocketAddr, config: &Config) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As Go does: a restart need not wait for old connections to time out.
    socket.set_reuseaddr(true)?;
    if config.socket_reuse_port {
        socket.set_reuseport(true)?;
    }
    socket.bind(addr)?;
    socket.listen(4096)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Serving {
    pub concurrent_streams_max: u32,
    pub keepalive_interval: Option<Duration>,
    pub keepalive_timeout: Option<Duration>,
    /// Between a client's pings.
    pub keepalive_min_time: Duration,
    pub drain: Drain,
}

impl Serving {
    fn builder(&self) -> auto::Builder<Executor> {
        let mut builder = auto::Builder::new(Executor);
        builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
        let mut http2 = builder.http2();
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(self.concurrent_streams_max)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            // gRPC has no use for it, as in etcd.
            .auto_date_header(false)
            .keep_alive_interval(self.keepalive_interval);
        if let Some(timeout) = self.keepalive_timeout {
            http2.keep_alive_timeout(timeout);
        }
        builder
    }
}

/// Accepts and serves until `stop` changes, then lets calls in flight end.
pub(crate) async fn serve(
    listener: Listener,
    front: Front,
    serving: Serving,
    workers: Arc<Workers>,
    mut stop: watch::Receiver<bool>,
) {
    // Every connection holds a sender; the channel closes when the last one is gone.
    let (open, mut all_closed) = mpsc::channel::<()>(1);
    loop {
        tokio::select! {
            accepted = accept(&listener) => match accepted {
                Ok(stream) => {
                    let (builder, front) = (serving.builder(), front.clone());
                    let ping_min_time = serving.keepalive_min_time;
                    let (open, stop) = (open.clone(), stop.clone());
                    workers.run(move || {
                        tokio::spawn(async move {
                            connection(stream, ping_min_time, builder, front, stop).await;
                            drop(open);
                        });
                    });
                }
                Err(error) => {
                    // Out of file descriptors, as a rule: wait for some to come back.
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = stop.changed() => break,
        }
    }
    drop((listener, open));
    tokio::select! {
        _ = all_closed.recv() => {}
        () = serving.drain.wait() => {}
    }
}

enum Stream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// A connection that belongs to no runtime yet.
async fn accept(listener: &Listener) -> io::Result<Stream> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream.into_std()?))
        }
        Listener::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0.into_std()?)),
    }
}

async fn connection(
    stream: Stream,
    ping_min_time: Duration,
    builder: auto::Builder<Executor>,
    service: Front,
    stop: watch::Receiver<bool>,
) {
    match stream {
        Stream::Tcp(stream) => {
            if let Ok(stream) = tokio::net::TcpStream::from_std(stream) {
                drive(stream, ping_min_time, builder, service, stop).await;
            }
        }
        Stream::Unix(stream) => {
            if let Ok(stream) = tokio::net::UnixStream::from_std(stream) {
                drive(stream, ping_min_time, builder, service, stop).await;
            }
        }
    }
}

async fn drive<S>(
    stream: S,
    ping_min_time: Duration,
    builder: auto::Builder<Executor>,
    service: Front,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let corked = Corked::new(stream);
    let io = TokioIo::new(Policed::new(corked.clone(), ping_min_time));
    let connection = builder.serve_connection_with_upgrades(io, service);
    tokio::pin!(connection);
    tokio::select! {
        // Clients that break off or speak nonsense are their own business.
        () = poll_fn(|cx| corked.poll_task(connection.as_mut(), cx)) => {}
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            poll_fn(|cx| corked.poll_task(connection.as_mut(), cx)).await;
        }
    }
}
