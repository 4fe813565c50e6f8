//! Users of a real etcd: what the client may do as one of them, and how long.

use std::time::Duration;

use client::{Client, ConnectOptions, Error, Get, Kind, Permission, Put, User, Watch};
use futures_util::StreamExt;
use harness::{Member, Place, asynchronous::finish, wait_max};

const TOKEN_TTL: &str = "2";

/// A member with users and a client that is root. The member is declared after its place, so that it is dropped first.
async fn start() -> Option<(Place, Member, Client)> {
    let place = Place::new(harness::etcd_dir(harness::ETCD)?.join("etcd"));
    let member = place.start(&["--unsafe-no-fsync", "--bcrypt-cost", "4", "--auth-token-ttl", TOKEN_TTL]);
    let root = connect(&member, "root", "top").await;
    root.user_add("root", "top").await.unwrap();
    root.role_add("root").await.unwrap();
    root.user_grant_role("root", "root").await.unwrap();
    root.user_add("alice", "secret").await.unwrap();
    root.role_add("reader").await.unwrap();
    root.role_grant_permission("reader", Permission::prefix("shared/").read()).await.unwrap();
    root.user_grant_role("alice", "reader").await.unwrap();
    root.auth_enable().await.unwrap();
    Some((place, member, root))
}

async fn connect(member: &Member, name: &str, password: &str) -> Client {
    let options = ConnectOptions::new().request_timeout(wait_max()).user(User::new(name, password));
    Client::connect([member.address()], options).await.unwrap()
}

fn kind<T>(result: Result<T, Error>) -> Option<Kind> {
    result.err().and_then(|error| error.kind())
}

/// Waits until tokens have expired. The test cannot ask whether a token is valid, because each use prolongs it.
async fn expire() {
    tokio::time::sleep(Duration::from_secs(4)).await;
}

#[tokio::test]
async fn everyone_may_do_what_their_roles_allow() {
    let Some((_place, member, root)) = start().await else { return };
    // This client was connected before authentication was enabled, and continues as root.
    root.put(Put::new("shared/a", "1")).await.unwrap();
    assert!(root.auth_status().await.unwrap().enabled);
    let alice = connect(&member, "alice", "secret").await;
    assert_eq!(alice.get("shared/a").await.unwrap().kvs[0].value, "1");
    assert_eq!(kind(alice.get(Get::prefix("")).await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.put(Put::new("shared/a", "2")).await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.user_list().await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.snapshot().await), Some(Kind::PermissionDenied));
    assert_eq!(kind(connect(&member, "alice", "guess").await.get("shared/a").await), Some(Kind::AuthFailed));
    let nobody = Client::connect([member.address()], ConnectOptions::new()).await.unwrap();
    assert_eq!(kind(nobody.get("shared/a").await), Some(Kind::UserEmpty));
    let mut copy = root.snapshot().await.unwrap();
    while copy.next().await.unwrap().is_some() {}
}

#[tokio::test]
async fn watches_of_one_stream_are_refused_one_by_one() {
    let Some((_place, member, root)) = start().await else { return };
    let watcher = connect(&member, "alice", "secret").await.watcher();
    let mut denied = watcher.watch(Watch::key("other"));
    let mut allowed = watcher.watch(Watch::prefix("shared/").start_revision(1));
    let mut denied_too = watcher.watch(Watch::prefix(""));
    root.put(Put::new("shared/a", "1")).await.unwrap();
    let event = finish("the put is seen", allowed.next()).await.unwrap().unwrap();
    assert_eq!(event.events.len(), 1);
    for stream in [&mut denied, &mut denied_too] {
        let canceled = finish("the watch is refused", stream.next()).await.unwrap().unwrap_err();
        assert_eq!(canceled.error.kind(), Some(Kind::PermissionDenied));
    }
}

#[tokio::test]
async fn a_token_that_has_expired_is_renewed_everywhere() {
    let Some((_place, member, root)) = start().await else { return };
    let lease = root.lease_grant(60, 0).await.unwrap().id;
    let mut watch = root.watch(Watch::prefix("shared/").start_revision(1));
    expire().await;
    root.put(Put::new("shared/a", "1")).await.unwrap();
    expire().await;
    root.snapshot().await.unwrap();
    expire().await;
    // The stream of watches was opened under the first token.
    let mut second = root.watch(Watch::prefix("shared/").start_revision(1));
    for stream in [&mut watch, &mut second] {
        let response = finish("the put is seen", stream.next()).await.unwrap().unwrap();
        assert_eq!(response.events.len(), 1);
    }
    expire().await;
    let mut third = root.watch(Watch::prefix("shared/").start_revision(1));
    let response = finish("the put is seen", third.next()).await.unwrap().unwrap();
    assert_eq!(response.events.len(), 1);
    expire().await;
    let renewal = finish("the lease is renewed", root.lease_keep_alive(lease).next()).await;
    assert_eq!(renewal.unwrap().unwrap().ttl, 60);
    drop(member);
}

#[tokio::test]
async fn a_user_who_is_gone_is_told_at_once() {
    let Some((_place, member, root)) = start().await else { return };
    let alice = connect(&member, "alice", "secret").await;
    alice.get("shared/a").await.unwrap();
    root.user_change_password("alice", "other").await.unwrap();
    assert_eq!(kind(alice.get("shared/a").await), Some(Kind::AuthFailed));
    let alice = connect(&member, "alice", "other").await;
    alice.get("shared/a").await.unwrap();
    root.user_delete("alice").await.unwrap();
    assert_eq!(kind(alice.get("shared/a").await), Some(Kind::AuthFailed));
    root.auth_disable().await.unwrap();
    alice.get("anything").await.unwrap();
}
