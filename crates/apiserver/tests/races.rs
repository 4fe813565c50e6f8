//! Clients that change one object at the same time.

use crate::common;

use common::{World, http::Http};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const ROUNDS: usize = 25;

fn map(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// Removes a finalizer as controllers do: reads, writes without it, and retries after a conflict.
async fn let_go(http: &mut Http, path: &str, finalizer: &str) {
    loop {
        let mut object = http.json("GET", path, Value::Null).await.body;
        let list = object["metadata"]["finalizers"].as_array_mut().expect("held by one of the two finalizers");
        list.retain(|held| held != finalizer);
        let answer = http.json("PUT", path, object).await;
        match answer.code {
            200 => return,
            409 => continue,
            _ => panic!("{}", answer.body),
        }
    }
}

#[test]
fn two_finalizers_are_removed_at_once() {
    let world = World::start();
    world.run(async {
        let (mut one, mut two) = (Http::connect(world.api()).await, Http::connect(world.api()).await);
        for round in 0..ROUNDS {
            let path = format!("{MAPS}/a{round}");
            let made = map(json!({"name": format!("a{round}"), "finalizers": ["ex.io/a", "ex.io/b"]}));
            assert_eq!(one.json("POST", MAPS, made).await.code, 201);
            assert_eq!(one.json("DELETE", &path, Value::Null).await.code, 200);
            tokio::join!(let_go(&mut one, &path, "ex.io/a"), let_go(&mut two, &path, "ex.io/b"));
            assert_eq!(one.json("GET", &path, Value::Null).await.code, 404, "round {round}");
        }
    });
}

#[test]
fn an_accepted_finalizer_keeps_the_object() {
    let world = World::start();
    world.run(async {
        let (mut one, mut two) = (Http::connect(world.api()).await, Http::connect(world.api()).await);
        for round in 0..ROUNDS {
            let path = format!("{MAPS}/b{round}");
            assert_eq!(one.json("POST", MAPS, map(json!({"name": format!("b{round}")}))).await.code, 201);
            let hold = json!({"metadata": {"finalizers": ["ex.io/a"]}});
            let (held, deleted) = tokio::join!(one.merge(&path, hold), two.json("DELETE", &path, Value::Null));
            assert_eq!(deleted.code, 200, "round {round}: {}", deleted.body);
            let left = one.json("GET", &path, Value::Null).await;
            match held.code {
                200 => assert!(left.body["metadata"]["deletionTimestamp"].is_string(), "round {round}: {}", left.body),
                404 => assert_eq!(left.code, 404, "round {round}: {}", left.body),
                _ => panic!("round {round}: {}", held.body),
            }
        }
    });
}

#[test]
fn a_deleted_object_accepts_no_finalizer_and_keeps_its_name() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let path = format!("{MAPS}/c");
        let made = map(json!({"name": "c", "finalizers": ["ex.io/a"]}));
        assert_eq!(http.json("POST", MAPS, made.clone()).await.code, 201);
        let taken = http.json("POST", MAPS, made.clone()).await;
        assert_eq!(taken.body["message"], r#"configmaps "c" already exists"#);
        assert_eq!(http.json("DELETE", &path, Value::Null).await.code, 200);
        let more = http.merge(&path, json!({"metadata": {"finalizers": ["ex.io/a", "ex.io/b"]}})).await;
        assert_eq!(more.code, 422);
        let grace = http.merge(&path, json!({"metadata": {"deletionGracePeriodSeconds": 5}})).await;
        let text =
            "ConfigMap \"c\" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable";
        assert_eq!(grace.body["message"], text);
        for address in [MAPS.to_owned(), format!("{MAPS}?dryRun=All")] {
            let taken = http.json("POST", &address, made.clone()).await;
            let text = r#"object is being deleted: configmaps "c" already exists"#;
            assert_eq!((taken.code, &taken.body["message"]), (409, &json!(text)));
        }
    });
}

#[test]
fn names_generated_at_once_differ() {
    let world = World::start();
    world.run(async {
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Http::connect(world.api()).await);
        }
        let make = |mut http: Http| async move {
            for _ in 0..10 {
                let made = http.json("POST", MAPS, map(json!({"generateName": "g-"}))).await;
                assert_eq!(made.code, 201, "{}", made.body);
            }
        };
        futures_util::future::join_all(clients.into_iter().map(make)).await;
        let mut http = Http::connect(world.api()).await;
        let all = http.json("GET", MAPS, Value::Null).await;
        assert_eq!(all.body["items"].as_array().map(Vec::len), Some(80));
    });
}

/// A delete with invalid options deletes nothing.
#[test]
fn rejects_deletes_of_collections_with_invalid_options() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let uid = http.json("POST", MAPS, map(json!({"name": "d"}))).await.body["metadata"]["uid"].clone();
        let uid = uid.as_str().expect("a uid");
        let cases = [
            ("resourceVersion=x", 400),
            ("resourceVersion=999999", 504),
            ("resourceVersionMatch=Exact", 422),
            ("continue=x", 400),
            ("timeoutSeconds=x", 400),
            ("sendInitialEvents=1", 422),
            ("gracePeriodSeconds=x", 400),
            ("propagationPolicy=", 422),
            ("uid=x", 409),
        ];
        for (query, code) in cases {
            let (found, _, said) = http.raw("DELETE", &format!("{MAPS}?{query}")).await;
            assert_eq!(found, code, "{query}: {}", String::from_utf8_lossy(&said));
        }
        let wrong = http.json("DELETE", &format!("{MAPS}/d"), json!({"preconditions": {"uid": "x"}})).await;
        let text = format!(
            "Operation cannot be fulfilled on ConfigMap \"d\": the UID in the precondition (x) does not match the UID in record ({uid}). \
             The object might have been deleted and then recreated"
        );
        assert_eq!(wrong.body["message"], text);
        assert_eq!(http.json("GET", &format!("{MAPS}/d"), Value::Null).await.code, 200);
    });
}
