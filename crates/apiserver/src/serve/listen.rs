//! Connections: TLS, then HTTP/1.1 or HTTP/2, each request to the handler with what is known of its client.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
};
use tokio_rustls::TlsAcceptor;

use super::{
    activity::Activity,
    answer::Body,
    auth::Peer,
    pki::Pair,
    verifier::{LateVerifier, Shown},
};

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(2);
/// A client that has vanished without a word is noticed by what it does not answer, also while it watches.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WAIT_MAX: Duration = Duration::from_secs(20);
const PROBE_EVERY: Duration = Duration::from_secs(15);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the certificate or key of the server cannot be used")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("the certificate authority cannot be used for clients")]
    Authority(#[from] rustls::server::VerifierBuilderError),
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
}

#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    verifier: Arc<LateVerifier>,
}

impl Tls {
    pub(crate) fn new(authority: &str, server: &Pair) -> Result<Tls, TlsError> {
        let chain = vec![CertificateDer::from_pem_slice(server.cert.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes())?;
        let verifier = Arc::new(LateVerifier::new(CertificateDer::from_pem_slice(authority.as_bytes())?)?);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier.clone())
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), verifier })
    }
}

/// What all connections share.
#[derive(Clone)]
pub(crate) struct Setting<H> {
    pub tls: Tls,
    pub handler: H,
    /// How long a connection may be open on which nothing is asked.
    pub idle_max: Duration,
    pub stop: watch::Receiver<bool>,
}

/// Serves until it is told to stop; then lets requests under way end, for a moment.
pub(crate) async fn run<H, F>(listener: TcpListener, mut setting: Setting<H>)
where
    H: Fn(Peer, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    // Each connection has a sender, so that the last has ended when there is none.
    let (open, mut closed) = mpsc::channel::<std::convert::Infallible>(1);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = setting.stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let (setting, open) = (setting.clone(), open.clone());
                tokio::spawn(async move {
                    connection(stream, address, setting).await;
                    drop(open);
                });
            }
            Err(error) => rest(error).await,
        }
    }
    drop(open);
    let _ = tokio::time::timeout(STOP_MAX, closed.recv()).await;
}

/// Out of file descriptors, most likely: some will come free.
async fn rest(error: io::Error) {
    tracing::warn!(%error, "failed to accept a connection");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn connection<H, F>(stream: TcpStream, address: SocketAddr, setting: Setting<H>)
where
    H: Fn(Peer, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let Setting { tls, handler, idle_max, mut stop } = setting;
    prepare(&stream);
    let stream = match tokio::time::timeout(HANDSHAKE_MAX, tls.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%address, %error, "TLS handshake failed"),
        Err(_) => return tracing::debug!(%address, "TLS handshake took too long"),
    };
    let peer = match stream.get_ref().1.peer_certificates() {
        None => Peer::NoCertificate,
        Some(chain) => Peer::Certificate(Arc::new(Shown::new(chain, tls.verifier.clone()))),
    };
    let activity = Activity::new();
    let asked = activity.clone();
    let service = service_fn(move |request| {
        let (busy, answer) = (asked.begin(), handler(peer.clone(), request));
        async move { Ok::<_, std::convert::Infallible>(answer.await.map(|body| busy.until_sent(body))) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    let mut http2 = builder.http2();
    http2.timer(TokioTimer::new()).max_concurrent_streams(1000);
    http2.keep_alive_interval(PING_EVERY).keep_alive_timeout(PONG_WAIT_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = async { tokio::select! { () = activity.idle_for(idle_max) => {}, _ = stop.wait_for(|stop| *stop) => {} } } => {
            served.as_mut().graceful_shutdown();
            tokio::time::timeout(STOP_MAX, served).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, %error, "connection ended");
    }
}

fn prepare(stream: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(PROBE_EVERY).with_interval(PROBE_EVERY);
    // One that cannot be had is no reason to refuse a client.
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
}
