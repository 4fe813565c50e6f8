//! A machine: disks, power, a way out, and the member that runs on it or not.

use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use membership::MemberId;
use memdisk::{Cut, MemDisk, Power};
use node::{Clock, DataDir, Identity, NoObserver, NodeOptions, Quota, StartError, World, sim::SimMember};
use proto::Version;
use random::Random;

use crate::{
    clock::SimClock,
    database::DatabaseDisks,
    gate::{Begin, Flags, draw_flags, flags_of},
    network::Outbox,
};

/// How members of one run are set up.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub snapshot_count: u64,
    pub catch_up_entries: u64,
    pub segment_bytes: u64,
    pub pre_vote: bool,
    pub lease_checkpoints: bool,
    pub compaction_batch: usize,
    /// Slow apply loops are frequent, and slow for longer than an election.
    pub apply_lags: bool,
    /// Two members found the cluster, and one voter may be all that changes of the members leave.
    pub few_members: bool,
}

impl Settings {
    /// Three of four seeds let apply lag; two of these have so short a log that a member that lags needs a database.
    /// Some have few members.
    pub(crate) fn harden(&mut self, random: &mut Random) {
        let (lags, is_short) =
            *random.pick(&[(true, true), (true, true), (true, false), (false, false)]).unwrap_or(&(true, true));
        self.apply_lags = lags;
        self.few_members = random.percent(15);
        if is_short {
            self.snapshot_count = random.between(5, 15);
            self.catch_up_entries = random.between(1, 4);
        }
    }
}

pub(crate) const TICK: Duration = Duration::from_millis(100);
pub(crate) const ELECTION_TICKS: usize = 10;
const BINARY_VERSION: Version = Version::new(3, 8);
/// 2023, or so.
const WALL_CLOCK: Duration = Duration::from_secs(1_700_000_000);

pub(crate) struct Machine {
    pub id: MemberId,
    pub identity: Identity,
    pub power: Arc<Power>,
    pub outbox: Arc<Outbox>,
    pub member: Option<SimMember>,
    /// Counts starts; what was meant for an earlier one is void.
    pub incarnation: u64,
    pub busy_until: u64,
    pub paused_until: u64,
    /// When its raft loop runs next.
    pub pass_at: Option<u64>,
    /// Whether a step of applying is to come.
    pub applying: bool,
    /// How long a step of applying may take at most, in microseconds.
    pub apply_us_max: u64,
    /// It is no longer in the cluster, and does not start again.
    pub retired: bool,
    /// What its operator wants of the cluster's features.
    pub flags: Flags,
    /// Whether the operator changes his mind from start to start.
    pub flags_flip: bool,
    /// Until the member has caught up and may propose.
    pub begin: Option<Begin>,
    dir: DataDir,
    log_disk: MemDisk,
    databases: Arc<DatabaseDisks>,
}

impl Machine {
    pub(crate) fn new(id: MemberId, identity: Identity, root: &Path) -> Machine {
        let power = Arc::new(Power::default());
        Machine {
            id,
            identity,
            outbox: Arc::new(Outbox::new(power.clone())),
            member: None,
            incarnation: 0,
            busy_until: 0,
            paused_until: 0,
            pass_at: None,
            applying: false,
            apply_us_max: 2_000,
            retired: false,
            flags: Flags::new(),
            flags_flip: true,
            begin: None,
            dir: DataDir::new(root.join(format!("{id}")), None),
            log_disk: MemDisk::new(power.clone(), Cut::Frees),
            databases: Arc::new(DatabaseDisks::new(power.clone())),
            power,
        }
    }

    pub(crate) fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// Starts the member. A failure is one of the power, or a fault of the member.
    pub(crate) fn start(
        &mut self,
        settings: &Settings,
        clock: &Arc<SimClock>,
        random: &mut Random,
    ) -> Result<(), StartError> {
        self.incarnation += 1;
        (self.busy_until, self.paused_until, self.pass_at, self.applying) = (0, 0, None, false);
        self.outbox = Arc::new(Outbox::new(self.power.clone()));
        if self.flags_flip && (self.flags.is_empty() || random.percent(40)) {
            self.flags = draw_flags(random);
        }
        // The wall clock of a machine may be off; request ids begin with it.
        let wall = WALL_CLOCK + Duration::from_micros(clock.us()) + Duration::from_secs(random.below(3_600));
        let world = World {
            clock: clock.clone() as Arc<dyn Clock>,
            log_disk: Arc::new(self.log_disk.clone()),
            started: SystemTime::UNIX_EPOCH + wall,
            seed: random.next(),
        };
        let outbox = self.outbox.clone();
        let member = SimMember::start(self.options(settings), world, move |_| outbox)?;
        self.busy_until = clock.us() + self.power.take_spent();
        self.begin = Some(Begin::new(member.node().clone()));
        self.member = Some(member);
        Ok(())
    }

    fn options(&self, settings: &Settings) -> NodeOptions {
        let backend = storage::Options {
            // Committed when the simulator says so.
            batch_interval: Duration::from_secs(100_000),
            map_bytes: Some(16 << 20),
            disks: Some(self.databases.clone()),
            ..Default::default()
        };
        NodeOptions {
            data_dir: self.dir.clone(),
            name: self.id.to_string(),
            identity: Some(self.identity.clone()),
            force_new_cluster: false,
            learners_max: 2,
            client_urls: vec![format!("http://{}.client", self.id)],
            binary_version: BINARY_VERSION,
            backend,
            wal: wal::Options { segment_bytes: settings.segment_bytes, no_sync: false },
            store: mvcc::Options::default(),
            quota: Quota::new(None),
            tick: TICK,
            election_ticks: ELECTION_TICKS,
            pre_vote: settings.pre_vote,
            snapshot_count: settings.snapshot_count,
            catch_up_entries: settings.catch_up_entries,
            wals_max: Some(2),
            request_bytes_max: 1 << 20,
            // Real time, which means nothing here.
            slow_apply: Duration::from_secs(100_000),
            compaction_batch: settings.compaction_batch,
            compaction_pause: Duration::ZERO,
            defrag_threshold_bytes: None,
            lease_checkpoints: settings.lease_checkpoints,
            simple_token_ttl: Some(std::time::Duration::from_secs(300)),
            lease_checkpoint_interval: Duration::from_secs(300),
            features: flags_of(&self.flags),
            observer: Arc::new(NoObserver),
        }
    }

    /// The power is cut: what was not synced is lost, all of it or some of its sectors.
    pub(crate) fn crash(&mut self, random: &mut Random) -> io::Result<()> {
        (self.member, self.begin) = (None, None);
        self.power.restore();
        let odds = kept_percent(random);
        self.log_disk.crash(|| random.percent(odds));
        self.databases.crash(random)
    }

    /// The process is killed: what it had given to the system stays, synced or not.
    pub(crate) fn kill(&mut self) {
        (self.member, self.begin) = (None, None);
        self.power.restore();
        self.databases.forget();
    }

    pub(crate) fn is_up(&self) -> bool {
        self.member.is_some()
    }
}

/// How many of the sectors that were not synced a power cut leaves: often none, at times all.
pub(crate) fn kept_percent(random: &mut Random) -> u64 {
    random.pick(&[0, 0, 50, 90, 100]).copied().unwrap_or(0)
}
