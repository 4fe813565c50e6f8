//! The apply loop, work by work, next to a core that gives prepared answers.

use std::{
    collections::BTreeMap,
    sync::mpsc,
    time::{Instant, SystemTime},
};

use membership::{Change, Member, MemberId};
use prost::Message as _;
use test_case::test_case;

use super::*;
use crate::{
    apply::test_state,
    core::CoreStatus,
    request_id::RequestIds,
    world::{NoNetwork, NoObserver},
};

/// The core's answer to every configuration change.
struct Core(Followed);

impl FollowsChanges for Core {
    fn follow(&mut self, _: u64, _: raft::eraftpb::ConfChange) -> Option<Followed> {
        Some(match &self.0 {
            Followed::Now(state) => Followed::Now(state.clone()),
            Followed::Superseded => Followed::Superseded,
        })
    }

    fn cut_log(&mut self, _: walpb::Snapshot, _: Version) -> Option<Option<u64>> {
        Some(None)
    }
}

struct Bench {
    apply: ApplyLoop,
    _inputs: Receiver<Input>,
    _dir: harness::TempDir,
}

fn bench(answer: Followed) -> Bench {
    let dir = harness::tempdir();
    let state = test_state::state(dir.path());
    let now: Instant = state.time.now();
    let shared = Arc::new(Shared::new(0, Arc::new(NoObserver), now, Duration::from_millis(100)));
    let (inputs, inputs_rx) = mpsc::channel();
    let proposer = Proposer { inputs, ids: Arc::new(RequestIds::new(1, SystemTime::UNIX_EPOCH)) };
    let keeper = Arc::new(GateKeeper::new(
        (state.cluster.clone(), shared.clone()),
        (proposer.clone(), state.time.clone()),
        Arc::new(|_| BTreeMap::new()),
        ("a".into(), Vec::new()),
    ));
    let apply = ApplyLoop {
        state,
        entries: mpsc::channel().1,
        proposer,
        core: Box::new(Core(answer)),
        compactor: mpsc::channel().0,
        shared,
        keeper,
        options: ApplyOptions {
            snapshot_count: 1_000,
            slow: Duration::from_secs(100),
            election_timeout: Duration::from_secs(1),
            lease_checkpoints: false,
        },
        network: Arc::new(NoNetwork),
        data_dir: DataDir::new(dir.path(), None),
        snapshot_index: 0,
        lower_due: false,
    };
    Bench { apply, _inputs: inputs_rx, _dir: dir }
}

impl Bench {
    fn stands(&self, term: u64, is_leader: bool) {
        self.apply.shared.publish(CoreStatus { term, is_leader, ..Default::default() });
    }

    /// Whether the lessor ends leases after the first entry of a leader's term.
    fn is_primary_after(&mut self, index: u64, term: u64) -> bool {
        let entry = raftpb::Entry { index: Some(index), term: Some(term), ..Default::default() };
        self.apply.take(ToApply::Entries(vec![entry])).unwrap();
        self.apply.state.lessor.lock().is_primary()
    }
}

/// Two elections while this member's apply lags: between the two entries the log may have ended leases.
#[test]
fn the_lessor_is_primary_from_the_first_entry_of_its_own_term_on() {
    let mut b = bench(Followed::Superseded);
    b.stands(7, true);
    assert!(!b.is_primary_after(1, 5));
    assert!(b.is_primary_after(2, 7));
}

#[test]
fn the_lessor_of_a_follower_is_not_primary() {
    let mut b = bench(Followed::Superseded);
    b.stands(7, false);
    assert!(!b.is_primary_after(1, 7));
}

fn configuration(voters: &[u64], learners: &[u64]) -> Followed {
    Followed::Now(raftpb::ConfState { voters: voters.to_vec(), learners: learners.to_vec(), ..Default::default() })
}

#[test_case(configuration(&[1], &[2]) => true; "the members")]
#[test_case(configuration(&[1], &[]) => false; "a learner is missing")]
#[test_case(configuration(&[1, 2], &[]) => false; "a learner that votes")]
#[test_case(Followed::Superseded => true; "a received snapshot has a later one")]
fn members_and_configuration_are_compared_after_an_added_learner(answer: Followed) -> bool {
    let mut b = bench(answer);
    let member =
        Member { id: MemberId(2), peer_urls: vec!["http://b:1".into()], is_learner: true, ..Default::default() };
    let change = Change::Add { member, as_learner: true }.encode(9).encode_to_vec();
    let entry = raftpb::Entry {
        r#type: Some(raftpb::EntryType::EntryConfChange as i32),
        index: Some(1),
        term: Some(1),
        data: Some(change.into()),
    };
    b.apply.take(ToApply::Entries(vec![entry])).is_ok()
}
