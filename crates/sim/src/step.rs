//! Steps of members: start, raft, apply, commit, chores, end.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    ops::ControlFlow,
};

use node::{
    Clock as _,
    sim::{Applied, with_causes},
};
use storage::{Bucket, Read as _};

use crate::{
    check::{Checked, State},
    clock::{MS, SECOND},
    event::{Event, Place},
    simulation::Simulation,
};

/// States are compared at every so many indices, since comparing takes long.
const COMPARED_EVERY: u64 = 4;

impl Simulation {
    pub(crate) fn start(&mut self, machine: usize) -> Checked {
        let m = &mut self.machines[machine];
        if m.is_up() || m.retired {
            return Ok(());
        }
        let started = m.start(&self.settings, &self.clock, &mut self.random);
        let (id, cut) = (m.id, m.power.is_cut());
        self.note(("start", machine, started.is_ok()));
        match started {
            Ok(()) => {}
            Err(_) if cut => return self.crash(machine),
            Err(error) if error.to_string().contains("was removed from its cluster") => {
                self.retire(machine);
                return Ok(());
            }
            Err(error) => return self.fail(format!("{id} cannot start: {}", with_causes(&error))),
        }
        let place = self.place(machine);
        let (commit, chores) = (self.random.below(100 * MS), self.random.below(500 * MS));
        self.queue.push(self.now + commit, Event::Commit(place));
        self.queue.push(self.now + chores, Event::Chores(place));
        self.after_step(machine)
    }

    pub(crate) fn pass(&mut self, place: Place) -> Checked {
        let m = &mut self.machines[place.machine];
        if m.incarnation != place.incarnation || !m.is_up() || m.pass_at != Some(self.now) {
            return Ok(());
        }
        m.pass_at = None;
        let wait = m.busy_until.max(m.paused_until);
        if wait > self.now {
            self.wake_at(place.machine, wait);
            return Ok(());
        }
        let now = self.clock.now();
        let Some(member) = &mut m.member else { return Ok(()) };
        member.pass(now);
        let (term, leads) = member.leads();
        let id = m.id;
        if leads {
            self.checks.leader(term, id)?;
        }
        self.after_step(place.machine)?;
        let m = &mut self.machines[place.machine];
        m.busy_until = self.now + m.power.take_spent();
        Ok(())
    }

    /// Puts a raft pass on the agenda, unless an earlier one is there.
    pub(crate) fn wake_at(&mut self, machine: usize, at: u64) {
        let m = &mut self.machines[machine];
        let at = at.max(m.busy_until).max(m.paused_until);
        if m.is_up() && m.pass_at.is_none_or(|earlier| earlier > at) {
            m.pass_at = Some(at);
            let place = Place { machine, incarnation: m.incarnation };
            self.queue.push(at, Event::Pass(place));
        }
    }

    pub(crate) fn wake(&mut self, machine: usize) {
        let soon = self.now + self.random.below(200);
        self.wake_at(machine, soon);
    }

    /// What follows from any step of a member: its messages, its answers, its end.
    pub(crate) fn after_step(&mut self, machine: usize) -> Checked {
        self.send_all(machine)?;
        if self.ended(machine)? {
            return Ok(());
        }
        let spent = self.machines[machine].power.spent();
        self.go_on_applying(machine, spent);
        let next = self.machines[machine].member.as_ref().map(|member| self.clock.us_of(member.next_tick()));
        if let Some(next) = next {
            self.wake_at(machine, next.max(self.now));
        }
        self.poll_begin(machine);
        self.poll_clients(machine)
    }

    /// A member that has failed: its power was cut, or it was removed. It has no other reason to.
    fn ended(&mut self, machine: usize) -> Result<bool, crate::check::Violation> {
        let m = &mut self.machines[machine];
        let Some(failure) = m.member.as_ref().and_then(|member| member.node().failure()) else { return Ok(false) };
        if m.power.is_cut() {
            self.crash(machine)?;
        } else if failure.contains("permanently removed") {
            self.retire(machine);
        } else {
            let id = m.id;
            return self.fail(format!("{id} failed: {failure}"));
        }
        Ok(true)
    }

    /// The member is no longer one, and does not come back.
    pub(crate) fn retire(&mut self, machine: usize) {
        self.note(("retire", machine));
        self.forget_process(machine);
        let m = &mut self.machines[machine];
        m.kill();
        m.retired = true;
    }

    fn go_on_applying(&mut self, machine: usize, spent: u64) {
        let m = &mut self.machines[machine];
        if m.is_up() && !m.applying {
            m.applying = true;
            let place = Place { machine, incarnation: m.incarnation };
            let at = self.now + spent + self.random.below(m.apply_us_max);
            self.queue.push(at, Event::Apply(place));
        }
    }

    pub(crate) fn apply(&mut self, place: Place) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::Apply(place)) {
            return Ok(());
        }
        let m = &mut self.machines[place.machine];
        m.applying = false;
        let id = m.id;
        let Some(member) = &mut m.member else { return Ok(()) };
        let applied = member.apply();
        member.compact();
        let healthy = member.node().failure().is_none();
        match applied {
            Applied::Nothing => return Ok(()),
            Applied::Entries(entries) => {
                for entry in &entries {
                    self.checks.applied(id, entry, self.now)?;
                }
                self.note(("apply", place.machine, entries.last().map(|e| (e.index(), e.term()))));
            }
            Applied::TookOver(metadata) => {
                self.note(("take over", place.machine, metadata.index()));
                if healthy {
                    self.report.databases_received += 1;
                    self.compare_state(place.machine)?;
                }
            }
            Applied::SentSnapshot | Applied::Stopped => {}
        }
        if healthy {
            self.look_at_gate(place.machine)?;
            self.maybe_compare_state(place.machine)?;
        }
        self.wake(place.machine);
        self.after_step(place.machine)
    }

    fn maybe_compare_state(&mut self, machine: usize) -> Checked {
        let member = self.machines[machine].member.as_ref();
        let index = member.map_or(1, |member| member.node().status().applied_index);
        if index.is_multiple_of(COMPARED_EVERY) { self.compare_state(machine) } else { Ok(()) }
    }

    /// Equal applied index means equal state.
    pub(crate) fn compare_state(&mut self, machine: usize) -> Checked {
        let m = &self.machines[machine];
        let Some(member) = &m.member else { return Ok(()) };
        let (node, id) = (member.node(), m.id);
        let hash = match node.store().newest_hash() {
            Ok(hash) => hash,
            Err(error) => return self.fail(format!("{id} has no hash: {error}")),
        };
        let view = node.backend().view();
        let mut rest = DefaultHasher::new();
        for bucket in [Bucket::Alarm, Bucket::Cluster, Bucket::Lease, Bucket::Members, Bucket::MembersRemoved] {
            view.scan(bucket, b"", b"", &mut |key, value| {
                (bucket, key, value).hash(&mut rest);
                ControlFlow::Continue(())
            });
        }
        let state =
            State { keys: hash.hash, revision: hash.revision, compacted: hash.compact_revision, rest: rest.finish() };
        let index = node.status().applied_index;
        self.checks.state(index, state, id)
    }

    /// Whether the machine stands still; then the event comes again when it goes on.
    pub(crate) fn delayed(&mut self, place: Place, event: Event) -> bool {
        let until = self.machines[place.machine].paused_until;
        let waits = until > self.now;
        if waits {
            self.queue.push(until, event);
        }
        waits
    }

    pub(crate) fn commit(&mut self, place: Place) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::Commit(place)) {
            return Ok(());
        }
        if let Some(member) = &self.machines[place.machine].member {
            // Its failure is the member's, and found there.
            let _ = member.node().backend().commit();
        }
        let next = self.now + self.random.between(20, 200) * MS;
        self.queue.push(next, Event::Commit(place));
        self.after_step(place.machine)
    }

    pub(crate) fn chores(&mut self, place: Place) -> Checked {
        if !self.is_current(place) || self.delayed(place, Event::Chores(place)) {
            return Ok(());
        }
        let purge = self.random.percent(20);
        if let Some(member) = &self.machines[place.machine].member {
            member.end_leases();
            member.tend_gate();
            if purge {
                member.purge();
            }
        }
        self.queue.push(self.now + SECOND / 2, Event::Chores(place));
        self.wake(place.machine);
        self.after_step(place.machine)
    }

    pub(crate) fn crash_at(&mut self, place: Place) -> Checked {
        if !self.is_current(place) {
            return Ok(());
        }
        let busy = self.machines[place.machine].busy_until;
        if busy > self.now {
            // Its sync is under way, and the messages after it are not sent yet.
            self.queue.push(busy, Event::Crash(place));
            return Ok(());
        }
        self.crash(place.machine)
    }

    /// The power of a machine is cut. It comes back after a while.
    pub(crate) fn crash(&mut self, machine: usize) -> Checked {
        self.note(("crash", machine));
        self.report.crashes += 1;
        self.forget_process(machine);
        if let Err(error) = self.machines[machine].crash(&mut self.random) {
            return self.fail(format!("cannot crash: {error}"));
        }
        self.start_later(machine);
        Ok(())
    }

    /// The process is killed and starts again.
    pub(crate) fn kill(&mut self, machine: usize) {
        self.note(("kill", machine));
        self.forget_process(machine);
        self.machines[machine].kill();
        self.start_later(machine);
    }

    /// An orderly end, and a start after it.
    pub(crate) fn stop(&mut self, machine: usize) -> Checked {
        self.note(("stop", machine));
        let (id, now) = (self.machines[machine].id, self.clock.now());
        let mut last = Vec::new();
        if let Some(member) = &mut self.machines[machine].member {
            member.ask_to_stop();
            while member.node().failure().is_none() && member.pass(now) {}
            loop {
                match member.apply() {
                    Applied::Nothing | Applied::Stopped => break,
                    Applied::Entries(entries) => last.extend(entries),
                    Applied::TookOver(_) | Applied::SentSnapshot => {}
                }
            }
            let _ = member.node().backend().close();
        }
        // Nobody else may ever apply them.
        for entry in &last {
            self.checks.applied(id, entry, self.now)?;
        }
        self.send_all(machine)?;
        if self.ended(machine)? {
            return Ok(());
        }
        self.forget_process(machine);
        self.machines[machine].kill();
        self.start_later(machine);
        Ok(())
    }

    fn start_later(&mut self, machine: usize) {
        let pause = if self.calm { 10 * MS } else { self.random.between(10, 4_000) * MS };
        self.queue.push(self.now + pause, Event::Start(machine));
    }

    /// Whoever talked to the process learns nothing more from it.
    fn forget_process(&mut self, machine: usize) {
        self.drop_clients_of(machine);
        self.transfers.drop_from(machine);
        self.machines[machine].outbox.take();
    }
}
