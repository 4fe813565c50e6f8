//! Health with a reachable and an unreachable store, and metrics under Kubernetes' names.

use crate::common;

use common::{World, http::Http};
use harness::asynchronous::until;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// Forwards connections to a store, and no bytes while `silent` is true.
async fn wire(store: String, silent: watch::Receiver<bool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let Ok(far) = TcpStream::connect(&store).await else { continue };
            let (near, far) = (near.into_split(), far.into_split());
            tokio::spawn(forward(near.0, far.1, silent.clone()));
            tokio::spawn(forward(far.0, near.1, silent.clone()));
        }
    });
    address
}

/// Ends when either side does: an ignored error would repeat endlessly.
async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut silent: watch::Receiver<bool>) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if silent.wait_for(|silent| !silent).await.is_err() || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[test]
fn an_unreachable_store_is_reported() {
    let world = World::start();
    world.run(report_unreachable_store(&world));
}

async fn report_unreachable_store(world: &World) {
    let (silence, silent) = watch::channel(false);
    let store = wire(world.endpoint().to_owned(), silent).await;
    let options = apiserver::Options::new(vec![store], world.dir().join("wired"));
    let api = apiserver::Server::start(options).await.expect("a server");
    let mut http = Http::connect(&api).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (code, _, said) = http.raw("GET", "/readyz?verbose").await;
    assert_eq!((code, text(&said).lines().last().unwrap_or_default()), (200, "readyz check passed"));

    silence.send(true).expect("somebody listens");
    let (code, _, said) = http.raw("GET", "/readyz").await;
    let away = "[+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\n[+]informer-sync ok\n\
        readyz check failed\n";
    assert_eq!((code, text(&said)), (500, away.to_owned()));
    let (code, _, said) = http.raw("GET", "/livez/etcd").await;
    assert_eq!((code, text(&said)), (500, "internal server error: context deadline exceeded\n".to_owned()));
    // Checks that do not ask the store succeed.
    for path in ["/livez", "/readyz?exclude=etcd&exclude=etcd-readiness", "/readyz/ping"] {
        assert_eq!(http.raw("GET", path).await.0, 200, "{path}");
    }

    silence.send(false).expect("somebody listens");
    until("the server is ready again", async || http.raw("GET", "/readyz").await.0 == 200).await;
}

/// The metrics after the first count of all kinds, which runs in the background.
async fn counted(http: &mut Http) -> String {
    let counted = r#"apiserver_storage_objects{resource="leases.coordination.k8s.io"}"#;
    until("all kinds are counted", async || http.metrics().await.contains(counted)).await;
    http.metrics().await
}

#[test]
fn metrics_have_the_names_and_labels_of_kubernetes() {
    let world = World::start();
    world.run(async {
        let mut http = Http::connect(world.api()).await;
        let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let maps = "/api/v1/namespaces/default/configmaps";
        assert_eq!(http.json("POST", &format!("{maps}?dryRun=All"), map).await.code, 201);
        assert_eq!(http.raw("GET", maps).await.0, 200);
        assert_eq!(http.raw("GET", &format!("{maps}/none")).await.0, 404);
        assert_eq!(http.raw("GET", "/apis/no.such/v1/things/x").await.0, 404);
        let text = counted(&mut http).await;
        let request = |labels: &str| format!("apiserver_request_total{{{labels}}} 1");
        let lines = [
            request(r#"code="201",component="apiserver",dry_run="All",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1""#),
            request(r#"code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="namespace",subresource="",verb="LIST",version="v1""#),
            request(r#"code="404",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1""#),
            request(r#"code="404",component="apiserver",dry_run="",group="",resource="unknown",scope="",subresource="",verb="GET",version="""#),
            r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#.to_owned(),
            r#"apiserver_resource_objects{group="",resource="namespaces"} 4"#.to_owned(),
            r#"apiserver_storage_objects{resource="leases.coordination.k8s.io"} 0"#.to_owned(),
        ];
        for line in lines {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        for part in ["apiserver_request_duration_seconds_bucket{", "\nprocess_resident_memory_bytes "] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    });
}
