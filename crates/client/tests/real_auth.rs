//! Users of a real etcd: what the client may do as one of them, and how long.

use crate::support;

use std::time::Duration;

use client::{Client, ConnectOptions, Error, Get, Kind, Permission, Put, User, Watch};
use futures_util::StreamExt;
use support::{Server, peer};

const TOKEN_TTL: &str = "2";

/// A server with users, on which the first client is root.
async fn start() -> Option<(Server, Client)> {
    let program = peer("3.7.3", "etcd")?;
    let server = Server::start_with(&program, &["--bcrypt-cost", "4", "--auth-token-ttl", TOKEN_TTL]);
    let root = connect(&server, "root", "top").await;
    root.user_add("root", "top").await.unwrap();
    root.role_add("root").await.unwrap();
    root.user_grant_role("root", "root").await.unwrap();
    root.user_add("alice", "secret").await.unwrap();
    root.role_add("reader").await.unwrap();
    root.role_grant_permission("reader", Permission::prefix("shared/").read()).await.unwrap();
    root.user_grant_role("alice", "reader").await.unwrap();
    root.auth_enable().await.unwrap();
    Some((server, root))
}

async fn connect(server: &Server, name: &str, password: &str) -> Client {
    let options = ConnectOptions::new().request_timeout(Duration::from_secs(10)).user(User::new(name, password));
    Client::connect([server.client.clone()], options).await.unwrap()
}

fn kind<T>(result: Result<T, Error>) -> Option<Kind> {
    result.err().and_then(|error| error.kind())
}

async fn expire() {
    tokio::time::sleep(Duration::from_secs(4)).await;
}

#[tokio::test]
async fn everyone_may_do_what_their_roles_allow() {
    let Some((server, root)) = start().await else { return };
    // It began before users were asked for, and goes on.
    root.put(Put::new("shared/a", "1")).await.unwrap();
    assert!(root.auth_status().await.unwrap().enabled);
    let alice = connect(&server, "alice", "secret").await;
    assert_eq!(alice.get("shared/a").await.unwrap().kvs[0].value, "1");
    assert_eq!(kind(alice.get(Get::prefix("")).await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.put(Put::new("shared/a", "2")).await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.user_list().await), Some(Kind::PermissionDenied));
    assert_eq!(kind(alice.snapshot().await), Some(Kind::PermissionDenied));
    assert_eq!(kind(connect(&server, "alice", "guess").await.get("shared/a").await), Some(Kind::AuthFailed));
    let nobody = Client::connect([server.client.clone()], ConnectOptions::new()).await.unwrap();
    assert_eq!(kind(nobody.get("shared/a").await), Some(Kind::UserEmpty));
    let mut copy = root.snapshot().await.unwrap();
    while copy.next().await.unwrap().is_some() {}
}

#[tokio::test]
async fn watches_of_one_stream_are_refused_one_by_one() {
    let Some((server, root)) = start().await else { return };
    let watcher = connect(&server, "alice", "secret").await.watcher();
    let mut denied = watcher.watch(Watch::key("other"));
    let mut allowed = watcher.watch(Watch::prefix("shared/").start_revision(1));
    let mut denied_too = watcher.watch(Watch::prefix(""));
    root.put(Put::new("shared/a", "1")).await.unwrap();
    let next = |stream| tokio::time::timeout(Duration::from_secs(5), futures_util::StreamExt::into_future(stream));
    let event = next(&mut allowed).await.unwrap().0.unwrap().unwrap();
    assert_eq!(event.events.len(), 1);
    for stream in [&mut denied, &mut denied_too] {
        let canceled = next(stream).await.unwrap().0.unwrap().unwrap_err();
        assert_eq!(canceled.error.kind(), Some(Kind::PermissionDenied));
    }
}

#[tokio::test]
async fn a_token_that_has_expired_is_renewed_everywhere() {
    let Some((server, root)) = start().await else { return };
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
        let response = tokio::time::timeout(Duration::from_secs(5), stream.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(response.events.len(), 1);
    }
    expire().await;
    let mut third = root.watch(Watch::prefix("shared/").start_revision(1));
    let response = tokio::time::timeout(Duration::from_secs(5), third.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(response.events.len(), 1);
    expire().await;
    let renewal = tokio::time::timeout(Duration::from_secs(5), root.lease_keep_alive(lease).next()).await;
    assert_eq!(renewal.unwrap().unwrap().unwrap().ttl, 60);
    drop(server);
}

#[tokio::test]
async fn a_user_who_is_gone_is_told_at_once() {
    let Some((server, root)) = start().await else { return };
    let alice = connect(&server, "alice", "secret").await;
    alice.get("shared/a").await.unwrap();
    root.user_change_password("alice", "other").await.unwrap();
    assert_eq!(kind(alice.get("shared/a").await), Some(Kind::AuthFailed));
    let alice = connect(&server, "alice", "other").await;
    alice.get("shared/a").await.unwrap();
    root.user_delete("alice").await.unwrap();
    assert_eq!(kind(alice.get("shared/a").await), Some(Kind::AuthFailed));
    root.auth_disable().await.unwrap();
    alice.get("anything").await.unwrap();
}
