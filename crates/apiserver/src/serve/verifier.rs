//! Client certificates: asked for, and judged when a request comes, so that a bad one is answered with 401 and not with a
//! broken handshake, as Kubernetes does.

use std::sync::Arc;

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        VerifierBuilderError, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::auth::User;

#[derive(Debug)]
pub(crate) struct LateVerifier {
    inner: Arc<dyn ClientCertVerifier>,
}

impl LateVerifier {
    pub(crate) fn new(authority: CertificateDer<'static>) -> Result<LateVerifier, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        // A certificate that cannot be added leaves the store empty, which the builder then refuses.
        let _ = roots.add(authority);
        let inner = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build()?;
        Ok(LateVerifier { inner })
    }

    /// What a certificate is worth at a time.
    fn judge(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Standing {
        let Some((leaf, rest)) = chain.split_first() else { return Standing::Nobody };
        match (self.inner.verify_client_cert(leaf, rest, now), X509Certificate::from_der(leaf)) {
            (Ok(_), Ok((_, cert))) => user(&cert, leaf).map_or(Standing::Nobody, Standing::Good),
            _ => Standing::Bad,
        }
    }
}

/// What a certificate says about its client, for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Good(User),
    /// It names nobody.
    Nobody,
    /// Not one of ours, or of another time.
    Bad,
}

/// Certificates that a client has shown. A connection may be open for longer than they are good, so each request asks again.
pub(crate) struct Shown {
    chain: Vec<CertificateDer<'static>>,
    verifier: Arc<LateVerifier>,
    /// What holds until the first of them expires, so that most requests cost no signatures.
    first: Standing,
    until: u64,
}

impl Shown {
    pub(crate) fn new(chain: &[CertificateDer<'_>], verifier: Arc<LateVerifier>) -> Shown {
        let chain: Vec<_> = chain.iter().map(|cert| cert.clone().into_owned()).collect();
        let first = verifier.judge(&chain, UnixTime::now());
        let until = chain.iter().map(expiry).min().unwrap_or_default();
        Shown { chain, verifier, first, until }
    }

    pub(crate) fn standing(&self) -> Standing {
        let now = UnixTime::now();
        match &self.first {
            Standing::Good(_) if now.as_secs() < self.until => self.first.clone(),
            _ => self.verifier.judge(&self.chain, now),
        }
    }
}

/// The last second in which a certificate is good; one that cannot be read never is.
fn expiry(cert: &CertificateDer<'_>) -> u64 {
    let parsed = X509Certificate::from_der(cert).map(|(_, cert)| cert.validity().not_after.timestamp());
    parsed.ok().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default()
}

/// Of several names the last counts, as in Go. The certificate is named too, for those who look into what was done with it.
fn user(cert: &X509Certificate<'_>, der: &[u8]) -> Option<User> {
    let subject = cert.subject();
    let name = subject.iter_common_name().last()?.as_str().ok().filter(|name| !name.is_empty())?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned).collect();
    let digest: String = Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
    let extra = [("authentication.kubernetes.io/credential-id".to_owned(), vec![format!("X509SHA256={digest}")])];
    Some(User { extra: extra.into(), ..User::new(name, groups) })
}

impl ClientCertVerifier for LateVerifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        // `judge` decides. That the client has the key is proven by the signatures below.
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
