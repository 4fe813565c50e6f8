//! Slow watches, compressed answers, and questions of clients about themselves.

use crate::common;

use std::{io::Read, time::Duration};

use common::{World, http::Http};
use harness::asynchronous::until;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Together, the changes exceed the socket buffers between client and server.
const CHANGES: u64 = 80;
const CHANGE_BYTES: usize = 300_000;

async fn write_all(http: &mut Http) {
    for number in 1..=CHANGES {
        let filler = "x".repeat(CHANGE_BYTES);
        let done =
            http.merge(&format!("{MAPS}/a"), json!({"data": {"number": number.to_string(), "filler": filler}})).await;
        assert_eq!(done.code, 200, "{}", done.body["message"]);
    }
}

/// The numbers of all changes that a watch sends until its end or the last change, and the last revision.
async fn take_all(mut body: Incoming) -> (Vec<u64>, String) {
    let (mut rest, mut numbers, mut version) = (Vec::new(), Vec::new(), String::new());
    while numbers.last() != Some(&CHANGES) {
        let Some(frame) = body.frame().await else { break };
        rest.extend_from_slice(frame.expect("the watch ends properly").data_ref().expect("data"));
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).expect("a whole event");
            assert_eq!(event["type"], "MODIFIED");
            numbers.push(event["object"]["data"]["number"].as_str().unwrap().parse().unwrap());
            version = event["object"]["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        }
    }
    (numbers, version)
}

fn watch_from(version: &str) -> String {
    format!("{MAPS}?watch=1&resourceVersion={version}&timeoutSeconds=3600")
}

async fn first(http: &mut Http) -> String {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    http.json("POST", MAPS, map).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

fn every() -> Vec<u64> {
    (1..=CHANGES).collect()
}

#[test]
fn a_watch_whose_client_does_not_read_ends_and_can_be_resumed() {
    let world = World::start_with(|options| {
        options.watch_backlog_bytes_max = 1_000_000;
        options.watch_patience = Duration::from_millis(500);
    });
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let version = first(&mut http).await;
        let mut slow = Http::connect(world.api()).await;
        let body = slow.watch(&watch_from(&version)).await;
        write_all(&mut http).await;
        let ended = r#"apiserver_terminated_watchers_total{group="",resource="configmaps"} 1"#;
        until("the server ends the watch", async || http.metrics().await.contains(ended)).await;
        let (mut numbers, version) = take_all(body).await;
        assert!(numbers.len() < CHANGES as usize, "waiting events are dropped");
        let again = slow.watch(&watch_from(&version)).await;
        numbers.extend(take_all(again).await.0);
        assert_eq!(numbers, every(), "no event is lost or sent twice");
    });
}

#[test]
fn a_watch_whose_client_lags_continues_from_history() {
    let world = World::start_with(|options| {
        options.watch_backlog_bytes_max = 1_000_000;
        options.watch_patience = Duration::from_secs(300);
    });
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let version = first(&mut http).await;
        let mut slow = Http::connect(world.api()).await;
        let body = slow.watch(&watch_from(&version)).await;
        write_all(&mut http).await;
        assert_eq!(take_all(body).await.0, every());
    });
}

#[test]
fn large_answers_are_compressed_for_clients_that_accept_it() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        for name in ["a", "b"] {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "y".repeat(100_000)}});
            assert_eq!(http.json("POST", MAPS, map).await.code, 201);
        }
        let (code, headers, compressed) = http.get_with(MAPS, &[("accept-encoding", "gzip")]).await;
        assert_eq!((code, &headers["content-encoding"], &headers["vary"]), (200, &"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap()));
        let mut uncompressed = Vec::new();
        flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut uncompressed).unwrap();
        let (_, headers, plain) = http.get_with(MAPS, &[]).await;
        assert!(headers.get("content-encoding").is_none() && compressed.len() * 10 < plain.len());
        assert_eq!(uncompressed, plain);
        let (_, headers, _) = http.get_with(&format!("{MAPS}/a"), &[("accept-encoding", "gzip")]).await;
        assert!(headers.get("content-encoding").is_none(), "small answers are not compressed");
    });
}

#[test]
fn kubectl_asks_for_identity_and_permissions() {
    if harness::kubectl().is_none() {
        return;
    }
    let world = World::start();
    assert_eq!(world.kubectl(&["auth", "can-i", "delete", "configmaps"]).ok(), "yes\n");
    assert_eq!(world.kubectl(&["auth", "can-i", "get", "/metrics"]).ok(), "yes\n");
    let no = world.kubectl(&["auth", "can-i", "delete", "configmaps", "--as=ann"]);
    assert_eq!((no.code, no.stdout.as_str()), (Some(1), "no\n"), "{}", no.stderr);
    assert_eq!(world.kubectl(&["auth", "can-i", "get", "/version", "--as=ann"]).ok(), "yes\n");
    let refused = world.kubectl(&["get", "configmaps", "--as=ann", "--as-group=dev"]).error();
    assert!(refused.contains("User \"ann\" cannot list resource \"configmaps\""), "{refused}");
    let list = world.kubectl(&["auth", "can-i", "--list"]).ok();
    assert!(list.lines().any(|line| line.starts_with("*.*") && line.contains("[*]")), "{list}");
    let who = world.kubectl(&["auth", "whoami", "-o", "jsonpath={.status.userInfo}"]).ok();
    let mut who: Value = serde_json::from_str(&who).unwrap();
    let certificate = who.as_object_mut().and_then(|who| who.remove("extra")).unwrap_or_default();
    let id = certificate["authentication.kubernetes.io/credential-id"][0].as_str().unwrap_or_default();
    assert!(id.starts_with("X509SHA256=") && id.len() == 75, "{certificate}");
    assert_eq!(who, json!({"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}));
    let named =
        world.kubectl(&["api-resources", "--api-group=authorization.k8s.io", "-o", "name", "--verbs=create"]).ok();
    assert_eq!(named.lines().count(), 2, "{named}");
}
