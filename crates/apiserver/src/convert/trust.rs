//! Whom to believe to be a webhook.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        VerifierBuilderError, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// The certificates of a bundle (base64 of PEM).
pub(crate) fn roots(bundle: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = STANDARD.decode(bundle).map_err(|error| format!("unable to load root certificates: {error}"))?;
    let mut store = RootCertStore::empty();
    let mut certs = Vec::new();
    for cert in CertificateDer::pem_slice_iter(&pem) {
        let cert = cert.map_err(|error| format!("unable to load root certificates: {error}"))?;
        store.add(cert.clone()).map_err(|error| format!("unable to load root certificates: {error}"))?;
        certs.push(cert);
    }
    if certs.is_empty() {
        Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned())
    } else {
        Ok(certs)
    }
}

/// Trusts the bundle, or what the system trusts if there is none.
pub(super) fn tls(bundle: &str) -> Result<ClientConfig, String> {
    let certs = match bundle {
        "" => rustls_native_certs::load_native_certs().certs,
        bundle => roots(bundle)?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?.dangerous();
    let verifier = Trust::new(certs, provider).map_err(|error| error.to_string())?;
    Ok(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Judges as webpki does, and as Go does a certificate that is trusted itself: a server may show what is in the bundle, also if
/// it says of itself that it is an authority, as certificates that sign themselves mostly do.
#[derive(Debug)]
struct Trust {
    chains: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    certs: Vec<CertificateDer<'static>>,
}

impl Trust {
    fn new(certs: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Trust, VerifierBuilderError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certs.iter().cloned());
        // A system may trust nobody, and a webhook then is nobody.
        let chains = if roots.is_empty() {
            None
        } else {
            Some(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?)
        };
        Ok(Trust { chains, provider, certs })
    }

    /// A trusted certificate must be of this time and name.
    fn is_known(&self, shown: &CertificateDer<'_>, name: &ServerName<'_>, now: UnixTime) -> bool {
        let parsed = ParsedCertificate::try_from(shown);
        let times = X509Certificate::from_der(shown).map(|(_, cert)| cert.validity().clone());
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let timely = times.is_ok_and(|times| times.not_before.timestamp() <= now && now <= times.not_after.timestamp());
        timely && self.certs.contains(shown) && parsed.is_ok_and(|cert| verify_server_name(&cert, name).is_ok())
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = match &self.chains {
            Some(chains) => chains.verify_server_cert(shown, between, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        };
        if judged.is_err() && self.is_known(shown, name, now) {
            return Ok(ServerCertVerified::assertion());
        }
        judged
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::*;

    fn signs_itself(is_ca: bool) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["hook.example.com".to_owned()]).unwrap();
        params.is_ca = if is_ca { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    fn judge(
        trusted: &CertificateDer<'static>,
        shown: &CertificateDer<'static>,
        name: &'static str,
        years: u64,
    ) -> bool {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trust = Trust::new(vec![trusted.clone()], provider).unwrap();
        let now = UnixTime::now().as_secs() + years * 365 * 24 * 3600;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        trust.verify_server_cert(shown, &[], &ServerName::try_from(name).unwrap(), &[], now).is_ok()
    }

    /// `openssl req -x509` makes such a certificate.
    #[test]
    fn a_certificate_that_signs_itself_is_taken_if_it_is_in_the_bundle() {
        for is_ca in [true, false] {
            let cert = signs_itself(is_ca);
            assert!(judge(&cert, &cert, "hook.example.com", 0));
            assert!(!judge(&cert, &cert, "other.example.com", 0), "of another name");
            assert!(!judge(&cert, &cert, "hook.example.com", 5000), "of another time");
            assert!(!judge(&cert, &signs_itself(is_ca), "hook.example.com", 0), "not the one that is trusted");
        }
    }
}
