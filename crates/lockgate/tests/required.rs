//! Calls that require cluster features: served while the features are on, otherwise refused with the name of one that is off.

use crate::{
    common::{add_learner, channel, place, start_group, wait_for_feature as wait_for, wait_for_version},
    required_calls::{Calls, KEY, OFF, ON, names},
};

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};

use client::{Client, Get, Put, Watch, WatchStream};
use futures_util::StreamExt;
use harness::{
    ETCD, Member, Place,
    asynchronous::{finish, until},
};
use proto::etcdserverpb::{StatusRequest, maintenance_client::MaintenanceClient};
use tonic::{Code, Status};

const FLAGS: &[&str] = &["--cluster-feature-gates=AtomicIncrement=true"];

/// A member that has the feature on. The member comes after its place, so that it is dropped first.
async fn started() -> (Place, Member, Client) {
    let place = place();
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
async fn unknown_names_and_invalid_values() {
    let (_place, member, client) = started().await;
    let before = client.get("k").await.expect("get").header.map(|h| h.revision);
    for (value, code, words) in [
        ("NoSuchFeature", Code::FailedPrecondition, "\"NoSuchFeature\" is no cluster feature"),
        // A feature of one server is not a feature of the cluster.
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
    let place = place();
    let member = place.start(&["--initial-cluster-version=3.7", FLAGS[0]]);
    let client = member.client().await;
    wait_for_version(&client, "3.7.0").await;
    client.lease_grant(600, 7).await.expect("grant");
    for call in names() {
        let status = Calls::new(&member, ON).await.run(call).await.err();
        let status = status.unwrap_or_else(|| panic!("{call} was done"));
        assert_eq!(status.code(), Code::FailedPrecondition, "{call}: {status:?}");
        for word in [ON, "3.8", "3.7"] {
            assert!(status.message().contains(word), "{call}: {}", status.message());
        }
    }
    client.put(Put::new("k", "v")).await.expect("a call without required features is served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn through_the_json_gateway() {
    let (_place, member, client) = started().await;
    let put = r#"{"key":"aw==","value":"dg=="}"#;
    let header = "Grpc-Metadata-require-feature";
    let reply = member.request("POST", "/v3/kv/put", &[(header, ON)], put);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.to_lowercase().contains("grpc-metadata-require-feature: atomicincrement"), "{reply:?}");
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
            let reply = member.request("POST", path, &[(header, OFF)], body);
            assert_eq!(reply.status, 400, "{path}: {reply:?}");
            assert!(reply.body.contains("\"code\":9"), "{path}: {reply:?}");
            assert!(reply.body.contains(&format!("{OFF} is off")), "{path}: {reply:?}");
            assert!(
                reply.head.to_lowercase().contains("grpc-metadata-require-feature: persisted"),
                "{path}: {reply:?}"
            );
        }
    }
    for value in ["", "NoSuchFeature", "a\tb"] {
        let reply = member.request("POST", "/v3/kv/put", &[(header, value)], put);
        assert_eq!(reply.status, 400, "{value:?}: {reply:?}");
    }
    assert_eq!(client.get("k").await.expect("get").header.map(|h| h.revision), revision);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rust_client() {
    let (place, member, client) = started().await;
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

    // The connection ends with its member; over the next one, the server has to identify itself again.
    let place = replace(place, member);
    let again = place.start(FLAGS);
    wait_for(&again.client().await, ON, true).await;
    careful.put(Put::new("k", "v")).await.expect("over a new connection");
}

/// Kills the member and deletes its data. Returns the place, where another member gets the same address.
fn replace(place: Place, member: Member) -> Place {
    member.kill();
    fs::remove_dir_all(place.data()).expect("delete the data");
    place
}

/// A real etcd would serve every call that it is sent. When one listens at the address of a Lockgate member, the client
/// sends nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_etcd_replaces_the_member() {
    let Some(programs) = harness::etcd_dir(ETCD) else { return };
    let (place, member, client) = started().await;
    let careful = client.require_feature(ON);
    careful.put(Put::new("k", "v")).await.expect("put");
    let mut place = replace(place, member);
    place.set_program(programs.join("etcd"));
    let _etcd = place.start(&[]);
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
    client.put(Put::new("k", "v")).await.expect("a call without required features is sent");
}

/// A member that proposes off turns the feature off for all. Streams on other members end, and writes through followers fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn streams_end_when_the_gate_changes() {
    let mut group = start_group(3, FLAGS);
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, true).await;
    }
    let client = group.member(0).client().await;
    client.lease_grant(600, 7).await.expect("grant");
    // With a leader of the election, each stream has something to say at its beginning.
    Calls::new(group.member(0), ON).await.run("campaign").await.expect("campaign");
    let mut open = Vec::new();
    for at in [0, 1] {
        let calls = Calls::new(group.member(at), ON).await;
        for (name, begun, stream) in calls.streams() {
            open.push((format!("{name} at {at}"), begun, tokio::spawn(stream)));
        }
    }
    let mut without = client.watch(Watch::key("k").start_revision(1));
    for value in ["1", "2"] {
        client.put(Put::new("k", value)).await.expect("put");
        next_value(&mut without, value).await;
    }
    for (name, begun, stream) in &mut open {
        finish(&format!("{name} has begun"), begun).await.unwrap_or_else(|_| panic!("{name} ended at once"));
        assert!(!stream.is_finished(), "{name} ended while the feature is on");
    }
    group.restart(2, &["--cluster-feature-gates=AtomicIncrement=false"]);
    for (name, _, stream) in open {
        let status = finish(&format!("{name} ends"), stream).await.expect("task");
        assert!(is_off(&status, ON), "{name}: {status:?}");
    }
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, false).await;
        for call in ["put", "txn", "range", "increment", "lease grant", "lock", "watch"] {
            let status = Calls::new(group.member(at), ON).await.run(call).await.expect_err(call);
            assert!(is_off(&status, ON), "{call} at {at}: {status:?}");
        }
    }
    client.put(Put::new("k", "3")).await.expect("put");
    // A watch without required features continues.
    next_value(&mut without, "3").await;

    group.restart(2, FLAGS);
    for at in 0..3 {
        wait_for(&group.member(at).client().await, ON, true).await;
        for call in ["put", "txn", "range", "increment"] {
            Calls::new(group.member(at), ON).await.run(call).await.unwrap_or_else(|s| panic!("{call} at {at}: {s:?}"));
        }
    }
}

async fn next_value(watch: &mut WatchStream, value: &str) {
    let response = finish("the put is seen", watch.next()).await.expect("the watch is open").expect("events");
    assert_eq!(response.events[0].kv.as_ref().expect("a key").value, value);
}

/// A call that requires a leader and a feature is refused at once if there is no leader. It does not wait for one to ask
/// about the feature, as a call without that requirement does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_require_a_leader_do_not_wait_for_one() {
    let mut group = start_group(3, FLAGS);
    wait_for(&group.member(0).client().await, ON, true).await;
    let maintenance = MaintenanceClient::new(channel(group.member(0)).await);
    group.stop(1);
    group.stop(2);
    let ask = async |needs_leader: bool| {
        let mut request = tonic::Request::new(StatusRequest::default());
        request.metadata_mut().insert(KEY, ON.parse().expect("value"));
        if needs_leader {
            request.metadata_mut().insert("hasleader", "true".parse().expect("value"));
        }
        maintenance.clone().status(request).await.expect_err("there is no leader")
    };
    // Until the member has noticed that the leader is gone, both wait.
    until("the call is refused before one that waits", async || {
        tokio::select! {
            biased;
            _ = ask(false) => false,
            status = ask(true) => (status.code(), status.message()) == (Code::Unavailable, "etcdserver: no leader"),
        }
    })
    .await;
}

/// A learner asks no other member; it checks features against the state that it has applied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_a_learner() {
    let mut group = start_group(1, FLAGS);
    wait_for(&group.member(0).client().await, ON, true).await;
    let at = add_learner(&mut group, FLAGS).await;
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

/// While the gate is turned off under load, each put is either done and answered, or refused without a trace.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_puts_leave_no_trace() {
    let mut group = start_group(3, FLAGS);
    let client = group.member(0).client().await;
    wait_for(&client, ON, true).await;
    let careful = client.require_feature(ON);
    let done = Arc::new(AtomicI64::new(0));
    let writer = tokio::spawn(put_until_refused(careful, done.clone()));
    until("a put is done", async || done.load(SeqCst) > 0).await;
    group.restart(2, &["--cluster-feature-gates=AtomicIncrement=false"]);
    let lost = finish("puts are refused", writer).await.expect("task");
    let done = done.load(SeqCst);
    // Each put that was done is one version of the key. One whose answer was lost may have been done.
    let found = client.get("k").await.expect("get").kvs[0].version;
    assert!((done..=done + lost).contains(&found), "{found} versions of {done} puts, {lost} answers lost");
}

/// Writes one key until many puts were refused. Returns how many were neither done nor refused.
async fn put_until_refused(careful: Client, done: Arc<AtomicI64>) -> i64 {
    let (mut refused, mut lost) = (0, 0);
    for number in 0u64.. {
        match careful.put(Put::new("k", number.to_string())).await {
            Ok(_) => _ = done.fetch_add(1, SeqCst),
            Err(client::Error::Etcd { code: Code::FailedPrecondition, .. }) => {
                refused += 1;
                if refused > 20 {
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
    lost
}

/// Waits until a page contains all of `parts`, and returns it.
async fn wait_for_page(member: &Member, path: &str, parts: &[&str]) -> String {
    let mut page = String::new();
    for part in parts {
        until(&format!("{path} contains {part:?}"), async || {
            page = member.request("GET", path, &[], "").body;
            page.contains(part)
        })
        .await;
    }
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn page_and_metrics() {
    let (_place, member, _client) = started().await;
    let parts = [
        "This member's view",
        "\"cluster_version\": \"3.8\"",
        "\"name\": \"AtomicIncrement\"",
        "\"state\": \"on\"",
        "held off by member m1: flag says off",
        "\"proposes\": \"on\"",
        "all voters agree",
        "\"turned_on\": [\n",
    ];
    let page = wait_for_page(&member, "/feature-gates", &parts).await;
    assert_eq!(member.request("POST", "/feature-gates", &[], "").status, 405);
    let lines = [
        "lockgate_feature_enabled{name=\"AtomicIncrement\",scope=\"cluster\",stage=\"ALPHA\"} 1",
        "lockgate_feature_enabled{name=\"PersistedLeaseCheckpoints\",scope=\"cluster\",stage=\"ALPHA\"} 0",
        "lockgate_feature_enabled{name=\"FastLeaseKeepAlive\",scope=\"server\",stage=\"BETA\"} 1",
        "lockgate_feature_gate_changes_total 1",
        "lockgate_feature_gate_proposals_due 0",
        "etcd_server_feature_enabled{name=\"FastLeaseKeepAlive\",stage=\"BETA\"} 1",
    ];
    let lines = lines.map(|line| format!("\n{line}\n"));
    let metrics = wait_for_page(&member, "/metrics", &lines.each_ref().map(String::as_str)).await;
    let cluster_row = metrics.lines().find(|line| line.starts_with("etcd_server_feature_enabled{name=\"Atomic"));
    assert_eq!(cluster_row, None, "etcd's metric has only server features");
    let index = metrics.lines().find_map(|line| line.strip_prefix("lockgate_feature_gate_index ")).expect("an index");
    assert!(page.contains(&format!("\"gate_index\": {index}")), "{index} in\n{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_counted_by_code() {
    let (_place, member, _client) = started().await;
    for call in ["put", "range", "watch"] {
        Calls::new(&member, OFF).await.run(call).await.expect_err(call);
    }
    for (service, method, kind) in [("KV", "Put", "unary"), ("KV", "Range", "unary"), ("Watch", "Watch", "bidi_stream")]
    {
        let line = format!(
            "grpc_server_handled_total{{grpc_code=\"FailedPrecondition\",grpc_method=\"{method}\",\
             grpc_service=\"etcdserverpb.{service}\",grpc_type=\"{kind}\"}} 1\n"
        );
        // A call is counted when its reply ends, which may be after the client has its status.
        wait_for_page(&member, "/metrics", &[&line]).await;
    }
}
