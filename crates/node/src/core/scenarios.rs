//! Several cores and the messages between them, in orders that have gone wrong elsewhere.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::raftpb::{self, MessageType};
use raft::eraftpb::{ConfChange, ConfChangeType, ConfState, HardState};
use slog::Logger;

use super::{Core, CoreOptions, Followed, MESSAGE_BYTES_MAX};
use crate::log_store::LogStore;

struct Cluster {
    cores: BTreeMap<u64, Core>,
    /// On their way.
    messages: Vec<raftpb::Message>,
}

impl Cluster {
    fn new(ids: &[u64]) -> Cluster {
        let core = |id: u64| {
            let conf = ConfState { voters: ids.to_vec(), ..Default::default() };
            let store = LogStore::new((0, 0), HardState::default(), conf, Vec::new());
            let options = CoreOptions { id, election_ticks: 10, pre_vote: true, applied: 0, seed: id };
            Core::new(&options, store, &Logger::root(slog::Discard, slog::o!())).unwrap()
        };
        Cluster { cores: ids.iter().map(|id| (*id, core(*id))).collect(), messages: Vec::new() }
    }

    fn core(&mut self, id: u64) -> &mut Core {
        self.cores.get_mut(&id).unwrap()
    }

    /// Lets a core do its work; what it sends goes on its way.
    fn work(&mut self, id: u64) {
        while let Some(mut work) = self.core(id).take_work() {
            let mut sent = std::mem::take(&mut work.messages);
            sent.append(&mut work.messages_after_sync);
            let mut last = work.committed.last().map(|e| e.index());
            let done = self.core(id).handle_persisted(work);
            sent.extend(done.messages);
            last = done.committed.last().map(|e| e.index()).or(last);
            if let Some(index) = last {
                self.core(id).handle_applied(index);
            }
            self.messages.extend(sent);
        }
    }

    fn give(&mut self, message: &raftpb::Message) {
        self.core(message.to()).handle_message(message).unwrap();
        self.work(message.to());
    }

    /// Delivers what is on its way between these, and what follows from it, until nothing is. The rest is lost.
    fn settle(&mut self, among: &[u64]) {
        while !self.messages.is_empty() {
            for message in std::mem::take(&mut self.messages) {
                if among.contains(&message.to()) && among.contains(&message.from()) {
                    self.give(&message);
                }
            }
        }
    }

    /// Time passes for these until one of them leads.
    fn elect(&mut self, among: &[u64]) -> u64 {
        for _ in 0..200 {
            for id in among {
                self.core(*id).handle_tick();
                self.work(*id);
            }
            self.settle(among);
            if let Some(id) = among.iter().find(|id| self.cores[id].status().is_leader) {
                return *id;
            }
        }
        panic!("nobody leads");
    }

    fn propose(&mut self, id: u64, data: &'static [u8], among: &[u64]) {
        self.core(id).handle_proposals(vec![Bytes::from_static(data)]).unwrap();
        self.work(id);
        self.settle(among);
    }

    /// Takes what is on its way to a member, of a kind.
    fn take(&mut self, kind: MessageType, to: u64) -> Vec<raftpb::Message> {
        let (taken, rest) =
            std::mem::take(&mut self.messages).into_iter().partition(|m| m.r#type() == kind && m.to() == to);
        self.messages = rest;
        taken
    }
}

fn read_index(from: u64, to: u64) -> raftpb::Message {
    let entry = raftpb::Entry { data: Some(Bytes::from_static(b"context")), ..Default::default() };
    raftpb::Message {
        r#type: Some(MessageType::MsgReadIndex as i32),
        from: Some(from),
        to: Some(to),
        entries: vec![entry],
        ..Default::default()
    }
}

/// etcd's #20418: real etcd members ask again with the context they have used. An acknowledgement that was on its way for the
/// first question must not confirm the second one, since a new leader may have come between them.
#[test]
fn a_repeated_read_context_confirms_no_stale_read() {
    let mut c = Cluster::new(&[1, 2, 3]);
    let old = c.elect(&[1, 2, 3]);
    let [asker, late] = [1, 2, 3].into_iter().filter(|id| *id != old).collect::<Vec<_>>()[..] else { unreachable!() };
    c.propose(old, b"a", &[1, 2, 3]);

    // The question is confirmed by the asker; the other's acknowledgement stays in the network.
    c.give(&read_index(asker, old));
    for member in [asker, late] {
        let beats = c.take(MessageType::MsgHeartbeat, member);
        assert_eq!(beats.len(), 1);
        c.give(&beats[0]);
    }
    let (first, delayed): (Vec<_>, Vec<_>) =
        c.take(MessageType::MsgHeartbeatResp, old).into_iter().partition(|m| m.from() == asker);
    first.iter().for_each(|m| c.give(m));
    let answers = c.take(MessageType::MsgReadIndexResp, asker);
    assert_eq!(answers.len(), 1, "confirmed while it was true");
    assert_eq!(answers[0].entries[0].data.as_deref(), Some(&b"context"[..]), "under the asker's own context");
    c.messages.clear();

    // The others elect a new leader and commit.
    let new = c.elect(&[asker, late]);
    assert_ne!(new, old);
    c.propose(new, b"b", &[asker, late]);
    assert!(c.cores[&new].status().commit > answers[0].index());

    // The old leader, who knows of nothing, is asked again; the acknowledgement of the first question arrives.
    c.give(&read_index(asker, old));
    assert!(c.cores[&old].status().is_leader);
    delayed.iter().for_each(|m| c.give(m));
    assert_eq!(delayed.len(), 1);
    assert!(c.take(MessageType::MsgReadIndexResp, asker).is_empty(), "a stale read was confirmed");
}

/// The question of this member, as it is on its way.
fn ask(c: &mut Cluster, asker: u64, context: u64) -> raftpb::Message {
    let leader = c.cores[&asker].status().leader;
    c.core(asker).handle_read_index(context);
    c.work(asker);
    c.take(MessageType::MsgReadIndex, leader).remove(0)
}

/// Gives whether the leader answers without asking others.
fn is_answered_at_once(ids: &[u64]) -> bool {
    let mut c = Cluster::new(ids);
    let leader = c.elect(ids);
    c.propose(leader, b"a", ids);
    let asker = ids.iter().copied().find(|id| *id != leader).unwrap();
    let question = ask(&mut c, asker, 7);
    c.give(&question);
    let answers = c.take(MessageType::MsgReadIndexResp, asker);
    assert_ne!(answers.is_empty(), c.take(MessageType::MsgHeartbeat, asker).is_empty());
    for answer in &answers {
        assert_eq!(answer.index(), c.cores[&leader].status().commit);
        c.core(asker).handle_message(answer).unwrap();
        assert_eq!(c.core(asker).take_work().unwrap().reads, [(7, answer.index())]);
    }
    !answers.is_empty()
}

#[test]
fn a_question_of_a_voter_confirms_itself_if_it_and_the_leader_are_a_quorum() {
    assert!(is_answered_at_once(&[1, 2]));
    assert!(is_answered_at_once(&[1, 2, 3]));
    assert!(!is_answered_at_once(&[1, 2, 3, 4]));
    assert!(!is_answered_at_once(&[1, 2, 3, 4, 5]));
}

/// Until then it cannot know what its predecessors have committed.
#[test]
fn a_leader_without_a_commit_of_its_own_answers_no_question() {
    let mut c = Cluster::new(&[1, 2, 3]);
    let old = c.elect(&[1, 2, 3]);
    let [new, asker] = [1, 2, 3].into_iter().filter(|id| *id != old).collect::<Vec<_>>()[..] else { unreachable!() };
    let term = Some(c.cores[&old].status().term);
    let (kind, from, to) = (Some(MessageType::MsgTimeoutNow as i32), Some(old), Some(new));
    c.give(&raftpb::Message { r#type: kind, from, to, term, ..Default::default() });
    for (kind, to) in [(MessageType::MsgVote, asker), (MessageType::MsgVoteResp, new), (MessageType::MsgApp, asker)] {
        c.take(kind, to).iter().for_each(|m| c.give(m));
    }
    assert!(c.cores[&new].status().is_leader);
    let question = ask(&mut c, asker, 7);
    c.give(&question);
    assert!(c.take(MessageType::MsgReadIndexResp, asker).is_empty());
    c.settle(&[new, asker]);
    assert_eq!(c.cores[&asker].status().commit, c.cores[&new].status().commit);
}

/// It need not know of a later leader, so its question shows nothing.
#[test]
fn a_question_of_a_learner_does_not_confirm_itself() {
    let mut c = Cluster::new(&[1, 2]);
    let leader = c.elect(&[1, 2]);
    let question = ask(&mut c, 3 - leader, 7);
    let mut change = ConfChange::default();
    change.set_change_type(ConfChangeType::AddLearnerNode);
    change.node_id = 3;
    c.core(leader).handle_conf_change(2, &change).unwrap();
    c.give(&raftpb::Message { from: Some(3), ..question });
    assert!(c.take(MessageType::MsgReadIndexResp, 3).is_empty());
    assert_eq!(c.take(MessageType::MsgHeartbeat, 3).len(), 1);
}

/// A leader that was cut off knows nothing of its successor.
#[test]
fn a_question_from_a_later_term_is_not_confirmed_by_the_old_leader() {
    let mut c = Cluster::new(&[1, 2, 3]);
    let old = c.elect(&[1, 2, 3]);
    let others: Vec<_> = [1, 2, 3].into_iter().filter(|id| *id != old).collect();
    c.propose(old, b"a", &[1, 2, 3]);
    let early = ask(&mut c, others[0], 7);
    let new = c.elect(&others);
    c.propose(new, b"b", &others);
    assert!(c.cores[&old].status().is_leader);
    let asker = others.into_iter().find(|id| *id != new).unwrap();

    let late = raftpb::Message { to: Some(old), ..ask(&mut c, asker, 8) };
    c.give(&late);
    assert!(c.take(MessageType::MsgReadIndexResp, asker).is_empty(), "a stale read was confirmed");
    c.messages.clear();

    // What was asked before there was a successor may be answered; the asker, who knows of the successor, does not listen.
    c.give(&early);
    for answer in c.take(MessageType::MsgReadIndexResp, early.from()) {
        c.core(early.from()).handle_message(&answer).unwrap();
        assert!(c.core(early.from()).take_work().is_none_or(|work| work.reads.is_empty()));
    }
}

/// The crate counts on a leader being among the members, and panics otherwise.
#[test]
fn a_leader_that_is_removed_leads_no_more() {
    let mut c = Cluster::new(&[1, 2]);
    let leader = c.elect(&[1, 2]);
    let other = 3 - leader;
    c.core(leader).handle_proposals(vec![Bytes::from_static(b"a")]).unwrap();
    c.work(leader);
    for message in c.take(MessageType::MsgApp, other) {
        c.give(&message);
    }
    let late = c.take(MessageType::MsgAppResp, leader);
    assert!(!late.is_empty());
    let mut change = ConfChange::default();
    change.set_change_type(ConfChangeType::RemoveNode);
    change.node_id = leader;
    c.core(leader).handle_conf_change(3, &change).unwrap();
    for message in &late {
        // Whether it is refused is of no matter.
        let _ = c.core(leader).handle_message(message);
    }
    c.work(leader);
    assert!(!c.cores[&leader].status().is_leader);
    // Who is left must learn that the removal is committed, or it waits for the removed one's vote for ever.
    c.messages.clear();
    c.core(leader).handle_tick();
    c.work(leader);
    let beats = c.take(MessageType::MsgHeartbeat, other);
    assert_eq!(beats.iter().map(|m| m.commit()).collect::<Vec<_>>(), [1]);
}

/// Of two voters the removed one alone knows at first that the removal is committed. The other one cannot be elected
/// before it knows too, so the removed one must not end earlier.
#[test]
fn a_removed_leader_is_waited_for_until_the_last_voter_has_heard_of_the_removal() {
    let mut c = Cluster::new(&[1, 2]);
    let leader = c.elect(&[1, 2]);
    let other = 3 - leader;
    c.core(leader).handle_tick();
    c.work(leader);
    let beats = c.take(MessageType::MsgHeartbeat, other);
    beats.iter().for_each(|m| c.give(m));
    let early = c.take(MessageType::MsgHeartbeatResp, leader);
    assert_eq!(early.len(), 1);
    assert!(!c.cores[&leader].is_waited_for());

    let mut change = ConfChange { node_id: leader, ..Default::default() };
    change.set_change_type(ConfChangeType::RemoveNode);
    c.core(leader).handle_conf_change(2, &change).unwrap();
    c.work(leader);
    assert!(c.cores[&leader].is_waited_for());
    early.iter().for_each(|m| c.give(m));
    assert!(c.cores[&leader].is_waited_for(), "the answer to an earlier heartbeat says nothing");
    c.messages.clear();

    c.core(leader).handle_tick();
    c.work(leader);
    c.settle(&[1, 2]);
    assert!(!c.cores[&leader].is_waited_for());
}

/// An election in the same pass as entries that are not on disk yet would end in a panic of the crate.
#[test]
fn a_lone_voter_is_not_elected_before_its_log_is_on_disk() {
    let mut c = Cluster::new(&[1]);
    let from_other = |kind, term| raftpb::Message {
        r#type: Some(kind as i32),
        from: Some(2),
        to: Some(1),
        term: Some(term),
        ..Default::default()
    };
    let entry = raftpb::Entry { index: Some(1), term: Some(3), ..Default::default() };
    let append = raftpb::Message { entries: vec![entry], ..from_other(MessageType::MsgApp, 3) };
    c.core(1).handle_message(&append).unwrap();
    let context = Some(Bytes::from_static(b"CampaignTransfer"));
    c.core(1).handle_message(&raftpb::Message { context, ..from_other(MessageType::MsgVote, 4) }).unwrap();
    let status = c.cores[&1].status();
    assert_eq!((status.term, status.leader, status.last), (4, 0, 1));
    c.core(1).lead_if_alone();
    assert!(!c.cores[&1].status().is_leader);
    c.work(1);
    c.core(1).lead_if_alone();
    assert!(c.cores[&1].status().is_leader);
}

/// A snapshot of index 50 and term 3 from member 2.
fn snapshot(voters: &[u64], learners: &[u64]) -> raftpb::Message {
    let (voters, learners) = (voters.to_vec(), learners.to_vec());
    let conf_state = Some(raftpb::ConfState { voters, learners, ..Default::default() });
    let metadata = raftpb::SnapshotMetadata { conf_state, index: Some(50), term: Some(3) };
    raftpb::Message {
        r#type: Some(MessageType::MsgSnap as i32),
        from: Some(2),
        to: Some(1),
        term: Some(3),
        snapshot: Some(raftpb::Snapshot { data: None, metadata: Some(metadata) }),
        ..Default::default()
    }
}

/// As [`Cluster::work`], but nothing is applied.
fn persist(core: &mut Core) {
    while let Some(work) = core.take_work() {
        core.handle_persisted(work);
    }
}

/// The database that came with a snapshot is put in place by another thread. Until then the entries before it are
/// neither applied nor in the log.
#[test]
fn a_member_may_stand_for_election_before_a_received_database_is_in_place() {
    let mut c = Cluster::new(&[1, 2]);
    c.core(1).handle_message(&snapshot(&[1, 2], &[])).unwrap();
    persist(c.core(1));
    assert_eq!(c.cores[&1].status().commit, 50);
    let now = raftpb::Message {
        r#type: Some(MessageType::MsgTimeoutNow as i32),
        from: Some(2),
        to: Some(1),
        term: Some(3),
        ..Default::default()
    };
    c.core(1).handle_message(&now).unwrap();
    c.work(1);
    let votes = c.take(MessageType::MsgVote, 2);
    assert_eq!(votes.iter().map(|m| (m.index(), m.log_term())).collect::<Vec<_>>(), [(50, 3)]);
}

/// The apply loop may still be at entries before the snapshot. An old addition of a learner would take its vote from a
/// member that was promoted since, and a smaller quorum could elect a second leader.
#[test]
fn a_configuration_change_before_a_received_snapshot_changes_nothing() {
    let mut c = Cluster::new(&[1, 2]);
    let change = |kind, node_id| {
        let mut change = ConfChange { node_id, ..Default::default() };
        change.set_change_type(kind);
        change
    };
    c.core(1).handle_message(&snapshot(&[1, 2, 3, 4, 5], &[])).unwrap();
    let old = change(ConfChangeType::AddLearnerNode, 4);
    assert_eq!(c.core(1).handle_conf_change(40, &old).unwrap(), Followed::Superseded, "the message has arrived");
    persist(c.core(1));
    let old = change(ConfChangeType::AddLearnerNode, 5);
    assert_eq!(c.core(1).handle_conf_change(50, &old).unwrap(), Followed::Superseded, "the snapshot is in the log");
    let Followed::Now(mut state) = c.core(1).handle_conf_change(51, &change(ConfChangeType::AddNode, 6)).unwrap()
    else {
        panic!("a change behind the snapshot counts");
    };
    state.voters.sort_unstable();
    assert_eq!((state.voters, state.learners), (vec![1, 2, 3, 4, 5, 6], vec![]));
}

/// A leader refuses messages of removed members, and whoever sent one takes it for its own removal.
#[test]
fn nothing_is_handed_on_under_the_name_of_another() {
    let mut c = Cluster::new(&[1, 2, 3]);
    let leader = c.elect(&[1, 2, 3]);
    let [follower, removed] = [1, 2, 3].into_iter().filter(|id| *id != leader).collect::<Vec<_>>()[..] else {
        unreachable!()
    };
    let proposal = raftpb::Message { r#type: Some(MessageType::MsgProp as i32), ..read_index(removed, follower) };
    c.give(&proposal);
    c.give(&read_index(removed, follower));
    let sent: Vec<_> = c.messages.iter().map(|m| (m.r#type(), m.from(), m.to())).collect();
    assert_eq!(sent, [(MessageType::MsgProp, follower, leader)]);
}

/// In raft 0.7 `try_batching` makes one message of all entries that may be on their way to a member.
#[test]
fn a_member_that_lags_is_sent_messages_of_limited_size() {
    let mut c = Cluster::new(&[1, 2, 3]);
    let leader = c.elect(&[1, 2, 3]);
    let late = if leader == 3 { 2 } else { 3 };
    let other = 6 - leader - late;
    let data = Bytes::from(vec![0; MESSAGE_BYTES_MAX as usize / 4]);
    for _ in 0..40 {
        c.core(leader).handle_proposals(vec![data.clone()]).unwrap();
        c.work(leader);
        c.take(MessageType::MsgApp, late);
        c.settle(&[leader, other]);
    }
    c.core(leader).handle_unreachable(late);
    let mut messages = 0;
    while c.cores[&late].status().commit < c.cores[&leader].status().commit {
        c.core(leader).handle_tick();
        c.work(leader);
        while !c.messages.is_empty() {
            for message in std::mem::take(&mut c.messages) {
                let bytes: usize = message.entries.iter().map(|e| e.data.as_ref().map_or(0, Bytes::len)).sum();
                assert!(bytes as u64 <= MESSAGE_BYTES_MAX, "one message has {bytes} bytes of entries");
                messages += usize::from(bytes > 0);
                c.give(&message);
            }
        }
    }
    assert!((10..=40).contains(&messages), "{messages} messages: they are joined up to the limit, and not beyond it");
}
