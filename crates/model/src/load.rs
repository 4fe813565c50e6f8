//! The database of a state, as a start or a received snapshot finds it: whole, of another life, or damaged.

use crate::{
    step::Gates,
    view::{Role, View, id},
};

const APPLIED: u64 = 250;
/// The first in which somebody may lead.
const TERM: u64 = 2;

impl Gates {
    /// A restart and a snapshot give every member what it had.
    pub fn loads_as_it_was(&self, view: &View) -> bool {
        view.members().all(|local| {
            let mut cluster = view.cluster(local, self.config.features);
            cluster.mend_gate(APPLIED, TERM).is_empty() && View::of(&cluster, view.seats.len()) == *view
        })
    }

    /// A restored cluster begins with neither gate nor proposals, also if its members have the ids of before. Its log has
    /// the members' entries alone, whose number is below the gate's index, or, if that was young, not.
    pub fn restores_empty(&self, view: &View) -> bool {
        [(0, TERM), (APPLIED, TERM - 1)].into_iter().all(|(applied, term)| {
            let mut cluster = view.cluster(0, self.config.features);
            cluster.mend_gate(applied, term);
            cluster.gate().is_unused()
        })
    }

    /// Whatever of it is damaged, what is loaded is sound.
    pub fn mends(&self, view: &View) -> bool {
        let minors = self.config.minors.iter().map(|minor| View { minor: *minor, ..view.clone() });
        let seats = || 0..view.seats.len();
        let without_proposal = seats().map(|at| with(view, |view| view.seats[at].stored = None));
        let without_member = seats().map(|at| with(view, |view| view.seats[at].role = Role::Removed));
        let ahead = seats().map(|at| {
            with(view, |view| {
                view.seats[at].stored = view.seats[at].stored.map(|s| crate::view::Stored { index: 255, ..s })
            })
        });
        let off = seats().map(|at| {
            with(view, |view| {
                view.seats[at].stored =
                    view.seats[at].stored.map(|s| crate::view::Stored { values: Default::default(), ..s });
            })
        });
        minors.chain(without_proposal).chain(without_member).chain(ahead).chain(off).all(|view| self.loads_sound(&view))
    }

    fn loads_sound(&self, view: &View) -> bool {
        let mut cluster = view.cluster(0, self.config.features);
        cluster.mend_gate(APPLIED, TERM);
        let loaded = View::of(&cluster, view.seats.len());
        let is_young = cluster.gate().proposals.values().all(|proposal| proposal.index <= APPLIED);
        let has_owners = (0..view.seats.len()).filter(|at| loaded.seats[*at].stored.is_some());
        let has_owners = has_owners.map(id).all(|id| cluster.member(id).is_some());
        let is_below = loaded.has_gate() || cluster.gate().is_unused();
        crate::check::follows(&loaded) && is_young && has_owners && is_below
    }
}

fn with(view: &View, damage: impl FnOnce(&mut View)) -> View {
    let mut view = view.clone();
    damage(&mut view);
    view
}
