//! The protocol over TLS, with a client that trusts only the certificate in the file.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use harness::{
    TempDir,
    asynchronous::{finish, until},
};
use ofrep::{Source, Store, StoreFeature, Tls, TlsError, Tokens, View, router, serve_tls};
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};
use tokio_rustls::TlsConnector;

/// Certificate and key for `localhost` in files, and the certificate.
fn files(dir: &TempDir) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(dir.path().join("tls.crt"), pair.cert.pem()).unwrap();
    fs::write(dir.path().join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
    pair
}

#[tokio::test]
async fn answers_over_tls_and_for_tokens() {
    let dir = harness::tempdir();
    let pair = files(&dir);
    let tls = Tls::read(&dir.path().join("tls.crt"), &dir.path().join("tls.key")).unwrap();
    fs::write(dir.path().join("tokens"), "secret\n").unwrap();
    let tokens = Tokens::read(&dir.path().join("tokens")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let feature = StoreFeature { enabled: true, ..StoreFeature::default() };
    let store = Store { features: [("X".to_owned(), feature)].into(), ..Store::default() };
    let (_, views) = watch::channel(Arc::new(View { store: Source::known(store), ..View::default() }));
    tokio::spawn(serve_tls(listener, tls, router(views, Some(tokens))));

    // A client that only connects and one that does not use TLS do not block others.
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let connector = trusting(&pair);
    for (token, code) in [("secret", 200), ("other", 401)] {
        let status = finish("the server answers", status(address, connector.clone(), token)).await;
        assert_eq!(status, Some(code));
    }
}

#[test]
fn errors_name_the_invalid_file() {
    let dir = harness::tempdir();
    let _ = files(&dir);
    let [certificate, key, empty] = ["tls.crt", "tls.key", "empty"].map(|name| dir.path().join(name));
    fs::write(&empty, "").unwrap();
    assert!(matches!(Tls::read(&empty, &key), Err(TlsError::NoCertificate(path)) if path == empty));
    let error = Tls::read(&certificate, &empty).err().unwrap().to_string();
    assert_eq!(error, format!("failed to read a private key from {}", empty.display()));
    let missing = dir.path().join("missing");
    let error = Tls::read(&missing, &key).err().unwrap().to_string();
    assert_eq!(error, format!("failed to read certificates from {}", missing.display()));
    fs::write(&key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(matches!(Tls::read(&certificate, &key), Err(TlsError::Config(_))), "a key of another certificate");
    let error = Tokens::read(&empty).err().unwrap().to_string();
    assert_eq!(error, format!("the token file {} has no token; write one on each line", empty.display()));
}

/// Renewed files hold for the next connection and the next request. Invalid ones are ignored.
#[tokio::test]
async fn renewed_files_are_read_again() {
    let dir = harness::tempdir();
    let old = files(&dir);
    let [certificate, key, tokens] = ["tls.crt", "tls.key", "tokens"].map(|name| dir.path().join(name));
    fs::write(&tokens, "first\n").unwrap();
    let (tls, read) = (Tls::read(&certificate, &key).unwrap(), Tokens::read(&tokens).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_sender, views) = watch::channel(Arc::new(View { store: Source::known(Store::default()), ..View::default() }));
    tokio::spawn(serve_tls(listener, tls.clone(), router(views, Some(read.clone()))));
    tokio::spawn(ofrep::reload(Some(tls), Some(read), Duration::from_millis(10)));
    let status_is = async |pair: &rcgen::CertifiedKey<rcgen::KeyPair>, token: &str, want: Option<u16>| {
        let connector = trusting(pair);
        let what = format!("the status for {token} is {want:?}");
        until(&what, async || status(address, connector.clone(), token).await == want).await;
    };
    status_is(&old, "first", Some(404)).await;
    status_is(&old, "second", Some(401)).await;
    // The new certificate does not fit the old key: the old pair stays in use.
    let new = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(&certificate, new.cert.pem()).unwrap();
    fs::write(&tokens, "second\n").unwrap();
    status_is(&old, "second", Some(404)).await;
    status_is(&old, "first", Some(401)).await;
    // The reload reads the certificate before the tokens, so it has read the new certificate before this token.
    fs::write(&tokens, "second\nthird\n").unwrap();
    status_is(&old, "third", Some(404)).await;
    fs::write(&key, new.signing_key.serialize_pem()).unwrap();
    fs::remove_file(&tokens).unwrap();
    status_is(&old, "second", None).await;
    status_is(&new, "second", Some(404)).await;
    // All tokens are removed.
    fs::write(&tokens, "\n").unwrap();
    status_is(&new, "second", Some(401)).await;
}

fn trusting(pair: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(pair.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// The status of an answer; `None` if the server's certificate is not trusted.
async fn status(address: SocketAddr, connector: TlsConnector, token: &str) -> Option<u16> {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut stream = connector.connect(ServerName::try_from("localhost").unwrap(), stream).await.ok()?;
    let request = format!(
        "POST /ofrep/v1/evaluate/flags/store.X HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = Vec::new();
    // The server may close the connection without a TLS alert.
    let _ = stream.read_to_end(&mut said).await;
    String::from_utf8_lossy(&said).split(' ').nth(1).and_then(|code| code.parse().ok())
}
