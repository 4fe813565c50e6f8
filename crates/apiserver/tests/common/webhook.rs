//! Conversion webhooks. The webhook of links converts `hostPort: "h:1"` of the first version to `host: h` and `port: 1` of
//! the second. [`moved`] makes others from pairs of places, the first version's and the second's.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;

pub(crate) struct Webhook {
    pub url: String,
    /// Base64 of the PEM that a definition names.
    pub bundle: String,
    pub calls: Arc<AtomicUsize>,
    /// The call that fails, counted from 1; 0 for none.
    fails: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

/// Converts an object to a version.
type Convert = fn(Value, &str) -> Value;

impl Webhook {
    pub(crate) async fn start() -> Webhook {
        Webhook::start_with(convert).await
    }

    pub(crate) async fn start_with(convert: Convert) -> Webhook {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let certs = vec![CertificateDer::from_pem_slice(cert.as_bytes()).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(certs, key)
            .expect("a server's certificate");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}/convert", listener.local_addr().expect("an address"));
        let calls = Arc::new(AtomicUsize::new(0));
        let fails = Arc::new(AtomicUsize::new(0));
        let ear = Ear { tls: TlsAcceptor::from(Arc::new(config)), calls: calls.clone(), fails: fails.clone(), convert };
        let server = tokio::spawn(serve(listener, ear));
        Webhook { url, bundle: STANDARD.encode(cert), calls, fails, server }
    }

    /// Makes one of the next calls fail, counted from 1; 0 for none.
    pub(crate) fn fail_at(&self, call: usize) {
        let at = if call == 0 { 0 } else { self.calls() + call };
        self.fails.store(at, Ordering::SeqCst);
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// Returns once nothing listens any more.
    pub(crate) async fn stop(self) {
        self.server.abort();
        let _ = self.server.await;
    }
}

#[derive(Clone)]
struct Ear {
    tls: TlsAcceptor,
    calls: Arc<AtomicUsize>,
    fails: Arc<AtomicUsize>,
    convert: Convert,
}

async fn serve(listener: TcpListener, ear: Ear) {
    while let Ok((stream, _)) = listener.accept().await {
        let ear = ear.clone();
        tokio::spawn(async move {
            let Ok(stream) = ear.tls.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                let call = ear.calls.fetch_add(1, Ordering::SeqCst) + 1;
                let (fails, convert) = (ear.fails.load(Ordering::SeqCst) == call, ear.convert);
                async move {
                    let body = request.into_body().collect().await?.to_bytes();
                    let review: Value = serde_json::from_slice(&body).expect("a review");
                    let answer = answer(&review, convert, fails);
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer.to_string()))))
                }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer(review: &Value, convert: Convert, fails: bool) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version");
    let objects: Vec<Value> =
        request["objects"].as_array().expect("objects").iter().map(|object| convert(object.clone(), desired)).collect();
    let refused = objects.iter().any(|object| object["spec"]["host"] == "refuse");
    let result = match (fails, refused) {
        (true, _) => json!({"status": "Failure", "message": "not now"}),
        (_, true) => json!({"status": "Failure", "message": "the host refuses"}),
        _ => json!({"status": "Success"}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"],
           "response": {"uid": request["uid"], "convertedObjects": objects, "result": result}})
}

/// Moves each field from its place in one version to its place in the other, in the direction of `desired`.
pub(crate) fn moved(mut object: Value, desired: &str, places: &[(&str, &str)]) -> Value {
    for (first, second) in places {
        let (from, to) = if desired.ends_with("/v2") { (first, second) } else { (second, first) };
        if let Some(value) = take(&mut object, from) {
            put(&mut object, to, value);
        }
    }
    object["apiVersion"] = desired.into();
    object
}

fn take(object: &mut Value, pointer: &str) -> Option<Value> {
    let (parent, name) = pointer.rsplit_once('/')?;
    let value = object.pointer_mut(parent)?.as_object_mut()?.remove(name);
    // An empty parent within a place was created for this value.
    if parent.matches('/').count() > 1 && object.pointer(parent) == Some(&json!({})) {
        take(object, parent);
    }
    value
}

fn put(object: &mut Value, pointer: &str, value: Value) {
    let names: Vec<&str> = pointer.split('/').skip(1).collect();
    let mut here = object;
    for name in &names[..names.len() - 1] {
        here = &mut here[*name];
    }
    here[names[names.len() - 1]] = value;
}

fn convert(mut object: Value, desired: &str) -> Value {
    let spec = object["spec"].clone();
    object["spec"] = if desired.ends_with("/v2") {
        let (host, port) = spec["hostPort"].as_str().and_then(|text| text.split_once(':')).expect("host and port");
        json!({"host": host, "port": port})
    } else {
        let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
        json!({"hostPort": format!("{}:{}", text("host"), text("port"))})
    };
    object["apiVersion"] = desired.into();
    object
}
