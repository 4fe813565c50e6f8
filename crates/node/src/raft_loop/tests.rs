//! The raft thread pass by pass, without a disk or a network.

mod clocks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::mpsc,
    time::SystemTime,
};

use membership::{ClusterId, Member, MemberId};

use raft::eraftpb::{ConfState, HardState};

use super::*;
use crate::{
    core::{CoreOptions, CoreStatus},
    log_store::LogStore,
    standing::AppliedTo,
    world::{Database, NoNetwork, Observer, SystemClock},
};

/// Keeps the indices of snapshot records and of commits.
#[derive(Default)]
struct NoLog {
    snapshots: Vec<u64>,
    commit: u64,
    synced_commit: u64,
}

impl Log for NoLog {
    fn append(&mut self, state: Option<&raftpb::HardState>, _: &[raftpb::Entry]) -> Result<(), wal::Error> {
        self.commit = state.map_or(self.commit, |state| state.commit());
        Ok(())
    }

    fn sync(&mut self) -> Result<wal::Saved, wal::Error> {
        self.synced_commit = self.commit;
        Ok(wal::Saved::default())
    }

    fn save_snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), wal::Error> {
        self.snapshots.push(record.index());
        Ok(())
    }

    fn release_to(&mut self, _: u64) -> Result<(), wal::Error> {
        Ok(())
    }
}

/// Stands where the apply thread would: notes how many entries had been handed on when the leader became known.
struct Look {
    entries: Mutex<Receiver<ToApply>>,
    early: Mutex<Option<usize>>,
}

impl Observer for Look {
    fn leader_changed(&self, leader: u64) {
        if leader != 0 {
            *self.early.lock() = Some(self.entries.lock().try_iter().count());
        }
    }
}

struct Bench {
    raft: RaftLoop<NoLog>,
    look: Arc<Look>,
    shared: Arc<Shared>,
    inputs: Sender<Input>,
    _dir: harness::TempDir,
}

/// Keeps what is sent.
#[derive(Default)]
struct Sent(Mutex<Vec<raftpb::Message>>);

impl Network for Sent {
    fn send(&self, messages: Vec<raftpb::Message>) {
        self.0.lock().extend(messages);
    }
    fn send_snapshot(&self, _: raftpb::Message, _: Database) {}
    fn set_members(&self, _: Vec<Member>) {}
    fn active_since(&self, _: MemberId) -> Option<Instant> {
        None
    }
}

/// The only member of a cluster.
fn bench() -> Bench {
    bench_among(&[1], Arc::new(NoNetwork))
}

fn bench_among(voters: &[u64], network: Arc<dyn Network>) -> Bench {
    let (to_apply, entries) = mpsc::channel();
    let look = Arc::new(Look { entries: Mutex::new(entries), early: Mutex::default() });
    let conf = ConfState { voters: voters.to_vec(), ..Default::default() };
    let store = LogStore::new((0, 0), HardState::default(), conf, Vec::new());
    let options = CoreOptions { id: 1, election_ticks: 10, pre_vote: true, applied: 0, seed: 1 };
    let core = Core::new(&options, store, &slog::Logger::root(slog::Discard, slog::o!())).unwrap();
    let dir = harness::tempdir();
    let backend = storage::Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
    let lessor = Lessor::load(&backend.view(), lease::Options::default()).unwrap();
    let time = Time::begin(Arc::new(SystemClock));
    let shared = Arc::new(Shared::new(0, look.clone(), time.now(), Duration::from_millis(100)));
    let (lessor, tick) = (Arc::new(Mutex::new(lessor)), Duration::from_millis(100));
    let (sender, inputs) = mpsc::channel();
    let raft = RaftLoop::new(RaftParts {
        core,
        log: NoLog::default(),
        inputs,
        to_apply,
        shared: shared.clone(),
        lessor,
        network,
        cluster: Arc::new(RwLock::new(Cluster::new(ClusterId(1), MemberId(1), BTreeMap::new(), BTreeSet::new(), None))),
        ids: Arc::new(RequestIds::new(1, SystemTime::UNIX_EPOCH)),
        time,
        tick,
        catch_up_entries: 0,
        request_timeout: Duration::from_secs(7),
    });
    Bench { raft, look, shared, inputs: sender, _dir: dir }
}

/// Otherwise the lessor of a new leader stays asleep: no lease ends, none can be renewed.
#[test]
fn a_leader_is_known_before_its_first_entry_is_handed_on() {
    let mut b = bench();
    b.raft.work().unwrap();
    assert!(b.shared.standing().leads_in().is_some());
    assert_eq!(*b.look.early.lock(), Some(0));
    assert_eq!(b.look.entries.lock().try_iter().count(), 1);
}

/// The newest record is where the next start begins, so the entries after it must be in the log.
#[test]
fn an_older_snapshot_is_not_recorded_after_a_newer_one() {
    let mut b = bench();
    b.raft.work().unwrap();
    for index in [20, 17, 20, 30] {
        let conf_state = Some(raftpb::ConfState { voters: vec![1], ..Default::default() });
        let record = walpb::Snapshot { index: Some(index), term: Some(1), conf_state };
        b.inputs.send(Input::Snapshot { record }).unwrap();
    }
    let now = b.raft.now;
    b.raft.pass(None, now).unwrap();
    assert_eq!(b.raft.parts.log.snapshots, [20, 30]);
}

/// A member that is told that it may be downgraded must not send what is newer. A transfer can take hours.
#[test]
fn a_cut_of_the_log_does_not_wait_for_databases_under_way() {
    let mut b = bench();
    b.raft.work().unwrap();
    b.raft.snapshots_in_flight = 1;
    let last = b.raft.parts.core.status().last;
    assert_eq!((last, b.raft.parts.core.log_len()), (1, 1));
    let record = walpb::Snapshot { index: Some(last), term: Some(1), conf_state: None };
    assert_eq!(b.raft.cut_log(&record, Version::new(3, 7)).unwrap(), None);
    assert_eq!(b.raft.parts.core.log_len(), 0);
}

fn conf_change(id: u64) -> Bytes {
    use prost::Message;
    let change = raftpb::ConfChange { id: Some(id), node_id: Some(9), ..Default::default() };
    raftpb::ConfChange { r#type: Some(raftpb::ConfChangeType::ConfChangeRemoveNode as i32), ..change }
        .encode_to_vec()
        .into()
}

/// The configuration changes among entries that were handed on, and the highest index.
fn handed_on(b: &Bench) -> (usize, u64) {
    let entries: Vec<_> = b.look.entries.lock().try_iter().collect();
    let entries = entries.iter().filter_map(|work| if let ToApply::Entries(e) = work { Some(e) } else { None });
    let entries: Vec<_> = entries.flatten().collect();
    let changes = entries.iter().filter(|entry| entry.r#type() != raftpb::EntryType::EntryNormal).count();
    (changes, entries.last().map_or(0, |entry| entry.index()))
}

/// One that came too soon would become an empty entry, and its caller would wait for nothing.
#[test]
fn configuration_changes_wait_for_each_other() {
    let mut b = bench();
    b.raft.work().unwrap();
    b.shared.applied.advance(handed_on(&b).1);
    let forwarded = raftpb::Message {
        r#type: Some(raftpb::MessageType::MsgProp as i32),
        from: Some(1),
        to: Some(1),
        entries: vec![raftpb::Entry {
            r#type: Some(raftpb::EntryType::EntryConfChange as i32),
            data: Some(conf_change(9)),
            ..Default::default()
        }],
        ..Default::default()
    };
    b.inputs.send(Input::Message(Box::new(forwarded.clone()))).unwrap();
    b.inputs.send(Input::Message(Box::new(forwarded))).unwrap();
    for id in 1..=3 {
        b.inputs.send(Input::ProposeConfChange { id, change: conf_change(id) }).unwrap();
    }
    for round in 0..5 {
        b.raft.pass(None, b.raft.now).unwrap();
        let (changes, last) = handed_on(&b);
        assert_eq!(changes, 1, "round {round}");
        b.raft.pass(None, b.raft.now).unwrap();
        assert_eq!(handed_on(&b), (0, 0), "round {round}: it is not applied yet");
        b.shared.applied.advance(last);
    }
    assert!(b.raft.held.is_empty() && b.raft.waiting.is_empty());
}

/// The removed member ends when it hears of its removal. One that applied the removal and forgot that it is committed
/// would wait for its vote.
#[test]
fn a_configuration_change_is_handed_on_after_its_commit_is_synced() {
    let mut b = bench();
    b.raft.work().unwrap();
    b.shared.applied.advance(handed_on(&b).1);
    b.inputs.send(Input::ProposeConfChange { id: 1, change: conf_change(1) }).unwrap();
    b.raft.pass(None, b.raft.now).unwrap();
    let (changes, last) = handed_on(&b);
    assert_eq!((changes, b.raft.parts.log.synced_commit), (1, last));
}

/// Nobody waits for them any more.
#[test]
fn configuration_changes_do_not_wait_forever() {
    let mut b = bench();
    b.raft.work().unwrap();
    for id in [1, 2] {
        b.inputs.send(Input::ProposeConfChange { id, change: conf_change(id) }).unwrap();
    }
    b.raft.pass(None, b.raft.now).unwrap();
    assert_eq!(b.raft.held.len(), 1);
    let later = b.raft.now + b.raft.parts.request_timeout;
    b.raft.pass(None, later).unwrap();
    assert!(b.raft.held.is_empty());
}

/// An entry with this request and nothing else.
fn request_entry(request: proto::etcdserverpb::InternalRaftRequest) -> raftpb::Entry {
    use prost::Message;
    let header = Some(proto::etcdserverpb::RequestHeader { id: 1, ..Default::default() });
    let request = proto::etcdserverpb::InternalRaftRequest { header, ..request };
    raftpb::Entry { data: Some(request.encode_to_vec().into()), ..Default::default() }
}

fn put() -> raftpb::Entry {
    let put = Some(proto::etcdserverpb::PutRequest { key: "k".into(), ..Default::default() });
    request_entry(proto::etcdserverpb::InternalRaftRequest { put, ..Default::default() })
}

/// A request that only members of version 3.8 understand.
fn increment() -> raftpb::Entry {
    let increment = Some(proto::etcdserverpb::IncrementRequest { key: "k".into(), ..Default::default() });
    request_entry(proto::etcdserverpb::InternalRaftRequest { increment, ..Default::default() })
}

fn lower_version() -> raftpb::Entry {
    let set = proto::membershippb::ClusterVersionSetRequest { ver: "3.7.0".into(), feature_gates: None };
    request_entry(proto::etcdserverpb::InternalRaftRequest { cluster_version_set: Some(set), ..Default::default() })
}

/// How many entries of a forwarded proposal reach the log.
fn logged(b: &mut Bench, entries: Vec<raftpb::Entry>) -> u64 {
    let before = b.raft.parts.core.status().last;
    let kind = Some(raftpb::MessageType::MsgProp as i32);
    let message = raftpb::Message { r#type: kind, from: Some(2), to: Some(1), entries, ..Default::default() };
    b.inputs.send(Input::Message(Box::new(message))).unwrap();
    b.raft.pass(None, b.raft.now).unwrap();
    b.raft.parts.core.status().last - before
}

/// The others would time out although nothing is wrong with them.
#[test]
fn a_refused_proposal_takes_no_other_with_it() {
    let mut b = bench();
    b.raft.work().unwrap();
    assert_eq!(logged(&mut b, vec![put(), increment(), put()]), 2);
    assert_eq!(logged(&mut b, vec![increment()]), 0);
}

/// Proposals of one message are applied one after the other, at the version that the one before has left.
#[test]
fn forwarded_proposals_are_judged_in_turn() {
    let mut b = bench();
    b.raft.work().unwrap();
    b.raft.parts.cluster.write().apply_version(1, Version::new(3, 8));
    assert_eq!(logged(&mut b, vec![increment(), lower_version()]), 2);
    let mut b = bench();
    b.raft.work().unwrap();
    b.raft.parts.cluster.write().apply_version(1, Version::new(3, 8));
    assert_eq!(logged(&mut b, vec![lower_version(), increment(), put()]), 2);
}

/// A member takes no message above 512 MiB, and 1,024 proposals may be three times that.
#[test]
fn forwarded_proposals_are_sent_in_messages_of_limited_size() {
    let sent = Arc::new(Sent::default());
    let mut b = bench_among(&[1, 2], sent.clone());
    let kind = Some(raftpb::MessageType::MsgHeartbeat as i32);
    let beat = raftpb::Message { r#type: kind, from: Some(2), to: Some(1), term: Some(1), ..Default::default() };
    b.inputs.send(Input::Message(Box::new(beat))).unwrap();
    b.raft.pass(None, b.raft.now).unwrap();
    let third = crate::core::MESSAGE_BYTES_MAX as usize / 3;
    for (id, size) in [third, third, third, 1, 4 * third, 1, 1].into_iter().enumerate() {
        let data = vec![0; size].into();
        b.inputs.send(Input::Propose { id: id as u64, data, judged: Judged::Plain }).unwrap();
    }
    b.raft.pass(None, b.raft.now).unwrap();
    let sent = sent.0.lock();
    let proposals = sent.iter().filter(|m| m.r#type() == raftpb::MessageType::MsgProp);
    assert_eq!(proposals.map(|m| m.entries.len()).collect::<Vec<_>>(), [4, 1, 2]);
}

/// A put that needs cluster version 3.8.
fn needs_3_8() -> Bytes {
    use prost::Message;
    let required_features = vec!["AtomicIncrement".into()];
    let request = proto::etcdserverpb::InternalRaftRequest {
        header: Some(proto::etcdserverpb::RequestHeader { id: 1, required_features, ..Default::default() }),
        put: Some(proto::etcdserverpb::PutRequest { key: "k".into(), ..Default::default() }),
        ..Default::default()
    };
    request.encode_to_vec().into()
}

/// The version may have gone down between the proposer's look and this one.
#[test]
fn what_was_judged_at_another_version_is_judged_again() {
    let data = needs_3_8();
    let mut b = bench();
    b.raft.work().unwrap();
    let cases =
        [(Judged::At(Some(Version::new(3, 8))), 0), (Judged::Not, 0), (Judged::At(None), 1), (Judged::Plain, 1)];
    for (judged, logged) in cases {
        let before = b.raft.parts.core.status().last;
        b.inputs.send(Input::Propose { id: 1, data: data.clone(), judged }).unwrap();
        b.raft.pass(None, b.raft.now).unwrap();
        assert_eq!(b.raft.parts.core.status().last - before, logged, "{judged:?}");
    }
}

/// A decision of this term.
fn deciding(term: u64) -> DecidingTerm {
    let raft = CoreStatus { term, is_leader: true, ..Default::default() };
    Standing::new(raft, AppliedTo { index: 1, term }).decides_in().unwrap()
}

/// A member that has lost the leadership would send the decision to the new leader: a lease that was renewed there
/// would end.
#[test]
fn what_a_leader_decides_is_void_in_another_term() {
    let mut b = bench();
    b.raft.work().unwrap();
    b.look.entries.lock().try_iter().count();
    let term = b.shared.standing().leads_in().unwrap();
    // What a lease's end asks for: header {id: 1}, lease_revoke {id: 2}.
    let data = Bytes::from_static(&[0xa2, 0x06, 2, 8, 1, 0x4a, 2, 8, 2]);
    for (applied, decided_in, entries) in [(term, term - 1, 0), (term - 1, term, 0), (term, term, 1)] {
        b.shared.set_applied_term(applied);
        b.inputs.send(Input::ProposeAsLeader { term: deciding(decided_in), data: data.clone() }).unwrap();
        let now = b.raft.now;
        b.raft.pass(None, now).unwrap();
        assert_eq!(b.look.entries.lock().try_iter().count(), entries, "{decided_in} at {applied}");
    }
}
