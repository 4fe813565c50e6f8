//! Connections that are held open for nothing are closed, and those that are in use are not.

use crate::common;

use std::time::{Duration, Instant};

use common::{
    World,
    http::{Http, tls},
};
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

/// All that comes until the server closes the connection, which it has to do in time.
async fn until_closed(stream: &mut TlsStream<TcpStream>) -> Vec<u8> {
    let mut read = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut read)).await;
    // How it is closed does not matter.
    let _ = ended.expect("the server closes the connection");
    read
}

/// Found by attack: a client that said nothing after the handshake, or began HTTP/2 and asked for nothing, was waited for for ever.
#[test]
fn who_asks_for_nothing_is_hung_up_on() {
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
fn who_waits_for_events_is_not() {
    let world = impatient();
    world.run(async {
        let began = Instant::now();
        let path = "/api/v1/configmaps?watch=1&timeoutSeconds=2";
        assert!(Http::connect(world.api()).await.lines(path).await.is_empty());
        assert!(began.elapsed() > IDLE_MAX * 5, "a watch is not idle");
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

/// Found by races: who was refused before the body had come found the connection closed, and the next request lost.
#[test]
fn a_body_that_comes_after_the_refusal_does_not_end_the_connection() {
    let world = World::start();
    world.run(async {
        let mut stream = tls(world.api(), None).await;
        for _ in 0..3 {
            let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n";
            stream.write_all(head.as_bytes()).await.expect("sent");
            stream.flush().await.expect("sent");
            tokio::time::sleep(Duration::from_millis(100)).await;
            stream.write_all(&[b'x'; 100]).await.expect("the server still listens");
            let said = answer(&mut stream).await;
            assert!(said.starts_with("HTTP/1.1 403") && !said.contains("connection: close"), "{said}");
        }
    });
}

#[test]
fn who_sends_far_more_than_is_read_is_told_that_the_connection_ends() {
    let world = World::start();
    world.run(async {
        let mut stream = tls(world.api(), None).await;
        let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: a\r\ncontent-length: 10000000\r\n\r\n";
        stream.write_all(head.as_bytes()).await.expect("sent");
        // As much as is read, and no more than fits on the way.
        stream.write_all(&vec![b'x'; 300 * 1024]).await.expect("sent");
        let said = answer(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 403") && said.contains("connection: close"), "{said}");
    });
}
