//! Services that answer the cases of testdata/gateway.txt, and nothing else, as etcd does.

use std::{pin::Pin, sync::Mutex};

use futures_util::{Stream, StreamExt, stream};
use proto::{
    etcdserverpb::{
        kv_server::{Kv, KvServer},
        lease_server::{Lease, LeaseServer},
        watch_request::RequestUnion,
        watch_server::{Watch, WatchServer},
        *,
    },
    mvccpb,
};
use tonic::{Code, Request, Response, Status, Streaming, metadata::MetadataValue, service::Routes};

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

pub(super) fn routes() -> Routes {
    Routes::new(KvServer::new(Fake::default()).max_decoding_message_size(usize::MAX))
        .add_service(WatchServer::new(Fake::default()))
        .add_service(LeaseServer::new(Fake::default()))
}

#[derive(Default)]
struct Fake {
    /// The value of `foo`, and the revision.
    foo: Mutex<(Option<mvccpb::KeyValue>, i64)>,
}

fn header(revision: i64) -> Option<ResponseHeader> {
    Some(ResponseHeader { cluster_id: 1, member_id: 1, revision, raft_term: 1 })
}

#[tonic::async_trait]
impl Kv for Fake {
    async fn range(&self, request: Request<RangeRequest>) -> Result<Response<RangeResponse>, Status> {
        if let Some(wish) = request.metadata().get("wish") {
            return Err(wished(wish.to_str().unwrap_or_default()).await);
        }
        let echoed = request.metadata().get("echo").cloned();
        let (kv, revision) = self.foo.lock().unwrap().clone();
        let request = request.into_inner();
        if request.key.is_empty() {
            return Err(Status::new(Code::InvalidArgument, "etcdserver: key is not provided"));
        }
        if request.revision > revision {
            return Err(Status::new(Code::OutOfRange, "etcdserver: mvcc: required revision is a future revision"));
        }
        let kvs: Vec<_> = kv.into_iter().collect();
        let count = kvs.len() as i64;
        let mut response = Response::new(RangeResponse { header: header(revision), kvs, more: false, count });
        if let Some(value) = echoed {
            response.metadata_mut().insert("echo", value);
        }
        Ok(response)
    }

    type RangeStreamStream = Answers<RangeStreamResponse>;

    async fn range_stream(&self, _: Request<RangeRequest>) -> Result<Response<Self::RangeStreamStream>, Status> {
        Err(Status::unimplemented("not in the cases"))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let request = request.into_inner();
        if request.value.len() > 1_572_864 {
            return Err(Status::new(Code::InvalidArgument, "etcdserver: request is too large"));
        }
        let mut state = self.foo.lock().unwrap();
        state.1 = state.1.max(1) + 1;
        let revision = state.1;
        state.0 = Some(mvccpb::KeyValue {
            key: request.key,
            value: request.value,
            create_revision: 2,
            mod_revision: revision,
            version: revision - 1,
            lease: 0,
        });
        Ok(Response::new(PutResponse { header: header(revision), prev_kv: None }))
    }

    async fn delete_range(&self, _: Request<DeleteRangeRequest>) -> Result<Response<DeleteRangeResponse>, Status> {
        Err(Status::unimplemented("not in the cases"))
    }

    async fn txn(&self, _: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        Err(Status::unimplemented("not in the cases"))
    }

    async fn increment(&self, _: Request<IncrementRequest>) -> Result<Response<IncrementResponse>, Status> {
        Err(Status::unimplemented("not asked for here"))
    }

    async fn compact(&self, _: Request<CompactionRequest>) -> Result<Response<CompactionResponse>, Status> {
        Err(Status::unimplemented("not in the cases"))
    }
}

/// An error by its number, or an answer that takes too long.
async fn wished(wish: &str) -> Status {
    match wish.parse::<i32>() {
        Ok(code) => Status::new(Code::from(code), format!("wished <{code}>")),
        Err(_) => std::future::pending().await,
    }
}

#[tonic::async_trait]
impl Watch for Fake {
    type WatchStream = Answers<WatchResponse>;

    /// Goes on after the last request, as etcd does.
    async fn watch(&self, request: Request<Streaming<WatchRequest>>) -> Result<Response<Self::WatchStream>, Status> {
        let fails = request.metadata().get("fails") == Some(&MetadataValue::from_static("yes"));
        let mut watch_id = -1;
        let answers = request.into_inner().flat_map(move |request| {
            let response = |watch_id| WatchResponse { header: header(2), watch_id, ..Default::default() };
            let mut answers = Vec::new();
            match request.map(|r| r.request_union) {
                Ok(Some(RequestUnion::CreateRequest(create))) => {
                    watch_id += 1;
                    answers.push(Ok(WatchResponse { created: true, ..response(watch_id) }));
                    if create.start_revision == 1 {
                        answers.push(Ok(WatchResponse { events: vec![event()], ..response(watch_id) }));
                    }
                }
                Ok(Some(RequestUnion::ProgressRequest(_))) => answers.push(Ok(response(-1))),
                Ok(_) => {}
                Err(status) => answers.push(Err(status)),
            }
            if fails {
                answers.push(Err(Status::new(Code::Unavailable, "etcdserver: <no leader>")));
            }
            stream::iter(answers)
        });
        Ok(Response::new(answers.chain(stream::pending()).boxed()))
    }
}

fn event() -> mvccpb::Event {
    let kv = mvccpb::KeyValue {
        key: "foo".into(),
        value: "bar".into(),
        create_revision: 2,
        mod_revision: 2,
        version: 1,
        lease: 0,
    };
    mvccpb::Event { kv: Some(kv), ..Default::default() }
}

#[tonic::async_trait]
impl Lease for Fake {
    async fn lease_grant(&self, request: Request<LeaseGrantRequest>) -> Result<Response<LeaseGrantResponse>, Status> {
        let LeaseGrantRequest { id, ttl } = request.into_inner();
        Ok(Response::new(LeaseGrantResponse { header: header(2), id, ttl, error: String::new() }))
    }

    async fn lease_revoke(&self, _: Request<LeaseRevokeRequest>) -> Result<Response<LeaseRevokeResponse>, Status> {
        Err(Status::new(Code::NotFound, "etcdserver: requested lease not found"))
    }

    type LeaseKeepAliveStream = Answers<LeaseKeepAliveResponse>;

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let answer = |request: Result<LeaseKeepAliveRequest, Status>| {
            let id = request?.id;
            let ttl = if id == 7 { 100 } else { 0 };
            Ok(LeaseKeepAliveResponse { header: header(2), id, ttl })
        };
        Ok(Response::new(request.into_inner().map(answer).boxed()))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        let id = request.into_inner().id;
        Ok(Response::new(LeaseTimeToLiveResponse { header: header(2), id, ttl: -1, ..Default::default() }))
    }

    async fn lease_leases(&self, _: Request<LeaseLeasesRequest>) -> Result<Response<LeaseLeasesResponse>, Status> {
        Err(Status::unimplemented("not in the cases"))
    }
}
