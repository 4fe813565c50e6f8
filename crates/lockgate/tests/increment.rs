//! A write that belongs to a feature: refused on every path while the feature is off, and subject to the limits of a put.

use crate::common::{fill_quota, place, start_group, wait_for_feature, wait_for_version};

use client::{Client, Error, Get, Increment, Put};
use harness::{Member, Reply};
use tonic::Code;

const FEATURE: &str = "AtomicIncrement";
const ON: &str = "--cluster-feature-gates=AtomicIncrement=true";
const OFF: &str = "--cluster-feature-gates=AtomicIncrement=false";
/// With these flags, a killed member has to replay its log.
const LATE_COMMITS: [&str; 2] = ["--backend-batch-interval=1h", "--backend-batch-limit=1000000"];

async fn wait_for(client: &Client, on: bool) {
    wait_for_feature(client, FEATURE, on).await;
}

fn refused(result: client::Result<client::pb::IncrementResponse>) {
    match result {
        Err(Error::Etcd { code: Code::FailedPrecondition, message }) if message.contains("AtomicIncrement is off") => {}
        other => panic!("{other:?}"),
    }
}

async fn value(client: &Client, key: &'static str) -> Option<String> {
    let found = client.get(Get::key(key)).await.expect("get");
    found.kvs.first().map(|kv| String::from_utf8_lossy(&kv.value).into_owned())
}

/// Increments the key `n` over the JSON gateway.
fn increment_as_json(member: &Member, delta: i64) -> Reply {
    member.request("POST", "/v3/kv/increment", &[], &format!(r#"{{"key":"bg==","delta":"{delta}"}}"#))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn increments() {
    let place = place();
    let member = place.start(&[ON]);
    let client = member.client().await;
    wait_for(&client, true).await;
    let first = client.increment(Increment::new("n", 2).initial(40)).await.expect("increment");
    assert_eq!((first.value, first.created), (42, true));
    let next = client.increment(Increment::new("n", -2).initial(1000)).await.expect("increment");
    assert_eq!((next.value, next.created), (40, false));
    assert_eq!(value(&client, "n").await.as_deref(), Some("40"), "plain text, for every client");
    for (increment, code) in [
        (Increment::new("n", 1).max(40), Code::OutOfRange),
        (Increment::new("n", -1).min(40), Code::OutOfRange),
        (Increment::new("n", i64::MAX), Code::OutOfRange),
        (Increment::new("", 1), Code::InvalidArgument),
    ] {
        match client.increment(increment.clone()).await {
            Err(Error::Etcd { code: found, .. }) => assert_eq!(found, code, "{increment:?}"),
            other => panic!("{increment:?}: {other:?}"),
        }
    }
    client.put(Put::new("text", "hello")).await.expect("put");
    let error = client.increment(Increment::new("text", 1)).await.unwrap_err();
    assert!(error.to_string().contains("hello"), "{error}");
    let reply = increment_as_json(&member, 5);
    assert!(reply.status == 200 && reply.body.contains(r#""value":"45""#), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_by_every_member_while_off() {
    let mut group = start_group(3, &[ON]);
    let client = group.member(0).client().await;
    wait_for(&client, true).await;
    for at in 0..3 {
        // Two of the three are followers, which forward the request.
        let client = group.member(at).client().await;
        wait_for(&client, true).await;
        assert_eq!(client.increment(Increment::new("n", 1)).await.expect("increment").value, at as i64 + 1);
    }
    group.restart(2, &[OFF]);
    for at in 0..3 {
        let client = group.member(at).client().await;
        wait_for(&client, false).await;
        refused(client.increment(Increment::new("n", 1)).await);
        let reply = increment_as_json(group.member(at), 1);
        assert!(reply.status == 400 && reply.body.contains("AtomicIncrement is off"), "{reply:?}");
        assert_eq!(value(&client, "n").await.as_deref(), Some("3"));
    }
}

/// Entries are checked at their own index also when they are applied again, so the outcome stays as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replayed_after_a_restart() {
    let place = place();
    let member = place.start(&[ON, LATE_COMMITS[0], LATE_COMMITS[1]]);
    let client = member.client().await;
    wait_for(&client, true).await;
    for _ in 0..5 {
        client.increment(Increment::new("done", 1)).await.expect("increment");
    }
    member.kill();
    let member = place.start(&[OFF, LATE_COMMITS[0], LATE_COMMITS[1]]);
    let client = member.client().await;
    wait_for(&client, false).await;
    assert_eq!(value(&client, "done").await.as_deref(), Some("5"), "done while it was on");
    for _ in 0..5 {
        refused(client.increment(Increment::new("refused", 1)).await);
        refused(client.increment(Increment::new("done", 1)).await);
    }
    let revision = client.get("done").await.expect("get").header.map(|h| h.revision);
    member.kill();
    let member = place.start(&[ON]);
    let client = member.client().await;
    wait_for(&client, true).await;
    assert_eq!(value(&client, "refused").await, None, "refused while it was off");
    assert_eq!(value(&client, "done").await.as_deref(), Some("5"));
    assert_eq!(client.get("done").await.expect("get").header.map(|h| h.revision), revision);
    assert_eq!(client.increment(Increment::new("refused", 1)).await.expect("increment").value, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_gates_version() {
    let place = place();
    let member = place.start(&["--initial-cluster-version=3.7", ON]);
    let client = member.client().await;
    wait_for_version(&client, "3.7.0").await;
    match client.increment(Increment::new("n", 1)).await {
        Err(Error::Etcd { code: Code::FailedPrecondition, message }) => {
            assert!(["AtomicIncrement", "3.8", "3.7"].iter().all(|word| message.contains(word)), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let reply = increment_as_json(&member, 1);
    assert!(reply.status == 400 && reply.body.contains("3.8"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_a_put() {
    let place = place();
    let member = place.start(&[ON, "--quota-backend-bytes=400000", "--max-request-bytes=100000"]);
    let client = member.client().await;
    wait_for(&client, true).await;
    let error = client.increment(Increment::new(vec![b'k'; 100_001], 1)).await.unwrap_err();
    assert_eq!(error.kind(), Some(client::Kind::RequestTooLarge), "{error}");
    client.increment(Increment::new("n", 1)).await.expect("increment");
    fill_quota(&client).await;
    let error = client.increment(Increment::new("n", 1)).await.unwrap_err();
    assert_eq!(error.kind(), Some(client::Kind::NoSpace), "{error}");
    assert_eq!(value(&client, "n").await.as_deref(), Some("1"));
}
