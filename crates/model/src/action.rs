//! What can happen in a state.

use crate::{
    entry::Entry,
    state::{Decided, Sent, State},
    step::Gates,
    view::{Role, Values},
};

/// Members are named by their place in the state before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A proposal that this member sent at some time reaches this leader, and is appended.
    Propose {
        member: usize,
        leader: usize,
        sent: Sent,
    },
    /// A decision that was sent at some time reaches this leader, and is appended.
    Decide {
        leader: usize,
        decided: Decided,
    },
    SetVersion {
        minor: u8,
    },
    AddVoter {
        member: usize,
        flags: Values,
    },
    AddLearner {
        member: usize,
        flags: Values,
    },
    Remove {
        member: usize,
    },
    Promote {
        member: usize,
    },
    /// The member crashes and comes back with these flags and the database of this place in the log.
    Crash {
        member: usize,
        flags: Values,
        at: u8,
    },
    /// The member applies one more entry.
    Apply {
        member: usize,
    },
    /// The member gets the database of another one.
    Install {
        member: usize,
        from: usize,
    },
}

impl Gates {
    /// What was sent and is appended now, by whoever leads.
    pub fn messages(&self, state: &State, actions: &mut Vec<Action>) {
        for leader in self.leaders(state) {
            for member in 0..state.slots.len() {
                let sent = state.slots[member].sent.iter().map(|sent| Action::Propose { member, leader, sent: *sent });
                actions.extend(sent.filter(|action| self.may_append(state, action)));
            }
            let decided = state.decided.iter().map(|decided| Action::Decide { leader, decided: *decided });
            actions.extend(decided.filter(|action| self.may_append(state, action)));
        }
    }

    /// What operators do, and what breaks.
    pub fn environment(&self, state: &State, actions: &mut Vec<Action>) {
        let (end, left) = (state.end(), &state.left);
        let in_role = |role| (0..end.seats.len()).filter(move |at| end.seats[*at].role == role);
        if left.versions > 0 {
            let others = self.config.minors.iter().filter(|minor| **minor != end.minor);
            actions.extend(others.map(|minor| Action::SetVersion { minor: *minor }));
        }
        if let Some(member) = in_role(Role::Absent).next().filter(|_| left.joins > 0) {
            actions.extend(self.flags().map(|flags| Action::AddVoter { member, flags }));
            actions.extend(self.flags().map(|flags| Action::AddLearner { member, flags }));
        }
        if left.removals > 0 {
            // Without a voter there is no log.
            let all_but_one = in_role(Role::Voter).filter(|_| end.voters().count() > 1);
            actions.extend(all_but_one.chain(in_role(Role::Learner)).map(|member| Action::Remove { member }));
        }
        if left.promotions > 0 {
            actions.extend(in_role(Role::Learner).map(|member| Action::Promote { member }));
        }
        if left.crashes > 0 {
            for member in end.members() {
                let places = (0..=state.slots[member].at).rev();
                let crash = |at| self.flags().map(move |flags| Action::Crash { member, flags, at });
                actions.extend(places.flat_map(crash));
            }
        }
    }

    /// Who may lead. Members that are at the same place in the log append alike.
    fn leaders(&self, state: &State) -> Vec<usize> {
        let mut places = Vec::new();
        let is_voter = |at: &usize| state.end().seats[*at].role == Role::Voter;
        let mut leaders: Vec<_> = state.end().members().filter(is_voter).collect();
        leaders.retain(|at| {
            let place = state.slots[*at].at;
            let is_first = !places.contains(&place);
            places.push(place);
            is_first
        });
        leaders
    }

    /// Asks the leader as it stands in its log: the versions that are there and that it has not applied count too.
    fn may_append(&self, state: &State, action: &Action) -> bool {
        let (leader, entry) = match action {
            Action::Propose { member, leader, sent } => (*leader, proposal(*member, *sent)),
            Action::Decide { leader, decided } => (*leader, Entry::Decision(*decided)),
            _ => return true,
        };
        let at = usize::from(state.slots[leader].at);
        let mut minors: Vec<_> = state.views[at..].iter().map(|view| view.minor).collect();
        minors.dedup();
        self.ask.may_append(entry, minors)
    }

    /// What an operator can ask for.
    pub fn flags(&self) -> impl Iterator<Item = Values> + use<> {
        let known = (0..1 << self.config.features).map(Values);
        known.chain(self.config.unknowing.then_some(Values::NONE_KNOWN))
    }
}

/// Nobody who applies it knows which life it is of.
pub(crate) fn proposal(member: usize, sent: Sent) -> Entry {
    Entry::Proposal(member, Sent { life: 0, ..sent })
}
