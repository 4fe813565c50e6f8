//! Invalid and unusual requests to this server and to a real etcd: equal codes and texts, or equal answers.

use crate::common::{channel, place};

use std::{fmt::Write, time::Duration};

use futures_util::StreamExt;
use harness::{
    ETCD, Member, Place,
    asynchronous::{finish, until},
};
use proto::etcdserverpb::{
    compare::{CompareResult, CompareTarget, TargetUnion},
    kv_client::KvClient,
    lease_client::LeaseClient,
    maintenance_client::MaintenanceClient,
    request_op::Request as Op,
    watch_client::WatchClient,
    watch_request::RequestUnion,
    *,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Status, transport::Channel};

/// A revision that no test reaches.
const FUTURE: i64 = 5000;
/// After this long without an answer, progress is requested again.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(300);

/// Appends an answer, without the numbers that differ between clusters.
fn show<T: std::fmt::Debug>(out: &mut String, name: &str, answer: Result<tonic::Response<T>, Status>) {
    let text = match answer {
        Ok(response) => format!("{:?}", response.into_inner()),
        Err(status) => format!("{:?}: {}", status.code(), status.message()),
    };
    writeln!(out, "{name}: {}", scrub(&text)).expect("write");
}

fn scrub(text: &str) -> String {
    let mut text = text.to_owned();
    for field in ["cluster_id: ", "member_id: ", "raft_term: ", "hash: "] {
        let mut from = 0;
        while let Some(at) = text[from..].find(field).map(|at| from + at + field.len()) {
            let end = at + text[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - at);
            text.replace_range(at..end, "_");
            from = at;
        }
    }
    text
}

fn key(key: &str, range_end: &str) -> RangeRequest {
    RangeRequest { key: key.to_owned().into(), range_end: range_end.to_owned().into(), ..Default::default() }
}

fn put(key: &str) -> PutRequest {
    PutRequest { key: key.to_owned().into(), value: "v".into(), ..Default::default() }
}

fn op(op: Op) -> RequestOp {
    RequestOp { request: Some(op) }
}

async fn kv(out: &mut String, channel: &Channel) {
    let mut kv = KvClient::new(channel.clone());
    for name in ["a", "b", "c"] {
        show(out, "put", kv.put(put(name)).await);
    }
    let ranges = [
        ("no key", key("", "")),
        ("negative limit", RangeRequest { limit: -1, ..key("a", "z") }),
        ("limit 1", RangeRequest { limit: 1, ..key("a", "z") }),
        ("negative revision", RangeRequest { revision: -1, ..key("a", "z") }),
        ("future", RangeRequest { revision: 1000, ..key("a", "z") }),
        ("end before start", key("c", "a")),
        ("end is start", key("b", "b")),
        ("all", RangeRequest { keys_only: true, ..key("\0", "\0") }),
        ("from b", RangeRequest { count_only: true, ..key("b", "\0") }),
        ("order 7", RangeRequest { sort_order: 7, ..key("a", "z") }),
        ("target 9", RangeRequest { sort_target: 9, sort_order: 1, ..key("a", "z") }),
        ("target only", RangeRequest { sort_target: 2, ..key("a", "z") }),
        ("descending", RangeRequest { sort_target: 0, sort_order: 2, limit: 2, ..key("a", "z") }),
        ("min mod", RangeRequest { min_mod_revision: 3, ..key("a", "z") }),
        ("max create 0", RangeRequest { max_create_revision: -5, ..key("a", "z") }),
        ("count and keys only", RangeRequest { count_only: true, keys_only: true, limit: 1, ..key("a", "z") }),
    ];
    for (name, request) in ranges {
        show(out, name, kv.range(request.clone()).await);
        match kv.range_stream(request).await {
            Ok(stream) => {
                let chunks: Vec<_> = stream.into_inner().take(10).collect().await;
                let text = chunks.iter().map(|c| match c {
                    Ok(chunk) => format!("{chunk:?}"),
                    Err(status) => format!("{:?}: {}", status.code(), status.message()),
                });
                writeln!(out, "stream {name}: {}", scrub(&text.collect::<Vec<_>>().join(" | "))).expect("write");
            }
            // A status before the first chunk and one in place of it are the same to clients.
            Err(status) => show::<()>(out, &format!("stream {name}"), Err(status)),
        }
    }
    let puts = [
        ("no key", put("")),
        ("unknown lease", PutRequest { lease: 77, ..put("x") }),
        ("negative lease", PutRequest { lease: -77, ..put("x") }),
        ("ignore value and value", PutRequest { ignore_value: true, ..put("a") }),
        ("ignore value of nothing", PutRequest { ignore_value: true, value: "".into(), ..put("nothing") }),
        ("ignore value", PutRequest { ignore_value: true, value: "".into(), prev_kv: true, ..put("a") }),
        ("ignore lease and lease", PutRequest { ignore_lease: true, lease: 5, ..put("a") }),
        ("ignore lease of nothing", PutRequest { ignore_lease: true, ..put("nothing") }),
    ];
    for (name, request) in puts {
        show(out, name, kv.put(request).await);
    }
    let delete = |k: &str, e: &str| DeleteRangeRequest {
        key: k.to_owned().into(),
        range_end: e.to_owned().into(),
        ..Default::default()
    };
    for (name, request) in [
        ("delete no key", delete("", "")),
        ("delete nothing", delete("nothing", "")),
        ("delete backwards", delete("c", "a")),
        ("delete with prev", DeleteRangeRequest { prev_kv: true, ..delete("c", "") }),
    ] {
        show(out, name, kv.delete_range(request).await);
    }
    txns(out, &mut kv).await;
    for revision in [-1, 0, 1000, 3, 3, 4] {
        let request = CompactionRequest { revision, physical: true };
        show(out, &format!("compact {revision}"), kv.compact(request).await);
    }
    show(out, "compacted", kv.range(RangeRequest { revision: 2, ..key("a", "z") }).await);
}

async fn txns(out: &mut String, kv: &mut KvClient<Channel>) {
    let compare = |target, union| Compare {
        result: CompareResult::Equal as i32,
        target,
        key: "a".into(),
        target_union: union,
        ..Default::default()
    };
    let success = |ops: Vec<RequestOp>| TxnRequest { success: ops, ..Default::default() };
    let nested = |ops| op(Op::RequestTxn(success(ops)));
    let del = DeleteRangeRequest { key: "a".into(), range_end: "z".into(), ..Default::default() };
    let many = (0..129).map(|i| op(Op::RequestPut(put(&format!("m{i}"))))).collect();
    let cases = [
        ("txn empty", TxnRequest::default()),
        ("txn empty op", success(vec![RequestOp::default()])),
        ("txn twice", success(vec![op(Op::RequestPut(put("x"))), op(Op::RequestPut(put("x")))])),
        ("txn put and delete", success(vec![op(Op::RequestPut(put("x"))), op(Op::RequestDeleteRange(del.clone()))])),
        ("txn delete twice", success(vec![op(Op::RequestDeleteRange(del.clone())), op(Op::RequestDeleteRange(del))])),
        ("txn nested twice", success(vec![op(Op::RequestPut(put("x"))), nested(vec![op(Op::RequestPut(put("x")))])])),
        ("txn nested", success(vec![nested(vec![op(Op::RequestPut(put("n"))), op(Op::RequestRange(key("n", "")))])])),
        ("txn too many", success(many)),
        ("txn no key", success(vec![op(Op::RequestRange(key("", "")))])),
        ("txn put no key", success(vec![op(Op::RequestPut(put("")))])),
        (
            "txn unknown lease",
            success(vec![op(Op::RequestPut(put("y1"))), op(Op::RequestPut(PutRequest { lease: 99, ..put("y2") }))]),
        ),
        (
            "txn future read after write",
            success(vec![
                op(Op::RequestPut(put("z1"))),
                op(Op::RequestRange(RangeRequest { revision: 9999, ..key("a", "") })),
            ]),
        ),
        ("txn future read", success(vec![op(Op::RequestRange(RangeRequest { revision: 9999, ..key("a", "") }))])),
        (
            "txn compare value without value",
            TxnRequest { compare: vec![compare(CompareTarget::Value as i32, None)], ..Default::default() },
        ),
        (
            "txn compare of another kind",
            TxnRequest {
                compare: vec![compare(CompareTarget::Version as i32, Some(TargetUnion::Value("v".into())))],
                ..Default::default()
            },
        ),
        ("txn compare target 9", TxnRequest { compare: vec![compare(9, None)], ..Default::default() }),
        (
            "txn compare result 9",
            TxnRequest { compare: vec![Compare { result: 9, ..compare(0, None) }], ..Default::default() },
        ),
        (
            "txn compare no key",
            TxnRequest { compare: vec![Compare { key: "".into(), ..compare(0, None) }], ..Default::default() },
        ),
    ];
    for (name, request) in cases {
        show(out, name, kv.txn(request).await);
    }
    show(out, "after txns", kv.range(RangeRequest { keys_only: true, ..key("\0", "\0") }).await);
}

async fn leases(out: &mut String, channel: &Channel) {
    let mut lease = LeaseClient::new(channel.clone());
    for (id, ttl) in
        [(5, 100), (5, 100), (6, 0), (7, -1), (8, i64::MAX), (9, 9_000_000_000), (10, 9_000_000_001), (-3, 60)]
    {
        let request = LeaseGrantRequest { id, ttl };
        show(out, &format!("grant {id} {ttl}"), lease.lease_grant(request).await);
    }
    for id in [0, 999, -3, -3] {
        show(out, &format!("revoke {id}"), lease.lease_revoke(LeaseRevokeRequest { id }).await);
        let request = LeaseTimeToLiveRequest { id, keys: true };
        show(out, &format!("time to live {id}"), lease.lease_time_to_live(request).await);
    }
    let requests = [0, 999, 5].map(|id| LeaseKeepAliveRequest { id });
    let mut answers = lease.lease_keep_alive(tokio_stream::iter(requests)).await.expect("stream").into_inner();
    while let Some(answer) = answers.next().await {
        show(out, "keep alive", answer.map(tonic::Response::new));
    }
}

async fn maintenance(out: &mut String, channel: &Channel) {
    let mut client = MaintenanceClient::new(channel.clone());
    for revision in [-1, 0, 2, 1000] {
        show(out, &format!("hash kv {revision}"), client.hash_kv(HashKvRequest { revision }).await);
    }
    for (action, alarm) in [(0, 0), (0, 9), (1, 0), (2, 1), (2, 0), (1, 1), (0, 1), (0, 0), (2, 1), (0, 0)] {
        let request = AlarmRequest { action, member_id: 1, alarm };
        show(out, &format!("alarm {action} {alarm}"), client.alarm(request).await);
    }
    show(out, "move leader", client.move_leader(MoveLeaderRequest { target_id: 1 }).await);
    show(out, "move leader 0", client.move_leader(MoveLeaderRequest { target_id: 0 }).await);
    for (action, version) in [(0, ""), (0, "x"), (0, "3.7.0"), (0, "3.9.0"), (0, "3.5"), (2, ""), (7, "3.6")] {
        let request = DowngradeRequest { action, version: version.into() };
        show(out, &format!("downgrade {action} {version:?}"), client.downgrade(request).await);
    }
}

async fn watches(out: &mut String, channel: &Channel) {
    let create = |key: &str, end: &str| WatchCreateRequest {
        key: key.to_owned().into(),
        range_end: end.to_owned().into(),
        ..Default::default()
    };
    let cases = [
        ("no key", create("", "")),
        ("backwards", create("c", "a")),
        ("empty", create("c", "c")),
        ("compacted", WatchCreateRequest { start_revision: 2, ..create("a", "") }),
        ("negative", WatchCreateRequest { start_revision: -1, ..create("a", "") }),
        ("negative id", WatchCreateRequest { watch_id: -9, ..create("a", "") }),
        ("id", WatchCreateRequest { watch_id: 3, ..create("a", "") }),
        ("future", WatchCreateRequest { start_revision: FUTURE, ..create("a", "") }),
        ("filter 9", WatchCreateRequest { filters: vec![9], ..create("a", "") }),
    ];
    for (name, case) in cases {
        let what = format!("a watch has all answers: {name}");
        let mut lines = finish(&what, watch_twice(channel, case)).await;
        // The order in which two watchers begin and end is up to threads.
        lines.sort();
        lines.iter().for_each(|line| writeln!(out, "watch {name}: {line}").expect("write"));
    }
}

/// All answers to a watch that is created twice on one stream.
///
/// The answers are complete when both watches are canceled, or when progress is reported: a server reports it only when
/// all watches of the stream have caught up with the past. A third watch makes sure that there is one to report progress
/// to. A watch of the future holds progress back, so it is canceled.
async fn watch_twice(channel: &Channel, create: WatchCreateRequest) -> Vec<String> {
    const SENTINEL: i64 = 1_000_000;
    let sentinel = WatchCreateRequest { key: "sentinel".into(), watch_id: SENTINEL, ..Default::default() };
    let is_future = create.start_revision >= FUTURE;
    let (requests, receiver) = mpsc::unbounded_channel();
    let send = |request| requests.send(WatchRequest { request_union: Some(request) }).expect("the stream is open");
    for create in [create.clone(), create, sentinel] {
        send(RequestUnion::CreateRequest(create));
    }
    let receiver = UnboundedReceiverStream::new(receiver);
    let mut answers = WatchClient::new(channel.clone()).watch(receiver).await.expect("watch").into_inner();
    let (mut lines, mut open, mut is_created) = (Vec::new(), 0, false);
    loop {
        let answer = match tokio::time::timeout(PROGRESS_INTERVAL, answers.next()).await {
            Ok(answer) => answer.expect("the stream is open").expect("an answer"),
            Err(_) => {
                // etcd ignores a request for progress while a watch of the stream is behind.
                send(RequestUnion::ProgressRequest(WatchProgressRequest {}));
                continue;
            }
        };
        let is_progress = answer.watch_id == -1 && !answer.created;
        if answer.watch_id == SENTINEL {
            is_created = true;
        } else if !is_progress {
            open += i32::from(answer.created) - i32::from(answer.canceled);
            lines.push(scrub(&format!("{answer:?}")));
        }
        if is_future && answer.created && answer.watch_id != SENTINEL {
            send(RequestUnion::CancelRequest(WatchCancelRequest { watch_id: answer.watch_id }));
        }
        // The third watch is created after the others.
        if is_created && (open == 0 || is_progress) {
            return lines;
        }
    }
}

async fn all(member: &Member) -> String {
    let channel = channel(member).await;
    until("there is a leader", async || {
        let status = MaintenanceClient::new(channel.clone()).status(StatusRequest::default()).await;
        status.is_ok_and(|status| status.get_ref().leader != 0)
    })
    .await;
    let mut out = String::new();
    kv(&mut out, &channel).await;
    leases(&mut out, &channel).await;
    watches(&mut out, &channel).await;
    maintenance(&mut out, &channel).await;
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_equal_those_of_a_real_etcd() {
    let Some(programs) = harness::etcd_dir(ETCD) else { return };
    let (etcd_place, place) = (Place::new(programs.join("etcd")), place());
    let (etcd, member) = (etcd_place.start(&[]), place.start(&["--initial-cluster-version=3.7"]));
    let (expected, found) = tokio::join!(all(&etcd), all(&member));
    let differences: Vec<_> = expected
        .lines()
        .zip(found.lines())
        .filter(|(expected, found)| expected != found)
        .map(|(expected, found)| format!("etcd:     {expected}\nlockgate: {found}\n"))
        .collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert_eq!(expected.lines().count(), found.lines().count());
}
