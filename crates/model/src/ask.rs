//! The questions that members ask the code that is checked.

use membership::{VersionsAhead, may_log};

use crate::{
    apply::{self, Applied},
    config::Config,
    entry::Entry,
    memo::Memo,
    state::{Decided, Fault, Sent},
    view::{Values, View, version},
};

/// Asks, and remembers the answers.
pub(crate) struct Ask {
    /// Called before the code that is checked is used, on every thread: tests break a rule by it.
    pub prepare: fn(),
    features: u32,
    may_log: Memo<(u8, Entry), bool>,
    may_append: Memo<(Vec<u8>, Entry), bool>,
    append: Memo<(View, Entry), Result<Applied, Fault>>,
    plan: Memo<(View, usize, Values), Option<Sent>>,
    decide: Memo<(View, usize), Option<Decided>>,
    /// Whether a view passed a check, by the check's number.
    pub checks: Memo<(View, u8), bool>,
    pub fair: Memo<(View, Vec<u8>), bool>,
}

impl Ask {
    pub(crate) fn new(config: &Config, prepare: fn()) -> Ask {
        let (may_log, may_append, append) = Default::default();
        let (plan, decide, checks, fair) = Default::default();
        Ask { prepare, features: config.features, may_log, may_append, append, plan, decide, checks, fair }
    }

    /// Whether the log may hold this entry at a cluster version.
    pub(crate) fn may_log(&self, entry: Entry, minor: u8) -> bool {
        self.may_log.get((minor, entry), |_| may_log(&entry.encode(self.features), Some(version(minor))).is_ok())
    }

    /// Whether a leader appends it that has applied the first of these versions and has the others in its log.
    pub(crate) fn may_append(&self, entry: Entry, minors: Vec<u8>) -> bool {
        self.may_append.get((minors, entry), |(minors, _)| {
            (self.prepare)();
            let mut ahead = VersionsAhead::default();
            minors[1..].iter().for_each(|minor| ahead.expect(&Entry::Version(*minor).encode(self.features)));
            ahead.may_log(&entry.encode(self.features), Some(version(minors[0]))).is_ok()
        })
    }

    /// What follows from this entry at the end of the log.
    pub(crate) fn append(&self, view: &View, entry: Entry) -> Result<Applied, Fault> {
        self.append.get((view.clone(), entry), |_| {
            (self.prepare)();
            apply::append(view, entry, self.features)
        })
    }

    /// What this member has to publish.
    pub(crate) fn plan(&self, view: &View, slot: usize, flags: Values) -> Option<Sent> {
        self.plan.get((view.clone(), slot, flags), |_| {
            (self.prepare)();
            let proposal = view.cluster(slot, self.features).plan_proposal(&flags.to_map(self.features))?;
            Some(Sent::of(&proposal, 0))
        })
    }

    /// What this member decides if it leads.
    pub(crate) fn decide(&self, view: &View, slot: usize) -> Option<Decided> {
        self.decide.get((view.clone(), slot), |_| {
            (self.prepare)();
            let decision = view.cluster(slot, self.features).decide_gate()?;
            Some(Decided::of(view.minor, &decision))
        })
    }
}
