//! A state of the whole cluster: the end of the log, its members, and what is on its way.

use crate::{
    config::{Config, Counts},
    view::{Role, Seat, Values, View},
};

/// A proposal that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent {
    pub minor: u8,
    pub replaces: u8,
    pub values: Values,
    /// Which life of its member sent it. No member knows; it is there to be checked.
    pub life: u8,
}

/// A decision that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decided {
    pub minor: u8,
    pub from: u8,
    pub on: u8,
}

/// One member, or the place for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Slot {
    pub flags: Values,
    /// Counts changes of the flags.
    pub life: u8,
    /// The newest life of which a proposal was stored.
    pub stored_life: u8,
    /// How far it has applied: a place in [`State::views`].
    pub at: u8,
    /// In order.
    pub sent: Vec<Sent>,
}

/// What an entry did that it must never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    NewerSent,
    NewerAppended,
    MembersDiffer,
    CameOnWithoutDecision,
    WentOffWithoutCause,
    PromotionTurnedOff,
    PromotedWithoutProposal,
    OldFlagsCameBack,
    OtherVersionStored,
    StaleDecision,
    RelevantIndex,
    VersionKeptSomething,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The replicated state from where the last member is to the end of the log; entries that changed nothing are
    /// left out.
    pub views: Vec<View>,
    pub slots: Vec<Slot>,
    /// In order.
    pub decided: Vec<Decided>,
    /// What may still happen.
    pub left: Counts,
    pub fault: Option<Fault>,
}

impl State {
    /// A cluster of these flags before anyone has proposed.
    pub fn first(config: &Config, flags: &[Values]) -> State {
        let mut seats = vec![Seat::default(); config.slots()];
        seats[..config.voters].iter_mut().for_each(|seat| seat.role = Role::Voter);
        seats[config.voters..flags.len()].iter_mut().for_each(|seat| seat.role = Role::Learner);
        let mut slots = vec![Slot::default(); config.slots()];
        slots.iter_mut().zip(flags).for_each(|(slot, flags)| slot.flags = *flags);
        let first = u8::from(config.minors[0] >= 8);
        let view = View { minor: config.minors[0], enabled: 0, changed: 0, relevant: first, since: first, seats };
        State { views: vec![view], slots, decided: Vec::new(), left: config.counts, fault: None }
    }

    pub fn end(&self) -> &View {
        &self.views[self.views.len() - 1]
    }

    /// The replicated state at the end of the log in words, without indices.
    pub fn outline(&self) -> String {
        let View { minor, enabled, seats, .. } = self.end();
        let seats = seats.iter().map(|seat| (seat.role, seat.stored.map(|stored| (stored.minor, stored.values))));
        format!("3.{minor} {enabled:b} {:?}", seats.collect::<Vec<_>>())
    }

    /// The replicated state as this member has it.
    pub fn view_of(&self, slot: usize) -> &View {
        &self.views[usize::from(self.slots[slot].at)]
    }
}
