//! Locks and elections that the server runs for its clients.

use crate::common::{channel, place};

use std::time::Duration;

use bytes::Bytes;
use client::{Client, Get};
use harness::asynchronous::{finish, until};
use proto::{
    v3electionpb::{CampaignRequest, LeaderRequest, LeaderResponse, ResignRequest, election_client::ElectionClient},
    v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient},
};
use tonic::{Request, Streaming};

/// Waits for this many keys below a name: each lease that holds or awaits it has one.
async fn wait_for_keys(client: &Client, prefix: &'static str, count: i64) {
    until(&format!("there are {count} keys below {prefix}"), async || {
        client.get(Get::prefix(prefix).count_only()).await.expect("get").count == count
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_goes_from_one_to_the_next() {
    let place = place();
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
    let next = finish("the next lease has the lock", waiter).await.expect("task").expect("lock");
    assert_eq!(&next.into_inner().key[..], b"l/3");
    // The end of a lease releases its lock.
    client.lease_revoke(3).await.expect("revoke");
    locks.lock(lock(2)).await.expect("lock");
    let granted =
        locks.lock(LockRequest { name: "other".into(), lease: 0 }).await.expect("lock with a lease of its own");
    assert!(granted.into_inner().key.starts_with(b"other/"));
}

async fn observe(observed: &mut Streaming<LeaderResponse>) -> Bytes {
    let leader = finish("a leader is observed", observed.message()).await;
    leader.expect("stream").expect("a leader").kv.expect("key").value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn observers_see_one_leader_after_the_other() {
    let place = place();
    let member = place.start(&[]);
    let client = member.client().await;
    for lease in [1, 2] {
        client.lease_grant(600, lease).await.expect("grant");
    }
    let campaign = |lease, value: &'static str| CampaignRequest { name: "e".into(), lease, value: value.into() };
    let mut elections = ElectionClient::new(channel(&member).await);
    let mut observed = elections.observe(LeaderRequest { name: "e".into() }).await.expect("observe").into_inner();
    let first = elections.campaign(campaign(1, "one")).await.expect("campaign").into_inner();
    // An observer that comes late sees the present value only, so this one has to be there before the value changes.
    assert_eq!(observe(&mut observed).await, "one");
    let mut others = elections.clone();
    let second = tokio::spawn(async move { others.campaign(campaign(2, "two")).await });
    wait_for_keys(&client, "e/", 2).await;
    let again = elections.campaign(campaign(1, "one again")).await.expect("campaign").into_inner();
    assert_eq!(again.leader, first.leader);
    elections.resign(ResignRequest { leader: first.leader }).await.expect("resign");
    finish("the second has won", second).await.expect("task").expect("campaign");
    for value in ["one again", "two"] {
        assert_eq!(observe(&mut observed).await, value);
    }
    let leader = elections.leader(LeaderRequest { name: "e".into() }).await.expect("leader").into_inner();
    assert_eq!(leader.kv.expect("key").value, "two");
}
