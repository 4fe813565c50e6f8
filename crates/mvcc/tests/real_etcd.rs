//! The same random requests against real etcd and against the store give the same answers, field by field, and the
//! same hashes. `testdata/etcd-3.7.3.txt` holds a recorded run, so that this is also shown where no etcd is;
//! `UPDATE_GOLDENFILES=1` records it anew.

use crate::support;

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use harness::{Member, Place};
use prost::Message;
use proto::etcdserverpb::{
    CompactionRequest, DeleteRangeRequest, HashKvRequest, LeaseGrantRequest, PutRequest, RangeRequest, TxnRequest,
    TxnResponse, WatchCreateRequest, WatchRequest, kv_client::KvClient, lease_client::LeaseClient,
    maintenance_client::MaintenanceClient, watch_client::WatchClient, watch_request::RequestUnion,
};
use proto::mvccpb::Event;
use support::{
    random::{Generator, LEASES, Op},
    store::TestStore,
};
use tonic::transport::Channel;

const RELEASE: &str = "3.7.3";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(format!("etcd-{RELEASE}.txt"))
}

#[test]
fn recorded_answers() {
    let text = fs::read_to_string(golden()).expect("the recorded run");
    let mut store = TestStore::new();
    for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('#')) {
        let (request, want) = line.split_once(" => ").expect("a request and an answer");
        let op = parse(request);
        let got = store.run(&op);
        let got = got.map_or_else(|e| format!("error {e}"), hex::encode);
        assert_eq!(got, want, "line {}: {op:?}", n + 1);
    }
    assert!(store.store.stats().compacted_revisions > 100);
}

#[test]
fn live_answers() {
    let Some(etcd) = RealEtcd::start() else { return };
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let rounds = std::env::var("ROUNDS").ok().and_then(|s| s.parse().ok()).unwrap_or(1500);
    println!("SEED={seed} ROUNDS={rounds}");
    let update = std::env::var_os("UPDATE_GOLDENFILES").is_some();
    let mut recorded =
        format!("# Random requests (seed {seed}) and the answers of etcd {RELEASE}, as protobuf in hex.\n");
    let mut store = TestStore::new();
    let mut generator = Generator::new(seed);
    generator.deletes_before_puts = false;
    for n in 0..rounds {
        generator.revision = store.store.revision();
        generator.compact_revision = store.store.compact_revision();
        let op = generator.op();
        let want = etcd.run(&op).map_or_else(|e| format!("error {e}"), hex::encode);
        let got = store.run(&op).map_or_else(|e| format!("error {e}"), hex::encode);
        assert_eq!(got, want, "SEED={seed}, request {n}: {op:?}\n{}", difference(&op, &got, &want));
        writeln!(recorded, "{} => {want}", print(&op)).expect("writes to a string");
    }
    let create = WatchCreateRequest {
        key: "\0".into(),
        range_end: "\0".into(),
        start_revision: store.store.compact_revision().max(0) + 1,
        prev_kv: true,
        ..Default::default()
    };
    let want = etcd.events(create.clone(), store.store.revision());
    let got = our_events(&store, &create);
    assert!(!got.is_empty());
    assert_eq!(got, want, "SEED={seed}: events");
    check_file(etcd, &mut store, seed);
    if update {
        fs::write(golden(), recorded).expect("writes the recorded run");
    }
}

/// The file that etcd leaves reads as the store that got the same requests.
fn check_file(etcd: RealEtcd, store: &mut TestStore, seed: u64) {
    let place = etcd.stop();
    let backend = storage::Backend::open(&place.db(), storage::Options::default());
    let mut file = TestStore::open(backend.expect("opens etcd's file"), mvcc::Options::default());
    assert_eq!(file.leases, store.leases, "SEED={seed}");
    let (ours, theirs) = (store.store.stats(), file.store.stats());
    assert_eq!((ours.revision, ours.compact_revision), (theirs.revision, theirs.compact_revision));
    assert_eq!(ours.keys, theirs.keys, "SEED={seed}");
    for revision in ours.compact_revision + 1..=ours.revision {
        let all = RangeRequest { key: "\0".into(), range_end: "\0".into(), revision, ..Default::default() };
        for op in [Op::Range(all), Op::Hash(HashKvRequest { revision })] {
            assert_eq!(file.run(&op), store.run(&op), "SEED={seed}: {op:?}");
        }
    }
}

fn our_events(store: &TestStore, create: &WatchCreateRequest) -> Vec<Event> {
    let stream = store.store.watch_stream(|| {});
    stream.watch(create.into()).expect("watches");
    let mut events = Vec::new();
    while let Some(item) = stream.next() {
        assert_eq!(item.compact_revision, 0);
        events.extend(item.events.iter().map(|e| Event::decode(&e[..]).expect("an event")));
    }
    events
}

fn difference(op: &Op, got: &str, want: &str) -> String {
    let show = |text: &str| match (op, hex::decode(text)) {
        (Op::Txn(_), Ok(bytes)) => format!("{:#?}", TxnResponse::decode(&bytes[..])),
        (Op::Range(_), Ok(bytes)) => format!("{:#?}", proto::etcdserverpb::RangeResponse::decode(&bytes[..])),
        (Op::Hash(_), Ok(bytes)) => format!("{:#?}", proto::etcdserverpb::HashKvResponse::decode(&bytes[..])),
        _ => text.to_owned(),
    };
    format!("got {}\nwant {}", show(got), show(want))
}

fn print(op: &Op) -> String {
    match op {
        Op::Put(r) => format!("put {}", hex::encode(r.encode_to_vec())),
        Op::Delete(r) => format!("delete {}", hex::encode(r.encode_to_vec())),
        Op::Range(r) => format!("range {}", hex::encode(r.encode_to_vec())),
        Op::Txn(r) => format!("txn {}", hex::encode(r.encode_to_vec())),
        Op::Compact(r) => format!("compact {}", hex::encode(r.encode_to_vec())),
        Op::Hash(r) => format!("hash {}", hex::encode(r.encode_to_vec())),
    }
}

fn parse(line: &str) -> Op {
    let (kind, bytes) = line.split_once(' ').expect("a kind and bytes");
    let bytes = hex::decode(bytes).expect("hex");
    match kind {
        "put" => Op::Put(PutRequest::decode(&bytes[..]).expect("a put")),
        "delete" => Op::Delete(DeleteRangeRequest::decode(&bytes[..]).expect("a delete")),
        "range" => Op::Range(RangeRequest::decode(&bytes[..]).expect("a range")),
        "txn" => Op::Txn(TxnRequest::decode(&bytes[..]).expect("a txn")),
        "compact" => Op::Compact(CompactionRequest::decode(&bytes[..]).expect("a compaction")),
        "hash" => Op::Hash(HashKvRequest::decode(&bytes[..]).expect("a hash")),
        other => panic!("unknown request {other}"),
    }
}

/// A member of real etcd with some leases.
struct RealEtcd {
    member: Member,
    place: Place,
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

/// Empties a response's header of what differs between clusters, then encodes it.
macro_rules! plain {
    ($response:expr) => {
        $response
            .map(|response| {
                let mut message = response.into_inner();
                if let Some(header) = &mut message.header {
                    (header.cluster_id, header.member_id, header.raft_term) = (0, 0, 0);
                }
                message
            })
            .map_err(|status| status.message().to_owned())
    };
}

impl RealEtcd {
    fn start() -> Option<Self> {
        let place = Place::new(harness::peer(&format!("etcd-{RELEASE}"), "etcd")?);
        let member = place.start(&["--unsafe-no-fsync"]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let channel = {
            let _in_runtime = runtime.enter();
            Channel::from_shared(member.url()).expect("an address").connect_lazy()
        };
        let etcd = RealEtcd { member, place, runtime, channel };
        etcd.grant_leases();
        Some(etcd)
    }

    /// Stops the member in an orderly way and returns the place of its files.
    fn stop(self) -> Place {
        self.member.stop();
        self.place
    }

    fn grant_leases(&self) {
        self.runtime.block_on(async {
            let mut leases = LeaseClient::new(self.channel.clone());
            for id in LEASES {
                leases.lease_grant(LeaseGrantRequest { ttl: 100_000, id }).await.expect("a lease");
            }
        });
    }

    fn run(&self, op: &Op) -> Result<Vec<u8>, String> {
        let mut kv = KvClient::new(self.channel.clone());
        let mut maintenance = MaintenanceClient::new(self.channel.clone());
        self.runtime.block_on(async {
            match op.clone() {
                Op::Put(r) => plain!(kv.put(r).await).map(|m| m.encode_to_vec()),
                Op::Delete(r) => plain!(kv.delete_range(r).await).map(|m| m.encode_to_vec()),
                Op::Range(r) => plain!(kv.range(r).await).map(|m| m.encode_to_vec()),
                Op::Txn(r) => plain!(kv.txn(r).await).map(|m| m.encode_to_vec()),
                Op::Compact(r) => plain!(kv.compact(r).await).map(|m| m.encode_to_vec()),
                Op::Hash(r) => plain!(maintenance.hash_kv(r).await).map(|m| m.encode_to_vec()),
            }
        })
    }
}

impl RealEtcd {
    /// What a watch tells up to a revision.
    fn events(&self, create: WatchCreateRequest, until: i64) -> Vec<Event> {
        self.runtime.block_on(async {
            let request = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
            // Left open: etcd ends a watch when its client has nothing more to ask.
            let (send, receive) = tokio::sync::mpsc::channel(1);
            send.send(request).await.expect("room for one");
            let requests = tokio_stream::wrappers::ReceiverStream::new(receive);
            let mut client = WatchClient::new(self.channel.clone());
            let mut responses = client.watch(requests).await.expect("watches").into_inner();
            let mut events: Vec<Event> = Vec::new();
            while events.last().and_then(|e| e.kv.as_ref()).is_none_or(|kv| kv.mod_revision < until) {
                let next = tokio::time::timeout(harness::wait_max(), responses.message()).await;
                let response = next.expect("etcd tells more").expect("no error").expect("no end");
                assert_eq!(response.compact_revision, 0);
                events.extend(response.events);
            }
            events
        })
    }
}
