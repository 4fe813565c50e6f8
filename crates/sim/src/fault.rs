//! What goes wrong, and who changes the cluster.

use std::collections::BTreeSet;

use membership::{Change, Cluster, Founding, Member};
use node::Identity;
use proto::{etcdserverpb::InternalRaftRequest, membershippb::ClusterVersionSetRequest};

use crate::{
    check::Checked,
    clock::{MS, SECOND},
    event::{Event, Mend, Place},
    operation::Admin,
    simulation::{Simulation, Weather},
};

/// More machines than this are not set up in one run.
const MACHINES_MAX: usize = 9;

impl Simulation {
    /// Something goes wrong now, and something else a little later.
    pub(crate) fn fault(&mut self) -> Checked {
        if self.calm {
            return Ok(());
        }
        let next = self.now + self.random.between(50, 1_500) * MS;
        self.queue.push(next, Event::Fault);
        if self.is_undecided() && self.random.percent(40) {
            return self.set_version();
        }
        if self.settings.apply_lags && self.random.percent(12) {
            self.lag();
            return Ok(());
        }
        match self.random.below(100) {
            0..14 => self.split(),
            14..20 => self.cut_one_way(),
            20..32 => self.cut_power()?,
            32..38 => self.on_one_up(|s, machine| {
                s.kill(machine);
                Ok(())
            })?,
            38..42 => self.on_one_up(Simulation::stop)?,
            42..52 => self.pause(),
            52..60 => self.slow_disk(),
            60..64 => self.slow_apply(),
            64..72 => self.storm(),
            72..80 => self.transfer_leadership()?,
            80..86 => self.set_version()?,
            _ => self.change_members()?,
        }
        Ok(())
    }

    pub(crate) fn mend(&mut self, mend: Mend) -> Checked {
        match mend {
            Mend::Links => self.cut.clear(),
            Mend::Disk(machine) => self.machines[machine].power.set_sync_us(0),
            Mend::Apply(machine) => self.machines[machine].apply_us_max = 2 * MS,
            Mend::Weather => self.weather = self.usual,
        }
        Ok(())
    }

    fn later(&mut self, low_ms: u64, high_ms: u64, mend: Mend) {
        let at = self.now + self.random.between(low_ms, high_ms) * MS;
        self.queue.push(at, Event::Mend(mend));
    }

    fn on_one_up(&mut self, act: impl FnOnce(&mut Simulation, usize) -> Checked) -> Checked {
        let up = self.up();
        match self.random.pick(&up).copied() {
            Some(machine) if self.machines[machine].paused_until <= self.now => act(self, machine),
            _ => Ok(()),
        }
    }

    /// Two halves that do not hear each other; often one of them is the leader alone.
    fn split(&mut self) {
        let n = self.machines.len();
        let mut one: BTreeSet<usize> = (0..n).filter(|_| self.random.percent(50)).collect();
        if self.random.percent(50) {
            one = self.leader().into_iter().collect();
        }
        self.note(("split", one.iter().copied().collect::<Vec<_>>()));
        for a in 0..n {
            for b in 0..n {
                if one.contains(&a) != one.contains(&b) {
                    self.cut.insert((a, b));
                }
            }
        }
        self.later(200, 5_000, Mend::Links);
    }

    /// No other machine hears this one, and this one hears no other.
    pub(crate) fn cut_off(&mut self, machine: usize) -> Checked {
        if self.calm {
            return Ok(());
        }
        self.note(("cut off", machine));
        let others = (0..self.machines.len()).filter(|other| *other != machine);
        self.cut.extend(others.flat_map(|other| [(machine, other), (other, machine)]));
        self.later(500, 3_000, Mend::Links);
        Ok(())
    }

    fn cut_one_way(&mut self) {
        let n = self.machines.len() as u64;
        let from = self.leader().unwrap_or(self.random.below(n) as usize);
        for _ in 0..self.random.between(1, n) {
            let other = self.random.below(n) as usize;
            let link = if self.random.percent(50) { (from, other) } else { (other, from) };
            self.cut.insert(link);
        }
        self.note(("cut", self.cut.iter().copied().collect::<Vec<_>>()));
        self.later(200, 5_000, Mend::Links);
    }

    /// At once, or in the middle of one of the next writes. Sometimes of all machines.
    fn cut_power(&mut self) -> Checked {
        let all = self.random.percent(10);
        let soon = self.random.percent(70);
        for machine in self.up() {
            if !all && !self.random.percent(50) {
                continue;
            }
            let place = Place { machine, incarnation: self.machines[machine].incarnation };
            if soon && !all {
                let writes = self.random.between(1, 40);
                self.note(("cut power", machine, writes));
                self.machines[machine].power.cut_after(writes);
            } else {
                self.crash_at(place)?;
            }
            if !all {
                break;
            }
        }
        Ok(())
    }

    fn pause(&mut self) {
        let up = self.up();
        let Some(machine) = self.leader().filter(|_| self.random.percent(50)).or(self.random.pick(&up).copied()) else {
            return;
        };
        let until = self.now + self.random.between(100, 5_000) * MS;
        self.note(("pause", machine, until));
        self.machines[machine].paused_until = until;
        self.queue.push(until, Event::Pass(self.place(machine)));
        self.machines[machine].pass_at = Some(until);
    }

    fn slow_disk(&mut self) {
        let machine = self.random.below(self.machines.len() as u64) as usize;
        let us = self.random.pick(&[1, 10, 50, 300, 1_500]).copied().unwrap_or(1) * MS;
        self.note(("slow disk", machine, us));
        self.machines[machine].power.set_sync_us(us);
        self.later(500, 4_000, Mend::Disk(machine));
    }

    fn slow_apply(&mut self) {
        let machine = self.random.below(self.machines.len() as u64) as usize;
        let us = self.random.pick(&[20, 200, 1_000]).copied().unwrap_or(20) * MS;
        self.slow_apply_of(machine, us, (500, 4_000));
    }

    /// The state of one machine, often the leader, falls behind what raft knows: for longer than elections, changes of
    /// members and the way of a database take. Often the machine is cut off a little later, and the others go on
    /// without it.
    fn lag(&mut self) {
        let any = self.random.below(self.machines.len() as u64) as usize;
        let machine = self.leader().filter(|_| self.random.percent(40)).unwrap_or(any);
        let us = self.random.pick(&[200, 1_000, 3_000, 8_000]).copied().unwrap_or(200) * MS;
        self.slow_apply_of(machine, us, (2_000, 12_000));
        if self.random.percent(50) {
            let at = self.now + self.random.between(100, 2_000) * MS;
            self.queue.push(at, Event::CutOff(machine));
        }
    }

    fn slow_apply_of(&mut self, machine: usize, us: u64, (low_ms, high_ms): (u64, u64)) {
        self.note(("slow apply", machine, us));
        self.machines[machine].apply_us_max = us;
        self.later(low_ms, high_ms, Mend::Apply(machine));
    }

    fn storm(&mut self) {
        self.weather = Weather {
            loss_percent: self.random.between(0, 60),
            twice_percent: self.random.between(0, 40),
            delay_us_max: self.random.pick(&[5, 50, 300, 1_200]).copied().unwrap_or(5) * MS,
        };
        self.note(("storm", self.weather.loss_percent, self.weather.delay_us_max));
        self.later(300, 4_000, Mend::Weather);
    }

    fn transfer_leadership(&mut self) -> Checked {
        let Some(leader) = self.leader() else { return Ok(()) };
        let to = self.random.below(self.machines.len() as u64) as usize;
        let id = self.machines[to].id.0;
        self.note(("transfer", leader, to));
        if let Some(member) = &self.machines[leader].member {
            let cluster = member.node().cluster();
            if cluster.voters().any(|voter| voter.0 == id) {
                member.transfer_leadership(id);
            }
        }
        self.wake(leader);
        // A leader that hands on and is not heard any more does not learn that it has.
        if self.random.percent(30) {
            let n = self.machines.len();
            self.cut.extend((0..n).filter(|i| *i != leader).map(|i| (i, leader)));
            self.later(200, 5_000, Mend::Links);
        }
        Ok(())
    }

    fn is_undecided(&self) -> bool {
        let leader = self.leader().and_then(|leader| self.machines[leader].member.as_ref());
        leader.is_some_and(|leader| leader.node().cluster_version().is_none())
    }

    /// Up or down; whether the product would is decided elsewhere.
    fn set_version(&mut self) -> Checked {
        let Some(leader) = self.leader().filter(|_| self.is_idle(self.admin())) else { return Ok(()) };
        let ver = if self.random.percent(70) { "3.8.0" } else { "3.7.0" };
        self.note(("version", leader, ver));
        let request = InternalRaftRequest {
            cluster_version_set: Some(ClusterVersionSetRequest { ver: ver.into(), feature_gates: None }),
            ..Default::default()
        };
        self.ask_admin(leader, Admin::Request(Box::new(request)))
    }

    fn change_members(&mut self) -> Checked {
        let up = self.up();
        let Some(&machine) = self.random.pick(&up) else { return Ok(()) };
        if !self.is_idle(self.admin()) || self.machines[machine].paused_until > self.now {
            return Ok(());
        }
        let Some(member) = &self.machines[machine].member else { return Ok(()) };
        let cluster = member.node().cluster();
        if cluster.members().next().is_none() {
            return Ok(());
        }
        let Some(change) = self.choose_change(&cluster) else { return Ok(()) };
        self.note(("change", machine, format!("{change:?}")));
        self.report.member_changes += 1;
        self.ask_admin(machine, Admin::Members(change))
    }

    fn choose_change(&mut self, cluster: &Cluster) -> Option<Change> {
        let voters: Vec<_> = cluster.voters().collect();
        let learners: Vec<_> = cluster.learners().collect();
        let members: Vec<_> = cluster.members().map(|m| m.id).collect();
        let voters_min = if self.settings.few_members { 1 } else { 2 };
        match self.random.below(100) {
            0..30 => self.random.pick(&learners).map(|id| Change::Promote(*id)),
            30..55 if members.len() > voters_min && (voters.len() > voters_min || !learners.is_empty()) => self
                .random
                .pick(&members)
                .filter(|id| voters.len() > voters_min || learners.contains(id))
                .map(|id| Change::Remove(*id)),
            _ if self.machines.len() < MACHINES_MAX => Some(self.new_member(cluster)),
            _ => None,
        }
    }

    /// A machine is set up for the new member and started soon, whatever comes of the change.
    fn new_member(&mut self, cluster: &Cluster) -> Change {
        let as_learner = self.random.percent(60);
        let urls = [format!("http://m{}:2380", self.machines.len())];
        let member: Member = cluster.new_member(&urls, as_learner, 1_700_000_000 + self.now / SECOND);
        let mut members: std::collections::BTreeMap<_, _> = cluster.members().map(|m| (m.id, m.clone())).collect();
        members.insert(member.id, member.clone());
        let founding = Founding { cluster_id: self.cluster, local: member.id, members };
        let machine = self.add_machine(member.id, Identity::Joiner(founding));
        let at = self.now + self.random.between(10, 2_000) * MS;
        self.queue.push(at, Event::Start(machine));
        Change::Add { member, as_learner }
    }
}
