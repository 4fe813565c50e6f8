//! The node's world as traits, so that the same node runs on a disk and in a simulator.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use membership::{Member, MemberId};
use proto::{raftpb, walpb};

/// Where log entries are kept.
pub(crate) trait Log: Send {
    /// Writes entries and state; they are safe after the next [`Log::sync`].
    fn append(&mut self, state: Option<&raftpb::HardState>, entries: &[raftpb::Entry]) -> Result<(), wal::Error>;

    fn sync(&mut self) -> Result<wal::Saved, wal::Error>;

    fn save_snapshot(&mut self, record: &walpb::Snapshot) -> Result<(), wal::Error>;

    /// Segments that hold nothing after `index` may be removed.
    fn release_to(&mut self, index: u64) -> Result<(), wal::Error>;
}

/// The other members, as the node reaches them. Nothing here waits for them.
pub trait Network: Send + Sync {
    /// Sends messages, or loses them: raft asks again.
    fn send(&self, messages: Vec<raftpb::Message>);

    /// Sends a snapshot message and its database. How it ended is told by [`crate::Node::report_snapshot`].
    fn send_snapshot(&self, message: raftpb::Message, database: Database);

    /// These are the members from now on, this one among them.
    fn set_members(&self, members: Vec<Member>);

    /// Since when the member has answered without a break.
    fn active_since(&self, id: MemberId) -> Option<Instant>;
}

/// Time that only goes forward.
pub trait Clock: Send + Sync {
    fn now(&self) -> Instant;
}

/// The machine's.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Instant {
        Instant::now()
    }
}

/// A clock, and when the member began: the lessor counts from there.
#[derive(Clone)]
pub(crate) struct Time {
    clock: Arc<dyn Clock>,
    epoch: Instant,
}

impl Time {
    pub(crate) fn begin(clock: Arc<dyn Clock>) -> Time {
        let epoch = clock.now();
        Time { clock, epoch }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Since the member began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now().saturating_duration_since(self.epoch)
    }
}

/// What a member stands on, besides its data dir and the network.
pub struct World {
    pub clock: Arc<dyn Clock>,
    /// Where the log is. (The database has its disks in [`storage::Options`].)
    pub log_disk: Arc<dyn wal::Disk>,
    /// When the member is started: request ids begin with it.
    pub started: SystemTime,
    /// Election timeouts are drawn from it.
    pub seed: u64,
}

impl World {
    /// The machine.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the time of day")]
    pub fn system() -> World {
        let started = SystemTime::now();
        let nanos = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        World { clock: Arc::new(SystemClock), log_disk: Arc::new(wal::OsDisk), started, seed: nanos.rotate_left(32) }
    }
}

/// A database to be sent: so many bytes.
pub struct Database {
    pub len: u64,
    pub reader: Box<dyn io::Read + Send>,
}

/// For a cluster of one.
#[derive(Debug, Default)]
pub struct NoNetwork;

impl Network for NoNetwork {
    fn send(&self, _: Vec<raftpb::Message>) {}
    fn send_snapshot(&self, _: raftpb::Message, _: Database) {}
    fn set_members(&self, _: Vec<Member>) {}
    fn active_since(&self, _: MemberId) -> Option<Instant> {
        None
    }
}

/// What is worth measuring, told to whoever measures.
pub trait Observer: Send + Sync {
    /// Entries are on disk.
    fn log_saved(&self, _saved: &wal::Saved) {}
    fn proposal_failed(&self) {}
    fn leader_changed(&self, _leader: u64) {}
    fn lease_revoked(&self) {}
    fn lease_expired(&self) {}
    fn lease_granted(&self, _ttl: i64) {}
    fn lease_renewed(&self) {}
    fn index_compaction_step(&self, _took: Duration) {}
    fn compaction_step(&self, _took: Duration) {}
    fn compaction_finished(&self, _took: Duration) {}
    fn slow_apply(&self) {}
    /// Cluster features went on or off.
    fn gate_changed(&self) {}
    /// `request` as [`crate::request_name`] names it.
    fn applied(&self, _request: &'static str, _success: bool, _took: Duration) {}
}

/// Measures nothing.
#[derive(Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}
