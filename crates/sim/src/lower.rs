//! One member goes up and down with its cluster version, and its power is cut at every single write on the way.

use std::{collections::BTreeMap, sync::Arc};

use membership::{ClusterId, Founding, Member, MemberId};
use node::{Clock as _, Identity, sim::Applied};
use proto::{
    Version,
    etcdserverpb::{IncrementRequest, InternalRaftRequest, PutRequest},
    membershippb::ClusterVersionSetRequest,
};
use random::Random;
use storage::schema::{gate, meta};

use crate::{
    clock::{MS, SimClock},
    gate::Begin,
    machine::{Machine, Settings},
};

const V3_7: Version = Version::new(3, 7);
const V3_8: Version = Version::new(3, 8);

struct Bench {
    machine: Machine,
    clock: Arc<SimClock>,
    random: Random,
    settings: Settings,
    runtime: tokio::runtime::Runtime,
    _root: harness::TempDir,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        let root = harness::tempdir();
        let peer_urls = vec!["http://m0:2380".to_owned()];
        let id = MemberId::compute(&peer_urls, "lower", None);
        let members = BTreeMap::from([(id, Member { id, peer_urls, name: "m0".into(), ..Member::default() })]);
        let founding = Founding { cluster_id: ClusterId(1), local: id, members };
        let mut machine = Machine::new(id, Identity::Founder(founding), root.path());
        machine.flags_flip = false;
        machine.flags = ["AtomicIncrement", "PersistedLeaseCheckpoints"].map(|name| (name.to_owned(), true)).into();
        let settings = Settings {
            snapshot_count: 1_000,
            catch_up_entries: 100,
            segment_bytes: 16 * 4096,
            pre_vote: true,
            lease_checkpoints: false,
            compaction_batch: 10,
            apply_lags: false,
            few_members: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (clock, random) = (Arc::default(), Random::new(seed));
        Bench { machine, clock, random, settings, runtime, _root: root }
    }

    /// False if the power was cut on the way.
    fn start(&mut self) -> bool {
        match self.machine.start(&self.settings, &self.clock, &mut self.random) {
            Ok(()) => true,
            Err(_) if self.machine.power.is_cut() => false,
            Err(error) => panic!("cannot start: {error}"),
        }
    }

    /// Lets time pass, and all that is due happen. False if the power was cut on the way.
    fn run(&mut self, ms: u64) -> bool {
        let _guard = self.runtime.enter();
        for _ in 0..ms / 10 {
            self.clock.set(self.clock.us() + 10 * MS);
            let now = self.clock.now();
            let Some(member) = &mut self.machine.member else { return false };
            member.pass(now);
            while !matches!(member.apply(), Applied::Nothing | Applied::Stopped) {
                member.pass(now);
            }
            if self.machine.begin.as_mut().is_some_and(Begin::poll) {
                self.machine.begin = None;
            }
            member.tend_gate();
            if self.machine.power.is_cut() {
                return false;
            }
            assert_eq!(member.node().failure(), None);
        }
        true
    }

    fn ask(&mut self, request: InternalRaftRequest) {
        if let Some(member) = &self.machine.member {
            member.node().propose_quietly(request);
        }
    }

    fn set_version(&mut self, version: Version) {
        let set = ClusterVersionSetRequest { ver: version.stored(), feature_gates: None };
        self.ask(InternalRaftRequest { cluster_version_set: Some(set), ..Default::default() });
    }

    fn versions(&self) -> (Option<Version>, Option<Version>) {
        let node = self.machine.member.as_ref().unwrap().node();
        (node.cluster_version(), meta::storage_version(&node.backend().view()).unwrap())
    }

    /// How many keys are there, and whether the file holds anything of the gate.
    fn contents(&self) -> (usize, bool) {
        let node = self.machine.member.as_ref().unwrap().node();
        let all =
            proto::etcdserverpb::RangeRequest { key: vec![0].into(), range_end: vec![0].into(), ..Default::default() };
        let keys = node.store().range(&all).unwrap().into_response().kvs.len();
        (keys, gate::load(&node.backend().view()).unwrap() != gate::Stored::default())
    }

    /// A member at 3.8 whose log holds what 3.7 cannot read, and keys that must not be lost.
    fn at_3_8(seed: u64) -> Bench {
        let mut bench = Bench::new(seed);
        assert!(bench.start() && bench.run(2_000));
        bench.set_version(V3_8);
        assert!(bench.run(2_000));
        for n in 0..5 {
            let put = PutRequest { key: format!("k{n}").into(), ..Default::default() };
            bench.ask(InternalRaftRequest { put: Some(put), ..Default::default() });
            let increment = IncrementRequest { key: "counter".into(), delta: 1, ..Default::default() };
            bench.ask(InternalRaftRequest { increment: Some(increment), ..Default::default() });
        }
        assert!(bench.run(100));
        assert_eq!(bench.contents(), (6, true));
        bench
    }

    /// The power comes back; the member starts and has time to finish.
    fn recover(&mut self) {
        self.machine.crash(&mut self.random).unwrap();
        assert!(self.start() && self.run(3_000));
    }
}

/// Every write from the proposal of the lower version on. Whatever is lost, the member starts again at a version that is
/// the same in cluster and file, with all keys, and the log after its snapshot holds nothing newer.
#[test]
fn down_with_the_power_cut_at_every_write() {
    let (mut lowered, mut kept) = (0, 0);
    for write in 1.. {
        let mut bench = Bench::at_3_8(write);
        bench.machine.power.cut_after(write);
        bench.set_version(V3_7);
        let whole = bench.run(500);
        if !whole {
            bench.recover();
        }
        let (cluster, file) = bench.versions();
        assert_eq!(cluster, file, "cut at write {write}");
        let is_down = cluster == Some(V3_7);
        assert_eq!(bench.contents(), (6, !is_down), "cut at write {write}");
        (lowered, kept) = (lowered + u64::from(is_down), kept + u64::from(!is_down));
        bench.machine.power.restore();
        if whole {
            break;
        }
    }
    assert!(lowered > 3 && kept > 0, "{lowered} cuts left it lowered, {kept} as it was");
    println!("{} cuts: {lowered} left it lowered, {kept} as it was", lowered + kept);
}

/// The way up is one batch: both versions rise or neither.
#[test]
fn up_with_the_power_cut_at_every_write() {
    for write in 1.. {
        let mut bench = Bench::new(write);
        assert!(bench.start() && bench.run(2_000));
        bench.set_version(V3_7);
        assert!(bench.run(500));
        bench.machine.power.cut_after(write);
        bench.set_version(V3_8);
        let whole = bench.run(500);
        if !whole {
            bench.recover();
        }
        let (cluster, file) = bench.versions();
        assert_eq!(cluster, file, "cut at write {write}");
        bench.machine.power.restore();
        if whole {
            return;
        }
    }
}
