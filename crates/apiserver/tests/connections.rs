//! Idle connections are closed, and connections in use are not.

use crate::common;

use std::time::Duration;

use common::{
    World,
    http::{Events, Http, tls},
};
use harness::asynchronous::{finish, until};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

const IDLE_MAX: Duration = Duration::from_millis(300);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn impatient() -> World {
    World::start_with(|options| options.idle_max = IDLE_MAX)
}

/// Waits until the server closes the connection, with or without an error.
async fn until_closed(stream: &mut TlsStream<TcpStream>) {
    let mut read = Vec::new();
    let _ = finish("the server closes the connection", stream.read_to_end(&mut read)).await;
}

/// Found by attack: the server kept connections whose client sent nothing after the handshake, or only the preface of HTTP/2.
#[test]
fn connections_without_requests_are_closed() {
    let world = impatient();
    world.run(async {
        for said in [&b""[..], &PREFACE[..10], PREFACE] {
            let mut stream = tls(world.api(), None).await;
            stream.write_all(said).await.expect("sent");
            until_closed(&mut stream).await;
        }
    });
}

#[test]
fn a_connection_that_waits_for_events_is_kept() {
    let world = impatient();
    world.run(async {
        let path = "/api/v1/configmaps?watch=1&timeoutSeconds=3600";
        let mut events = Events::open(world.api(), path).await;
        // Connections that are opened later and stay idle are closed before.
        for _ in 0..5 {
            until_closed(&mut tls(world.api(), None).await).await;
        }
        assert!(events.is_silent(), "the watch goes on");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let made = Http::connect(world.api()).await.json("POST", "/api/v1/namespaces/default/configmaps", map).await;
        assert_eq!(made.code, 201, "{}", made.body);
        assert_eq!(events.next().await.map_or(Value::Null, |event| event["type"].clone()), "ADDED");
    });
}

/// One answer with its body.
async fn answer(stream: &mut TlsStream<TcpStream>) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
            if body.len() >= length.parse().expect("a number") {
                return text;
            }
        }
        let read = stream.read_buf(&mut read).await.expect("the connection is open");
        assert!(read > 0, "closed after {text:?}");
    }
}

/// Found by races: after a refusal that preceded the body, the connection was closed and the next request was lost.
#[test]
fn a_body_that_comes_after_the_refusal_does_not_end_the_connection() {
    let world = World::start();
    world.run(async {
        let mut stream = tls(world.api(), None).await;
        let mut observer = Http::connect(world.api()).await;
        for _ in 0..3 {
            let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
            stream.write_all(head.as_bytes()).await.expect("sent");
            stream.flush().await.expect("sent");
            // Without the body the server decides at once.
            let begun = r#"apiserver_current_inflight_requests{request_kind="mutating"} 1"#;
            until("the request is refused", async || observer.metrics().await.contains(begun)).await;
            stream.write_all(&[b'x'; 100]).await.expect("the server still listens");
            let said = answer(&mut stream).await;
            assert!(said.starts_with("HTTP/1.1 403") && !said.contains("connection: close"), "{said}");
        }
    });
}

#[test]
fn an_answer_announces_the_end_of_a_connection_whose_body_is_too_long_to_skip() {
    let world = World::start();
    world.run(async {
        let mut stream = tls(world.api(), None).await;
        let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("sent");
        // More than the server reads, and no more than the buffers of the connection hold.
        stream.write_all(&vec![b'x'; 300 * 1024]).await.expect("sent");
        let said = answer(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 403") && said.contains("connection: close"), "{said}");
    });
}
