//! What follows from what happens.

use stateright::{Model, Property};

use crate::{
    action::{Action, proposal},
    ask::Ask,
    canon::canonical,
    check,
    config::Config,
    entry::Entry,
    state::{Fault, Sent, Slot, State},
    view::Values,
};

/// The protocol, as a model.
pub struct Gates {
    pub(crate) config: Config,
    pub(crate) ask: Ask,
}

impl Model for Gates {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let members = self.config.voters + self.config.learners;
        let mut all = vec![Vec::new()];
        for _ in 0..members {
            let longer = |flags: &Vec<Values>| {
                let flags = flags.clone();
                self.flags().map(move |last| [flags.clone(), vec![last]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        let mut states = Vec::new();
        for flags in all {
            let state = self.send(State::first(&self.config, &flags));
            if !states.contains(&state) {
                states.push(state);
            }
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.fault.is_some() {
            return;
        }
        self.messages(state, actions);
        self.environment(state, actions);
        let members = || state.end().members();
        let end = state.views.len() as u8 - 1;
        for member in members() {
            let at = state.slots[member].at;
            if at < end {
                actions.push(Action::Apply { member });
            }
            let ahead = members().filter(|from| state.slots[*from].at > at + 1);
            actions.extend(ahead.map(|from| Action::Install { member, from }));
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Propose { member, sent, .. } => {
                let is_accepted = self.append(&mut state, proposal(member, sent));
                if is_accepted {
                    note_life(&mut state, member, &sent);
                }
            }
            Action::Decide { decided, .. } => _ = self.append(&mut state, Entry::Decision(decided)),
            Action::SetVersion { minor } => {
                state.left.versions -= 1;
                self.append(&mut state, Entry::Version(minor));
            }
            Action::AddVoter { member, flags } => self.add(&mut state, member, flags, false),
            Action::AddLearner { member, flags } => self.add(&mut state, member, flags, true),
            Action::Remove { member } => {
                state.left.removals -= 1;
                self.append(&mut state, Entry::Remove(member));
            }
            Action::Promote { member } => {
                state.left.promotions -= 1;
                self.append(&mut state, Entry::Promote(member));
            }
            Action::Crash { member, flags, at } => crash(&mut state, member, flags, at),
            Action::Apply { member } => state.slots[member].at += 1,
            Action::Install { member, from } => state.slots[member].at = state.slots[from].at,
        }
        let state = self.send(state);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Gates>> {
        check::properties()
    }
}

impl Gates {
    pub fn new(config: Config, prepare: fn()) -> Gates {
        let ask = Ask::new(&config, prepare);
        Gates { config, ask }
    }

    /// Whether the entry was not refused where it was applied.
    fn append(&self, state: &mut State, entry: Entry) -> bool {
        if !self.ask.may_log(entry, state.end().minor) {
            state.fault = Some(Fault::NewerAppended);
            return false;
        }
        match self.ask.append(state.end(), entry) {
            Err(fault) => {
                state.fault = Some(fault);
                false
            }
            Ok(applied) => {
                if applied.view != *state.end() {
                    // Whoever does not lag applies what is appended at once.
                    if self.config.lag {
                        state.views.push(applied.view);
                    } else {
                        state.views = vec![applied.view];
                    }
                }
                applied.is_accepted
            }
        }
    }

    fn add(&self, state: &mut State, slot: usize, flags: Values, as_learner: bool) {
        state.left.joins -= 1;
        self.append(state, Entry::Add { member: slot, as_learner });
        let at = state.views.len() as u8 - 1;
        state.slots[slot] = Slot { flags, at, ..Slot::default() };
    }

    /// Everyone sends what it can, as often as it likes.
    fn send(&self, mut state: State) -> State {
        if state.fault.is_some() {
            return state;
        }
        for slot in state.end().members().collect::<Vec<_>>() {
            self.publish(&mut state, slot);
            self.decide(&mut state, slot);
        }
        canonical(state, &self.config)
    }

    fn publish(&self, state: &mut State, slot: usize) {
        let flags = state.slots[slot].flags;
        let Some(sent) = self.ask.plan(state.view_of(slot), slot, flags) else { return };
        self.check_sent(state, slot, Entry::Proposal(slot, sent));
        let life = state.slots[slot].life;
        state.slots[slot].sent.push(Sent { life, ..sent });
    }

    fn decide(&self, state: &mut State, slot: usize) {
        let Some(decided) = self.ask.decide(state.view_of(slot), slot) else { return };
        self.check_sent(state, slot, Entry::Decision(decided));
        state.decided.push(decided);
    }

    fn check_sent(&self, state: &mut State, slot: usize, entry: Entry) {
        if !self.ask.may_log(entry, state.view_of(slot).minor) {
            state.fault = Some(Fault::NewerSent);
        }
    }
}

/// A restart with the same flags is no new life.
fn crash(state: &mut State, member: usize, flags: Values, at: u8) {
    state.left.crashes -= 1;
    let slot = &mut state.slots[member];
    slot.life += u8::from(slot.flags != flags);
    (slot.flags, slot.at) = (flags, at);
}

/// Flags of an older life must not follow those of a newer one.
fn note_life(state: &mut State, member: usize, sent: &Sent) {
    let slot = &mut state.slots[member];
    if sent.life < slot.stored_life {
        state.fault = Some(Fault::OldFlagsCameBack);
    }
    slot.stored_life = sent.life;
}
