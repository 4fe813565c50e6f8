//! A plain HTTPS client with the credentials of a kubeconfig, for requests that kubectl does not send.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures_util::FutureExt;
use harness::asynchronous::finish;
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

pub(crate) struct Http {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

pub(crate) struct Answer {
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

/// A TLS connection on which no request has been sent.
pub(crate) async fn tls(api: &apiserver::Server, identity: Option<(&[u8], &[u8])>) -> TlsStream<TcpStream> {
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

/// The events of a watch, one after the other.
pub(crate) struct Events {
    body: Incoming,
    /// The begin of an event that has not arrived completely.
    read: Vec<u8>,
}

impl Events {
    /// Begins a watch on a connection of its own.
    pub(crate) async fn open(api: &apiserver::Server, path: &str) -> Events {
        Http::connect(api).await.events(path).await
    }

    /// The next event, or `None` if the server has ended the watch. Waits until there is one.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        finish("a watch has an event", self.read_event()).await
    }

    /// The next events of a watch that goes on.
    pub(crate) async fn take(&mut self, count: usize) -> Vec<Value> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await.expect("the watch goes on"));
        }
        events
    }

    /// All events until the server ends the watch.
    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// True if the watch goes on and no event has arrived that was not returned.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.read_event().now_or_never().is_none()
    }

    async fn read_event(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("a complete event"));
            }
            let frame = self.body.frame().await?.expect("the watch ends properly");
            self.read.extend_from_slice(frame.data_ref().expect("data"));
        }
    }
}

impl Http {
    /// Connects as the administrator of the server.
    pub(crate) async fn connect(api: &apiserver::Server) -> Http {
        let (cert, key) = (field(api, "client-certificate-data"), field(api, "client-key-data"));
        Http::connect_as(api, Some((&cert, &key))).await
    }

    /// Connects with a certificate and its key, as PEM, or with none.
    pub(crate) async fn connect_as(api: &apiserver::Server, identity: Option<(&[u8], &[u8])>) -> Http {
        let host = api.url().trim_start_matches("https://").to_owned();
        let (sender, connection) = handshake(TokioIo::new(tls(api, identity).await)).await.expect("HTTP");
        tokio::spawn(connection);
        Http { sender, host }
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        self.send_for(method, path, [("content-type", media)], body).await
    }

    /// Sends a request with these headers.
    pub(crate) async fn send_for<'a>(
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

    /// The code, content type and bytes of the answer to a request without a body.
    pub(crate) async fn raw(&mut self, method: &str, path: &str) -> (u16, String, Bytes) {
        let request = http::Request::builder().method(method).uri(path).header("host", &self.host);
        let request = request.header("content-type", "application/merge-patch+json").body(Full::default());
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request.expect("a request")).await.expect("an answer");
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, code) = (kind.to_owned(), response.status().as_u16());
        (code, kind, response.into_body().collect().await.expect("a body").to_bytes())
    }

    /// The code, content type and bytes of a GET in this form.
    pub(crate) async fn get_bytes(&mut self, path: &str, accept: &str) -> (u16, String, Bytes) {
        let request = http::Request::builder().uri(path).header("host", &self.host).header("accept", accept);
        let request = request.body(Full::default()).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, code) = (kind.to_owned(), response.status().as_u16());
        (code, kind, response.into_body().collect().await.expect("a body").to_bytes())
    }

    /// The code, headers and bytes of a GET with these headers.
    pub(crate) async fn get_with(&mut self, path: &str, headers: &[(&str, &str)]) -> (u16, http::HeaderMap, Bytes) {
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

    /// The body of a watch, none of which has been read.
    pub(crate) async fn watch(&mut self, path: &str) -> Incoming {
        let request =
            http::Request::builder().uri(path).header("host", &self.host).body(Full::default()).expect("a request");
        self.sender.ready().await.expect("the connection is open");
        let response = self.sender.send_request(request).await.expect("an answer");
        assert_eq!(response.status(), 200);
        response.into_body()
    }

    /// Begins a watch, which occupies this connection as long as the returned value lives.
    pub(crate) async fn events(&mut self, path: &str) -> Events {
        Events { body: self.watch(path).await, read: Vec::new() }
    }

    /// The text of `/metrics`.
    pub(crate) async fn metrics(&mut self) -> String {
        String::from_utf8_lossy(&self.raw("GET", "/metrics").await.2).into_owned()
    }

    pub(crate) async fn json(&mut self, method: &str, path: &str, body: Value) -> Answer {
        self.send(method, path, "application/json", body.to_string()).await
    }

    pub(crate) async fn merge(&mut self, path: &str, body: Value) -> Answer {
        self.send("PATCH", path, "application/merge-patch+json", body.to_string()).await
    }
}
