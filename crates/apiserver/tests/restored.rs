//! A store that comes back without its content: restored from a copy, or created again.

use crate::common;

use common::{
    World,
    http::{Events, Http},
};
use harness::asynchronous::until;
use playground::Member;
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Forwards connections to the current store and cuts those to an earlier one.
async fn wire(store: watch::Receiver<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut store = store.clone();
            tokio::spawn(async move {
                let target = store.borrow_and_update().clone();
                let Ok(mut far) = TcpStream::connect(&target).await else { return };
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    _ = store.changed() => {}
                }
            });
        }
    });
    address
}

fn definition(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": kind},
                 "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

/// Repeats a request until the answer has this code.
async fn wait_for(http: &mut Http, method: &str, path: &str, body: Value, code: u16) {
    let mut last = 0;
    until(&format!("{method} {path} is answered with {code}"), async || {
        let answer = http.json(method, path, body.clone()).await;
        if answer.code != code && answer.code != last {
            println!("{method} {path}: {} {}", answer.code, answer.body);
        }
        last = answer.code;
        answer.code == code
    })
    .await;
}

/// Found by attack: the server kept the definitions it knew, served no new ones, and watches had no events until the
/// revisions they had seen came again.
#[test]
fn a_new_store_is_read_from_the_start() {
    let world = World::start();
    world.run(async {
        let (place, store) = watch::channel(world.endpoint().to_owned());
        let options = apiserver::Options::new(vec![wire(store).await], world.dir().join("wired"));
        let api = apiserver::Server::start(options).await.expect("a server");
        let mut http = Http::connect(&api).await;
        assert_eq!(http.json("POST", CRDS, definition("boxes", "Box")).await.code, 201);
        let map = |number: i64| json!({"metadata": {"name": format!("a{number}")}});
        for number in 0..30 {
            assert_eq!(http.json("POST", MAPS, map(number)).await.code, 201);
        }
        let listed = http.json("GET", MAPS, Value::Null).await.body;
        let seen = listed["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
        let watch = format!("{MAPS}?watch=1&resourceVersion={seen}&timeoutSeconds=3600");
        let watching = Events::open(&api, &watch).await;

        let member = Member::start(&world.dir().join("new")).await.expect("a member");
        place.send(member.endpoint().to_owned()).expect("somebody listens");
        wait_for(&mut http, "GET", "/apis/example.com/v1/boxes", Value::Null, 404).await;
        wait_for(&mut http, "POST", MAPS, map(0), 201).await;
        wait_for(&mut http, "POST", CRDS, definition("lids", "Lid"), 201).await;
        wait_for(&mut http, "GET", "/apis/example.com/v1/lids", Value::Null, 200).await;
        let told = watching.rest().await;
        assert_eq!((told.len(), &told[0]["object"]["code"]), (1, &json!(410)), "{told:?}");
        let late = Events::open(&api, &watch).await.rest().await;
        assert_eq!((late.len(), &late[0]["object"]["code"]), (1, &json!(410)), "{late:?}");
    });
}
