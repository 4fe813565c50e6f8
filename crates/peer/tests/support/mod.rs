//! A member for tests: it keeps what it is told, and answers as it is set up to.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{collections::BTreeSet, net::SocketAddr, path::PathBuf, sync::Arc};

use futures_util::future::BoxFuture;
use membership::{ClusterId, MemberId};
use parking_lot::Mutex;
use peer::{ControlError, HashKv, Identity, Member, NoObserver, Options, ReceiveError, Transport, Versions};
use proto::{
    etcdserverpb::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse},
    raftpb::{Message, MessageType},
};
use tokio::{net::TcpListener, runtime::Handle, sync::mpsc};

pub(crate) const CLUSTER: ClusterId = ClusterId(0xc1);

/// What the transport told the member, besides messages.
#[derive(Default)]
pub(crate) struct Told {
    pub removed: BTreeSet<MemberId>,
    pub unreachable: Vec<MemberId>,
    pub snapshots: Vec<(MemberId, bool)>,
    pub removed_from_cluster: u32,
    pub refuse: bool,
    pub ours_alone: bool,
}

pub(crate) struct TestMember {
    pub dir: harness::TempDir,
    pub told: Mutex<Told>,
    pub members: Vec<membership::Member>,
    received: mpsc::UnboundedSender<Message>,
}

impl TestMember {
    pub(crate) fn new(members: Vec<membership::Member>) -> (Arc<TestMember>, mpsc::UnboundedReceiver<Message>) {
        let (received, messages) = mpsc::unbounded_channel();
        let dir = harness::tempdir();
        (Arc::new(TestMember { dir, told: Mutex::default(), members, received }), messages)
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.dir.path())
            .expect("list")
            .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Member for TestMember {
    fn receive(&self, message: Message) -> BoxFuture<'_, Result<(), ReceiveError>> {
        let result = if self.told.lock().refuse {
            Err(ReceiveError::Refused("as told".into()))
        } else {
            self.received.send(message).map_err(|_| ReceiveError::Stopped)
        };
        Box::pin(async { result })
    }

    fn is_ours_alone(&self) -> bool {
        self.told.lock().ours_alone
    }

    fn is_removed(&self, id: MemberId) -> bool {
        self.told.lock().removed.contains(&id)
    }

    fn report_unreachable(&self, id: MemberId) {
        self.told.lock().unreachable.push(id);
    }

    fn report_snapshot(&self, id: MemberId, sent: bool) {
        self.told.lock().snapshots.push((id, sent));
    }

    fn removed_from_cluster(&self) {
        self.told.lock().removed_from_cluster += 1;
    }

    fn snapshot_dir(&self) -> PathBuf {
        self.dir.path().into()
    }

    fn members(&self) -> Vec<membership::Member> {
        self.members.clone()
    }

    fn versions(&self) -> Versions {
        Versions { server: "3.8.0".into(), cluster: "not_decided".into(), storage: "unknown".into(), lockgate: None }
    }

    fn promote(
        &self,
        id: MemberId,
        token: Option<String>,
    ) -> BoxFuture<'_, Result<Vec<membership::Member>, ControlError>> {
        let result = match (id.0, token.as_deref()) {
            (1, Some("secret")) => Ok(self.members.clone()),
            (1, _) => Err(ControlError::Other("no token".into())),
            (2, _) => Err(ControlError::NotLearner),
            (3, _) => Err(ControlError::LearnerNotReady),
            (5, _) => Err(ControlError::LearnerFeatures("member 5 says off for a cluster feature".into())),
            _ => Err(ControlError::MemberNotFound),
        };
        Box::pin(async { result })
    }

    fn hash_kv(&self, revision: i64) -> BoxFuture<'_, Result<HashKv, ControlError>> {
        let result = match revision {
            1 => Err(ControlError::Compacted),
            99 => Err(ControlError::FutureRevision),
            _ => Ok(HashKv { revision: 10, hash: 4_000_000_000, compact_revision: 2, hash_revision: revision }),
        };
        Box::pin(async { result })
    }

    fn renew_lease(&self, id: i64) -> BoxFuture<'_, Result<i64, ControlError>> {
        let result = match id {
            1 => Ok(60),
            2 => Err(ControlError::LeaseTimeout),
            3 => Err(ControlError::NotPrimary),
            _ => Err(ControlError::LeaseNotFound),
        };
        Box::pin(async { result })
    }

    fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> BoxFuture<'_, Result<LeaseTimeToLiveResponse, ControlError>> {
        let keys = if request.keys { vec!["a".into()] } else { vec![] };
        let found = LeaseTimeToLiveResponse { id: request.id, ttl: 5, granted_ttl: 9, keys, ..Default::default() };
        let result = if request.id == 1 { Ok(found) } else { Err(ControlError::LeaseNotFound) };
        Box::pin(async { result })
    }

    fn downgrade_enabled(&self) -> BoxFuture<'_, Result<bool, ControlError>> {
        Box::pin(async { Ok(true) })
    }
}

/// A member with its transport and port.
pub(crate) struct Node {
    pub id: MemberId,
    pub url: String,
    pub address: SocketAddr,
    pub transport: Transport,
    pub member: Arc<TestMember>,
    pub messages: mpsc::UnboundedReceiver<Message>,
}

pub(crate) fn options(id: u64, cluster: ClusterId, url: &str) -> Options {
    Options::new(Identity {
        local: MemberId(id),
        cluster,
        server_version: "3.8.0".into(),
        min_cluster_version: "3.0.0".into(),
        peer_urls: vec![url.into()],
        lockgate_version: "3.8.0".into(),
    })
}

pub(crate) async fn start(id: u64) -> Node {
    start_with(id, CLUSTER, |_| {}).await
}

pub(crate) async fn start_with(id: u64, cluster: ClusterId, change: impl FnOnce(&mut Options)) -> Node {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let address = listener.local_addr().expect("address");
    let url = format!("http://{address}");
    let mut options = options(id, cluster, &url);
    change(&mut options);
    let itself = membership::Member { id: MemberId(id), peer_urls: vec![url.clone()], ..Default::default() };
    let (member, messages) = TestMember::new(vec![itself]);
    let transport = Transport::new(options, Arc::new(NoObserver), Handle::current());
    transport.attach(member.clone());
    tokio::spawn(peer::serve(listener, transport.clone()));
    Node { id: MemberId(id), url, address, transport, member, messages }
}

/// Two members that know each other, with all four streams up.
pub(crate) async fn pair() -> (Node, Node) {
    let (a, b) = (start(1).await, start(2).await);
    a.transport.add_peer(b.id, &[&b.url]).expect("add");
    b.transport.add_peer(a.id, &[&a.url]).expect("add");
    until("all streams are up", || {
        a.transport.streams_up(b.id) == (true, true) && b.transport.streams_up(a.id) == (true, true)
    })
    .await;
    (a, b)
}

impl Node {
    pub(crate) async fn next(&mut self) -> Message {
        let next = tokio::time::timeout(harness::wait_max(), self.messages.recv());
        next.await.expect("a message in time").expect("a member")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.transport.stop();
    }
}

/// Returns once `holds` is true, while tasks of the test go on. `what` completes "waiting until …".
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    harness::asynchronous::until(what, async || holds()).await;
}

pub(crate) fn message(kind: MessageType, from: u64, to: u64, index: u64) -> Message {
    Message {
        r#type: Some(kind as i32),
        from: Some(from),
        to: Some(to),
        term: Some(1),
        index: Some(index),
        ..Message::default()
    }
}
