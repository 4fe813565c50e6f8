//! Connections: TLS, then HTTP/1.1 or HTTP/2, each request to the handler with what is known of its client.

use std::{future::Future, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto::Builder, graceful::GracefulShutdown},
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsAcceptor;

use super::{
    answer::Body,
    auth::Peer,
    pki::Pair,
    verifier::{LateVerifier, Shown},
};

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(2);

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
pub struct Tls {
    acceptor: TlsAcceptor,
    verifier: Arc<LateVerifier>,
}

impl Tls {
    pub fn new(authority: &str, server: &Pair) -> Result<Tls, TlsError> {
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

/// Serves until `stop` is told; then lets requests under way end, for a moment.
pub async fn run<H, F>(listener: TcpListener, tls: Tls, handler: H, mut stop: watch::Receiver<bool>)
where
    H: Fn(Peer, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let graceful = Arc::new(GracefulShutdown::new());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Ok((stream, address)) => {
                let connection = connection(stream, address, tls.clone(), handler.clone(), graceful.watcher());
                tokio::spawn(connection);
            }
            Err(error) => rest(error).await,
        }
    }
    if let Ok(graceful) = Arc::try_unwrap(graceful) {
        let _ = tokio::time::timeout(STOP_MAX, graceful.shutdown()).await;
    }
}

/// Out of file descriptors, most likely: some will come free.
async fn rest(error: io::Error) {
    tracing::warn!(%error, "failed to accept a connection");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

async fn connection<H, F>(
    stream: TcpStream,
    address: SocketAddr,
    tls: Tls,
    handler: H,
    watcher: hyper_util::server::graceful::Watcher,
) where
    H: Fn(Peer, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE_MAX, tls.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%address, %error, "TLS handshake failed"),
        Err(_) => return tracing::debug!(%address, "TLS handshake took too long"),
    };
    let peer = match stream.get_ref().1.peer_certificates() {
        None => Peer::NoCertificate,
        Some(chain) => Peer::Certificate(Arc::new(Shown::new(chain, tls.verifier.clone()))),
    };
    let service = service_fn(move |request| {
        let answer = handler(peer.clone(), request);
        async move { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(30));
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(1000);
    let served = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(served).await {
        tracing::debug!(%address, %error, "connection ended");
    }
}
