//! What follows if nothing goes wrong any more.
//!
//! From every state that is reached, the only fair way on is taken: all members are up and apply all there is, each
//! sends what it has to, the leader appends it. Nothing is chosen, so that no cycle can hide in a choice; what is late
//! leads to another state that is reached, and from there the same is asked.

use membership::Cluster;

use crate::{
    ask::Ask,
    canon::NEXT,
    entry::Entry,
    state::{Decided, Sent, State},
    step::Gates,
    view::{Role, Values, View, id},
};

impl Gates {
    /// Whether the gate comes to what all voters' flags say: with the flags of now, and with all flags on.
    pub fn comes_on(&self, state: &State) -> bool {
        let end = state.end();
        let slots = || 0..end.seats.len();
        let now = slots().map(|slot| state.slots[slot].flags.0).collect();
        let all_on = slots().map(|_| (1 << self.config.features) - 1).collect();
        [now, all_on]
            .into_iter()
            .all(|flags| self.ask.fair.get((end.clone(), flags), |(_, flags)| self.comes_to(end, flags)))
    }

    fn comes_to(&self, view: &View, flags: &[u8]) -> bool {
        (self.ask.prepare)();
        let voters = view.members().filter(|slot| view.seats[*slot].role == Role::Voter);
        let expected = voters.map(|slot| Values(flags[slot]).on()).fold(u8::MAX, |all, on| all & on);
        let mut run = Run {
            ask: &self.ask,
            features: self.config.features,
            cluster: view.cluster(0, self.config.features),
            index: NEXT,
        };
        if !view.has_gate() {
            run.append(Entry::Version(8));
        }
        // A proposal each, and a decision after each: more would mean that it goes round in circles.
        for _ in 0..=2 * view.members().count() {
            let next = view.members().find_map(|slot| run.next_entry(slot, Values(flags[slot])));
            match next {
                None => return View::of(&run.cluster, view.seats.len()).enabled == expected,
                Some(entry) if !run.append(entry) => return false,
                Some(_) => {}
            }
        }
        false
    }
}

struct Run<'a> {
    ask: &'a Ask,
    features: u32,
    cluster: Cluster,
    index: u8,
}

impl Run<'_> {
    /// What this member sends; any may lead.
    fn next_entry(&mut self, slot: usize, flags: Values) -> Option<Entry> {
        self.cluster.local = id(slot);
        let proposal = self.cluster.plan_proposal(&flags.to_map(self.features));
        let proposal = proposal.map(|proposal| Entry::Proposal(slot, Sent::of(&proposal, 0)));
        proposal.or_else(|| Some(Entry::Decision(Decided::of(self.minor(), &self.cluster.decide_gate()?))))
    }

    /// Whether the entry was let into the log, and not refused there.
    fn append(&mut self, entry: Entry) -> bool {
        self.index += 1;
        let may = self.ask.may_append(entry, vec![self.minor()]);
        may && entry.apply(&mut self.cluster, self.index.into(), self.features)
    }

    fn minor(&self) -> u8 {
        self.cluster.version().map_or(0, |version| version.minor as u8)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_with_a_gate_begin_at_eight() {
        assert_eq!(membership::gate::GATE_SINCE, crate::view::version(8));
    }
}
