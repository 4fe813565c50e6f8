//! One of every kind of call, with metadata that requires a feature.

use std::pin::Pin;

use futures_util::future::BoxFuture;
use harness::Member;
use proto::{
    etcdserverpb::{
        AlarmRequest, AlarmType, CompactionRequest, DefragmentRequest, DeleteRangeRequest, FeatureGateHistoryRequest,
        FeatureGateStatusRequest, HashKvRequest, HashRequest, IncrementRequest, LeaseGrantRequest,
        LeaseKeepAliveRequest, LeaseLeasesRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest, MemberAddRequest,
        MemberListRequest, PutRequest, RangeRequest, RequestOp, SnapshotRequest, StatusRequest, TxnRequest,
        WatchCreateRequest, WatchRequest, alarm_request::AlarmAction, cluster_client::ClusterClient,
        kv_client::KvClient, lease_client::LeaseClient, maintenance_client::MaintenanceClient, request_op,
        watch_client::WatchClient, watch_request::RequestUnion,
    },
    v3electionpb::{
        CampaignRequest, LeaderKey, LeaderRequest, ProclaimRequest, ResignRequest, election_client::ElectionClient,
    },
    v3lockpb::{LockRequest, UnlockRequest, lock_client::LockClient},
};
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tonic::{
    Request, Response, Status, Streaming,
    metadata::{MetadataMap, MetadataValue},
    transport::Channel,
};

use crate::common;

pub(crate) const KEY: &str = "require-feature";
pub(crate) const ON: &str = "AtomicIncrement";
pub(crate) const OFF: &str = "PersistedLeaseCheckpoints";

/// Calls over one connection that require one feature.
pub(crate) struct Calls {
    channel: Channel,
    required: String,
}

/// The calls, in an order in which each can be done after those before it. They need a lease with id 7.
pub(crate) fn names() -> &'static [&'static str] {
    &[
        "put",
        "increment",
        "txn",
        "reading txn",
        "serializable txn",
        "range",
        "serializable range",
        "range stream",
        "delete",
        "compact",
        "lease grant",
        "time to live",
        "leases",
        "keep alive",
        "alarm",
        "watch",
        "lock",
        "lock with a new lease",
        "unlock",
        "campaign",
        "proclaim",
        "leader",
        "observe",
        "resign",
        "snapshot",
        "history",
        "gate status",
        "status",
        "defragment",
        "hash",
        "hash of keys",
        "members",
        "serializable members",
        "lease revoke",
        "member add",
    ]
}

type Answered = Result<MetadataMap, Status>;
/// A stream under way, whose output is the status that it ends with.
pub(crate) type Open = Pin<Box<dyn Future<Output = Status> + Send>>;

fn put() -> RequestOp {
    let put = PutRequest { key: "k".into(), value: "2".into(), ..Default::default() };
    RequestOp { request: Some(request_op::Request::RequestPut(put)) }
}

fn get(serializable: bool) -> RequestOp {
    RequestOp { request: Some(request_op::Request::RequestRange(range(serializable))) }
}

fn range(serializable: bool) -> RangeRequest {
    RangeRequest { key: "k".into(), serializable, ..Default::default() }
}

fn txn(success: Vec<RequestOp>) -> TxnRequest {
    TxnRequest { success, ..Default::default() }
}

fn watch() -> WatchRequest {
    let create = WatchCreateRequest { key: "k".into(), ..Default::default() };
    WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }
}

fn leader() -> Option<LeaderKey> {
    // No leader has revision 0: proclaiming is answered, and changes nothing.
    Some(LeaderKey { name: "e".into(), key: "e/7".into(), rev: 0, lease: 7 })
}

/// Returns the metadata of an answer without a stream.
fn done<T>(answer: Result<Response<T>, Status>) -> Answered {
    answer.map(|answer| answer.metadata().clone())
}

/// Returns the metadata of a stream, once its first message is here.
async fn first<T>(answer: Result<Response<Streaming<T>>, Status>) -> Answered {
    let (metadata, mut stream, _) = answer?.into_parts();
    stream.message().await?;
    Ok(metadata)
}

/// Returns the status that a stream ends with. `begun` is sent with the first message.
async fn end<T>(answer: Result<Response<Streaming<T>>, Status>, begun: oneshot::Sender<()>) -> Status {
    let mut begun = Some(begun);
    let mut stream = match answer {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    loop {
        match stream.message().await {
            Ok(Some(_)) => _ = begun.take().map(|begun| begun.send(())),
            Ok(None) => return Status::ok("the stream ended without an error"),
            Err(status) => return status,
        }
    }
}

/// A stream of requests that never ends.
fn going_on<T: Send + 'static>(first: T) -> impl tokio_stream::Stream<Item = T> + Send + 'static {
    tokio_stream::once(first).chain(tokio_stream::pending())
}

impl Calls {
    pub(crate) async fn new(member: &Member, required: &str) -> Calls {
        Calls { channel: common::channel(member).await, required: required.to_owned() }
    }

    fn of<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().append(KEY, MetadataValue::try_from(&self.required).expect("a value"));
        request
    }

    pub(crate) async fn run(&self, name: &str) -> Answered {
        let call: BoxFuture<'_, Answered> = match name {
            "put" | "increment" | "txn" | "reading txn" | "serializable txn" | "range" | "serializable range"
            | "range stream" | "delete" | "compact" => Box::pin(self.kv(name)),
            "lock" | "lock with a new lease" | "unlock" => Box::pin(self.lock(name)),
            "campaign" | "proclaim" | "leader" | "observe" | "resign" => Box::pin(self.election(name)),
            "lease grant" | "lease revoke" | "time to live" | "leases" | "keep alive" => Box::pin(self.lease(name)),
            _ => Box::pin(self.rest(name)),
        };
        call.await
    }

    async fn kv(&self, name: &str) -> Answered {
        let mut kv = KvClient::new(self.channel.clone());
        let of = |success| self.of(txn(success));
        match name {
            "put" => {
                let put = PutRequest { key: "k".into(), value: "1".into(), ..Default::default() };
                done(kv.put(self.of(put)).await)
            }
            "increment" => {
                let increment = IncrementRequest { key: "n".into(), delta: 1, ..Default::default() };
                done(kv.increment(self.of(increment)).await)
            }
            "txn" => done(kv.txn(of(vec![put()])).await),
            "reading txn" => done(kv.txn(of(vec![get(false)])).await),
            "serializable txn" => done(kv.txn(of(vec![get(true)])).await),
            "range" => done(kv.range(self.of(range(false))).await),
            "serializable range" => done(kv.range(self.of(range(true))).await),
            "range stream" => first(kv.range_stream(self.of(range(false))).await).await,
            "delete" => {
                let delete = DeleteRangeRequest { key: "k".into(), ..Default::default() };
                done(kv.delete_range(self.of(delete)).await)
            }
            _ => done(kv.compact(self.of(CompactionRequest { revision: 2, physical: false })).await),
        }
    }

    async fn lock(&self, name: &str) -> Answered {
        let mut lock = LockClient::new(self.channel.clone());
        match name {
            "lock" => done(lock.lock(self.of(LockRequest { name: "l".into(), lease: 7 })).await),
            "unlock" => done(lock.unlock(self.of(UnlockRequest { key: "l/7".into() })).await),
            _ => done(lock.lock(self.of(LockRequest { name: "l2".into(), lease: 0 })).await),
        }
    }

    async fn election(&self, name: &str) -> Answered {
        let mut election = ElectionClient::new(self.channel.clone());
        match name {
            "campaign" => {
                let campaign = CampaignRequest { name: "e".into(), lease: 7, value: "v".into() };
                done(election.campaign(self.of(campaign)).await)
            }
            "proclaim" => {
                // With the key of the real leader, so that the call has an effect.
                let found = KvClient::new(self.channel.clone())
                    .range(RangeRequest { key: "e/7".into(), ..Default::default() })
                    .await?
                    .into_inner();
                let rev = found.kvs.first().map_or(0, |kv| kv.create_revision);
                let leader = leader().map(|leader| LeaderKey { rev, ..leader });
                done(election.proclaim(self.of(ProclaimRequest { leader, value: "w".into() })).await)
            }
            "leader" => done(election.leader(self.of(LeaderRequest { name: "e".into() })).await),
            "observe" => first(election.observe(self.of(LeaderRequest { name: "e".into() })).await).await,
            _ => done(election.resign(self.of(ResignRequest { leader: leader() })).await),
        }
    }

    async fn lease(&self, name: &str) -> Answered {
        let mut lease = LeaseClient::new(self.channel.clone());
        match name {
            "lease grant" => done(lease.lease_grant(self.of(LeaseGrantRequest { ttl: 60, id: 0 })).await),
            "lease revoke" => done(lease.lease_revoke(self.of(LeaseRevokeRequest { id: 7 })).await),
            "time to live" => {
                done(lease.lease_time_to_live(self.of(LeaseTimeToLiveRequest { id: 7, keys: false })).await)
            }
            "leases" => done(lease.lease_leases(self.of(LeaseLeasesRequest {})).await),
            _ => {
                let requests = going_on(LeaseKeepAliveRequest { id: 7 });
                first(lease.lease_keep_alive(self.of(requests)).await).await
            }
        }
    }

    async fn rest(&self, name: &str) -> Answered {
        let mut maintenance = MaintenanceClient::new(self.channel.clone());
        let mut cluster = ClusterClient::new(self.channel.clone());
        match name {
            "watch" => {
                let mut client = WatchClient::new(self.channel.clone());
                first(client.watch(self.of(going_on(watch()))).await).await
            }
            "alarm" => {
                let alarm = AlarmType::Corrupt as i32;
                let request = AlarmRequest { action: AlarmAction::Deactivate as i32, member_id: 1, alarm };
                done(maintenance.alarm(self.of(request)).await)
            }
            "snapshot" => first(maintenance.snapshot(self.of(SnapshotRequest {})).await).await,
            "history" => first(maintenance.feature_gate_history(self.of(history(false))).await).await,
            "gate status" => done(maintenance.feature_gate_status(self.of(FeatureGateStatusRequest::default())).await),
            "status" => done(maintenance.status(self.of(StatusRequest {})).await),
            "defragment" => done(maintenance.defragment(self.of(DefragmentRequest {})).await),
            "hash" => done(maintenance.hash(self.of(HashRequest {})).await),
            "hash of keys" => done(maintenance.hash_kv(self.of(HashKvRequest { revision: 0 })).await),
            "members" => done(cluster.member_list(self.of(MemberListRequest { linearizable: true })).await),
            "serializable members" => {
                done(cluster.member_list(self.of(MemberListRequest { linearizable: false })).await)
            }
            "member add" => {
                let request = MemberAddRequest { peer_ur_ls: vec!["http://127.0.0.1:1".into()], is_learner: true };
                done(cluster.member_add(self.of(request)).await)
            }
            other => panic!("no call {other:?}"),
        }
    }

    /// Streams that go on until something ends them. The receiver of each gets a value when its first message is here.
    pub(crate) fn streams(&self) -> Vec<(&'static str, oneshot::Receiver<()>, Open)> {
        let mut watches = WatchClient::new(self.channel.clone());
        let mut leases = LeaseClient::new(self.channel.clone());
        let mut maintenance = MaintenanceClient::new(self.channel.clone());
        let mut election = ElectionClient::new(self.channel.clone());
        let watch = self.of(going_on(watch()));
        let keep_alive = self.of(going_on(LeaseKeepAliveRequest { id: 7 }));
        let history = self.of(history(true));
        let observe = self.of(LeaderRequest { name: "e".into() });
        vec![
            open("watch", |begun| async move { end(watches.watch(watch).await, begun).await }),
            open("keep alive", |begun| async move { end(leases.lease_keep_alive(keep_alive).await, begun).await }),
            open("history", |begun| async move { end(maintenance.feature_gate_history(history).await, begun).await }),
            open("observe", |begun| async move { end(election.observe(observe).await, begun).await }),
        ]
    }
}

fn open<F: Future<Output = Status> + Send + 'static>(
    name: &'static str,
    stream: impl FnOnce(oneshot::Sender<()>) -> F,
) -> (&'static str, oneshot::Receiver<()>, Open) {
    let (begun, receiver) = oneshot::channel();
    (name, receiver, Box::pin(stream(begun)))
}

fn history(follow: bool) -> FeatureGateHistoryRequest {
    FeatureGateHistoryRequest { from_index: 0, follow }
}
