//! Who guards what on a client port: pages have origins and host names, gRPC has neither, as in etcd.

use crate::common;

use common::{Place, plain_http};
use proto::etcdserverpb::{
    PutRequest, RangeRequest, StatusRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tonic::{Response, transport::Channel};

/// A header of pages, or one that no gRPC client reads.
fn has_page_headers<T>(response: &Response<T>) -> bool {
    ["access-control-allow-origin", "date"].iter().any(|name| response.metadata().contains_key(*name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_guarded_and_grpc_is_not() {
    let place = Place::new();
    // The member is known as `elsewhere` alone; all come by 127.0.0.1.
    let member = place.start(&["--host-whitelist=elsewhere", "--cors=http://a:1"]);
    let channel = Channel::from_shared(member.url()).expect("url").connect().await.expect("connect");

    // Past the router, the generated service behind it, and through the router.
    let (mut kv, mut maintenance) = (KvClient::new(channel.clone()), MaintenanceClient::new(channel));
    let put = PutRequest { key: "k".into(), value: "v".into(), ..Default::default() };
    assert!(!has_page_headers(&kv.put(put).await.expect("put")));
    let range = kv.range(RangeRequest { key: "k".into(), ..Default::default() }).await.expect("range");
    assert!(!has_page_headers(&range));
    assert_eq!(range.into_inner().kvs[0].value, "v");
    kv.delete_range(proto::etcdserverpb::DeleteRangeRequest { key: "k".into(), ..Default::default() })
        .await
        .expect("delete");
    assert!(!has_page_headers(&maintenance.status(StatusRequest {}).await.expect("status")));

    let (status, text) = plain_http::ask(&member, "GET", "/version", &[], "");
    assert_eq!(status, 421, "{text}");
    assert!(text.contains("--host-whitelist"), "{text}");
    let (status, text) = plain_http::ask(&member, "POST", "/v3/kv/range", &[], r#"{"key":"aw=="}"#);
    assert_eq!(status, 421, "{text}");
}
