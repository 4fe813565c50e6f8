//! Watches that share one of the store, beside others that are behind or come from a past that is gone.

use crate::common;

use std::time::Duration;

use common::{World, http::Http};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn write(http: &mut Http, number: i64) -> i64 {
    let path = format!("{MAPS}/a");
    let done = http.merge(&path, json!({"data": {"number": number.to_string()}})).await;
    let done = match done.code {
        404 => {
            http.json("POST", MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})).await
        }
        _ => done,
    };
    done.body["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number")
}

async fn compact(world: &World, revision: i64) {
    let client = client::Client::connect(vec![world.endpoint.clone()], client::ConnectOptions::new()).await;
    client.expect("a client").compact(revision, true).await.expect("compacted");
}

/// What a watch tells within a second.
async fn told(world: &World, from: i64, query: &str) -> Vec<Value> {
    let path = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={from}{query}");
    Http::connect(world.api()).await.lines(&path).await
}

/// Found by reading: the end of a watch of the store that began too early was told to all who shared it.
#[test]
fn a_watch_from_a_past_that_is_gone_does_not_end_others() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let old = write(&mut http, 0).await;
        let mut now = old;
        for number in 1..5 {
            now = write(&mut http, number).await;
        }
        compact(&world, now).await;
        for _ in 0..10 {
            let others = (0..8).map(|_| told(&world, now, "&allowWatchBookmarks=true"));
            let (gone, others) = tokio::join!(told(&world, old, ""), futures_util::future::join_all(others));
            assert_eq!(gone[0]["object"]["code"], 410, "{gone:?}");
            assert!(others.iter().flatten().all(|event| event["type"] != "ERROR"), "{others:?}");
        }
    });
}

/// What a client has seen need not be there any more, only what came after it.
#[test]
fn a_watch_goes_on_after_the_last_revision_that_was_compacted() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let seen = write(&mut http, 0).await;
        let next = write(&mut http, 1).await;
        assert_eq!(next, seen + 1, "nobody else writes");
        compact(&world, next).await;
        let events = told(&world, seen, "").await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert_eq!(events[0]["object"]["data"]["number"], "1");
    });
}

/// Each asks the store for its own bookmarks, and the store answers to all.
#[test]
fn many_watches_get_no_more_bookmarks_than_one() {
    let world = World::start_with(|options| options.bookmark_every = Duration::from_millis(200));
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let now = write(&mut http, 0).await;
        let all = futures_util::future::join_all((0..10).map(|_| told(&world, now, "&allowWatchBookmarks=true"))).await;
        for events in all {
            assert!((1..=5).contains(&events.len()), "{} bookmarks", events.len());
        }
    });
}

/// One that comes late to those who share a watch is told of all that it has not seen, once.
#[test]
fn a_late_watch_is_told_of_all_since_its_own_past() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let first = write(&mut http, 0).await;
        let shared = tokio::spawn({
            let path = format!("{MAPS}?watch=1&timeoutSeconds=4&resourceVersion={first}");
            let mut http = Http::connect(world.api()).await;
            async move { http.lines(&path).await }
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut versions = vec![first];
        for number in 1..20 {
            versions.push(write(&mut http, number).await);
        }
        let numbers = |events: &[Value]| -> Vec<i64> {
            let number = |event: &Value| event["object"]["data"]["number"].as_str().unwrap().parse().unwrap();
            events.iter().map(number).collect()
        };
        // Before those who share began, at their start, in their middle and at their end.
        for start in [0, 1, 10, 18, 19] {
            let events = told(&world, versions[start], "").await;
            assert_eq!(numbers(&events), (start as i64 + 1..20).collect::<Vec<_>>(), "from {start}");
        }
        let before = told(&world, first - 1, "").await;
        assert_eq!(before.len(), 20, "with its creation");
        assert_eq!(numbers(&shared.await.unwrap()), (1..20).collect::<Vec<_>>());
    });
}

/// Found by attack: the revision after the last that there can be was asked for, which panicked.
#[test]
fn a_watch_from_the_end_of_time_waits() {
    let world = World::start();
    world.run(async {
        let began = std::time::Instant::now();
        assert!(told(&world, i64::MAX, "").await.is_empty());
        assert!(began.elapsed() > Duration::from_millis(900), "it waits for as long as it may");
    });
}
