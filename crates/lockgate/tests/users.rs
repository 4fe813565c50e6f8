//! Members with users: users without permission change and learn nothing, on every path, through every member, whatever
//! features are on; users with permission are known to all members until that changes.

use crate::common::{add_learner, channel, fill_quota, place, start_group, wait_for_feature, wait_for_version};

use client::{Client, ConnectOptions, Error, Get, Increment, Permission, Put};
use harness::{
    Member,
    asynchronous::{until, until_some},
    wait_max,
};
use proto::etcdserverpb::{RangeRequest, kv_client::KvClient};
use tonic::Code;

const FEATURE: &str = "AtomicIncrement";
const ON: &str = "--cluster-feature-gates=AtomicIncrement=true";
const OFF: &str = "--cluster-feature-gates=AtomicIncrement=false";
const QUICK: &str = "--bcrypt-cost=4";
/// With these flags, a killed member has to replay its log.
const LATE_COMMITS: [&str; 2] = ["--backend-batch-interval=1h", "--backend-batch-limit=1000000"];

/// Long enough to write under a lease on a loaded machine, and short enough to wait for its end.
const LEASE_SECONDS: i64 = 5;

const NOBODY: &str = "etcdserver: user name is empty";
const DENIED: &str = "etcdserver: permission denied";
const TOO_LONG: &str = "bcrypt: password length exceeds 72 bytes";
const NO_TOKEN: &str = "etcdserver: invalid auth token";

/// Adds root, alice with read and write access to `n`, and bob with read access to it.
async fn add_users(member: &Member) {
    let client = member.client().await;
    for (user, role) in [("root", "root"), ("alice", "writers"), ("bob", "readers")] {
        client.user_add(user, user).await.expect("user add");
        client.role_add(role).await.expect("role add");
        client.user_grant_role(user, role).await.expect("grant role");
    }
    client.role_grant_permission("writers", Permission::key("n").read_write()).await.expect("grant");
    client.role_grant_permission("readers", Permission::key("n").read()).await.expect("grant");
    client.auth_enable().await.expect("enable");
}

async fn as_user(member: &Member, user: &str) -> Client {
    let options = ConnectOptions::new().request_timeout(wait_max()).user(client::User::new(user, user));
    Client::connect([member.url()], options).await.expect("log in")
}

async fn with_token(member: &Member, token: &str) -> Client {
    let options = ConnectOptions::new().request_timeout(wait_max()).token(token);
    Client::connect([member.url()], options).await.expect("connect")
}

fn token_of(member: &Member, user: &str) -> String {
    let login = format!(r#"{{"name":"{user}","password":"{user}"}}"#);
    let reply = member.request("POST", "/v3/auth/authenticate", &[], &login);
    assert_eq!(reply.status, 200, "{reply:?}");
    let (_, rest) = reply.body.split_once(r#""token":""#).expect("a token");
    rest.split('"').next().expect("a token").to_owned()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: client::Result<T>, expected: &str) {
    match result {
        Err(Error::Etcd { message, .. }) if message.contains(expected) => {}
        other => panic!("not refused with {expected:?}: {other:?}"),
    }
}

fn one() -> Increment {
    Increment::new("n", 1)
}

/// Calls without a user and calls of bob are refused because of the user, whether the feature is on or off.
async fn outsiders_learn_nothing(member: &Member) {
    let (nobody, bob) = (member.client().await, as_user(member, "bob").await);
    refused(nobody.feature_gate_status([FEATURE]).await, NOBODY);
    match nobody.feature_gate_history(0, false).await {
        Err(Error::Etcd { message, .. }) if message.contains(NOBODY) => {}
        Err(other) => panic!("{other:?}"),
        Ok(mut history) => refused(history.next().await, NOBODY),
    }
    for (path, body) in [
        ("/v3/maintenance/featuregate", "{}"),
        ("/v3/maintenance/featuregate/history", "{}"),
        ("/v3/kv/increment", r#"{"key":"bg==","delta":"1"}"#),
    ] {
        let reply = member.request("POST", path, &[], body);
        assert!(reply.status != 200 && reply.body.contains(NOBODY), "{path}: {reply:?}");
        let reply = member.request("POST", path, &[("Authorization", "abcdefghijklmnop.1")], body);
        assert!(reply.status == 401 && reply.body.contains(NO_TOKEN), "{path}: {reply:?}");
    }
    let reply = member.request("GET", "/feature-gates", &[], "");
    assert!(reply.status == 401 && reply.body.contains(NOBODY) && !reply.body.contains(FEATURE), "{reply:?}");
    refused(nobody.increment(one()).await, NOBODY);
    refused(bob.increment(one()).await, DENIED);
    for (path, body) in [("/v3/kv/put", r#"{"key":"bg==","value":"bg=="}"#), ("/v3/cluster/member/list", "{}")] {
        let reply = member.request("POST", path, &[("Grpc-Metadata-Require-Feature", FEATURE)], body);
        assert!(reply.status != 200 && reply.body.contains(NOBODY), "{path}: {reply:?}");
    }
    let status = bob.feature_gate_status([FEATURE]).await.expect("every user may ask");
    assert_eq!(status.features.len(), 1);
    let token = token_of(member, "bob");
    let reply = member.request("GET", "/feature-gates", &[("Authorization", &token)], "");
    assert!(reply.status == 200 && reply.body.contains(FEATURE), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_features_write_on_every_path() {
    let mut group = start_group(3, &[ON, QUICK]);
    wait_for_feature(&group.member(0).client().await, FEATURE, true).await;
    add_users(group.member(0)).await;
    for at in 0..3 {
        let member = group.member(at);
        let alice = as_user(member, "alice").await;
        wait_for_feature(&alice, FEATURE, true).await;
        outsiders_learn_nothing(member).await;
        // Two of the three are followers, which forward the request.
        assert_eq!(alice.increment(one()).await.expect("increment").value, 2 * at as i64 + 1);
        refused(alice.increment(Increment::new("other", 1)).await, DENIED);
        let (body, token) = (r#"{"key":"bg==","delta":"1"}"#, token_of(member, "alice"));
        let reply = member.request("POST", "/v3/kv/increment", &[("Authorization", &token)], body);
        assert_eq!(reply.status, 200, "{reply:?}");
        alice.require_feature(FEATURE).get(Get::key("n")).await.expect("required and allowed");
    }
    group.restart(2, &[OFF, QUICK]);
    for at in 0..3 {
        let member = group.member(at);
        let alice = as_user(member, "alice").await;
        wait_for_feature(&alice, FEATURE, false).await;
        outsiders_learn_nothing(member).await;
        refused(alice.increment(one()).await, "AtomicIncrement is off");
        refused(alice.require_feature(FEATURE).put(Put::new("n", "0")).await, "AtomicIncrement is off");
        let found = alice.get(Get::key("n")).await.expect("get");
        assert_eq!(found.kvs[0].value, "6", "nothing that was refused has changed it");
    }
}

/// Below the gate's version, features are refused before anything is proposed. A caller without a user does not learn
/// even that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn below_the_gates_version() {
    let place = place();
    let member = place.start(&["--initial-cluster-version=3.7", ON, QUICK]);
    wait_for_version(&member.client().await, "3.7.0").await;
    add_users(&member).await;
    outsiders_learn_nothing_below(&member).await;
    let alice = as_user(&member, "alice").await;
    refused(alice.increment(one()).await, "it needs cluster version 3.8");
}

async fn outsiders_learn_nothing_below(member: &Member) {
    refused(member.client().await.increment(one()).await, NOBODY);
    for (path, body) in [("/v3/kv/put", r#"{"key":"bg==","value":"bg=="}"#), ("/v3/kv/range", r#"{"key":"bg=="}"#)] {
        let reply = member.request("POST", path, &[("Grpc-Metadata-Require-Feature", FEATURE)], body);
        assert!(reply.status != 200 && reply.body.contains(NOBODY), "{path}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replayed_after_a_restart_and_full() {
    let place = place();
    let flags = [ON, QUICK, LATE_COMMITS[0], LATE_COMMITS[1]];
    let member = place.start(&flags);
    wait_for_feature(&member.client().await, FEATURE, true).await;
    add_users(&member).await;
    let alice = as_user(&member, "alice").await;
    for _ in 0..3 {
        alice.increment(one()).await.expect("increment");
        refused(as_user(&member, "bob").await.increment(one()).await, DENIED);
    }
    let root = as_user(&member, "root").await;
    root.role_revoke_permission("writers", Permission::key("n")).await.expect("revoke");
    refused(alice.increment(one()).await, DENIED);
    let before = root.auth_status().await.expect("status").auth_revision;
    member.kill();
    let member = place.start(&[&flags[..], &["--quota-backend-bytes=400000"]].concat());
    let root = as_user(&member, "root").await;
    wait_for_feature(&root, FEATURE, true).await;
    assert_eq!(root.auth_status().await.expect("status").auth_revision, before);
    assert_eq!(
        root.get(Get::key("n")).await.expect("get").kvs[0].value,
        "3",
        "the refused increments are refused again"
    );
    refused(as_user(&member, "alice").await.increment(one()).await, DENIED);
    fill_quota(&root).await;
    // The quota is full for all users, and only root can make room.
    for user in ["root", "alice", "bob"] {
        let error = as_user(&member, user).await.increment(one()).await.unwrap_err();
        assert_eq!(error.kind(), Some(client::Kind::NoSpace), "{user}: {error}");
    }
    let alice = as_user(&member, "alice").await;
    refused(alice.compact(1, false).await, DENIED);
    refused(alice.defragment().await, DENIED);
    assert_eq!(root.get(Get::key("n")).await.expect("get").kvs[0].value, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_token_is_known_to_all_until_it_is_void() {
    let group = start_group(3, &[QUICK]);
    add_users(group.member(0)).await;
    let token = token_of(group.member(1), "alice");
    for at in 0..3 {
        with_token(group.member(at), &token)
            .await
            .put(Put::new("n", "1"))
            .await
            .expect("all members know the token at once");
    }
    let root = as_user(group.member(2), "root").await;
    root.user_change_password("alice", "another").await.expect("change");
    let of_bob = token_of(group.member(0), "bob");
    root.user_delete("bob").await.expect("delete");
    for at in 0..3 {
        let (alice, bob) = (with_token(group.member(at), &token).await, with_token(group.member(at), &of_bob).await);
        // A serializable read is answered from the state that the member has applied.
        for (user, client) in [("alice", &alice), ("bob", &bob)] {
            let read = async || client.get(Get::key("n").serializable()).await;
            until(&format!("the token of {user} is void at member {at}"), async || read().await.is_err()).await;
        }
        refused(alice.put(Put::new("n", "2")).await, NO_TOKEN);
        refused(bob.get(Get::key("n")).await, NO_TOKEN);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_end_with_users_too() {
    let place = place();
    let member = place.start(&[QUICK]);
    add_users(&member).await;
    let root = as_user(&member, "root").await;
    let alice = as_user(&member, "alice").await;
    alice.get(Get::key("n")).await.expect("get");
    let lease = root.lease_grant(LEASE_SECONDS, 0).await.expect("grant").id;
    root.put(Put::new("leased", "x").lease(lease)).await.expect("put");
    refused(alice.put(Put::new("n", "x").lease(lease)).await, DENIED);
    refused(alice.lease_revoke(lease).await, DENIED);
    let read = async || root.get(Get::key("leased")).await.expect("get");
    until("the lease ends", async || read().await.kvs.is_empty()).await;
}

/// A caller without a user costs the cluster no read index, and so is refused at once while there is no leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_a_user_is_refused_before_the_leader_is_asked() {
    let mut group = start_group(2, &[QUICK]);
    add_users(group.member(0)).await;
    group.kill(1);
    let member = group.member(0);
    until("the leader is lost", async || member.request("GET", "/health", &[], "").status == 503).await;
    let nobody = member.client().await;
    refused(nobody.member_list(true).await, NOBODY);
    refused(nobody.leases().await, NOBODY);
    refused(nobody.feature_gate_status([FEATURE]).await, NOBODY);
}

/// Hashing a password is slow, so it is not done for callers that may not set one: bcrypt refuses passwords of this length.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_hashed_for_administrators_only() {
    let place = place();
    let member = place.start(&[QUICK]);
    add_users(&member).await;
    let long = "x".repeat(100);
    for (client, reason) in [(member.client().await, NOBODY), (as_user(&member, "bob").await, DENIED)] {
        refused(client.user_add("carol", long.as_str()).await, reason);
        refused(client.user_change_password("alice", long.as_str()).await, reason);
    }
    let root = as_user(&member, "root").await;
    refused(root.user_add("carol", long.as_str()).await, TOO_LONG);
    root.user_change_password("alice", "other").await.expect("change");
}

/// A new member receives users with the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_learner_knows_the_users() {
    let mut group = start_group(1, &[QUICK, "--snapshot-count=10", "--snapshot-catchup-entries=1"]);
    let first = group.member(0).client().await;
    for n in 0..30 {
        first.put(Put::new("n", n.to_string())).await.expect("put");
    }
    let at = {
        add_users(group.member(0)).await;
        let root = as_user(group.member(0), "root").await;
        root.auth_disable().await.expect("disable");
        let at = add_learner(&mut group, &[QUICK]).await;
        let client = group.member(0).client().await;
        client.auth_enable().await.expect("enable");
        at
    };
    let token = token_of(group.member(0), "alice");
    let learner = with_token(group.member(at), &token).await;
    let read = async || learner.get(Get::key("n").serializable()).await.ok();
    let found = until_some("the learner knows the token", read).await;
    assert_eq!(found.kvs[0].value, "29");
    refused(learner.get(Get::key("other").serializable()).await, DENIED);
    refused(group.member(at).client().await.get(Get::key("n").serializable()).await, NOBODY);
}

/// A stream that began without authentication must not go on when users are needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_range_stream_ends_when_authentication_is_enabled() {
    let place = place();
    let member = place.start(&[QUICK]);
    let client = member.client().await;
    // Far more than what connections hold back, so that most of it is read after the change.
    let value = "v".repeat(100_000);
    for n in 0..300 {
        client.put(Put::new(format!("large{n:03}"), value.clone())).await.expect("put");
    }
    let all = RangeRequest { key: "large".into(), range_end: "largf".into(), ..Default::default() };
    let stream = KvClient::new(channel(&member).await).range_stream(all).await.expect("a stream");
    let mut chunks = stream.into_inner();
    assert!(chunks.message().await.expect("the first chunk").is_some());
    add_users(&member).await;
    let refused = loop {
        match chunks.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream sent all keys"),
            Err(refused) => break refused,
        }
    };
    assert!(refused.message().contains(NOBODY), "{refused:?}");
}

/// Changes the first letter of the signature. The last one holds only four bits, so one of sixteen tokens ends in `A` anyway.
fn with_another_signature(token: &str) -> String {
    let (said, signature) = token.rsplit_once('.').expect("a JWT");
    let first = if signature.starts_with('A') { 'B' } else { 'A' };
    format!("{said}.{first}{}", &signature[1..])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jwts_outlive_a_member_and_end_with_a_change() {
    let place = place();
    let key = place.dir().join("jwt.key");
    std::fs::write(&key, "a secret of a test").expect("key");
    let kind = format!("--auth-token=jwt,sign-method=HS256,priv-key={},ttl=10m", key.display());
    let member = place.start(&[QUICK, &kind]);
    add_users(&member).await;
    let token = token_of(&member, "alice");
    assert_eq!(token.split('.').count(), 3, "{token}");
    with_token(&member, &token).await.put(Put::new("n", "1")).await.expect("put");
    member.kill();
    let member = place.start(&[QUICK, &kind]);
    let alice = with_token(&member, &token).await;
    alice.put(Put::new("n", "2")).await.expect("a JWT is valid after a restart");
    as_user(&member, "root").await.role_add("new").await.expect("role add");
    refused(alice.put(Put::new("n", "3")).await, "revision of auth store is old");
    refused(alice.get(Get::key("n")).await, "revision of auth store is old");
    let forged = with_another_signature(&token);
    refused(with_token(&member, &forged).await.get(Get::key("n")).await, NO_TOKEN);
    match as_user(&member, "alice").await.get(Get::key("other")).await {
        Err(Error::Etcd { code: Code::PermissionDenied, .. }) => {}
        other => panic!("{other:?}"),
    }
}
