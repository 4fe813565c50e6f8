//! One request over a connection of its own, written as it stands: also what no HTTP library would send.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs::default_provider},
    pki_types::{CertificateDer, ServerName, UnixTime},
};

/// Whom a script has to do with unless a step says otherwise.
const TOKEN: &str = "Bearer secret";
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// A server on this machine.
pub struct Target {
    address: SocketAddr,
    tls: Arc<ClientConfig>,
}

pub struct Answer {
    pub code: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Target {
    pub fn new(address: SocketAddr) -> Result<Target> {
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let trust = builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider)));
        Ok(Target { address, tls: Arc::new(trust.with_no_client_auth()) })
    }

    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn send(&self, method: &str, target: &str, headers: &[(String, String)], body: &[u8]) -> Result<Answer> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let mut stream = StreamOwned::new(ClientConnection::new(self.tls.clone(), name)?, stream);
        let head = self.head(method, target, headers, body.len());
        // A server may answer, and close, before it has all of a large body.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).and_then(|()| stream.flush());
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        parse(&bytes).with_context(|| format!("no answer ({read:?})"))
    }

    fn head(&self, method: &str, target: &str, headers: &[(String, String)], length: usize) -> String {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        let given = |name: &str| headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name));
        if !given("Authorization") {
            head.push_str(&format!("Authorization: {TOKEN}\r\n"));
        }
        if !given("User-Agent") {
            head.push_str("User-Agent: requests\r\n");
        }
        if length > 0 || method == "POST" || method == "PUT" || method == "PATCH" {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }
}

fn parse(bytes: &[u8]) -> Result<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").context("no end of the headers")?;
    let (head, body) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 4..]);
    let mut lines = head.split("\r\n");
    let code = lines.next().and_then(|line| line.split(' ').nth(1)).context("no code")?.parse()?;
    let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    let mut answer = Answer { code, headers: lines.filter_map(header).collect(), body: body.to_vec() };
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = unchunked(body);
    }
    Ok(answer)
}

/// As far as it came.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&rest[..end]).trim(), 16).unwrap_or(0);
        let from = end + 2;
        if size == 0 || from + size > rest.len() {
            break;
        }
        body.extend_from_slice(&rest[from..from + size]);
        rest = rest.get(from + size + 2..).unwrap_or_default();
    }
    body
}

/// Certificates are made at the start of a server that is killed soon after; who it is has its test elsewhere.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_chunks_and_whole() {
        let whole = parse(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nA: b\r\n\r\nxy").expect("an answer");
        assert_eq!((whole.code, whole.header("a"), &*whole.body), (404, Some("b"), &b"xy"[..]));
        let chunks = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
        assert_eq!(chunks.expect("an answer").body, b"abcde");
        assert!(parse(b"").is_err());
    }
}
