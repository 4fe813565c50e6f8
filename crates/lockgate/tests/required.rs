//! Calls that require cluster features happen with the features on, or fail naming one that is off.

use crate::common;
use crate::required_calls;

use std::time::{Duration, Instant};

use client::{Client, Get, Put, Watch};
use common::{Member, Place, etcd::Etcd, group::Group, plain_http::ask, wait_for_feature as wait_for};
use futures_util::StreamExt;
use proto::etcdserverpb::{StatusRequest, maintenance_client::MaintenanceClient};
use required_calls::{Calls, KEY, OFF, ON, names};
use tonic::{Code, Status};

const FLAGS: &[&str] = &["--cluster-feature-gates=AtomicIncrement=true"];

async fn started() -> (Place, Member, Client) {
    let place = Place::new();
    let member = place.start(FLAGS);
    let client = member.client().await;
    wait_for(&client, ON, true).await;
    (place, member, client)
}

fn is_off(status: &Status, feature: &str) -> bool {
    status.code() == Code::FailedPrecondition && status.message().contains(&format!("{feature} is off"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_with_the_feature_on() {
    let (_place, member, client) = started().await;
    client.lease_grant(600, 7).await.expect("grant");
    for call in names() {
        let calls = Calls::new(&member, ON).await;
        let metadata = calls.run(call).await.unwrap_or_else(|status| panic!("{call}: {status:?}"));
        let echo: Vec<_> = metadata.get_all(KEY).iter().map(|value| value.to_str().expect("text")).collect();
        assert_eq!(echo, [ON], "{call}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_with_the_feature_off() {
    let (_place, member, client) = started().await;
    client.lease_grant(600, 7).await.expect("grant");
    client.put(Put::new("k", "v")).await.expect("put");
    let before = client.get(Get::prefix("")).await.expect("get");
    for call in names() {
        let status = Calls::new(&member, OFF).await.run(call).await.err();
        let status = status.unwrap_or_else(|| panic!("{call} was done"));
        assert!(is_off(&status, OFF), "{call}: {status:?}");
        let echo = status.metadata().get(KEY).and_then(|value| value.to_str().ok());
        assert_eq!(echo, Some(OFF), "{call}");
    }
    let after = client.get(Get::prefix("")).await.expect("get");
    assert_eq!((after.kvs, after.header.map(|h| h.revision)), (before.kvs, before.header.map(|h| h.revision)));
    assert_eq!(client.leases().await.expect("leases").leases.len(), 1);
    assert!(client.alarms().await.expect("alarms").alarms.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_nobody_knows_and_values_that_are_none() {
    let (_place, member, client) = started().await;
    let before = client.get("k").await.expect("get").header.map(|h| h.revision);
    for (value, code, words) in [
        ("NoSuchFeature", Code::FailedPrecondition, "\"NoSuchFeature\" is no cluster feature"),
        // What one member's flag says of itself is no promise of the cluster.
        ("LeaseCheckpoint", Code::FailedPrecondition, "\"LeaseCheckpoint\" is no cluster feature"),
        ("AtomicIncrement,NoSuchFeature", Code::FailedPrecondition, "NoSuchFeature"),
        ("", Code::InvalidArgument, "separated by commas"),
        (",", Code::InvalidArgument, "separated by commas"),
        ("AtomicIncrement=true", Code::InvalidArgument, "AtomicIncrement=true"),
    ] {
        for call in ["put", "range", "watch", "status"] {
            let status = Calls::new(&member, value).await.run(call).await.err();
            let status = status.unwrap_or_else(|| panic!("{call} with {value:?} was done"));
            assert_eq!(status.code(), code, "{call} {value:?}");
            assert!(status.message().contains(words), "{call} {value:?}: {}", status.message());
            assert!(status.metadata().contains_key(KEY), "{call} {value:?}");
        }
    }
    assert_eq!(client.get("k").await.expect("get").header.map(|h| h.revision), before);
    Calls::new(&member, "AtomicIncrement , AtomicIncrement").await.run("put").await.expect("named twice");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_gates_version() {
    let place = Place::new();
    let member = place.start(&["--initial-cluster-version=3.7", FLAGS[0]]);
    let client = member.client().await;
    common::wait_for_version(&client, "3.7.0").await;
    client.lease_grant(600, 7).await.expect("grant");
    for call in names() {
        let status = Calls::new(&member, ON).await.run(call).await.err();
        let status = status.unwrap_or_else(|| panic!("{call} was done"));
        assert_eq!(status.code(), Code::FailedPrecondition, "{call}: {status:?}");
        for word in [ON, "3.8", "3.7"] {
            assert!(status.message().contains(word), "{call}: {}", status.message());
        }
    }
    client.put(Put::new("k", "v")).await.expect("what requires nothing is served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_the_json_gateway() {
    let (_place, member, client) = started().await;
    let put = r#"{"key":"aw==","value":"dg=="}"#;
    let header = "Grpc-Metadata-require-feature";
    let (code, text) = ask(&member, "POST", "/v3/kv/put", &[(header, ON)], put);
    assert_eq!(code, 200, "{text}");
    assert!(text.to_lowercase().contains("grpc-metadata-require-feature: atomicincrement"), "{text}");
    let revision = client.get("k").await.expect("get").header.map(|h| h.revision);
    for (path, body) in [
        ("/v3/kv/put", put),
        ("/v3/kv/range", r#"{"key":"aw=="}"#),
        ("/v3/kv/txn", r#"{"success":[{"requestDeleteRange":{"key":"aw=="}}]}"#),
        ("/v3/watch", r#"{"create_request":{"key":"aw=="}}"#),
        ("/v3/maintenance/snapshot", "{}"),
        ("/v3/lock/lock", r#"{"name":"aw=="}"#),
    ] {
        for header in [header, "require-feature"] {
            let (code, text) = ask(&member, "POST", path, &[(header, OFF)], body);
            assert_eq!(code, 400, "{path}: {text}");
            assert!(text.contains("\"code\":9") && text.contains(&format!("{OFF} is off")), "{path}: {text}");
            assert!(text.to_lowercase().contains("grpc-metadata-require-feature: persisted"), "{path}: {text}");
        }
    }
    for value in ["", "NoSuchFeature", "a\tb"] {
        let (code, text) = ask(&member, "POST", "/v3/kv/put", &[(header, value)], put);
        assert_eq!(code, 400, "{value:?}: {text}");
    }
    assert_eq!(client.get("k").await.expect("get").header.map(|h| h.revision), revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_client() {
    let (_place, member, client) = started().await;
    let careful = client.require_feature(ON);
    careful.put(Put::new("k", "v")).await.expect("put");
    careful.get(Get::key("k").serializable()).await.expect("get");
    let mut watch = careful.watch(Watch::key("k").start_revision(1));
    assert_eq!(watch.next().await.expect("events").expect("events").events.len(), 1);
    let lease = careful.lease_grant(60, 0).await.expect("grant").id;
    careful.lease_keep_alive_once(lease).await.expect("renewal");
    let mut renewals = careful.lease_keep_alive(lease);
    renewals.next().await.expect("renewal").expect("renewal");
    careful.snapshot().await.expect("snapshot");
    let history = careful.feature_gate_history(0, false).await.expect("history").next().await;
    assert_eq!(history.expect("history").expect("changes").len(), 1);

    let refused = |error: client::Error| match error {
        client::Error::Etcd { code: Code::FailedPrecondition, message } if message.contains(OFF) => {}
        other => panic!("{other}"),
    };
    let wants_more = careful.require_feature(OFF);
    refused(wants_more.put(Put::new("k", "w")).await.unwrap_err());
    refused(wants_more.get("k").await.unwrap_err());
    refused(wants_more.watch(Watch::key("k")).next().await.expect("an end").unwrap_err().error);
    refused(wants_more.lease_keep_alive(lease).next().await.expect("an end").unwrap_err());
    refused(wants_more.lease_keep_alive_once(lease).await.unwrap_err());
    assert!(matches!(client.require_feature("A B").get("k").await, Err(client::Error::BadFeature { .. })));
    assert_eq!(client.get("k").await.expect("get").kvs[0].version, 1);

    // The connection goes with its member; the next one has to show anew who it is.
    let port = member.port;
    drop(member);
    let place = Place::new();
    let again = place.start_at(port, FLAGS);
    wait_for(&again.client().await, ON, true).await;
    careful.put(Put::new("k", "v")).await.expect("over a new connection");
}

/// A real etcd would do what it is sent. Where one comes to listen in the place of ours, nothing is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_etcd_in_the_place_of_ours() {
    let (_place, member, client) = started().await;
    let careful = client.require_feature(ON);
    careful.put(Put::new("k", "v")).await.expect("put");
    let port = member.port;
    drop(member);
    let Some(_etcd) = Etcd::start_at(port) else { return };
    for error in [
        careful.put(Put::new("k", "v")).await.unwrap_err(),
        careful.get("k").await.unwrap_err(),
        careful.lease_grant(60, 7).await.unwrap_err(),
        careful.watch(Watch::key("k")).next().await.expect("an end").unwrap_err().error,
        careful.lease_keep_alive(7).next().await.expect("an end").unwrap_err(),
        careful.snapshot().await.err().expect("a refusal"),
    ] {
        assert!(matches!(error, client::Error::FeaturesUnknown { .. }), "{error}");
        assert!(error.to_string().contains("would ignore"), "{error}");
    }
    assert_eq!(client.get("k").await.expect("get").count, 0);
    assert!(client.leases().await.expect("leases").leases.is_empty());
    client.put(Put::new("k", "v")).await.expect("what requires nothing is sent");
}

/// A member that says off turns the feature off for all. Streams on other members end, and writes by way of followers fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_end_when_the_gate_changes() {
    let mut group = Group::start(3, FLAGS);
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, true).await;
    }
    let client = group.member(0).client().await;
    client.lease_grant(600, 7).await.expect("grant");
    let mut open = Vec::new();
    for at in [0, 1] {
        let calls = Calls::new(group.member(at), ON).await;
        for (name, stream) in calls.streams().await {
            open.push((format!("{name} at {at}"), tokio::spawn(stream)));
        }
    }
    let without = client.watch(Watch::key("k"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    for (name, stream) in &open {
        assert!(!stream.is_finished(), "{name} ended while the feature is on");
    }
    group.restart(2, &["--cluster-feature-gates=AtomicIncrement=false"]);
    for (name, stream) in open {
        let ended = tokio::time::timeout(Duration::from_secs(20), stream).await;
        let status = ended.unwrap_or_else(|_| panic!("{name} goes on")).expect("task");
        assert!(is_off(&status, ON), "{name}: {status:?}");
    }
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, false).await;
        for call in ["put", "txn", "range", "increment", "lease grant", "lock", "watch"] {
            let status = Calls::new(group.member(at), ON).await.run(call).await.expect_err(call);
            assert!(is_off(&status, ON), "{call} at {at}: {status:?}");
        }
    }
    client.put(Put::new("k", "v")).await.expect("put");
    let mut without = without;
    assert!(without.next().await.expect("events").is_ok(), "a watch that requires nothing lives on");

    group.restart(2, FLAGS);
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, true).await;
        for call in ["put", "txn", "range", "increment"] {
            Calls::new(group.member(at), ON).await.run(call).await.unwrap_or_else(|s| panic!("{call} at {at}: {s:?}"));
        }
    }
}

/// Who asks for a leader as well is refused at once where there is none, and does not wait for one to judge the features.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_for_a_leader_does_not_wait_for_one() {
    let mut group = Group::start(3, FLAGS);
    wait_for(&group.member(0).client().await, ON, true).await;
    let channel = tonic::transport::Endpoint::from_shared(group.member(0).url()).expect("url").connect_lazy();
    let mut maintenance = MaintenanceClient::new(channel);
    group.stop(1);
    group.stop(2);
    // Until the member has noticed, its questions are answered by nobody.
    let begin = Instant::now();
    loop {
        let mut request = tonic::Request::new(StatusRequest::default());
        request.metadata_mut().insert("hasleader", "true".parse().expect("value"));
        request.metadata_mut().insert(KEY, ON.parse().expect("value"));
        let asked = Instant::now();
        let status = maintenance.status(request).await.expect_err("there is no leader");
        if status.message() == "etcdserver: no leader" && asked.elapsed() < Duration::from_secs(1) {
            assert_eq!(status.code(), Code::Unavailable);
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(25), "after {:?}: {status:?}", asked.elapsed());
    }
}

/// A learner has nobody to ask, and judges by what it has applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_learner() {
    let mut group = Group::start(1, FLAGS);
    wait_for(&group.member(0).client().await, ON, true).await;
    let at = group.add_learner(FLAGS).await;
    let learner = group.member(at);
    wait_for(&learner.client().await, ON, true).await;
    for call in ["serializable range", "status", "snapshot", "gate status", "history"] {
        Calls::new(learner, ON).await.run(call).await.unwrap_or_else(|status| panic!("{call}: {status:?}"));
        let status = Calls::new(learner, OFF).await.run(call).await.expect_err(call);
        assert!(is_off(&status, OFF), "{call}: {status:?}");
    }
    let status = Calls::new(learner, ON).await.run("range").await.expect_err("a linearizable read");
    assert_eq!(status.message(), "etcdserver: rpc not supported for learner");
}

/// While the gate goes off under load, each put is either done and answered so, or refused and leaves no trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_puts_leave_no_trace() {
    let mut group = Group::start(3, FLAGS);
    let client = group.member(0).client().await;
    wait_for(&client, ON, true).await;
    let careful = client.require_feature(ON);
    let writer = tokio::spawn(async move {
        let (mut done, mut refused, mut lost) = (0, 0, 0);
        for i in 0..100_000 {
            match careful.put(Put::new("k", i.to_string())).await {
                Ok(_) => done += 1,
                Err(client::Error::Etcd { code: Code::FailedPrecondition, .. }) => {
                    refused += 1;
                    if refused > 20 && done > 0 {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(error) if error.is_unavailable() => {
                    lost += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
        (done, refused, lost)
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    group.restart(2, &["--cluster-feature-gates=AtomicIncrement=false"]);
    let (done, refused, lost) = writer.await.expect("task");
    assert!(done > 0 && refused > 20, "{done} {refused}");
    // Each put that was done is one version of the key. One whose answer was lost may have been done.
    let found = client.get("k").await.expect("get").kvs[0].version;
    assert!((done..=done + lost).contains(&found), "{found} versions of {done} puts, {lost} answers lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_and_metrics() {
    let (_place, member, _client) = started().await;
    let (code, page) = ask(&member, "GET", "/feature-gates", &[], "");
    assert_eq!(code, 200);
    for words in [
        "This member's view",
        "\"cluster_version\": \"3.8\"",
        "\"name\": \"AtomicIncrement\"",
        "\"state\": \"on\"",
        "held off by member m1: flag says off",
        "\"proposes\": \"on\"",
        "all voters agree",
        "\"turned_on\": [\n",
    ] {
        assert!(page.contains(words), "no {words:?} in\n{page}");
    }
    assert_eq!(ask(&member, "POST", "/feature-gates", &[], "").0, 405);
    let (_, metrics) = ask(&member, "GET", "/metrics", &[], "");
    for line in [
        "lockgate_feature_enabled{name=\"AtomicIncrement\",scope=\"cluster\",stage=\"ALPHA\"} 1",
        "lockgate_feature_enabled{name=\"PersistedLeaseCheckpoints\",scope=\"cluster\",stage=\"ALPHA\"} 0",
        "lockgate_feature_enabled{name=\"FastLeaseKeepAlive\",scope=\"server\",stage=\"BETA\"} 1",
        "lockgate_feature_gate_changes_total 1",
        "lockgate_feature_gate_proposals_due 0",
        "etcd_server_feature_enabled{name=\"FastLeaseKeepAlive\",stage=\"BETA\"} 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "no {line:?}");
    }
    let cluster_row = metrics.lines().find(|line| line.starts_with("etcd_server_feature_enabled{name=\"Atomic"));
    assert_eq!(cluster_row, None, "etcd's metric has server features alone");
    let index = metrics.lines().find_map(|line| line.strip_prefix("lockgate_feature_gate_index ")).expect("an index");
    assert!(page.contains(&format!("\"gate_index\": {index}")), "{index} in\n{page}");
}

/// Requests that carry nothing are as before; those that do are counted by their codes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_counted_by_code() {
    let (_place, member, _client) = started().await;
    for call in ["put", "range", "watch"] {
        Calls::new(&member, OFF).await.run(call).await.expect_err(call);
    }
    let (_, metrics) = ask(&member, "GET", "/metrics", &[], "");
    for (service, method, kind) in [("KV", "Put", "unary"), ("KV", "Range", "unary"), ("Watch", "Watch", "bidi_stream")]
    {
        let line = format!(
            "grpc_server_handled_total{{grpc_code=\"FailedPrecondition\",grpc_method=\"{method}\",\
             grpc_service=\"etcdserverpb.{service}\",grpc_type=\"{kind}\"}} 1"
        );
        assert!(metrics.lines().any(|found| found == line), "no {line:?}");
    }
}
