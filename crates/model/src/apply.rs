//! Applies an entry as every member does, and looks at what it did.

use membership::Cluster;

use crate::{
    canon::NEXT,
    entry::Entry,
    state::Fault,
    view::{Role, Seat, View},
};

/// What an entry did.
#[derive(Clone)]
pub(crate) struct Applied {
    pub view: View,
    /// It was not refused.
    pub is_accepted: bool,
}

/// The view after an entry that is appended at the end of the log; the same for every member, or there is a fault.
pub(crate) fn append(view: &View, entry: Entry, features: u32) -> Result<Applied, Fault> {
    // A member that the entry adds has no state of its own yet.
    let mut clusters = view.members().map(|local| {
        let mut cluster = view.cluster(local, features);
        let is_accepted = entry.apply(&mut cluster, NEXT.into(), features);
        (cluster, is_accepted)
    });
    let Some((first, is_accepted)) = clusters.next() else { return Err(Fault::MembersDiffer) };
    let is_same = |(other, accepted): (Cluster, bool)| {
        other.gate() == first.gate() && accepted == is_accepted && other.members().eq(first.members())
    };
    if !clusters.all(is_same) {
        return Err(Fault::MembersDiffer);
    }
    let after = View::of(&first, view.seats.len());
    judge(view, &after, entry, is_accepted)?;
    Ok(Applied { view: after, is_accepted })
}

/// The rules that are about a step, and cannot be seen in the state that it leads to.
fn judge(before: &View, after: &View, entry: Entry, is_accepted: bool) -> Result<(), Fault> {
    let (on, off) = (after.enabled & !before.enabled, before.enabled & !after.enabled);
    if on != 0 && !matches!(entry, Entry::Decision(..)) {
        return Err(Fault::CameOnWithoutDecision);
    }
    if off != 0 && agreed(after).is_some_and(|agreed| agreed & off != 0) {
        return Err(Fault::WentOffWithoutCause);
    }
    judge_relevant(before, after)?;
    match entry {
        Entry::Proposal(_, sent) if is_accepted && sent.minor != before.minor => Err(Fault::OtherVersionStored),
        Entry::Decision(decided) if before != after && decided.from != before.relevant => Err(Fault::StaleDecision),
        Entry::Version(_) if before.minor != after.minor && keeps_something(after) => Err(Fault::VersionKeptSomething),
        Entry::Promote(slot) if is_accepted => judge_promotion(before, off, slot),
        _ => Ok(()),
    }
}

fn judge_promotion(before: &View, off: u8, slot: usize) -> Result<(), Fault> {
    let is_used = before.relevant != 0;
    let stored = before.seats[slot].stored;
    match stored.filter(|stored| stored.minor == before.minor) {
        _ if off != 0 => Err(Fault::PromotionTurnedOff),
        None if before.has_gate() && is_used => Err(Fault::PromotedWithoutProposal),
        _ => Ok(()),
    }
}

/// The relevant index moves if the decision could be another one now, and only with proposals, voters or the version.
fn judge_relevant(before: &View, after: &View) -> Result<(), Fault> {
    if !after.has_gate() {
        return Ok(());
    }
    let voters = |view: &View| {
        view.seats.iter().map(|seat| (seat.role == Role::Voter).then_some(seat.stored)).collect::<Vec<_>>()
    };
    let must = before.minor != after.minor || voters(before) != voters(after);
    let may = must || before.seats != after.seats;
    let has = after.relevant == NEXT;
    if (must && !has) || (has && !may) { Err(Fault::RelevantIndex) } else { Ok(()) }
}

fn keeps_something(view: &View) -> bool {
    view.enabled != 0
        || view.seats.iter().any(|seat| seat.stored.is_some())
        || (!view.has_gate() && (view.relevant != 0 || view.changed != 0))
}

/// What all voters say on for, by the words of the specification; `None` if one has not proposed for this version.
pub(crate) fn agreed(view: &View) -> Option<u8> {
    let says = |seat: &Seat| seat.stored.filter(|stored| stored.minor == view.minor).map(|s| s.values.on());
    let all = view.voters().map(says).try_fold(u8::MAX, |all, says| Some(all & says?));
    all.filter(|_| view.has_gate())
}
