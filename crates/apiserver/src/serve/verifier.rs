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
use x509_parser::prelude::{FromDer, X509Certificate};

use super::auth::User;

#[derive(Debug)]
pub struct LateVerifier {
    inner: Arc<dyn ClientCertVerifier>,
}

impl LateVerifier {
    pub fn new(authority: CertificateDer<'static>) -> Result<LateVerifier, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        // A certificate that cannot be added leaves the store empty, which the builder then refuses.
        let _ = roots.add(authority);
        let inner = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated().build()?;
        Ok(LateVerifier { inner })
    }

    /// Who the certificate speaks for, or `None` if it is not one of ours, or of another time.
    pub fn user(&self, chain: &[CertificateDer<'_>]) -> Option<User> {
        let (leaf, rest) = chain.split_first()?;
        self.inner.verify_client_cert(leaf, rest, UnixTime::now()).ok()?;
        let (_, cert) = X509Certificate::from_der(leaf).ok()?;
        let subject = cert.subject();
        let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned).collect();
        Some(User::new(name, groups))
    }
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
        // `user` decides. That the client has the key is proven by the signatures below.
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
