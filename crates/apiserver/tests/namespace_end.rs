//! A namespace is removed after its content and after the last finalizer.

use crate::common;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use common::{
    World,
    http::{Answer, Http},
    webhook::{self, Webhook},
};
use harness::asynchronous::{self, until_some};
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

fn one(name: &str) -> String {
    format!("{NAMESPACES}/{name}")
}

async fn make(http: &mut Http, name: &str, finalizers: Value) {
    let namespace = json!({"metadata": {"name": name}, "spec": {"finalizers": finalizers}});
    let made = http.json("POST", NAMESPACES, namespace).await;
    assert_eq!(made.code, 201, "{}", made.body);
}

async fn map(http: &mut Http, namespace: &str, metadata: Value) -> Answer {
    http.json("POST", &format!("{}/configmaps", one(namespace)), json!({"metadata": metadata})).await
}

async fn finalize(http: &mut Http, name: &str, finalizers: Value) -> Answer {
    let namespace = json!({"metadata": {"name": name}, "spec": {"finalizers": finalizers}});
    http.json("PUT", &format!("{}/finalize", one(name)), namespace).await
}

async fn get(http: &mut Http, path: &str) -> Answer {
    http.json("GET", path, Value::Null).await
}

/// Waits until a GET has an answer for which `is` returns true.
async fn until(http: &mut Http, path: &str, is: impl Fn(&Answer) -> bool) -> Answer {
    until_some(&format!("{path} has changed"), async || Some(get(http, path).await).filter(&is)).await
}

#[test]
fn all_finalizers_must_be_removed() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        make(&mut http, "held", json!(["a.io/b"])).await;
        assert_eq!(map(&mut http, "held", json!({"name": "a", "finalizers": ["a.io/c"]})).await.code, 201);
        assert_eq!(http.json("DELETE", &one("held"), Value::Null).await.body["status"]["phase"], "Terminating");
        let map_path = format!("{}/configmaps/a", one("held"));
        until(&mut http, &map_path, |found| !found.body["metadata"]["deletionTimestamp"].is_null()).await;
        let held = get(&mut http, &one("held")).await;
        assert_eq!(held.body["spec"]["finalizers"], json!(["a.io/b", "kubernetes"]));
        assert_eq!(map(&mut http, "held", json!({"name": "b"})).await.code, 403);
        http.merge(&map_path, json!({"metadata": {"finalizers": null}})).await;
        // The content is gone, so the server removes its own finalizer and keeps the other one.
        let left = until(&mut http, &one("held"), |found| found.body["spec"]["finalizers"] == json!(["a.io/b"])).await;
        assert_eq!(left.code, 200);
        assert_eq!(finalize(&mut http, "held", json!([])).await.code, 200);
        assert_eq!(get(&mut http, &one("held")).await.code, 404);
    });
}

/// A namespace without finalizers is removed after its content as well, also if it is changed meanwhile.
#[test]
fn a_namespace_without_finalizers_is_not_removed_before_its_content() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        make(&mut http, "bare", json!([])).await;
        assert_eq!(map(&mut http, "bare", json!({"name": "a", "finalizers": ["a.io/c"]})).await.code, 201);
        assert_eq!(finalize(&mut http, "bare", json!([])).await.body["spec"], json!({}));
        assert_eq!(http.json("DELETE", &one("bare"), Value::Null).await.code, 200);
        assert_eq!(http.merge(&one("bare"), json!({"metadata": {"labels": {"x": "y"}}})).await.code, 200);
        assert_eq!(get(&mut http, &one("bare")).await.code, 200, "there is still something in it");
        let map_path = format!("{}/configmaps/a", one("bare"));
        http.merge(&map_path, json!({"metadata": {"finalizers": null}})).await;
        until(&mut http, &one("bare"), |found| found.code == 404).await;
    });
}

/// An object created while its namespace ends is refused or deleted: the next namespace of this name is empty.
#[test]
fn nothing_is_left_behind() {
    let world = World::start();
    let other = world.another();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        for round in 0..8 {
            make(&mut http, "busy", json!([])).await;
            let (mut makers, count_made) = (tokio::task::JoinSet::new(), Arc::new(AtomicUsize::new(0)));
            for maker in 0..4 {
                let mut http = Http::connect(if maker % 2 == 0 { world.api() } else { &other }).await;
                let count_made = count_made.clone();
                makers.spawn(async move {
                    for count in 0.. {
                        let made = map(&mut http, "busy", json!({"name": format!("m{maker}-{count}")})).await;
                        if made.code != 201 {
                            return made.code;
                        }
                        count_made.fetch_add(1, Relaxed);
                    }
                    0
                });
            }
            let what = "the namespace has some objects";
            asynchronous::until(what, async || count_made.load(Relaxed) >= 4 * round).await;
            assert_eq!(http.json("DELETE", &one("busy"), Value::Null).await.code, 200);
            while let Some(code) = makers.join_next().await {
                assert!(matches!(code, Ok(403 | 404)), "{code:?}");
            }
            until(&mut http, &one("busy"), |found| found.code == 404).await;
            let left = get(&mut http, "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dbusy").await;
            assert_eq!(left.body["items"], json!([]), "round {round}");
        }
    });
}

static GONE: AtomicBool = AtomicBool::new(false);

/// Answers once the namespace is gone. The runtime moves the thread's other work to another thread.
fn slowly(object: Value, desired: &str) -> Value {
    tokio::task::block_in_place(|| harness::until("the namespace is gone", || GONE.load(Relaxed)));
    webhook::moved(object, desired, &[])
}

/// A webhook is called between the check of the namespace and the write, and the namespace is removed meanwhile.
#[test]
fn an_object_with_a_slow_conversion_is_not_left_behind() {
    let world = World::start();
    world.run(async {
        let (mut http, mut maker) = (Http::connect(world.api()).await, Http::connect(world.api()).await);
        let hook = Webhook::start_with(slowly).await;
        let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema": {"type": "object"}}});
        let definition = json!({"metadata": {"name": "slows.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "slows", "kind": "Slow"}, "versions": [version("v1"), version("v2")],
            "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                "clientConfig": {"url": hook.url, "caBundle": hook.bundle}}}}});
        let defined = http.json("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        assert_eq!(defined.code, 201, "{}", defined.body);
        make(&mut http, "brief", json!([])).await;
        let made = tokio::spawn(async move {
            let slow = json!({"apiVersion": "ex.io/v2", "kind": "Slow", "metadata": {"name": "s"}});
            maker.json("POST", "/apis/ex.io/v2/namespaces/brief/slows", slow).await.code
        });
        asynchronous::until("the webhook is called", async || hook.calls() > 0).await;
        assert_eq!(http.json("DELETE", &one("brief"), Value::Null).await.code, 200);
        until(&mut http, &one("brief"), |found| found.code == 404).await;
        GONE.store(true, Relaxed);
        assert_eq!(made.await.unwrap(), 404);
        assert_eq!(get(&mut http, "/apis/ex.io/v1/slows").await.body["items"], json!([]));
    });
}
