//! Watches that share one watch of the store, next to watches that lag or begin at a compacted revision.

use crate::common;

use std::time::{Duration, Instant};

use common::{
    World,
    http::{Events, Http},
};
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
    let client = client::Client::connect(vec![world.endpoint().to_owned()], client::ConnectOptions::new()).await;
    client.expect("a client").compact(revision, true).await.expect("compacted");
}

/// A watch of all changes after the revision `from`.
async fn watch(world: &World, from: i64, query: &str) -> Events {
    let path = format!("{MAPS}?watch=1&timeoutSeconds=3600&resourceVersion={from}{query}");
    Events::open(world.api(), &path).await
}

fn number(event: &Value) -> i64 {
    event["object"]["data"]["number"].as_str().expect("a number").parse().expect("a number")
}

/// The next event of a watch that is no bookmark.
async fn next_change(events: &mut Events) -> Value {
    loop {
        let event = events.next().await.expect("the watch goes on");
        if event["type"] != "BOOKMARK" {
            return event;
        }
    }
}

/// Found in review: the error of a watch of the store that began too early reached all watches that shared it.
#[test]
fn a_watch_from_a_compacted_revision_does_not_end_others() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let old = write(&mut http, 0).await;
        let mut now = old;
        for number in 1..5 {
            now = write(&mut http, number).await;
        }
        compact(&world, now).await;
        for round in 5..15 {
            let others = (0..8).map(|_| watch(&world, now, "&allowWatchBookmarks=true"));
            let gone = async { watch(&world, old, "").await.rest().await };
            let (gone, mut others) = tokio::join!(gone, futures_util::future::join_all(others));
            assert_eq!(gone[0]["object"]["code"], 410, "{gone:?}");
            now = write(&mut http, round).await;
            for other in &mut others {
                let event = next_change(other).await;
                assert_eq!((&event["type"], number(&event)), (&json!("MODIFIED"), round), "{event}");
            }
        }
    });
}

/// The revision that a client has seen may be compacted, as long as the changes after it are not.
#[test]
fn a_watch_continues_after_the_last_compacted_revision() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let seen = write(&mut http, 0).await;
        let next = write(&mut http, 1).await;
        assert_eq!(next, seen + 1, "nobody else writes");
        compact(&world, next).await;
        let mut events = watch(&world, seen, "").await;
        assert_eq!(number(&events.take(1).await[0]), 1);
        write(&mut http, 2).await;
        assert_eq!(number(&events.take(1).await[0]), 2, "the watch has no other event");
    });
}

/// Each watch asks the store for its own bookmarks, and the store answers to all watches.
#[test]
fn many_watches_get_no_more_bookmarks_than_one() {
    const EVERY: Duration = Duration::from_millis(200);
    const BOOKMARKS: usize = 5;
    let world = World::start_with(|options| options.bookmark_every = EVERY);
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let now = write(&mut http, 0).await;
        let begin = Instant::now();
        let bookmarks = async || {
            let mut events = watch(&world, now, "&allowWatchBookmarks=true").await;
            let events = events.take(BOOKMARKS).await;
            assert!(events.iter().all(|event| event["type"] == "BOOKMARK"), "{events:?}");
            // An interval of the server passes before each bookmark, however slow the machine is.
            let passed = begin.elapsed().as_millis() / EVERY.as_millis();
            assert!(passed >= BOOKMARKS as u128, "{BOOKMARKS} bookmarks in {passed} intervals");
        };
        futures_util::future::join_all((0..10).map(|_| bookmarks())).await;
    });
}

/// A watch that joins a shared one later gets every event since its own revision once.
#[test]
fn a_late_watch_gets_all_events_since_its_revision() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let first = write(&mut http, 0).await;
        let mut shared = watch(&world, first, "").await;
        let mut versions = vec![first, write(&mut http, 1).await];
        let mut seen: Vec<i64> = shared.take(1).await.iter().map(number).collect();
        for number in 2..20 {
            versions.push(write(&mut http, number).await);
        }
        // From before the shared watch, its start, its middle and its end.
        let mut late = vec![(0, watch(&world, first - 1, "").await)];
        assert_eq!(late[0].1.take(1).await[0]["type"], "ADDED");
        for start in [0, 1, 10, 18, 19] {
            late.push((start, watch(&world, versions[start], "").await));
        }
        for (start, events) in &mut late {
            let numbers: Vec<i64> = events.take(19 - *start).await.iter().map(number).collect();
            assert_eq!(numbers, (*start as i64 + 1..20).collect::<Vec<_>>(), "from {start}");
        }
        seen.extend(shared.take(18).await.iter().map(number));
        assert_eq!(seen, (1..20).collect::<Vec<_>>());
        // No event came twice: the next one is the next change.
        write(&mut http, 20).await;
        for (start, events) in late.iter_mut().chain([&mut (0, shared)]) {
            assert_eq!(number(&events.take(1).await[0]), 20, "from {start}");
        }
    });
}

/// Found by attack: the server asked the store for the revision after the highest possible one, which panicked.
#[test]
fn a_watch_from_the_highest_revision_waits() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let mut waiting = watch(&world, i64::MAX, "").await;
        let begun = write(&mut http, 0).await;
        let mut other = watch(&world, begun, "").await;
        for number in 1..4 {
            write(&mut http, number).await;
            next_change(&mut other).await;
        }
        assert!(waiting.is_silent(), "the watch goes on without events");
        let ended = format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={}", i64::MAX);
        assert!(Events::open(world.api(), &ended).await.rest().await.is_empty());
    });
}
