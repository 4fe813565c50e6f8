//! The playground as tests of controllers use it: with a client of their own, in any runtime.

use std::{error::Error, net::TcpStream, path::Path, thread};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{PostParams, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use playground::{Playground, StartError};
use serde_json::json;

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("it is whole");
    Client::try_from(config).expect("a client")
}

async fn maps(playground: &Playground) -> Api<ConfigMap> {
    Api::default_namespaced(client(playground.kubeconfig()).await)
}

fn greeting() -> ConfigMap {
    let map = json!({"metadata": {"name": "greeting"}, "data": {"text": "hello"}});
    serde_json::from_value(map).expect("a config map")
}

/// Returns true if the address accepts connections.
fn answers(address: &str) -> bool {
    TcpStream::connect(address.trim_start_matches("https://")).is_ok()
}

/// The servers run on threads of their own, so that the single thread of `#[tokio::test]` may block.
#[tokio::test]
async fn each_playground_has_its_own_store() {
    let (one, other) = (Playground::start().expect("one"), Playground::start().expect("another"));
    maps(&one).await.create(&PostParams::default(), &greeting()).await.expect("is created");
    let read = maps(&one).await.get("greeting").await.expect("is there");
    assert_eq!(read.data.expect("data")["text"], "hello");
    assert!(maps(&other).await.get_opt("greeting").await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_dropped_playground_leaves_nothing_behind() {
    let playground = Playground::start().expect("a playground");
    let (url, store) = (playground.url().to_owned(), playground.store().to_owned());
    let dir = playground.kubeconfig().parent().expect("a directory").to_owned();
    // An open watch does not delay the end.
    let _watch = maps(&playground).await.watch(&WatchParams::default(), "0").await.expect("a watch");
    assert!(answers(&url) && answers(&store) && dir.exists());

    let dropping = thread::spawn(|| drop(playground));
    harness::until("the playground has stopped", || dropping.is_finished());
    assert!(!answers(&url) && !answers(&store) && !dir.exists());
}

#[tokio::test]
async fn objects_are_kept_in_the_given_directory() {
    let dir = harness::tempdir();
    let playground = Playground::start_in(dir.path(), |_| {}).expect("a playground");
    let made = maps(&playground).await.create(&PostParams::default(), &greeting()).await.expect("is created");
    drop(playground);
    let playground = Playground::start_in(dir.path(), |_| {}).expect("it starts again");
    let read = maps(&playground).await.get("greeting").await.expect("is there");
    assert_eq!((read.uid(), read.resource_version()), (made.uid(), made.resource_version()));
}

#[test]
fn a_failed_start_has_a_cause_and_leaves_no_server_behind() {
    let dir = harness::tempdir();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let refused = Playground::start_in(dir.path(), |options| options.listen = address).err();
    assert!(matches!(refused, Some(StartError::Api(_))), "{refused:?}");
    assert_eq!(refused.expect("refused").to_string(), format!("failed to listen on {address}"));
    // The member of the failed start has released the directory.
    Playground::start_in(dir.path(), |_| {}).expect("starts");

    let refused = Playground::start_in(dir.path(), |options| options.feature_gates = "Nonsense=true".into()).err();
    let cause = refused.as_ref().and_then(Error::source).expect("a cause").to_string();
    assert_eq!(cause, "unrecognized feature gate: Nonsense");

    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let refused = Playground::start_in(&file, |_| {}).err();
    assert!(matches!(refused, Some(StartError::Member(_))), "{refused:?}");
}
