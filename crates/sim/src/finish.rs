//! The end of a run: faults end, everything must recover, and the whole history is judged.

use std::collections::BTreeMap;

use membership::MemberId;
use proto::etcdserverpb::RangeRequest;

use crate::{
    check::Checked,
    clock::{MS, SECOND},
    event::Event,
    simulation::{Simulation, Weather},
};

/// A leader must be there so long after the last fault; then all members must be equal within the same time.
const RECOVERY: u64 = 30 * SECOND;
/// Half-seconds without a change: longer than two syncs of the slowest disk, behind which a proposal may wait.
const STABLE: u32 = 8;
/// Leases end on their own within this time after their last promise: an election and the chores' interval.
const LEASE_SLACK: u64 = 12 * SECOND;

impl Simulation {
    pub(crate) fn finish(&mut self) -> Checked {
        self.calm_down();
        let leader = self.wait_for_leader()?;
        self.settle_members(leader)?;
        self.wait_until_equal()?;
        self.wait_for_gates()?;
        self.wait_for_clients()?;
        self.read_all()?;
        self.check_acknowledged()?;
        if let Err(error) = self.history.check() {
            return self.fail(error.to_string());
        }
        self.wait_for_leases()?;
        self.check_nobody_waits()
    }

    /// The faults end: links and weather are good, whoever is down starts.
    fn calm_down(&mut self) {
        self.note("calm");
        self.calm = true;
        self.cut.clear();
        self.usual = Weather { loss_percent: 0, twice_percent: 0, delay_us_max: 5 * MS };
        self.weather = self.usual;
        for machine in 0..self.machines.len() {
            let m = &mut self.machines[machine];
            m.power.set_sync_us(0);
            m.power.restore();
            m.apply_us_max = 2 * MS;
            if !m.is_up() && !m.retired {
                self.queue.push(self.now + MS, Event::Start(machine));
            }
        }
    }

    fn wait_for_leader(&mut self) -> Result<usize, crate::check::Violation> {
        let deadline = self.now + RECOVERY;
        let mut stable = 0;
        while self.now < deadline {
            self.run_until(self.now + 500 * MS)?;
            let leader = self.leader();
            stable = if leader.is_some_and(|leader| self.is_caught_up(leader)) { stable + 1 } else { 0 };
            if let Some(leader) = leader.filter(|_| stable >= STABLE) {
                return Ok(leader);
            }
        }
        let states: Vec<_> = self.machines.iter().map(|m| self.describe(m)).collect();
        self.fail(format!("no leader after {} s without faults: {}", RECOVERY / SECOND, states.join("; ")))
    }

    /// Nothing is under way any more that could add or remove a member.
    fn is_caught_up(&self, machine: usize) -> bool {
        self.machines[machine].member.as_ref().is_some_and(|member| {
            let status = member.node().status();
            status.applied_index == status.commit_index && status.commit_index == status.last_index
        })
    }

    fn describe(&self, machine: &crate::machine::Machine) -> String {
        let Some(member) = &machine.member else {
            return format!("{} is down{}", machine.id, if machine.retired { " for good" } else { "" });
        };
        let status = member.node().status();
        let voters: Vec<_> = member.node().cluster().voters().map(|id| id.to_string()).collect();
        format!("{} {status:?} voters {voters:?}", machine.id)
    }

    /// Whoever is not a member any more is stopped.
    fn settle_members(&mut self, leader: usize) -> Checked {
        let Some(member) = &self.machines[leader].member else { return Ok(()) };
        let cluster = member.node().cluster();
        for machine in 0..self.machines.len() {
            if cluster.member(self.machines[machine].id).is_none() && !self.machines[machine].retired {
                self.retire(machine);
            }
        }
        let ids: Vec<_> = cluster.members().map(|m| m.id).collect();
        for id in ids {
            match self.find(id.0) {
                Some(machine) if !self.machines[machine].retired => {}
                _ => return self.fail(format!("{id} is a member, but its machine believes it was removed")),
            }
        }
        Ok(())
    }

    fn wait_until_equal(&mut self) -> Checked {
        let deadline = self.now + RECOVERY;
        loop {
            self.run_until(self.now + 500 * MS)?;
            let indices: BTreeMap<MemberId, Option<(u64, u64)>> = (self.machines.iter())
                .filter(|m| !m.retired)
                .map(|m| {
                    let status = m.member.as_ref().map(|member| member.node().status());
                    (m.id, status.map(|s| (s.commit_index, s.applied_index)))
                })
                .collect();
            let first = indices.values().next().copied().flatten();
            let equal = first.is_some_and(|(commit, applied)| commit == applied)
                && indices.values().all(|indices| *indices == first);
            if equal {
                break;
            }
            if self.now >= deadline {
                let states: Vec<_> = self.machines.iter().map(|m| self.describe(m)).collect();
                return self.fail(format!("the members do not become equal: {}", states.join("; ")));
            }
        }
        for machine in self.up() {
            self.compare_state(machine)?;
        }
        Ok(())
    }

    /// What clients have asked for under faults is answered or given up.
    fn wait_for_clients(&mut self) -> Checked {
        let deadline = self.now + 5 * SECOND;
        while (0..self.clients.len()).any(|client| !self.is_idle(client)) {
            if self.now >= deadline {
                return self.fail("clients do not give up");
            }
            self.run_until(self.now + 50 * MS)?;
        }
        Ok(())
    }

    /// Every key is read through every member.
    fn read_all(&mut self) -> Checked {
        for machine in self.up() {
            for key in 0..Simulation::keys() {
                self.ask_for_last_read(0, machine, key)?;
                let deadline = self.now + 5 * SECOND;
                while !self.is_idle(0) && self.now < deadline {
                    self.run_until(self.now + 50 * MS)?;
                }
                if !self.is_idle(0) {
                    let id = self.machines[machine].id;
                    return self.fail(format!("{id} does not serve a linearizable read though all is well"));
                }
            }
        }
        Ok(())
    }

    /// Every acknowledged write is in every store, at the revision that was acknowledged.
    fn check_acknowledged(&mut self) -> Checked {
        for machine in self.up() {
            let m = &self.machines[machine];
            let Some(member) = &m.member else { continue };
            let store = member.node().store();
            for (key, value, revision) in &self.acknowledged {
                if *revision < store.compact_revision() {
                    continue;
                }
                let request = RangeRequest { key: key.clone().into(), revision: *revision, ..Default::default() };
                let found = store.range(&request).ok().and_then(|result| {
                    let kv = result.into_response().kvs.into_iter().next()?;
                    (kv.mod_revision == *revision && kv.value == value.to_string()).then_some(())
                });
                if found.is_none() {
                    let id = m.id;
                    return self
                        .fail(format!("{id} has lost an acknowledged write: {key} = {value} at revision {revision}"));
                }
            }
        }
        Ok(())
    }

    /// All clients have been answered or have given up, so no member may hold anything for them.
    fn check_nobody_waits(&self) -> Checked {
        for m in &self.machines {
            let waiting = m.member.as_ref().map_or(0, |member| member.node().pending_proposals());
            if waiting > 0 {
                return self.fail(format!("{waiting} proposals still wait on {}, though no client does", m.id));
            }
            let databases = m.member.as_ref().map_or(0, |member| member.databases_under_way());
            if databases > 0 {
                return self.fail(format!("{} waits for {databases} databases to arrive, though none is sent", m.id));
            }
        }
        Ok(())
    }

    /// Nobody renews leases any more: all must end.
    fn wait_for_leases(&mut self) -> Checked {
        let until = self.now.max(self.checks.leases.latest_promise()) + LEASE_SLACK;
        self.run_until(until)?;
        let up = self.up();
        for machine in &up {
            let m = &self.machines[*machine];
            let Some(member) = &m.member else { continue };
            let left = member.node().lessor().lock().ids();
            if let Some(id) = left.first() {
                let text = format!("lease {id} is still there on {}, though nobody has renewed it for long", m.id);
                return self.fail(text);
            }
        }
        self.wait_until_equal()
    }
}
