//! One run: machines, clients, faults and the checks on them, driven by events from one seed.

use std::{
    collections::{BTreeMap, BTreeSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    io,
    sync::Arc,
};

use linear::History;
use membership::{ClusterId, Founding, Member, MemberId};
use node::Identity;
use random::Random;

use crate::{
    check::{Checked, Checks, Violation, violation},
    client::Client,
    clock::{MS, SECOND, SimClock},
    event::{Event, Place, Queue},
    machine::{Machine, Settings},
    transfer::Transfers,
};

/// Keeps a run's choices apart from those that its members make of small seeds. Named seeds rely on it.
const SALT: u64 = 0x5851_f42d_4c95_7f2d;

/// Draws what later versions of the simulator have added, so that seeds without it take the course they always took.
const SALT_OF_HARDSHIP: u64 = 0x2545_f491_4f6c_dd1d;

/// What to run.
#[derive(Debug, Clone)]
pub struct Config {
    pub seed: u64,
    /// `None` leaves it to the seed.
    pub members: Option<usize>,
    /// Virtual time under faults.
    pub seconds: u64,
    /// Prints every event.
    pub trace: bool,
}

/// What a run has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Of everything that happened, in order: equal for equal seeds.
    pub trace: u64,
    pub events: u64,
    pub operations: u64,
    pub unknown: u64,
    pub entries: u64,
    pub leaders: u64,
    pub crashes: u64,
    pub databases_received: u64,
    pub member_changes: u64,
    pub leases: u64,
    /// How often cluster features went on or off, as far as is remembered.
    pub gate_switches: u64,
}

/// How the network treats messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    pub loss_percent: u64,
    pub twice_percent: u64,
    pub delay_us_max: u64,
}

pub(crate) struct Simulation {
    pub(crate) config: Config,
    pub(crate) random: Random,
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) now: u64,
    pub(crate) queue: Queue,
    pub(crate) machines: Vec<Machine>,
    pub(crate) clients: Vec<Client>,
    pub(crate) checks: Checks,
    pub(crate) history: History<String>,
    /// Acknowledged writes: key, value, revision.
    pub(crate) acknowledged: Vec<(String, u64, i64)>,
    pub(crate) transfers: Transfers,
    /// From, to.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    pub(crate) usual: Weather,
    pub(crate) weather: Weather,
    /// Calls and answers in order.
    pub(crate) moments: u64,
    pub(crate) next_value: u64,
    pub(crate) calm: bool,
    pub(crate) cluster: ClusterId,
    pub(crate) report: Report,
    hasher: DefaultHasher,
    root: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

/// Runs one seed to its end.
pub fn run(config: &Config) -> Result<Report, Violation> {
    let mut simulation = Simulation::new(config).map_err(|e| Violation(format!("cannot set up: {e}")))?;
    // Calls of the node make timers, which need a runtime to belong to. None ever fires: clients give up by themselves.
    let runtime = simulation.runtime.handle().clone();
    let _guard = runtime.enter();
    simulation.run()?;
    Ok(simulation.report())
}

/// Memory, where there is a file system in it: the files are mapped, so they must be real.
fn temporary() -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("lockgate-sim-");
    match builder.tempdir_in("/dev/shm") {
        Ok(dir) => Ok(dir),
        Err(_) => builder.tempdir(),
    }
}

impl Simulation {
    fn new(config: &Config) -> io::Result<Simulation> {
        let mut random = Random::new(config.seed ^ SALT);
        let count = config.members.unwrap_or_else(|| *random.pick(&[1, 3, 3, 3, 3, 5]).unwrap_or(&3));
        let mut settings = Settings {
            snapshot_count: random.between(5, 80),
            catch_up_entries: random.between(1, 40),
            segment_bytes: random.between(1, 8) * 4096,
            pre_vote: !random.percent(15),
            lease_checkpoints: random.percent(50),
            compaction_batch: random.between(1, 50) as usize,
            apply_lags: false,
            few_members: false,
        };
        settings.harden(&mut Random::new(config.seed ^ SALT_OF_HARDSHIP));
        let count = if settings.few_members { config.members.unwrap_or(2) } else { count };
        let usual = Weather {
            loss_percent: random.below(4),
            twice_percent: random.below(4),
            delay_us_max: random.pick(&[1, 5, 5, 20, 60]).copied().unwrap_or(5) * MS,
        };
        let mut simulation = Simulation {
            config: config.clone(),
            settings,
            clock: Arc::default(),
            now: 0,
            queue: Queue::default(),
            machines: Vec::new(),
            clients: Vec::new(),
            checks: Checks::default(),
            history: History::default(),
            acknowledged: Vec::new(),
            transfers: Transfers::default(),
            cut: BTreeSet::new(),
            usual,
            weather: usual,
            moments: 0,
            next_value: 0,
            calm: false,
            cluster: ClusterId::default(),
            report: Report::default(),
            hasher: DefaultHasher::new(),
            root: temporary()?,
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build()?,
            random,
        };
        simulation.found(count);
        Ok(simulation)
    }

    fn found(&mut self, count: usize) {
        let members: BTreeMap<MemberId, Member> = (0..count)
            .map(|i| {
                let peer_urls = vec![format!("http://m{i}:2380")];
                let id = MemberId::compute(&peer_urls, "sim", None);
                (id, Member { id, peer_urls, name: format!("m{i}"), ..Member::default() })
            })
            .collect();
        self.cluster = ClusterId::compute(members.keys().copied());
        for id in members.keys().copied() {
            let founding = Founding { cluster_id: self.cluster, local: id, members: members.clone() };
            let machine = self.add_machine(id, Identity::Founder(founding));
            let at = self.random.below(500 * MS);
            self.queue.push(at, Event::Start(machine));
        }
        self.hire_clients();
        self.queue.push(SECOND, Event::Fault);
    }

    pub(crate) fn add_machine(&mut self, id: MemberId, identity: Identity) -> usize {
        self.machines.push(Machine::new(id, identity, self.root.path()));
        self.machines.len() - 1
    }

    fn run(&mut self) -> Checked {
        self.run_until(self.config.seconds * SECOND)?;
        self.finish()
    }

    /// Everything that happens until then.
    pub(crate) fn run_until(&mut self, until: u64) -> Checked {
        while let Some((at, event)) = self.queue.pop(until) {
            self.now = at;
            self.clock.set(at);
            self.report.events += 1;
            self.handle(event)?;
        }
        self.now = until;
        self.clock.set(until);
        Ok(())
    }

    fn handle(&mut self, event: Event) -> Checked {
        match event {
            Event::Pass(place) => self.pass(place),
            Event::Apply(place) => self.apply(place),
            Event::Commit(place) => self.commit(place),
            Event::Chores(place) => self.chores(place),
            Event::Deliver { from, to, message } => self.deliver(from, to, message),
            Event::TransferEnds(number) => self.end_transfer(number),
            Event::SnapshotReport { place, to, sent } => self.snapshot_report(place, to, sent),
            Event::Unreachable { place, to } => self.unreachable(place, to),
            Event::Gone(place) => self.gone(place),
            Event::Start(machine) => self.start(machine),
            Event::Crash(place) => self.crash_at(place),
            Event::Client(client) => self.client_acts(client),
            Event::GiveUp { client, operation } => self.give_up(client, operation),
            Event::Fault => self.fault(),
            Event::CutOff(machine) => self.cut_off(machine),
            Event::Mend(mend) => self.mend(mend),
        }
    }

    /// What happens becomes part of the trace.
    pub(crate) fn note(&mut self, what: impl Hash + std::fmt::Debug) {
        (self.now, &what).hash(&mut self.hasher);
        if self.config.trace {
            println!("{:>10.3} {what:?}", self.now as f64 / 1000.0);
        }
    }

    /// The machine as of now, if it is up and its incarnation is the one that is meant.
    pub(crate) fn is_current(&self, place: Place) -> bool {
        self.machines.get(place.machine).is_some_and(|m| m.is_up() && m.incarnation == place.incarnation)
    }

    pub(crate) fn place(&self, machine: usize) -> Place {
        Place { machine, incarnation: self.machines[machine].incarnation }
    }

    pub(crate) fn find(&self, id: u64) -> Option<usize> {
        self.machines.iter().position(|m| m.id.0 == id)
    }

    pub(crate) fn up(&self) -> Vec<usize> {
        (0..self.machines.len()).filter(|i| self.machines[*i].is_up()).collect()
    }

    /// The leader of the highest term, as the members see it.
    pub(crate) fn leader(&self) -> Option<usize> {
        let leads = |i: &usize| {
            let member = self.machines[*i].member.as_ref()?;
            let (term, leads) = member.leads();
            leads.then_some((term, *i))
        };
        (0..self.machines.len()).filter_map(|i| leads(&i)).max().map(|(_, i)| i)
    }

    pub(crate) fn fail<T>(&self, text: impl Into<String>) -> Result<T, Violation> {
        violation(format!("at {} ms: {}", self.now / MS, text.into()))
    }

    fn report(self) -> Report {
        Report {
            trace: self.hasher.finish(),
            entries: self.checks.last_committed(),
            leaders: self.checks.terms_with_leader() as u64,
            ..self.report
        }
    }
}
