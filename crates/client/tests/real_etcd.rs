//! The client against a real etcd: answers, errors, and what happens when connections break.

use crate::support;

use std::time::Duration;

use client::{Client, Compare, ConnectOptions, Delete, Error, Get, Kind, Put, Txn, Watch};
use futures_util::StreamExt;
use support::{Proxy, Server, free_port, peer};

fn start() -> Option<Server> {
    peer("3.7.3", "etcd").map(|program| Server::start(&program))
}

async fn connect(endpoints: &[String]) -> Client {
    let options = ConnectOptions::new().request_timeout(Duration::from_secs(10));
    Client::connect(endpoints, options).await.unwrap()
}

#[tokio::test]
async fn keys() {
    let Some(server) = start() else { return };
    let client = connect(std::slice::from_ref(&server.client)).await;
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
    let Some(server) = start() else { return };
    let client = connect(std::slice::from_ref(&server.client)).await;
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
    let Some(server) = start() else { return };
    let proxies = [Proxy::start(&server.client), Proxy::start(&server.client)];
    let mut endpoints: Vec<String> = proxies.iter().map(|proxy| proxy.address.to_string()).collect();
    endpoints.push(format!("127.0.0.1:{}", free_port()));
    let (watching, writing) = (connect(&endpoints).await, connect(std::slice::from_ref(&server.client)).await);

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
        let response = tokio::time::timeout(Duration::from_secs(20), all.next()).await.expect("event in time");
        let events = response.unwrap().unwrap().events;
        assert!(events.iter().all(|e| e.kv.as_ref().unwrap().mod_revision < 6
            || e.prev_kv.is_some()
            || e.kv.as_ref().unwrap().key == "k2"));
        revisions.extend(events.iter().map(|event| event.kv.as_ref().unwrap().mod_revision));
    }
    assert_eq!(revisions, (2..WRITES + 2).collect::<Vec<i64>>());
    let mut count = 0;
    while count < WRITES / 4 * 3 {
        let response = tokio::time::timeout(Duration::from_secs(20), puts.next()).await.expect("event in time");
        count += response.unwrap().unwrap().events.len() as i64;
    }
    assert_eq!(count, WRITES / 4 * 3);

    // Progress is told to all watches of the stream, up to the newest revision.
    let _proxies = writer.await.unwrap();
    for watch in [&mut all, &mut puts] {
        let progress = loop {
            watcher.request_progress();
            match tokio::time::timeout(Duration::from_millis(300), watch.next()).await {
                Ok(response) => break response.unwrap().unwrap(),
                Err(_) => continue,
            }
        };
        assert_eq!((progress.events.len(), progress.header.unwrap().revision), (0, WRITES + 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_from_now_on_misses_nothing_that_happens_while_it_is_cut_off() {
    let Some(server) = start() else { return };
    let proxy = Proxy::start(&server.client);
    let (watching, writing) =
        (connect(&[proxy.address.to_string()]).await, connect(std::slice::from_ref(&server.client)).await);
    writing.put(Put::new("k", "earlier")).await.unwrap();
    let mut watch = watching.watch(Watch::key("k"));
    // Watches of one stream are created in order: when a later one speaks, the first is there.
    let mut later = watching.watch(Watch::key("k").start_revision(2));
    assert_eq!(later.next().await.unwrap().unwrap().events.len(), 1);
    for round in 0..5 {
        proxy.cut();
        writing.put(Put::new("k", round.to_string())).await.unwrap();
        let events = loop {
            let response = tokio::time::timeout(Duration::from_secs(10), watch.next()).await.expect("event in time");
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
    let Some(server) = start() else { return };
    let client = connect(std::slice::from_ref(&server.client)).await;
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
    let Some(mut server) = start() else { return };
    let proxy = Proxy::start(&server.client);
    let client = connect(&[proxy.address.to_string()]).await;
    let lease = client.lease_grant(2, 0).await.unwrap().id;
    client.put(Put::new("guarded", "x").lease(lease)).await.unwrap();
    let mut renewals = client.lease_keep_alive(lease);
    for _ in 0..6 {
        assert_eq!(renewals.next().await.unwrap().unwrap().ttl, 2);
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

    let lease = client.lease_grant(2, 77).await.unwrap().id;
    let mut renewals = client.lease_keep_alive(lease);
    renewals.next().await.unwrap().unwrap();
    server.kill();
    proxy.cut();
    let lost = tokio::time::timeout(Duration::from_secs(5), renewals.next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(lost, Error::LeaseLost { id: 77 }), "{lost}");
}

#[tokio::test]
async fn maintenance() {
    let Some(server) = start() else { return };
    let client = connect(std::slice::from_ref(&server.client)).await;
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
    assert_eq!(client.endpoints(), [format!("http://{}", server.client)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_endpoint_is_passed_over_and_a_server_that_comes_up_is_waited_for() {
    let Some(mut server) = start() else { return };
    let dead = format!("127.0.0.1:{}", free_port());
    let both = connect(&[dead.clone(), server.client.clone()]).await;
    for i in 0..10 {
        both.put(Put::new("a", i.to_string())).await.unwrap();
    }
    let none = connect(&[dead]).await.with_timeout(Duration::from_millis(300));
    let error = none.put(Put::new("a", "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "context deadline exceeded");
    server.kill();
    let alone = connect(std::slice::from_ref(&server.client)).await;
    let put = tokio::spawn(async move { alone.put(Put::new("a", "late")).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    tokio::task::block_in_place(|| server.run());
    put.await.unwrap().unwrap();
    assert_eq!(both.get("a").await.unwrap().kvs[0].version, 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_goes_on_when_its_leader_dies() {
    let Some(program) = peer("3.7.3", "etcd") else { return };
    let mut servers = Server::cluster(&program, 3);
    let client = connect(std::slice::from_ref(&servers[0].client)).await;
    client.sync_endpoints().await.unwrap();
    assert_eq!(client.endpoints().len(), 3);
    let mut watch = client.require_leader().watch(Watch::prefix("k"));
    let lease = client.lease_grant(30, 0).await.unwrap().id;
    let mut renewals = client.lease_keep_alive(lease);
    renewals.next().await.unwrap().unwrap();
    client.put(Put::new("k", "before").lease(lease)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().events.len(), 1);

    for server in &mut servers {
        let status = client.only(&server.client).unwrap().status().await.unwrap();
        if status.leader == status.header.unwrap().member_id {
            server.kill();
            break;
        }
    }
    // Reads are repeated for as long as it takes; a write may be lost with the leader, and then is tried by us.
    assert_eq!(client.get("k").await.unwrap().kvs[0].value, "before");
    while client.put(Put::new("k", "after").lease(lease)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for _ in 0..20 {
        client.get("k").await.unwrap();
    }
    client.lease_keep_alive_once(lease).await.unwrap();

    // A watch that needs a leader may have been told that there was none, but is never just silent.
    loop {
        match tokio::time::timeout(Duration::from_secs(20), watch.next()).await.expect("news in time") {
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
    let Some(program) = peer("3.7.3", "etcd") else { return };
    let mut servers = Server::cluster(&program, 3);
    let all: Vec<_> = servers.iter().map(|server| server.client.clone()).collect();
    let client = connect(&all).await;
    client.put(Put::new("k", "before")).await.unwrap();
    // One member down is no trouble at all, whichever it is.
    servers[1].kill();
    for i in 0..10 {
        while client.put(Put::new("k", i.to_string())).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        client.get("k").await.unwrap();
    }
    servers[2].kill();
    let alone = client.only(&servers[0].client).unwrap();
    while alone.status().await.unwrap().leader != 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(alone.get(Get::key("k").serializable()).await.unwrap().kvs[0].value, "9");
    // A write is sent once, so the first member's word is final.
    let error = alone.require_leader().put(Put::new("k", "x")).await.unwrap_err();
    assert_eq!(error.kind(), Some(Kind::NoLeader));
    // A read is repeated until its time is over, and then tells what it met last.
    let patient = alone.require_leader().with_timeout(Duration::from_secs(1));
    match patient.get("k").await.unwrap_err() {
        Error::Timeout { last: Some(last) } => assert_eq!(last.kind(), Some(Kind::NoLeader)),
        other => panic!("{other:?}"),
    }
    let mut watch = alone.require_leader().watch(Watch::prefix("k"));
    match tokio::time::timeout(Duration::from_secs(10), watch.next()).await.expect("news in time") {
        Some(Err(canceled)) => assert_eq!(canceled.error.kind(), Some(Kind::NoLeader)),
        other => panic!("{other:?}"),
    }
    // With a quorum again, a read that was waiting is answered.
    let waiting = client.with_timeout(Duration::from_secs(20)).require_leader();
    let read = tokio::spawn(async move { waiting.get("k").await });
    tokio::task::block_in_place(|| servers[1].run());
    assert_eq!(read.await.unwrap().unwrap().kvs[0].value, "9");
}
