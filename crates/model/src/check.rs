//! What is checked in every state, and the exploration itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::{Duration, Instant},
};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use crate::{
    apply::agreed,
    canon::VOID,
    config::Config,
    entry::Entry,
    state::{Decided, Fault, Sent, State},
    step::Gates,
    view::{Seat, Values, View},
};

macro_rules! never {
    ($name:literal, $($fault:ident)|+) => {
        Property::always($name, |_, state: &State| !matches!(state.fault, $(Some(Fault::$fault))|+))
    };
}

pub(crate) fn properties() -> Vec<Property<Gates>> {
    vec![
        Property::always(
            "what is on, every voter's proposal for this version says on",
            |model: &Gates, state: &State| state.views.iter().all(|view| model.check(view, 0, Gates::check_says_so)),
        ),
        never!("equal index, equal state on all members", MembersDiffer),
        Property::always("a restart or a snapshot gives the state of its index", |model: &Gates, state: &State| {
            model.check(state.end(), 1, Gates::loads_as_it_was)
        }),
        Property::always(
            "a restored database begins with neither gate nor proposals",
            |model: &Gates, state: &State| model.check(state.end(), 2, Gates::restores_empty),
        ),
        Property::always("a damaged database is put right", |model: &Gates, state: &State| {
            model.check(state.end(), 3, Gates::mends)
        }),
        never!("nobody sends what its cluster version does not allow", NewerSent),
        never!("nothing newer than the log's cluster version is appended", NewerAppended),
        Property::always("without faults, what all voters want on comes on", |model: &Gates, state: &State| {
            state.fault.is_some() || model.comes_on(state)
        }),
        never!("on by a decision alone", CameOnWithoutDecision),
        never!("off only where agreement ends", WentOffWithoutCause),
        never!("a promotion turns nothing off", PromotionTurnedOff),
        never!("who is promoted has proposed", PromotedWithoutProposal),
        never!("a late proposal does not bring old flags back", OldFlagsCameBack),
        never!("a proposal counts at its own version alone", OtherVersionStored),
        never!("a stale decision changes nothing", StaleDecision),
        never!("the relevant index moves with voters, proposals and version", RelevantIndex),
        never!("another version leaves neither gate nor proposals", VersionKeptSomething),
        Property::always("only members have proposals", |_, state: &State| {
            state.end().seats.iter().all(|seat| seat.role.is_member() || seat.stored.is_none())
        }),
        Property::always("a new leader decides what the old one would", |model: &Gates, state: &State| {
            model.check(state.end(), 4, Gates::leaders_agree)
        }),
        Property::always(
            "what is void, or what no sound member sends, has no effect",
            |model: &Gates, state: &State| model.check(state.end(), 5, Gates::void_is_void),
        ),
        Property::sometimes("seen: on", |_, state: &State| state.end().enabled != 0),
        Property::sometimes("seen: all agree and nothing is decided", |_, state: &State| {
            agreed(state.end()).is_some_and(|agreed| agreed & !state.end().enabled != 0)
        }),
    ]
}

/// The invariant, in the words of the specification and without the code that is checked.
pub(crate) fn follows(view: &View) -> bool {
    view.enabled == 0 || agreed(view).is_some_and(|agreed| view.enabled & !agreed == 0)
}

impl Gates {
    /// Each check has a number of its own.
    fn check(&self, view: &View, number: u8, check: fn(&Gates, &View) -> bool) -> bool {
        self.ask.checks.get((view.clone(), number), |_| {
            (self.ask.prepare)();
            check(self, view)
        })
    }

    fn check_says_so(&self, view: &View) -> bool {
        follows(view) && view.cluster(0, self.config.features).check_gate().is_ok()
    }

    /// Whoever leads decides the same; and if what is agreed on is on, nothing.
    fn leaders_agree(&self, view: &View) -> bool {
        let mut decisions = view.members().map(|local| view.cluster(local, self.config.features).decide_gate());
        let Some(first) = decisions.next() else { return true };
        let is_settled = agreed(view).is_none_or(|agreed| agreed == view.enabled);
        first.is_none() == is_settled && decisions.all(|other| other == first)
    }

    /// Messages that can have no effect in any state from here on, whether anyone has sent them or not.
    fn void_is_void(&self, view: &View) -> bool {
        let all = (1 << self.config.features) - 1;
        let others = self.config.minors.iter().filter(|minor| **minor != view.minor);
        let of_others = others.map(|minor| Decided { minor: *minor, from: view.relevant, on: all });
        let stale = self.config.minors.iter().map(|minor| Decided { minor: *minor, from: VOID, on: all });
        let not_agreed = Decided { minor: view.minor, from: view.relevant, on: all };
        let not_agreed = Some(not_agreed).filter(|_| agreed(view) != Some(all));
        let mut decisions = of_others.chain(stale).chain(not_agreed).map(Entry::Decision);
        let mut slots = 0..view.seats.len();
        slots.all(|slot| self.void_proposals(view, slot).all(|entry| self.has_no_effect(view, entry)))
            && decisions.all(|entry| self.has_no_effect(view, entry))
    }

    /// Proposals for another version, or in place of what is no longer there. Who is removed never comes back, and
    /// proposes nothing at all.
    fn void_proposals(&self, view: &View, slot: usize) -> impl Iterator<Item = Entry> {
        let Seat { role, stored } = view.seats[slot];
        let predecessor = stored.map_or(view.since, |stored| stored.index);
        let now = view.minor;
        let is_void = move |minor, replaces| !role.is_member() || minor != now || replaces != predecessor;
        let indices = [VOID, view.since, predecessor];
        let flags = self.flags().collect::<Vec<_>>();
        let minors = self.config.minors.clone().into_iter();
        let pairs = minors.flat_map(move |minor| indices.map(|replaces| (minor, replaces)));
        let void = pairs.filter(move |(minor, replaces)| is_void(*minor, *replaces));
        let sent = void.flat_map(move |(minor, replaces)| {
            let sent = |values: &Values| Sent { minor, replaces, values: *values, life: 0 };
            flags.iter().map(sent).collect::<Vec<_>>()
        });
        sent.map(move |sent| Entry::Proposal(slot, sent))
    }

    fn has_no_effect(&self, view: &View, entry: Entry) -> bool {
        let mut cluster = view.cluster(0, self.config.features);
        !entry.apply(&mut cluster, 250, self.config.features) && View::of(&cluster, view.seats.len()) == *view
    }
}

/// The names of all that is checked.
pub(crate) fn names() -> Vec<&'static str> {
    properties().iter().filter(|p| p.expectation == Expectation::Always).map(|p| p.name).collect()
}

/// What an exploration came to.
pub struct Report {
    /// States that differ.
    pub states: usize,
    /// Steps that were taken.
    pub steps: usize,
    pub depth: usize,
    pub time: Duration,
    /// What does not hold, with the way there.
    pub broken: Vec<(&'static str, String)>,
    /// What was to be seen and was not.
    pub unseen: Vec<&'static str>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { states, steps, depth, time, .. } = self;
        write!(f, "{states} states, {steps} steps, longest way {depth}, {:.1} s", time.as_secs_f64())?;
        self.broken.iter().try_for_each(|(name, way)| write!(f, "\nbroken: {name}\n{way}"))?;
        self.unseen.iter().try_for_each(|name| write!(f, "\nnot {name}"))
    }
}

/// Explores all of it, or up to the first thing that does not hold.
pub fn explore(config: Config, threads: usize, prepare: fn()) -> Report {
    explore_for(config, threads, prepare, None)
}

/// Explores all of it, or up to the first time that this one does not hold, if one is named.
#[expect(clippy::disallowed_methods, reason = "the report says how long the exploration took")]
pub fn explore_for(config: Config, threads: usize, prepare: fn(), only: Option<&str>) -> Report {
    let begin = Instant::now();
    let model = Gates::new(config, prepare);
    let named = names().into_iter().filter(|name| Some(*name) == only).collect::<BTreeSet<_>>();
    let end = if only.is_none() { HasDiscoveries::AnyFailures } else { HasDiscoveries::AllOf(named) };
    let checker = model.checker().threads(threads).finish_when(end).spawn_bfs().join();
    let mut broken = Vec::new();
    let mut seen = Vec::new();
    for (name, path) in checker.discoveries().into_iter().collect::<BTreeMap<_, _>>() {
        match checker.model().property(name).expectation {
            Expectation::Always => {
                let last = path.last_state().clone();
                let steps = path.into_actions().iter().map(|action| format!("  {action:?}\n")).collect::<String>();
                broken.push((name, format!("{steps}  {last:?}")));
            }
            _ => seen.push(name),
        }
    }
    let wanted = properties().into_iter().filter(|p| p.expectation == Expectation::Sometimes).map(|p| p.name);
    let unseen = wanted.filter(|name| !seen.contains(name)).collect();
    Report {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        time: begin.elapsed(),
        broken,
        unseen,
    }
}
