//! A plain HTTPS client with the credentials of a kubeconfig, for what kubectl does not send.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

pub struct Http {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

pub struct Answer {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

/// A field of the administrator's kubeconfig.
fn field(api: &apiserver::Server, key: &str) -> Vec<u8> {
    let config = std::fs::read_to_string(api.kubeconfig()).expect("a kubeconfig");
    let line = config.lines().find_map(|line| line.trim().strip_prefix(key)).expect("a field of the kubeconfig");
    STANDARD.decode(line.trim_start_matches(':').trim()).expect("base64")
}

/// A connection over which nothing is said yet.
pub async fn tls(api: &apiserver::Server, identity: Option<(&[u8], &[u8])>) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(&field(api, "certificate-authority-data")).expect("CA");
    roots.add(authority).expect("CA");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
        .with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((cert, key)) => {
            let cert = CertificateDer::from_pem_slice(cert).expect("certificate");
            let key = PrivateKeyDer::from_pem_slice(key).expect("key");
            config.with_client_auth_cert(vec![cert], key).expect("a client certificate")
        }
    };
    let host = api.url().trim_start_matches("https://").to_owned();
    let stream = TcpStream::connect(&host).await.expect("a connection");
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("TLS")
}

impl Http {
    /// Connects as the administrator of the server.
    pub async fn connect(api: &apiserver::Server) -> Http {
        let (cert, key) = (field(api, "client-certificate-data"), field(api, "client-key-data"));
        Http::connect_as(api, Some((&cert, &key))).await
    }

    /// Connects with a certificate and its key, as PEM, or with none.
    pub async fn connect_as(api: &apiserver::Server, identity: Option<(&[u8], &[u8])>) -> Http {
        let host = api.url().trim_start_matches("https://").to_owned();
        let (sender, connection) = handshake(TokioIo::new(tls(api, identity).await)).await.expect("HTTP");
        tokio::spawn(connection);
        Http { sender, host }
    }

    pub async fn send(&mut self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        self.send_for(method, path, [("content-type", media)], body).await
    }

    /// The same, with these headers.
    pub async fn send_for<'a>(
        &mut self,
        method: &str,
        path: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = http::Request::builder().method(method).uri(path).header("host", &self.host);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        let warnings = response.headers().get_all("warning").iter().filter_map(|value| value.to_str().ok());
        let (warnings, code) = (warnings.map(str::to_owned).collect(), response.status().as_u16());
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings }
    }

    /// What a request without a body gets: code, content type and bytes.
    pub async fn raw(&mut self, method: &str, path: &str) -> (u16, String, Bytes) {
        let request = http::Request::builder().method(method).uri(path).header("host", &self.host);
        let request = request.header("content-type", "application/merge-patch+json").body(Full::default());
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request.expect("a request")).await.expect("an answer");
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, code) = (kind.to_owned(), response.status().as_u16());
        (code, kind, response.into_body().collect().await.expect("a body").to_bytes())
    }

    /// What is there in this form: code, content type and bytes.
    pub async fn get_bytes(&mut self, path: &str, accept: &str) -> (u16, String, Bytes) {
        let request = http::Request::builder().uri(path).header("host", &self.host).header("accept", accept);
        let request = request.body(Full::default()).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, code) = (kind.to_owned(), response.status().as_u16());
        (code, kind, response.into_body().collect().await.expect("a body").to_bytes())
    }

    /// What is there, for a client with these headers: code, headers and bytes.
    pub async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> (u16, http::HeaderMap, Bytes) {
        let mut request = http::Request::builder().uri(path).header("host", &self.host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.sender.ready().await.expect("the connection is open");
        let request = request.body(Full::default()).expect("a request");
        let response = self.sender.send_request(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        (parts.status.as_u16(), parts.headers, body.collect().await.expect("a body").to_bytes())
    }

    /// A watch whose events nobody has taken yet.
    pub async fn watch(&mut self, path: &str) -> Incoming {
        let request =
            http::Request::builder().uri(path).header("host", &self.host).body(Full::default()).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.into_body()
    }

    /// All events of a watch that ends by itself.
    pub async fn lines(&mut self, path: &str) -> Vec<Value> {
        let request =
            http::Request::builder().uri(path).header("host", &self.host).body(Full::default()).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    pub async fn json(&mut self, method: &str, path: &str, body: Value) -> Answer {
        self.send(method, path, "application/json", body.to_string()).await
    }

    pub async fn merge(&mut self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, "application/merge-patch+json", body.to_string()).await
    }
}
