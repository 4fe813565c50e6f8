//! One JSON document there and one back, over HTTPS.

use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// An answer holds all objects of a page; more is somebody's mistake.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where a webhook is.
#[derive(Clone, Debug)]
pub struct Endpoint {
    host: String,
    port: u16,
    path: String,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}:{}{}", self.host, self.port, self.path)
    }
}

impl Endpoint {
    /// Reads a URL; the error says what is wrong with it, in Kubernetes' words.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        const FORM: &str = "; desired format: https://host[/path]";
        let uri: http::Uri = url.parse().map_err(|error| format!("url must be a valid URL: {error}{FORM}"))?;
        if uri.scheme_str() != Some("https") {
            return Err(format!("'https' is the only allowed URL scheme{FORM}"));
        }
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let host = uri.host().unwrap_or_default();
        match () {
            () if host.is_empty() => Err(format!("host must be specified{FORM}")),
            () if authority.contains('@') => Err("user information is not permitted in the URL".to_owned()),
            () if url.contains('#') => Err("fragments are not permitted in the URL".to_owned()),
            () if uri.query().is_some() => Err("query parameters are not permitted in the URL".to_owned()),
            () => {
                Ok(Endpoint { host: host.to_owned(), port: uri.port_u16().unwrap_or(443), path: uri.path().to_owned() })
            }
        }
    }

    /// Without the brackets of an IPv6 address.
    fn name(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// The authorities of a bundle (base64 of PEM).
pub fn roots(bundle: &str) -> Result<RootCertStore, String> {
    let pem = STANDARD.decode(bundle).map_err(|error| format!("unable to load root certificates: {error}"))?;
    let mut roots = RootCertStore::empty();
    for cert in CertificateDer::pem_slice_iter(&pem) {
        let cert = cert.map_err(|error| format!("unable to load root certificates: {error}"))?;
        roots.add(cert).map_err(|error| format!("unable to load root certificates: {error}"))?;
    }
    match roots.is_empty() {
        true => Err("unable to load root certificates: unable to parse bytes as PEM block".to_owned()),
        false => Ok(roots),
    }
}

/// Trusts the bundle, or what the system trusts if there is none.
pub fn tls(bundle: &str) -> Result<ClientConfig, String> {
    let roots = match bundle {
        "" => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            roots
        }
        bundle => roots(bundle)?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
}

pub async fn post(endpoint: &Endpoint, tls: Arc<ClientConfig>, body: &Value) -> Result<Value, String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let stream = TcpStream::connect((endpoint.name(), endpoint.port)).await.map_err(|error| text(&error))?;
    let name = ServerName::try_from(endpoint.name().to_owned()).map_err(|error| text(&error))?;
    let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| text(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(&endpoint.path)
        .header(http::header::HOST, format!("{}:{}", endpoint.host, endpoint.port))
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| text(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
    let code = answer.status();
    let bytes = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| text(&error));
    connection.abort();
    if !code.is_success() {
        return Err(format!("the server answered {code}"));
    }
    serde_json::from_slice(&bytes?.to_bytes()).map_err(|error| format!("the answer is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("https://example.com/convert" => "https://example.com:443/convert"; "sound")]
    #[test_case("https://[::1]:8443/" => "https://[::1]:8443/"; "address")]
    #[test_case("http://example.com/" => "! 'https' is the only allowed URL scheme; desired format: https://host[/path]"; "plain")]
    #[test_case("https://u@example.com/" => "! user information is not permitted in the URL"; "user")]
    #[test_case("https://example.com/?a" => "! query parameters are not permitted in the URL"; "query")]
    #[test_case("https://example.com/#a" => "! fragments are not permitted in the URL"; "fragment")]
    fn reads(url: &str) -> String {
        Endpoint::parse(url).map_or_else(|why| format!("! {why}"), |endpoint| endpoint.to_string())
    }
}
