//! Guards of a client port: pages are checked for origins and host names, gRPC is not, as in etcd.

use crate::common::{channel, place};

use proto::etcdserverpb::{
    PutRequest, RangeRequest, StatusRequest, kv_client::KvClient, maintenance_client::MaintenanceClient,
};
use tonic::Response;

/// Whether the response has a header that belongs to pages, or that no gRPC client reads.
fn has_page_headers<T>(response: &Response<T>) -> bool {
    ["access-control-allow-origin", "date"].iter().any(|name| response.metadata().contains_key(*name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_guarded_and_grpc_is_not() {
    let place = place();
    // The member accepts the host name `elsewhere` only, and all requests name 127.0.0.1.
    let member = place.start(&["--host-whitelist=elsewhere", "--cors=http://a:1"]);
    let channel = channel(&member).await;

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

    let reply = member.request("GET", "/version", &[], "");
    assert_eq!(reply.status, 421, "{reply:?}");
    assert!(reply.body.contains("--host-whitelist"), "{reply:?}");
    let reply = member.request("POST", "/v3/kv/range", &[], r#"{"key":"aw=="}"#);
    assert_eq!(reply.status, 421, "{reply:?}");
}
