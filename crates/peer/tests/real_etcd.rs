//! A real etcd as the other member. Ours has no raft: it answers by hand, which is enough to follow, and to lead for a
//! while. What real etcd takes for a working member is one whose encodings are right.

use crate::support;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use harness::Place;
use membership::{ClusterId, MemberId, members_of_new_cluster};
use peer::{Control, ControlError, Database, NoObserver, Transport};
use prost::Message as _;
use proto::{
    etcdserverpb::{InternalRaftRequest, LeaseTimeToLiveRequest, PutRequest, RequestHeader},
    raftpb::{ConfState, Entry, Message, MessageType, Snapshot, SnapshotMetadata},
};
use support::{TestMember, options, until};
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::{mpsc, watch},
};

/// A time limit of calls that a loaded machine does not reach.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A real etcd named `real`.
struct Etcd {
    process: harness::Member,
    place: Place,
}

impl Etcd {
    fn start(place: Place, flags: &[&str]) -> Etcd {
        Etcd { process: place.spawn(flags), place }
    }

    fn log(&self) -> String {
        self.process.log()
    }

    fn peer_url(&self) -> String {
        self.place.peer_url()
    }

    /// Runs etcdctl until it succeeds. Blocks the test's thread, on which no task runs.
    fn ctl(&self, args: &[&str]) -> String {
        let args = [&["--command-timeout", "5s"], args].concat();
        harness::until_some(&format!("etcdctl {args:?} succeeds"), || {
            let output = self.process.etcdctl(&args);
            (output.code == Some(0)).then_some(output.stdout)
        })
    }
}

/// A cluster of two: real etcd, and a member by hand.
struct Pair {
    etcd: Etcd,
    real: MemberId,
    local: MemberId,
    transport: Transport,
    member: Arc<TestMember>,
    messages: mpsc::UnboundedReceiver<Message>,
}

async fn start_pair(program: PathBuf) -> Pair {
    let mut place = Place::of_cluster(program, "real");
    let (real_url, listener) = (place.peer_url(), TcpListener::bind("127.0.0.1:0").await.expect("bind"));
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let initial = [("real", &real_url), ("ours", &url)].map(|(name, url)| (name.to_string(), vec![url.clone()]));
    let members = members_of_new_cluster(&BTreeMap::from(initial), "etcd-cluster").expect("members");
    let id = |name: &str| members.values().find(|m| m.name == name).expect("member").id;
    let (real, local) = (id("real"), id("ours"));
    let cluster = ClusterId::compute(members.keys().copied());
    // As before start: real etcd refuses a cluster of which a member says that it has been published.
    let unpublished = members.values().cloned().collect();
    let (member, messages) = TestMember::new(unpublished);
    let transport = Transport::new(options(local.0, cluster, &url), Arc::new(NoObserver), Handle::current());
    transport.attach(member.clone());
    transport.add_peer(real, &[&real_url]).expect("add");
    tokio::spawn(peer::serve(listener, transport.clone()));
    place.join(&format!("{},ours={url}", place.as_cluster_member()));
    let etcd = Etcd::start(place, &[]);
    Pair { etcd, real, local, transport, member, messages }
}

impl Pair {
    async fn next(&mut self) -> Message {
        match tokio::time::timeout(TIMEOUT, self.messages.recv()).await {
            Ok(Some(message)) => message,
            _ => panic!("no message of real etcd\n{}", self.etcd.log()),
        }
    }

    async fn next_of(&mut self, kind: MessageType) -> Message {
        loop {
            let message = self.next().await;
            if message.r#type() == kind {
                return message;
            }
        }
    }

    fn message(&self, kind: MessageType, term: u64) -> Message {
        let (from, to) = (Some(self.local.0), Some(self.real.0));
        Message { r#type: Some(kind as i32), from, to, term: Some(term), ..Message::default() }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.transport.stop();
    }
}

/// Follows: agrees to everything. Returns what it received.
async fn follow(mut messages: mpsc::UnboundedReceiver<Message>, transport: Transport) -> Vec<Message> {
    let mut received = Vec::new();
    while let Some(message) = messages.recv().await {
        if message.r#type() == MessageType::MsgReadIndexResp {
            received.push(message);
            return received;
        }
        if let Some(answer) = follower_answer(&message) {
            transport.send(vec![answer]);
        }
        received.push(message);
    }
    received
}

fn follower_answer(message: &Message) -> Option<Message> {
    let (kind, index) = match message.r#type() {
        MessageType::MsgPreVote => (MessageType::MsgPreVoteResp, None),
        MessageType::MsgVote => (MessageType::MsgVoteResp, None),
        MessageType::MsgHeartbeat => (MessageType::MsgHeartbeatResp, None),
        MessageType::MsgApp => (MessageType::MsgAppResp, Some(message.index() + message.entries.len() as u64)),
        MessageType::MsgSnap => {
            let metadata = message.snapshot.as_ref()?.metadata.as_ref()?;
            (MessageType::MsgAppResp, Some(metadata.index()))
        }
        _ => return None,
    };
    Some(Message {
        r#type: Some(kind as i32),
        from: message.to,
        to: message.from,
        term: message.term,
        index,
        context: message.context.clone(),
        ..Message::default()
    })
}

fn put(id: u64, key: &str, value: &str) -> Bytes {
    let put = PutRequest { key: key.to_string().into(), value: value.to_string().into(), ..Default::default() };
    let header = Some(RequestHeader { id, ..Default::default() });
    InternalRaftRequest { header, put: Some(put), ..Default::default() }.encode_to_vec().into()
}

/// A real etcd is elected by our answers, replicates to us by its MsgApp stream, takes our proposals and read requests,
/// and counts our `/version`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_leader_works_with_us() {
    let Some(program) = harness::peer("etcd-3.7.3", "etcd") else { return };
    let mut pair = start_pair(program).await;
    let pre_vote = pair.next_of(MessageType::MsgPreVote).await;
    assert_eq!((pre_vote.from(), pre_vote.to()), (pair.real.0, pair.local.0));
    assert_eq!((pre_vote.index(), pre_vote.log_term()), (2, 1), "a new cluster's log holds its two members");
    let messages = std::mem::replace(&mut pair.messages, mpsc::unbounded_channel().1);
    let follower = tokio::spawn(follow(messages, pair.transport.clone()));

    pair.etcd.ctl(&["put", "a", "1"]);
    let (transport, real) = (pair.transport.clone(), pair.real);
    until("real etcd has dialled both streams", || transport.streams_up(real) == (true, true)).await;
    for i in 0..20 {
        pair.etcd.ctl(&["put", &format!("k{i}"), &"v".repeat(i * 1000)]);
    }
    assert_eq!(pair.etcd.ctl(&["get", "k19", "--print-value-only"]).trim().len(), 19_000);

    // Our MsgProp on the message stream.
    let entry = Entry { data: Some(put(7777, "ours", "proposed")), ..Entry::default() };
    let proposal = Message { entries: vec![entry], term: None, ..pair.message(MessageType::MsgProp, 0) };
    pair.transport.send(vec![proposal]);
    harness::until("the proposal is applied", || !pair.etcd.ctl(&["get", "ours"]).is_empty());
    assert_eq!(pair.etcd.ctl(&["get", "ours"]), "ours\nproposed\n");

    // Our version counts: the lower of 3.7 and ours.
    let control = Control::new("3.8.0", None, Duration::from_secs(2));
    let versions = loop {
        let versions = control.fetch_version(&[&pair.etcd.peer_url()], TIMEOUT).await.expect("version");
        // Undecided until real etcd has asked both members.
        if versions.cluster == "3.7.0" {
            break versions;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!((versions.server.as_str(), versions.lockgate), ("3.7.3", None));

    // Our read request ends the follower.
    let request = Entry { data: Some(Bytes::from_static(b"01234567")), ..Entry::default() };
    let read = Message { entries: vec![request], term: None, ..pair.message(MessageType::MsgReadIndex, 0) };
    pair.transport.send(vec![read]);
    let received = tokio::time::timeout(TIMEOUT, follower).await.expect("an answer").expect("follower");
    let answer = received.last().expect("messages");
    assert_eq!(answer.entries[0].data.as_deref(), Some(&b"01234567"[..]));

    // All entries came, in order, each once it was first sent.
    let appends = received.iter().filter(|m| m.r#type() == MessageType::MsgApp);
    let mut next = 3;
    for entry in appends.flat_map(|m| &m.entries) {
        assert!(entry.index() <= next, "a gap before {}", entry.index());
        next = next.max(entry.index() + 1);
    }
    assert!(next > 23, "{next}");
    assert!(answer.index() >= next - 1);
    assert!(pair.member.told.lock().removed_from_cluster == 0);
}

/// We lead: real etcd grants our vote, follows our MsgApp stream in both of its forms, applies what we commit, and
/// takes a snapshot from us.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_follower_follows_us() {
    let Some(program) = harness::peer("etcd-3.7.3", "etcd") else { return };
    let mut pair = start_pair(program).await;
    let mut acknowledged = lead(&mut pair).await;
    assert_eq!(pair.etcd.ctl(&["get", "k9", "--consistency=s"]), "k9\nv9\n");
    let saved = pair.etcd.place.dir().join("saved.snap");
    pair.etcd.ctl(&["snapshot", "save", &saved.to_string_lossy()]);
    let db = std::fs::read(saved).expect("snapshot");
    // A saved snapshot ends with a hash.
    let db = db[..db.len() - 32].to_vec();

    let voters = vec![pair.real.0.min(pair.local.0), pair.real.0.max(pair.local.0)];
    let conf_state = Some(ConfState { voters, ..ConfState::default() });
    let metadata = SnapshotMetadata { conf_state, index: Some(500), term: Some(5) };
    let snapshot = Some(Snapshot { data: None, metadata: Some(metadata) });
    let message = Message { snapshot, ..pair.message(MessageType::MsgSnap, 5) };
    let len = db.len() as u64;
    pair.transport.send_snapshot(message, Database { len, reader: Box::new(std::io::Cursor::new(db)) });
    let taken = tokio::time::timeout(TIMEOUT, acknowledged.wait_for(|index| *index >= 500)).await;
    assert!(taken.is_ok(), "the snapshot was not taken\n{}", pair.etcd.log());
    until("the snapshot's fate is known", || !pair.member.told.lock().snapshots.is_empty()).await;
    assert_eq!(pair.member.told.lock().snapshots, [(pair.real, true)]);
    assert!(pair.etcd.log().contains("received and saved database snapshot"));
    assert_eq!(pair.etcd.ctl(&["get", "k9", "--consistency=s"]), "k9\nv9\n");
}

/// Wins an election at term 5, replicates ten puts, and goes on in the background; what real etcd acknowledges is
/// watched.
async fn lead(pair: &mut Pair) -> watch::Receiver<u64> {
    // It has not voted yet, and knows no leader.
    pair.next_of(MessageType::MsgPreVote).await;
    let (transport, real) = (pair.transport.clone(), pair.real);
    until("real etcd has dialled both streams", || transport.streams_up(real) == (true, true)).await;
    let vote = Message { index: Some(2), log_term: Some(1), ..pair.message(MessageType::MsgVote, 5) };
    pair.transport.send(vec![vote]);
    let granted = pair.next_of(MessageType::MsgVoteResp).await;
    assert_eq!((granted.term(), granted.reject()), (5, false));

    // The first goes whole; the others continue it, and so go in the short form.
    for i in 0..=10 {
        let index = 2 + i;
        let data = (i > 0).then(|| put(1000 + i, &format!("k{}", i - 1), &format!("v{}", i - 1)));
        let entry = Entry { r#type: Some(0), term: Some(5), index: Some(index + 1), data };
        let log_term = if i == 0 { 1 } else { 5 };
        let append = Message {
            index: Some(index),
            log_term: Some(log_term),
            commit: Some(index),
            entries: vec![entry],
            ..pair.message(MessageType::MsgApp, 5)
        };
        pair.transport.send(vec![append]);
        loop {
            let response = pair.next_of(MessageType::MsgAppResp).await;
            assert!(!response.reject(), "{response:?}");
            if response.index() == index + 1 {
                break;
            }
        }
    }
    let leader = Leader {
        transport: pair.transport.clone(),
        template: pair.message(MessageType::MsgApp, 5),
        last: 13,
        acknowledged: 13,
    };
    let (acknowledged, watch) = watch::channel(0);
    let messages = std::mem::replace(&mut pair.messages, mpsc::unbounded_channel().1);
    tokio::spawn(leader.run(messages, acknowledged));
    watch
}

/// Goes on leading at term 5: takes proposals, commits what real etcd has acknowledged.
struct Leader {
    transport: Transport,
    template: Message,
    last: u64,
    acknowledged: u64,
}

impl Leader {
    async fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>, acknowledged: watch::Sender<u64>) {
        let mut ticks = tokio::time::interval(Duration::from_millis(100));
        loop {
            tokio::select! {
                _ = ticks.tick() => self.heartbeat(),
                message = messages.recv() => match message {
                    Some(message) => self.handle(message),
                    None => return,
                },
            }
            acknowledged.send_replace(self.acknowledged);
        }
    }

    fn heartbeat(&self) {
        let kind = Some(MessageType::MsgHeartbeat as i32);
        let commit = Some(self.acknowledged);
        self.transport.send(vec![Message { r#type: kind, commit, ..self.template.clone() }]);
    }

    fn handle(&mut self, message: Message) {
        match message.r#type() {
            MessageType::MsgAppResp => {
                assert!(!message.reject(), "{message:?}");
                self.acknowledged = self.acknowledged.max(message.index());
                self.last = self.last.max(self.acknowledged);
                self.heartbeat();
            }
            MessageType::MsgProp => {
                let index = Some(self.last);
                let mut entries = message.entries;
                for entry in &mut entries {
                    self.last += 1;
                    (entry.term, entry.index) = (Some(5), Some(self.last));
                }
                let (log_term, commit) = (Some(5), Some(self.acknowledged));
                self.transport.send(vec![Message { index, log_term, commit, entries, ..self.template.clone() }]);
            }
            _ => {}
        }
    }
}

/// A real leader whose log is cut sends us, a new learner, its database; and it answers all that one member asks
/// another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_leader_sends_us_its_database() {
    let Some(program) = harness::peer("etcd-3.7.3", "etcd") else { return };
    let flags = ["--snapshot-count=10", "--snapshot-catchup-entries=5"];
    let real = Etcd::start(Place::of_cluster(program, "real"), &flags);
    // Nobody listens on a reserved port.
    let silent = harness::Port::reserve();
    for i in 0..40 {
        real.ctl(&["put", &format!("k{i}"), &"v".repeat(10_000)]);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    real.ctl(&["member", "add", "ours", "--learner", "--peer-urls", &url]);

    let control = Control::new("3.8.0", None, Duration::from_secs(2));
    let cluster = control.fetch_members(&[silent.url(), real.peer_url()], TIMEOUT).await.expect("members");
    assert!(!cluster.lockgate);
    let leader = cluster.members.iter().find(|m| m.name == "real").expect("real").id;
    let learner = cluster.members.iter().find(|m| m.is_learner).expect("learner").clone();
    assert_eq!(learner.peer_urls, std::slice::from_ref(&url));

    let (member, mut messages) = TestMember::new(cluster.members.clone());
    let transport = Transport::new(options(learner.id.0, cluster.id, &url), Arc::new(NoObserver), Handle::current());
    transport.attach(member.clone());
    transport.add_peer(leader, &[&real.peer_url()]).expect("add");
    tokio::spawn(peer::serve(listener, transport.clone()));

    // An empty log refuses what it cannot join to, until the snapshot comes.
    let (snapshot, files) = loop {
        let message = tokio::time::timeout(TIMEOUT, messages.recv()).await.expect("in time").expect("a message");
        let mut answer = match follower_answer(&message) {
            Some(answer) => answer,
            None => continue,
        };
        if message.r#type() == MessageType::MsgApp {
            answer = Message { index: message.index, reject: Some(true), reject_hint: Some(0), ..answer };
        }
        transport.send(vec![answer]);
        if message.r#type() == MessageType::MsgSnap {
            break (message, member.files());
        }
    };
    let index = snapshot.snapshot.as_ref().and_then(|s| s.metadata.as_ref()).expect("metadata").index();
    assert_eq!(files, [format!("{index:016x}.snap.db")]);
    let db = std::fs::read(member.dir.path().join(&files[0])).expect("db");
    assert!(db.len() > 400_000 && db.len() % 4096 == 0);
    assert_eq!(db[16..20], 0xED0C_DAED_u32.to_le_bytes(), "a bolt file's magic");
    tokio::spawn(follow(messages, transport.clone()));

    ask(&control, &real, cluster.id, learner.id).await;
    transport.stop();
}

async fn ask(control: &Control, real: &Etcd, cluster: ClusterId, learner: MemberId) {
    let url = &real.peer_url();
    assert!(!control.downgrade_enabled(&[url], TIMEOUT).await.expect("downgrade"));
    let hash = control.hash_kv(url, cluster, 0, TIMEOUT).await.expect("hash");
    let printed = real.ctl(&["endpoint", "hashkv", "-w", "json"]);
    assert!(printed.contains(&format!("\"hash\":{}", hash.hash)), "{hash:?} {printed}");
    let wrong = control.hash_kv(url, ClusterId(1), 0, TIMEOUT).await;
    assert!(matches!(wrong, Err(ControlError::ClusterIdMismatch)), "{wrong:?}");
    let future = control.hash_kv(url, cluster, 1 << 40, TIMEOUT).await;
    assert!(matches!(future, Err(ControlError::FutureRevision)), "{future:?}");

    real.ctl(&["lease", "grant", "500"]);
    let granted = real.ctl(&["lease", "list"]);
    let id = i64::from_str_radix(granted.lines().last().expect("lease").trim(), 16).expect("id");
    real.ctl(&["put", "leased", "x", "--lease", &format!("{id:x}")]);
    assert_eq!(control.renew_lease(url, id, TIMEOUT).await.expect("renew"), 500);
    assert!(matches!(control.renew_lease(url, 1, TIMEOUT).await, Err(ControlError::LeaseNotFound)));
    let request = LeaseTimeToLiveRequest { id, keys: true };
    let left = control.lease_time_to_live(url, request, TIMEOUT).await.expect("ttl");
    assert_eq!((left.granted_ttl, left.keys), (500, vec![Bytes::from_static(b"leased")]));

    let missing = control.promote(url, MemberId(1), None, TIMEOUT).await;
    assert!(matches!(missing, Err(ControlError::MemberNotFound)), "{missing:?}");
    let mut promoted = control.promote(url, learner, None, TIMEOUT).await;
    while matches!(promoted, Err(ControlError::LearnerNotReady)) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        promoted = control.promote(url, learner, None, TIMEOUT).await;
    }
    assert!(promoted.expect("promoted").iter().all(|m| !m.is_learner));
    let again = control.promote(url, learner, None, TIMEOUT).await;
    assert!(matches!(again, Err(ControlError::NotLearner)), "{again:?}");
}
