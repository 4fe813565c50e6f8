//! TLS under the protocol: certificate and key from files, and connections that are through with their handshake.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use axum::serve::Listener;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::reload::Seen;

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Connections that are through and not served yet.
const WAITING_MAX: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("failed to read {what} from {}", path.display())]
    Read { what: &'static str, path: PathBuf, source: pem::Error },
    #[error("there is no certificate in {}", .0.display())]
    NoCertificate(PathBuf),
    #[error("certificate and key cannot be used together")]
    Config(#[from] rustls::Error),
}

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Tls {
    acceptor: Arc<RwLock<TlsAcceptor>>,
    files: Arc<Files>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    seen: Mutex<Seen>,
}

impl Tls {
    /// PEM files: the chain with the server's certificate first, and its key.
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, TlsError> {
        let mut seen = Seen::default();
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        seen.changes(&[&certificate, &key]);
        let acceptor = Arc::new(RwLock::new(acceptor(&certificate, &key)?));
        Ok(Tls { acceptor, files: Arc::new(Files { certificate, key, seen: Mutex::new(seen) }) })
    }

    /// Reads the files again if one of them has changed; true if so. While only one of the two is renewed they do not fit, which is
    /// an error, and the other one's renewal mends it.
    pub(crate) fn reload(&self) -> Result<bool, TlsError> {
        let Files { certificate, key, seen } = &*self.files;
        if !seen.lock().unwrap_or_else(PoisonError::into_inner).changes(&[certificate, key]) {
            return Ok(false);
        }
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor(certificate, key)?;
        Ok(true)
    }

    /// What new connections get.
    fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let failed = |what, path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Read { what, path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(failed("certificates", certificate))?;
    let chain: Vec<CertificateDer<'static>> = chain;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(failed("a private key", key))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Shaken = (TlsStream<TcpStream>, SocketAddr);

/// Handshakes are made beside each other: one that takes its time holds up nobody else.
pub(crate) struct TlsListener {
    shaken: mpsc::Receiver<Shaken>,
    address: SocketAddr,
}

impl TlsListener {
    pub(crate) fn start(listener: TcpListener, tls: Tls) -> io::Result<TlsListener> {
        let address = listener.local_addr()?;
        let (sender, shaken) = mpsc::channel(WAITING_MAX);
        tokio::spawn(accept(listener, tls, sender));
        Ok(TlsListener { shaken, address })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Shaken {
        match self.shaken.recv().await {
            Some(shaken) => shaken,
            // The other side never ends before this one does.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Ends with the listener that it accepts for.
async fn accept(mut listener: TcpListener, tls: Tls, shaken: mpsc::Sender<Shaken>) {
    loop {
        let (stream, address) = tokio::select! {
            // Waits a moment and goes on when there are too many files.
            accepted = Listener::accept(&mut listener) => accepted,
            () = shaken.closed() => return,
        };
        let (acceptor, shaken) = (tls.acceptor(), shaken.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            match tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => drop(shaken.send((stream, address)).await),
                Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
                Err(_) => tracing::debug!(%address, "TLS handshake took too long"),
            }
        });
    }
}
