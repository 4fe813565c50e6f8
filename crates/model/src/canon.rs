//! One form for all states that cannot be told apart.
//!
//! Nothing but equality of certain indices is ever asked: a proposal's with the one that a message replaces, the
//! relevant one with the one that a decision was made from. So each kind is counted anew. An index in a message that is not
//! among those at the end of the log will never be met again, because new ones are always higher: all of these are [`VOID`].
//! Which member has which id makes no difference either: they are put in order, unless the configuration asks for all ids.

use crate::{
    config::Config,
    state::{Sent, State},
    view::View,
};

/// The index of the next entry, above all that are in a state.
pub(crate) const NEXT: u8 = 200;
/// An index that no message needs to name any more.
pub(crate) const VOID: u8 = 1;
/// The index of the entry that brought the version at the end of the log.
pub(crate) const SINCE: u8 = 199;

pub(crate) fn canonical(mut state: State, config: &Config) -> State {
    if state.fault.is_some() {
        return state;
    }
    trim(&mut state);
    for slot in 0..state.slots.len() {
        count_proposals(&mut state, slot);
        count_lives(&mut state, slot);
    }
    count_relevant(&mut state);
    count_since(&mut state);
    state.views.iter_mut().for_each(|view| view.changed = view.changed.min(VOID));
    if !config.keep_void {
        forget_void(&mut state);
    }
    if config.symmetry {
        put_in_order(&mut state);
    }
    state
}

/// Members that are not there take no part, and what everyone has applied is forgotten.
fn trim(state: &mut State) {
    let end = state.views.len() as u8 - 1;
    let seats = state.end().seats.clone();
    for (slot, seat) in state.slots.iter_mut().zip(&seats) {
        if !seat.role.is_member() {
            (slot.at, slot.flags, slot.life, slot.stored_life) = (end, Default::default(), 0, 0);
            slot.sent.iter_mut().for_each(|sent| sent.life = 0);
        }
    }
    let behind = state.slots.iter().map(|slot| slot.at).min().unwrap_or(end);
    state.views.drain(..usize::from(behind));
    state.slots.iter_mut().for_each(|slot| slot.at -= behind);
}

fn count_proposals(state: &mut State, slot: usize) {
    let mut count = Count::default();
    for view in &mut state.views {
        if let Some(stored) = &mut view.seats[slot].stored {
            stored.index = count.anew(stored.index);
        }
    }
    let live = state.end().seats[slot].stored.map(|stored| stored.index);
    let since = state.end().since;
    let label = if since == 0 { 0 } else { SINCE };
    for sent in &mut state.slots[slot].sent {
        let found = count.find(sent.replaces).filter(|found| Some(*found) == live);
        sent.replaces = found.unwrap_or(if sent.replaces == since { label } else { VOID });
    }
    tidy(&mut state.slots[slot].sent);
}

fn count_relevant(state: &mut State) {
    let mut count = Count::default();
    state.views.iter_mut().for_each(|view| view.relevant = count.anew(view.relevant));
    let live = state.end().relevant;
    for decided in &mut state.decided {
        decided.from = count.find(decided.from).filter(|found| *found == live).unwrap_or(VOID);
    }
    tidy(&mut state.decided);
}

/// A member that lags behind a change of the version sends what is void at once, so that only the end counts.
fn count_since(state: &mut State) {
    let end = state.end().since;
    for view in &mut state.views {
        view.since = match view.since {
            0 => 0,
            since if since == end => SINCE,
            _ => VOID,
        };
    }
}

/// Only the order of lives counts.
fn count_lives(state: &mut State, slot: usize) {
    let slot = &mut state.slots[slot];
    let mut lives: Vec<_> = slot.sent.iter().map(|sent| sent.life).chain([slot.life, slot.stored_life]).collect();
    tidy(&mut lives);
    let rank = |life| lives.iter().position(|other| *other == life).unwrap_or(0) as u8;
    (slot.life, slot.stored_life) = (rank(slot.life), rank(slot.stored_life));
    slot.sent.iter_mut().for_each(|sent| sent.life = rank(sent.life));
}

fn forget_void(state: &mut State) {
    let View { since, seats, .. } = state.end().clone();
    for (slot, seat) in state.slots.iter_mut().zip(&seats) {
        let can_count = |sent: &Sent| sent.replaces == seat.stored.map_or(since, |stored| stored.index);
        slot.sent.retain(|sent| seat.role.is_member() && can_count(sent));
    }
    state.decided.retain(|decided| decided.from != VOID);
}

fn put_in_order(state: &mut State) {
    let mut order: Vec<usize> = (0..state.slots.len()).collect();
    let key =
        |slot: &usize| (state.views.iter().map(|view| view.seats[*slot]).collect::<Vec<_>>(), &state.slots[*slot]);
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    state.slots = order.iter().map(|slot| state.slots[*slot].clone()).collect();
    for view in &mut state.views {
        view.seats = order.iter().map(|slot| view.seats[*slot]).collect();
    }
}

fn tidy<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

/// New numbers for old ones, in order of appearance. None stays none.
#[derive(Default)]
struct Count(Vec<u8>);

impl Count {
    fn anew(&mut self, index: u8) -> u8 {
        if index != 0 && !self.0.contains(&index) {
            self.0.push(index);
        }
        self.find(index).unwrap_or_default()
    }

    fn find(&self, index: u8) -> Option<u8> {
        if index == 0 {
            return Some(0);
        }
        self.0.iter().position(|other| *other == index).map(|at| at as u8 + VOID + 1)
    }
}
