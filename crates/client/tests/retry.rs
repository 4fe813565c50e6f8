//! Which requests are tried again when a server breaks off in the middle of a call.

use std::{
    io::{self, Read},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use client::{Client, ConnectOptions, Error, Get, Put, Txn};
use harness::asynchronous::until;

const TIMEOUT: Duration = Duration::from_secs(600);

/// A server that reads one request of a connection and then closes it. The number counts connections.
fn rude_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Relaxed);
            let _ = read_request(&mut stream);
        }
    });
    (address, calls)
}

/// Reads HTTP/2 frames up to the end of the first request.
fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    const PREFACE_BYTES: u64 = 24;
    const DATA: u8 = 0;
    const END_STREAM: u8 = 1;
    io::copy(&mut stream.take(PREFACE_BYTES), &mut io::sink())?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header)?;
        let [a, b, c, kind, flags, ..] = header;
        let length = u64::from(u32::from_be_bytes([0, a, b, c]));
        io::copy(&mut stream.take(length), &mut io::sink())?;
        if kind == DATA && flags & END_STREAM != 0 {
            return Ok(());
        }
    }
}

async fn client(address: String) -> Client {
    Client::connect([address], ConnectOptions::new().request_timeout(TIMEOUT)).await.unwrap()
}

#[tokio::test]
async fn writes_that_may_have_arrived_are_not_repeated() {
    let (address, calls) = rude_server();
    let client = client(address).await;
    let error = client.put(Put::new("a", "b")).await.unwrap_err();
    assert!(matches!(error, Error::Transport { sent: true, .. }), "{error:?}");
    assert_eq!(calls.load(Relaxed), 1);
    let error = client.txn(Txn::new().and_then([Put::new("a", "b").into()])).await.unwrap_err();
    assert!(matches!(error, Error::Transport { sent: true, .. }), "{error:?}");
    assert_eq!(calls.load(Relaxed), 2);
}

#[tokio::test]
async fn reads_are_repeated_until_time_is_over() {
    let (address, calls) = rude_server();
    let client = client(address).await;
    let (get, txn) = (client.clone(), client);
    let error = repeat_until_timeout(&calls, async move { get.get("a").await.unwrap_err() }).await;
    assert!(matches!(&error, Error::Timeout { last: Some(last) } if last.is_unavailable()), "{error:?}");
    let read = Txn::new().and_then([Get::key("a").into()]);
    let error = repeat_until_timeout(&calls, async move { txn.txn(read).await.unwrap_err() }).await;
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
}

/// Waits until the server has seen three attempts of `call`, and then moves the clock to its timeout.
async fn repeat_until_timeout(calls: &AtomicUsize, call: impl Future<Output = Error> + Send + 'static) -> Error {
    let before = calls.load(Relaxed);
    let call = tokio::spawn(call);
    until("the call is repeated", async || calls.load(Relaxed) > before + 2).await;
    tokio::time::pause();
    tokio::time::advance(TIMEOUT).await;
    let error = call.await.unwrap();
    tokio::time::resume();
    error
}

#[tokio::test]
async fn endpoints_that_need_tls_are_refused_by_name() {
    let refused = |endpoints: &'static [&'static str]| async move {
        Client::connect(endpoints.iter().copied(), ConnectOptions::new()).await.err().unwrap().to_string()
    };
    assert_eq!(
        refused(&["https://a:2379"]).await,
        "endpoint \"https://a:2379\" cannot be used: TLS is not supported yet; use host:port or http://host:port"
    );
    assert_eq!(refused(&[]).await, "etcdclient: no available endpoints");
}
