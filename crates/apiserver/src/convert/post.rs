//! One JSON document there and one back, over HTTPS.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::endpoint::Endpoint;

/// An answer holds all objects of a page; more is somebody's mistake.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The answer to a document; an error in the words of Kubernetes' client.
pub(super) async fn post(endpoint: &Endpoint, tls: Arc<ClientConfig>, body: &Value) -> Result<Value, String> {
    let lost = |why: String| format!("Post \"{endpoint}\": {why}");
    let (code, body) = exchange(endpoint, tls, body).await.map_err(lost)?;
    if !(200..300).contains(&code) {
        return Err(refusal(code, String::from_utf8_lossy(&body).trim()));
    }
    serde_json::from_slice(&body).map_err(|error| format!("the answer is not JSON: {error}"))
}

async fn exchange(endpoint: &Endpoint, tls: Arc<ClientConfig>, body: &Value) -> Result<(u16, Bytes), String> {
    let text = |error: &dyn fmt::Display| error.to_string();
    let (host, port) = endpoint.address()?;
    let stream = TcpStream::connect((host, port)).await.map_err(|error| text(&error))?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| text(&error))?;
    let stream = TlsConnector::from(tls).connect(name, stream).await.map_err(|error| text(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
    let connection = tokio::spawn(connection);
    let request = http::Request::post(endpoint.target())
        .header(http::header::HOST, endpoint.authority())
        .header(http::header::CONTENT_TYPE, "application/json")
        .header(http::header::ACCEPT, "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .map_err(|error| text(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
    let code = answer.status().as_u16();
    let bytes = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| text(&error));
    connection.abort();
    Ok((code, bytes?.to_bytes()))
}

/// What Kubernetes' client makes of an answer that is none.
fn refusal(code: u16, said: &str) -> String {
    let words = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 => "the server was unable to respond with a content type that the client supports",
        409 => "the server reported a conflict",
        415 => "the media type in the accept header is not supported by the server",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => return format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        _ => return format!("the server responded with the status code {code} but did not return more information"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_as_those_of_kubernetes_client() {
        assert_eq!(refusal(422, "x"), "the server rejected our request due to an error in our request");
        assert_eq!(refusal(500, "boom"), "an error on the server (\"boom\") has prevented the request from succeeding");
        assert_eq!(
            refusal(418, ""),
            "the server responded with the status code 418 but did not return more information"
        );
    }
}
