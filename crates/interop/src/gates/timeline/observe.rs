//! Members asked all the time, from outside: when was what first seen.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde_json::json;

use super::{
    super::{
        super::{
            cluster::{group::Group, member::Member},
            load::number,
        },
        book::{Change, Seen},
        gated::INCREMENT,
        log::Ours,
    },
    Run, Span, Switch,
};

const LOOK: Duration = Duration::from_millis(8);

/// When things were first seen, by any member.
#[derive(Default)]
struct First {
    /// By index of the last change of voters, proposals or version.
    relevant: BTreeMap<u64, f64>,
    /// By index of the gate.
    gates: BTreeMap<u64, f64>,
    /// The leader, by term.
    leaders: BTreeMap<u64, (f64, u64)>,
}

pub(super) struct Observers {
    stop: Arc<AtomicBool>,
    first: Arc<Mutex<First>>,
    threads: Vec<JoinHandle<()>>,
    /// Names by id, in the order of lanes.
    names: Vec<(u64, String)>,
}

impl Observers {
    pub(super) fn start(group: &Group, clock: Instant) -> Result<Observers> {
        let (stop, first) = (Arc::<AtomicBool>::default(), Arc::<Mutex<First>>::default());
        let mut names = Vec::new();
        for (n, member) in group.members.iter().enumerate() {
            names.push((group.id(n)?, member.name.clone()));
        }
        let observe = |member: &Member| {
            let (member, stop, first) = (member.twin(), stop.clone(), first.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    look(&member, clock, &first);
                    thread::sleep(LOOK);
                }
            })
        };
        let threads = group.members.iter().map(observe).collect();
        Ok(Observers { stop, first, threads, names })
    }

    /// Ends the looking. The log of a member says which proposals there were.
    pub(super) fn finish(self, mut run: Run, changes: &[Change], log: &[(u64, Ours)]) -> Result<Run> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow!("an observer panicked"))?;
        }
        let first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (index, member, on) in taken(log) {
            // What was there before the first look did not arrive in this figure.
            let seen = first.relevant.range(index..).next().filter(|_| first.relevant.range(..index).next().is_some());
            let lane = self.names.iter().position(|(id, _)| *id == member);
            if let (Some((_, at)), Some(n)) = (seen, lane) {
                run.lanes[n].proposals.push((*at, index, on));
            }
        }
        let name = |id: u64| self.names.iter().find(|(of, _)| *of == id).map(|(_, name)| name.clone());
        run.leaders = leaders(&first.leaders, run.end, &name);
        run.gate = changes.iter().filter_map(|change| switch(change, &first.gates, &name)).collect();
        Ok(run)
    }
}

/// Proposals that took effect: index, member and value. A doubled one names a predecessor that is gone.
fn taken(log: &[(u64, Ours)]) -> Vec<(u64, u64, bool)> {
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    let mut all = Vec::new();
    for (index, what) in log {
        let Ours::Proposal { member, proposal } = what else { continue };
        if last.get(member).copied().unwrap_or(0) == proposal.replaces {
            last.insert(*member, *index);
            let on = proposal.features.iter().any(|feature| feature.name == INCREMENT && feature.enabled);
            all.push((*index, *member, on));
        }
    }
    all
}

/// Members that are down are ignored.
fn look(member: &Member, clock: Instant, first: &Mutex<First>) {
    let Ok(seen) = Seen::ask(member) else { return };
    let at = clock.elapsed().as_secs_f64();
    let leader = leader(member).unwrap_or_default();
    let mut first = first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // Threads race each other to this place.
    let earliest = |map: &mut BTreeMap<u64, f64>, index| {
        let known = map.entry(index).or_insert(at);
        *known = known.min(at);
    };
    earliest(&mut first.relevant, seen.state.relevant_index);
    earliest(&mut first.gates, seen.state.gate_index);
    if let (term, Some(id)) = leader {
        first.leaders.entry(term).or_insert((at, id));
    }
}

fn leader(member: &Member) -> Result<(u64, Option<u64>)> {
    let status = member.ask("/v3/maintenance/status", &json!({}))?;
    let id = number(&status["leader"])?;
    Ok((number(&status["raftTerm"])?, (id != 0).then_some(id)))
}

fn leaders(terms: &BTreeMap<u64, (f64, u64)>, end: f64, name: &impl Fn(u64) -> Option<String>) -> Vec<Span<String>> {
    let mut spans: Vec<Span<String>> = Vec::new();
    for (at, id) in terms.values() {
        if let Some(last) = spans.last_mut() {
            last.to = *at;
        }
        spans.push(Span { from: *at, to: end, what: name(*id).unwrap_or_default() });
    }
    if let Some(first) = spans.first_mut() {
        first.from = 0.0;
    }
    spans
}

fn switch(change: &Change, seen: &BTreeMap<u64, f64>, name: &impl Fn(u64) -> Option<String>) -> Option<Switch> {
    let at = *seen.get(&change.index)?;
    let cause = match name(change.member) {
        Some(member) => format!("{member}'s proposal"),
        None => "the leader's decision".to_owned(),
    };
    Some(Switch { at, index: change.index, on: change.after.contains(INCREMENT), cause })
}
