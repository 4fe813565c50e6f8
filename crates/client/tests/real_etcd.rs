//! The client against a real etcd: answers, errors, and what happens when connections break.

use std::time::Duration;

use client::{Client, Compare, ConnectOptions, Delete, Error, Get, Kind, Put, Txn, Watch};
use futures_util::StreamExt;
use harness::{
    Group, Member, Place, Port, Proxy,
    asynchronous::{finish, until},
    wait_max,
};

const FLAGS: [&str; 1] = ["--unsafe-no-fsync"];
/// Long enough that a loaded machine renews in time, and short enough to wait for several renewals.
const LEASE_SECONDS: i64 = 5;
/// Does not expire during a test.
const LEASE_SECONDS_LONG: i64 = 600;

/// A cluster of one. The member is declared after its place, so that it is dropped first.
fn start() -> Option<(Place, Member)> {
    let place = Place::new(harness::etcd_dir(harness::ETCD)?.join("etcd"));
    let member = place.start(&FLAGS);
    Some((place, member))
}

fn start_cluster() -> Option<Group> {
    Some(Group::start(&harness::etcd_dir(harness::ETCD)?.join("etcd"), 3, &FLAGS))
}

async fn connect(endpoints: &[String]) -> Client {
    Client::connect(endpoints, ConnectOptions::new().request_timeout(wait_max())).await.unwrap()
}

#[tokio::test]
async fn keys() {
    let Some((_place, member)) = start() else { return };
    let client = member.client().await;
    client.put(Put::new("a", "1")).await.unwrap();
    let put = client.put(Put::new("a", "2").prev_kv()).await.unwrap();
    assert_eq!(put.prev_kv.unwrap().value, "1");
    assert_eq!(client.get("a").await.unwrap().kvs[0].value, "2");
    assert_eq!(client.get(Get::key("a").revision(2)).await.unwrap().kvs[0].value, "1");

    let txn = Txn::new()
        .when([Compare::value("a").eq("2"), Compare::version("a").gt(1), Compare::lease("a").eq(0)])
        .and_then([Put::new("b", "3").into(), Txn::new().and_then([Get::prefix("").into()]).into()])
        .or_else([Delete::key("a").into()]);
    let done = client.txn(txn).await.unwrap();
    assert!(done.succeeded && done.responses.len() == 2, "{done:?}");

    let deleted = client.delete(Delete::prefix("").prev_kv()).await.unwrap();
    assert_eq!(deleted.prev_kvs.len(), 2);
    client.compact(4, true).await.unwrap();
    let old = client.get(Get::key("a").revision(2)).await.unwrap_err();
    assert_eq!(old.kind(), Some(Kind::Compacted));
    let future = client.get(Get::key("a").revision(99)).await.unwrap_err();
    assert_eq!(future.kind(), Some(Kind::FutureRevision));
    let twice = Txn::new().and_then([Put::new("k", "1").into(), Put::new("k", "2").into()]);
    assert_eq!(client.txn(twice).await.unwrap_err().kind(), Some(Kind::DuplicateKey));
    let big = client.put(Put::new("k", vec![0; 3 << 20])).await.unwrap_err();
    assert!(big.to_string().contains("ResourceExhausted desc = trying to send message larger than max"), "{big}");
    let big = client.put(Put::new("k", vec![0; 1900 << 10])).await.unwrap_err();
    assert_eq!(big.kind(), Some(Kind::RequestTooLarge));
}

#[tokio::test]
async fn pages_hold_one_revision_while_others_write() {
    let Some((_place, member)) = start() else { return };
    let client = member.client().await;
    for i in 0..25 {
        client.put(Put::new(format!("k{i:02}"), "old")).await.unwrap();
    }
    let (mut pages, mut seen) = (client.pages(Get::prefix("k"), 7), Vec::new());
    while let Some(page) = pages.next().await.unwrap() {
        seen.extend(page.kvs);
        client.put(Put::new(format!("k{:02}x", seen.len()), "new")).await.unwrap();
        client.put(Put::new("k24", "new")).await.unwrap();
    }
    let keys: Vec<String> = (0..25).map(|i| format!("k{i:02}")).collect();
    assert_eq!(
        seen.iter().map(|kv| &kv.key[..]).collect::<Vec<_>>(),
        keys.iter().map(|k| k.as_bytes()).collect::<Vec<_>>()
    );
    assert!(seen.iter().all(|kv| kv.value == "old"));

    let mut limited = client.pages(Get::prefix("k").limit(10), 7);
    let sizes = [limited.next().await.unwrap().unwrap().kvs.len(), limited.next().await.unwrap().unwrap().kvs.len()];
    assert_eq!((sizes, limited.next().await.unwrap()), ([7, 3], None));

    let whole = client.get(Get::prefix("k")).await.unwrap();
    let streamed = client.range_stream(Get::prefix("k")).await.unwrap().collect().await.unwrap();
    assert_eq!(whole, streamed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_resume_without_loss_or_repetition() {
    let Some((_place, member)) = start() else { return };
    let proxies = [Proxy::start(member.address()), Proxy::start(member.address())];
    let mut endpoints: Vec<String> = proxies.iter().map(|proxy| proxy.address.to_string()).collect();
    let nobody = Port::reserve();
    endpoints.push(nobody.address());
    let (watching, writing) = (connect(&endpoints).await, member.client().await);

    let watcher = watching.watcher();
    let mut all = watcher.watch(Watch::prefix("k").start_revision(2).prev_kv().fragment());
    let mut puts = watcher.watch(Watch::prefix("k").start_revision(2).no_delete());
    const WRITES: i64 = 400;
    let writer = tokio::spawn(async move {
        for i in 0..WRITES {
            match i % 4 {
                3 => drop(writing.delete("k2").await.unwrap()),
                n => drop(writing.put(Put::new(format!("k{n}"), i.to_string())).await.unwrap()),
            }
            if i % 20 == 0 {
                proxies[(i / 20 % 2) as usize].cut();
                proxies[(i / 40 % 2) as usize].cut();
            }
        }
        proxies
    });
    let mut revisions = Vec::new();
    while revisions.last() != Some(&(WRITES + 1)) {
        let response = finish("a change is seen", all.next()).await;
        let events = response.unwrap().unwrap().events;
        assert!(events.iter().all(|e| e.kv.as_ref().unwrap().mod_revision < 6
            || e.prev_kv.is_some()
            || e.kv.as_ref().unwrap().key == "k2"));
        revisions.extend(events.iter().map(|event| event.kv.as_ref().unwrap().mod_revision));
    }
    assert_eq!(revisions, (2..WRITES + 2).collect::<Vec<i64>>());
    let mut count = 0;
    while count < WRITES / 4 * 3 {
        let response = finish("a put is seen", puts.next()).await;
        count += response.unwrap().unwrap().events.len() as i64;
    }
    assert_eq!(count, WRITES / 4 * 3);

    // All watches of the stream are sent the progress, up to the newest revision.
    let _proxies = writer.await.unwrap();
    for watch in [&mut all, &mut puts] {
        // etcd ignores a request for progress while a watch of the stream is behind.
        let progress = finish("progress is reported", async {
            loop {
                watcher.request_progress();
                if let Ok(response) = tokio::time::timeout(Duration::from_millis(300), watch.next()).await {
                    break response.unwrap().unwrap();
                }
            }
        })
        .await;
        assert_eq!((progress.events.len(), progress.header.unwrap().revision), (0, WRITES + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_from_now_on_misses_nothing_that_happens_while_it_is_cut_off() {
    let Some((_place, member)) = start() else { return };
    let proxy = Proxy::start(member.address());
    let (watching, writing) = (connect(&[proxy.address.to_string()]).await, member.client().await);
    writing.put(Put::new("k", "earlier")).await.unwrap();
    let mut watch = watching.watch(Watch::key("k"));
    // Watches of one stream are created in order: when a later one speaks, the first is there.
    let mut later = watching.watch(Watch::key("k").start_revision(2));
    assert_eq!(later.next().await.unwrap().unwrap().events.len(), 1);
    for round in 0..5 {
        proxy.cut();
        writing.put(Put::new("k", round.to_string())).await.unwrap();
        let events = loop {
            let response = finish("the put is seen", watch.next()).await;
            let events = response.unwrap().unwrap().events;
            if !events.is_empty() {
                break events;
            }
        };
        let values: Vec<_> = events.iter().map(|event| event.kv.as_ref().unwrap().value.clone()).collect();
        assert_eq!(values, [round.to_string()]);
    }
}

#[tokio::test]
async fn a_watch_from_a_compacted_revision_is_canceled_with_the_oldest_left() {
    let Some((_place, member)) = start() else { return };
    let client = member.client().await;
    for i in 0..5 {
        client.put(Put::new("a", i.to_string())).await.unwrap();
    }
    client.compact(5, false).await.unwrap();
    let mut watch = client.watch(Watch::key("a").start_revision(2));
    let canceled = watch.next().await.unwrap().unwrap_err();
    assert_eq!((canceled.error.kind(), canceled.response.compact_revision), (Some(Kind::Compacted), 5));
    assert!(watch.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_renewed_over_broken_connections_and_loss_is_told() {
    let Some((_place, member)) = start() else { return };
    let proxy = Proxy::start(member.address());
    let client = connect(&[proxy.address.to_string()]).await;
    let lease = client.lease_grant(LEASE_SECONDS, 0).await.unwrap().id;
    client.put(Put::new("guarded", "x").lease(lease)).await.unwrap();
    let mut renewals = client.lease_keep_alive(lease);
    for _ in 0..6 {
        assert_eq!(renewals.next().await.unwrap().unwrap().ttl, LEASE_SECONDS);
        proxy.cut();
    }
    let left = client.lease_time_to_live(lease, true).await.unwrap();
    assert!(left.ttl > 0 && left.keys == ["guarded"], "{left:?}");
    assert_eq!(client.leases().await.unwrap().leases.len(), 1);
    client.lease_revoke(lease).await.unwrap();
    let lost = loop {
        if let Err(error) = renewals.next().await.unwrap() {
            break error;
        }
    };
    assert_eq!(lost.kind(), Some(Kind::LeaseNotFound));
    let unknown = client.lease_keep_alive_once(lease).await.unwrap_err();
    assert_eq!(unknown.kind(), Some(Kind::LeaseNotFound));

    let lease = client.lease_grant(LEASE_SECONDS, 77).await.unwrap().id;
    let mut renewals = client.lease_keep_alive(lease);
    renewals.next().await.unwrap().unwrap();
    member.kill();
    proxy.cut();
    let lost = finish("the lease is lost", renewals.next()).await.unwrap().unwrap_err();
    assert!(matches!(lost, Error::LeaseLost { id: 77 }), "{lost}");
}

#[tokio::test]
async fn maintenance() {
    let Some((_place, member)) = start() else { return };
    let client = member.client().await;
    client.put(Put::new("a", vec![7; 100_000])).await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!(status.version, "3.7.3");
    assert!(client.is_serving("").await.unwrap());
    assert_ne!(client.hash_kv(0).await.unwrap().hash, 0);
    assert!(client.alarms().await.unwrap().alarms.is_empty());
    assert!(client.disarm_all().await.unwrap().is_empty());
    client.defragment().await.unwrap();
    let mut snapshot = client.snapshot().await.unwrap();
    let (mut size, announced) = (0, snapshot.remaining_bytes());
    while let Some(piece) = snapshot.next().await.unwrap() {
        size += piece.len() as u64;
    }
    assert_eq!((size % 512, size >= announced, snapshot.version()), (32, true, "3.7.0"));
    assert_eq!(client.move_leader(1).await.unwrap_err().kind(), Some(Kind::BadLeaderTransferee));
    assert_eq!(client.member_remove(1).await.unwrap_err().kind(), Some(Kind::MemberNotFound));
    client.sync_endpoints().await.unwrap();
    assert_eq!(client.endpoints(), [member.url()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_endpoint_is_passed_over_and_a_server_that_comes_up_is_waited_for() {
    let Some((place, member)) = start() else { return };
    let nobody = Port::reserve();
    let dead = nobody.address();
    let both = connect(&[dead.clone(), member.address().to_owned()]).await;
    for i in 0..10 {
        both.put(Put::new("a", i.to_string())).await.unwrap();
    }
    let none = connect(&[dead]).await.with_timeout(Duration::from_millis(300));
    let error = none.put(Put::new("a", "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "context deadline exceeded");
    member.kill();
    let alone = connect(&[place.address()]).await;
    let put = tokio::spawn(async move { alone.put(Put::new("a", "late")).await });
    // Gives the put time to find nobody.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let _member = tokio::task::block_in_place(|| place.start(&FLAGS));
    put.await.unwrap().unwrap();
    assert_eq!(both.get("a").await.unwrap().kvs[0].version, 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_on_when_its_leader_dies() {
    let Some(mut group) = start_cluster() else { return };
    let client = group.member(0).client().await;
    client.sync_endpoints().await.unwrap();
    assert_eq!(client.endpoints().len(), 3);
    let mut watch = client.require_leader().watch(Watch::prefix("k"));
    let lease = client.lease_grant(LEASE_SECONDS_LONG, 0).await.unwrap().id;
    let mut renewals = client.lease_keep_alive(lease);
    renewals.next().await.unwrap().unwrap();
    client.put(Put::new("k", "before").lease(lease)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events.len(), 1);

    for at in 0..3 {
        let status = client.only(group.member(at).address()).unwrap().status().await.unwrap();
        if status.leader == status.header.unwrap().member_id {
            group.kill(at);
            break;
        }
    }
    // The client repeats reads; a write may be lost with the leader, so the caller decides whether to repeat it.
    assert_eq!(client.get("k").await.unwrap().kvs[0].value, "before");
    until("a put succeeds", async || client.put(Put::new("k", "after").lease(lease)).await.is_ok()).await;
    for _ in 0..20 {
        client.get("k").await.unwrap();
    }
    client.lease_keep_alive_once(lease).await.unwrap();

    // A watch that needs a leader may have been told that there was none, but is never just silent.
    loop {
        match finish("the watch ends or continues", watch.next()).await {
            Some(Ok(response)) if response.events.iter().any(|e| e.kv.as_ref().unwrap().value == "after") => break,
            Some(Ok(_)) => {}
            Some(Err(canceled)) => {
                assert_eq!(canceled.error.kind(), Some(Kind::NoLeader));
                break;
            }
            None => panic!("the watch ended without a word"),
        }
    }
}

/// Two of three members gone: reads that any member can answer are answered, all else says that there is no leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_leader_calls_say_so_and_go_on_when_there_is_one_again() {
    let Some(mut group) = start_cluster() else { return };
    let all: Vec<_> = group.members().map(|member| member.address().to_owned()).collect();
    let client = connect(&all).await;
    client.put(Put::new("k", "before")).await.unwrap();
    // One member down is no trouble at all, whichever it is.
    group.kill(1);
    for i in 0..10 {
        until("a put succeeds", async || client.put(Put::new("k", i.to_string())).await.is_ok()).await;
        client.get("k").await.unwrap();
    }
    group.kill(2);
    let alone = client.only(group.member(0).address()).unwrap();
    until("the member has no leader", async || alone.status().await.unwrap().leader == 0).await;
    assert_eq!(alone.get(Get::key("k").serializable()).await.unwrap().kvs[0].value, "9");
    // A write is sent once, so the first member's word is final.
    let error = alone.require_leader().put(Put::new("k", "x")).await.unwrap_err();
    assert_eq!(error.kind(), Some(Kind::NoLeader));
    // A read is repeated until its timeout, and then reports the last error. The timeout is longer than one answer
    // takes on a loaded machine.
    let patient = alone.require_leader().with_timeout(Duration::from_secs(5));
    match patient.get("k").await.unwrap_err() {
        Error::Timeout { last: Some(last) } => assert_eq!(last.kind(), Some(Kind::NoLeader)),
        other => panic!("{other:?}"),
    }
    let mut watch = alone.require_leader().watch(Watch::prefix("k"));
    match finish("the watch is canceled", watch.next()).await {
        Some(Err(canceled)) => assert_eq!(canceled.error.kind(), Some(Kind::NoLeader)),
        other => panic!("{other:?}"),
    }
    // With a quorum again, a read that was waiting is answered.
    let waiting = client.with_timeout(wait_max()).require_leader();
    let read = tokio::spawn(async move { waiting.get("k").await });
    tokio::task::block_in_place(|| group.start_member(1, &FLAGS));
    assert_eq!(read.await.unwrap().unwrap().kvs[0].value, "9");
}
