//! Locks and elections that the server runs for its clients.

use crate::common;

use std::time::{Duration, Instant};

use client::{Client, Get};
use common::{Member, Place};
use proto::{
    v3electionpb::{CampaignRequest, LeaderRequest, ResignRequest, election_client::ElectionClient},
    v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient},
};
use tonic::{Request, transport::Channel};

async fn channel(member: &Member) -> Channel {
    Channel::from_shared(member.url()).expect("url").connect().await.expect("connect")
}

/// Whoever waits has a key below the name.
async fn wait_for_keys(client: &Client, prefix: &'static str, count: i64) {
    let begin = Instant::now();
    while client.get(Get::prefix(prefix).count_only()).await.expect("get").count != count {
        assert!(begin.elapsed() < Duration::from_secs(10), "never {count} keys below {prefix}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_goes_from_one_to_the_next() {
    let place = Place::new();
    let member = place.start(&[]);
    let client = member.client().await;
    for lease in [1, 2, 3] {
        client.lease_grant(600, lease).await.expect("grant");
    }
    let lock = |lease| LockRequest { name: "l".into(), lease };
    let mut locks = LockClient::new(channel(&member).await);
    let first = locks.lock(lock(1)).await.expect("lock").into_inner();
    assert_eq!(&first.key[..], b"l/1");
    locks.lock(lock(1)).await.expect("the same lease holds it already");

    let mut gives_up = Request::new(lock(2));
    gives_up.set_timeout(Duration::from_millis(200));
    locks.lock(gives_up).await.expect_err("it is held");
    wait_for_keys(&client, "l/", 1).await;

    let mut others = locks.clone();
    let waiter = tokio::spawn(async move { others.lock(lock(3)).await });
    wait_for_keys(&client, "l/", 2).await;
    assert!(!waiter.is_finished());
    locks.unlock(UnlockRequest { key: first.key }).await.expect("unlock");
    assert_eq!(&waiter.await.expect("task").expect("lock").into_inner().key[..], b"l/3");
    // A lease that ends lets the lock go.
    client.lease_revoke(3).await.expect("revoke");
    locks.lock(lock(2)).await.expect("lock");
    let granted =
        locks.lock(LockRequest { name: "other".into(), lease: 0 }).await.expect("lock with a lease of its own");
    assert!(granted.into_inner().key.starts_with(b"other/"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_see_one_leader_after_the_other() {
    let place = Place::new();
    let member = place.start(&[]);
    let client = member.client().await;
    for lease in [1, 2] {
        client.lease_grant(600, lease).await.expect("grant");
    }
    let campaign = |lease, value: &'static str| CampaignRequest { name: "e".into(), lease, value: value.into() };
    let mut elections = ElectionClient::new(channel(&member).await);
    let mut observed = elections.observe(LeaderRequest { name: "e".into() }).await.expect("observe").into_inner();
    let first = elections.campaign(campaign(1, "one")).await.expect("campaign").into_inner();
    let mut others = elections.clone();
    let second = tokio::spawn(async move { others.campaign(campaign(2, "two")).await });
    wait_for_keys(&client, "e/", 2).await;
    let again = elections.campaign(campaign(1, "one again")).await.expect("campaign").into_inner();
    assert_eq!(again.leader, first.leader);
    elections.resign(ResignRequest { leader: first.leader }).await.expect("resign");
    second.await.expect("task").expect("campaign");
    for value in ["one", "one again", "two"] {
        let leader = observed.message().await.expect("stream").expect("a leader");
        assert_eq!(leader.kv.expect("key").value, value);
    }
    let leader = elections.leader(LeaderRequest { name: "e".into() }).await.expect("leader").into_inner();
    assert_eq!(leader.kv.expect("key").value, "two");
}
