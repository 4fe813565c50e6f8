//! When a client logs in, how often, and what its calls carry.
//!
//! Each test runs on one thread, so calls that are joined have all asked for a token before the first login ends.

#[path = "login/fake.rs"]
mod fake;

use client::{Client, ConnectOptions, Kind, Put, User, Watch};
use fake::Fake;
use futures_util::{StreamExt, future::join_all};
use harness::{
    asynchronous::{finish, until},
    wait_max,
};

const PASSWORD: Option<&str> = Some("secret");

async fn client(fake: &Fake, password: &str) -> Client {
    let options = ConnectOptions::new().request_timeout(wait_max()).user(User::new("alice", password));
    Client::connect([fake.address.clone()], options).await.unwrap()
}

fn token(login: usize) -> Option<String> {
    Some(format!("token.{login}"))
}

#[tokio::test]
async fn many_calls_at_once_are_one_login_and_none_goes_without_token() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    assert_eq!(fake.logins(), 0, "nothing is sent before it is needed");
    for result in join_all((0..50).map(|_| client.get("a"))).await {
        result.unwrap();
    }
    client.only(&fake.address).unwrap().get("a").await.unwrap();
    assert_eq!(fake.logins(), 1);
    assert_eq!(fake.tokens(), vec![token(1); 51]);
}

#[tokio::test]
async fn a_token_that_does_not_hold_any_more_is_renewed_once_for_all() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    client.get("a").await.unwrap();
    fake.state().holds = false;
    for result in join_all((0..20).map(|_| client.put(Put::new("a", "b")))).await {
        result.unwrap();
    }
    assert_eq!(fake.logins(), 2);
    let tokens = fake.tokens();
    assert_eq!(tokens.iter().filter(|found| **found == token(2)).count(), 20, "{tokens:?}");
}

#[tokio::test]
async fn a_second_refusal_goes_out() {
    for kind in [Kind::InvalidAuthToken, Kind::AuthOldRevision, Kind::UserEmpty] {
        let fake = Fake::start(PASSWORD).await;
        let client = client(&fake, "secret").await;
        fake.state().refusal = Some(kind);
        let error = client.get("a").await.unwrap_err();
        assert_eq!(error.kind(), Some(kind));
        assert_eq!(fake.tokens(), [token(1), token(2)]);
    }
}

#[tokio::test]
async fn other_refusals_are_not_about_the_token() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    fake.state().refusal = Some(Kind::PermissionDenied);
    assert_eq!(client.get("a").await.unwrap_err().kind(), Some(Kind::PermissionDenied));
    assert_eq!((fake.logins(), fake.tokens().len()), (1, 1));
}

#[tokio::test]
async fn with_a_wrong_password_nothing_else_is_sent() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "guess").await;
    let error = client.log_in(wait_max()).await.unwrap_err();
    assert_eq!(error.to_string(), "etcdserver: authentication failed, invalid user ID or password");
    for result in join_all((0..20).map(|_| client.get("a"))).await {
        assert_eq!(result.unwrap_err().kind(), Some(Kind::AuthFailed));
    }
    assert_eq!((fake.refused_logins(), fake.tokens()), (2, vec![]), "all calls that waited share the refusal");
}

#[tokio::test]
async fn where_authentication_is_off_calls_go_without_token_until_it_is_on() {
    let fake = Fake::start(None).await;
    let client = client(&fake, "secret").await;
    client.get("a").await.unwrap();
    client.get("a").await.unwrap();
    assert_eq!((fake.refused_logins(), fake.tokens()), (1, vec![None, None]));
    fake.state().password = PASSWORD;
    client.get("a").await.unwrap();
    assert_eq!(fake.tokens(), [None, None, None, token(1)]);
}

#[tokio::test]
async fn without_password_there_is_no_login() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "").await;
    assert_eq!(client.get("a").await.unwrap_err().kind(), Some(Kind::UserEmpty));
    assert_eq!((fake.refused_logins(), fake.tokens()), (0, vec![None]));
}

#[tokio::test]
async fn a_token_that_was_given_is_sent_and_not_renewed() {
    let fake = Fake::start(PASSWORD).await;
    let options = ConnectOptions::new().request_timeout(wait_max()).token("token.0");
    let client = Client::connect([fake.address.clone()], options).await.unwrap();
    assert_eq!(client.get("a").await.unwrap_err().kind(), Some(Kind::InvalidAuthToken));
    assert_eq!((fake.logins(), fake.tokens()), (0, vec![token(0)]));
}

#[tokio::test]
async fn watches_begin_again_under_a_new_token() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    client.get("a").await.unwrap();
    fake.state().holds = false;
    let mut watch = client.watch(Watch::key("a"));
    tokio::select! {
        () = until("the watch was sent again", async || fake.tokens().len() > 2) => {}
        event = watch.next() => panic!("the watch was not silent: {event:?}"),
    }
    assert_eq!(fake.tokens(), [token(1), token(1), token(2)]);
}

#[tokio::test]
async fn a_watch_whose_new_token_is_refused_ends() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    fake.state().refusal = Some(Kind::InvalidAuthToken);
    let mut watch = client.watch(Watch::key("a"));
    let canceled = finish("the watch is canceled", watch.next()).await.unwrap().unwrap_err();
    assert_eq!(canceled.error.kind(), Some(Kind::InvalidAuthToken));
    assert_eq!(fake.tokens(), [token(1), token(2)]);
}

#[tokio::test]
async fn a_watch_that_is_refused_before_it_has_an_id_is_told() {
    let fake = Fake::start(None).await;
    let client = Client::connect([fake.address.clone()], ConnectOptions::new()).await.unwrap();
    fake.state().refusal = Some(Kind::UserEmpty);
    let mut watch = client.watch(Watch::key("a"));
    let canceled = finish("the watch is canceled", watch.next()).await.unwrap().unwrap_err();
    assert_eq!(canceled.error.kind(), Some(Kind::UserEmpty));
}

#[tokio::test]
async fn keep_alives_go_on_under_a_new_token() {
    let fake = Fake::start(PASSWORD).await;
    let client = client(&fake, "secret").await;
    client.get("a").await.unwrap();
    fake.state().holds = false;
    let mut renewals = client.lease_keep_alive(7);
    let renewal = finish("the lease is renewed", renewals.next()).await.unwrap().unwrap();
    assert_eq!(renewal.ttl, 60);
    assert_eq!(fake.tokens(), [token(1), token(1), token(2)]);
}

#[test]
fn secrets_are_not_printed_with_the_options() {
    let text = format!("{:?}", ConnectOptions::new().user(User::new("alice", "secret")));
    assert!(text.contains("alice") && !text.contains("secret"), "{text}");
    assert!(!format!("{:?}", ConnectOptions::new().token("secret")).contains("secret"));
}
