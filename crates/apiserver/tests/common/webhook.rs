//! A conversion webhook of a kind whose first version has `hostPort: "h:1"` and whose second has `host: h` and `port: 1`.

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

pub struct Webhook {
    pub url: String,
    /// Base64 of the PEM that a definition names.
    pub bundle: String,
    pub calls: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Webhook {
    pub async fn start() -> Webhook {
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
        let server = tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), calls.clone()));
        Webhook { url, bundle: STANDARD.encode(cert), calls, server }
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, tls: TlsAcceptor, calls: Arc<AtomicUsize>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, calls) = (tls.clone(), calls.clone());
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(move |request: Request<Incoming>| {
                calls.fetch_add(1, Ordering::SeqCst);
                async move {
                    let body = request.into_body().collect().await?.to_bytes();
                    let review: Value = serde_json::from_slice(&body).expect("a review");
                    Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer(&review).to_string()))))
                }
            });
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn answer(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().expect("a version");
    let objects: Vec<Value> =
        request["objects"].as_array().expect("objects").iter().map(|object| convert(object.clone(), desired)).collect();
    let refused = objects.iter().any(|object| object["spec"]["host"] == "refuse");
    let result = match refused {
        true => json!({"status": "Failure", "message": "the host refuses"}),
        false => json!({"status": "Success"}),
    };
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"],
           "response": {"uid": request["uid"], "convertedObjects": objects, "result": result}})
}

fn convert(mut object: Value, desired: &str) -> Value {
    let spec = object["spec"].clone();
    object["spec"] = match desired.ends_with("/v2") {
        true => {
            let (host, port) = spec["hostPort"].as_str().and_then(|text| text.split_once(':')).expect("host and port");
            json!({"host": host, "port": port})
        }
        false => {
            let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
            json!({"hostPort": format!("{}:{}", text("host"), text("port"))})
        }
    };
    object["apiVersion"] = desired.into();
    object
}
