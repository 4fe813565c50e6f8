//! Which requests are tried again when a server breaks off in the middle of a call.

use std::{
    io::Read,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use client::{Client, ConnectOptions, Error, Get, Put, Txn};

/// A server that reads what it is sent and then hangs up; counts connections.
fn rude_server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Relaxed);
            let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).is_ok_and(|n| n > 0) {}
        }
    });
    (address, calls)
}

async fn client(address: String) -> Client {
    let options = ConnectOptions::new().request_timeout(Duration::from_millis(800));
    Client::connect([address], options).await.unwrap()
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
    let error = client.get("a").await.unwrap_err();
    assert!(matches!(&error, Error::Timeout { last: Some(last) } if last.is_unavailable()), "{error:?}");
    let after_get = calls.load(Relaxed);
    assert!(after_get > 2, "{after_get} attempts");
    let error = client.txn(Txn::new().and_then([Get::key("a").into()])).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(calls.load(Relaxed) > after_get + 2);
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
