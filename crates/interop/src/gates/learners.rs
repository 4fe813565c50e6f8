//! Learners: compared when they first come, and again when they are to vote; they never count before that.

use std::{path::Path, thread};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::json;

use super::{
    super::{
        cluster::{
            Ending, Scenario, World,
            faults::learner_id,
            member::{Host, Member},
        },
        wait::until_some,
    },
    book::{Book, Seen},
    gated::{Between, Gated, INCREMENT, OFF, ON, increment, nothing, proposing},
};

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario { name: "learners: joined, promoted, on all the time", short: true, run: promoted },
    Scenario { name: "learners: promoted, leader killed between steps", short: false, run: promoted_under_kills },
    Scenario { name: "learners: refused at first join", short: true, run: refused_join },
    Scenario { name: "learners: differing later, promotion refused", short: true, run: refused_promotion },
];

fn promoted(world: &World, base: &Path) -> Result<Ending> {
    promoted_with(world, base, nothing)
}

fn promoted_under_kills(world: &World, base: &Path) -> Result<Ending> {
    promoted_with(world, base, Gated::kill_leader)
}

fn promoted_with(world: &World, base: &Path, between: Between) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    between(&mut gated)?;
    let n = gated.group.add("m4", &proposing(&world.ours, ON), Host::default(), true)?;
    let id = learner_id(&gated.group, n)?;
    between(&mut gated)?;
    gated.wait("the learner has proposed, and counts for nothing", |seen| {
        seen.is_on(INCREMENT) && seen.said(INCREMENT, id) == Some(true) && seen.voters(INCREMENT).len() == 3
    })?;
    between(&mut gated)?;
    promote_watched(&mut gated, id)?;
    between(&mut gated)?;
    gated.wait("four voters agree", |seen| seen.voters(INCREMENT) == [Some(true); 4] && seen.is_on(INCREMENT))?;
    gated.group.wait_member(n)?;
    gated.group.move_leader(n)?;
    gated.stays(800, "on while the promoted one leads", |seen| seen.is_on(INCREMENT))?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    Ok(Ending::Well(gated.finish()?))
}

/// Promotes, and asks all members all the time meanwhile: it is on in every answer.
fn promote_watched(gated: &mut Gated, id: u64) -> Result<()> {
    let (group, book) = (&gated.group, &mut gated.book);
    let (watched, promoted) = thread::scope(|scope| {
        let promoting = scope.spawn(move || group.promote(id));
        let mut watched = Ok(());
        while watched.is_ok() && !promoting.is_finished() {
            watched = group.members.iter().try_for_each(|member| note_on(book, member));
        }
        (watched, promoting.join())
    });
    watched.context("during the promotion")?;
    promoted.map_err(|_| anyhow!("promoting panicked"))?
}

fn note_on(book: &mut Book, member: &Member) -> Result<()> {
    let seen = Seen::ask(member)?;
    book.note(&seen)?;
    ensure!(seen.is_on(INCREMENT), "it is off: {seen:?}");
    Ok(())
}

fn refused_join(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let differs = proposing(&world.ours, "AtomicIncrement=false,PersistedLeaseCheckpoints=true");
    let n = gated.group.add("m4", &differs, Host::default(), true)?;
    let status = gated.group.members[n].wait_end()?;
    ensure!(!status.success(), "it ended with {status}");
    let log = gated.group.members[n].log_text();
    let said =
        ["AtomicIncrement is true there and false here", "PersistedLeaseCheckpoints is false there and true here"];
    for words in said {
        ensure!(log.contains(words), "it does not say {words:?}:\n{}", gated.group.members[n].log_tail());
    }
    ensure!(!log.contains("panicked at"), "it panicked:\n{}", gated.group.members[n].log_tail());
    // The cluster goes on, and the learner comes in as soon as its flags are fixed.
    increment(&gated.group.members[0], "unharmed")?;
    gated.set_flag(n, ON);
    gated.group.start_as(n, "existing");
    let id = learner_id(&gated.group, n)?;
    gated.wait("it has joined with the right flags", |seen| seen.said(INCREMENT, id) == Some(true))?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    gated.group.members.pop();
    Ok(Ending::Well(format!("{status}; {}", gated.finish()?)))
}

fn refused_promotion(world: &World, base: &Path) -> Result<Ending> {
    let (mut gated, n, id) = with_learner(world, base)?;
    gated.set_flag(n, OFF);
    gated.group.members[n].kill();
    gated.group.restart(n);
    gated.wait("the learner runs on and says off", |seen| {
        seen.is_on(INCREMENT) && seen.said(INCREMENT, id) == Some(false)
    })?;
    let refusal = refusal(&gated, id)?;
    ensure!(refusal.contains("says off for AtomicIncrement"), "refused with {refusal}");
    gated.stays(500, "a refused promotion changes nothing", |seen| seen.is_on(INCREMENT))?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    // It is still there, a learner, and is promoted when it agrees.
    gated.set_flag(n, ON);
    gated.group.members[n].kill();
    gated.group.restart(n);
    let refused = promote_soonest(&mut gated, id)?;
    gated.wait("four voters agree", |seen| seen.voters(INCREMENT) == [Some(true); 4])?;
    gated.expect_history(&["AGREED: AtomicIncrement"])?;
    let text = refusal.rsplit("on; ").next().unwrap_or_default().trim_end_matches(['}', '"']).to_owned();
    Ok(Ending::Well(format!("{text}; refused {refused} times more until it said on; {}", gated.finish()?)))
}

/// Asked for all the time, so that it is taken in the very moment in which the learner agrees; how often it was refused.
fn promote_soonest(gated: &mut Gated, id: u64) -> Result<usize> {
    let mut refused = 0;
    until_some(&format!("{id:x} is promoted"), || {
        if gated.any()?.ask("/v3/cluster/member/promote", &json!({"ID": id.to_string()})).is_ok() {
            return Ok(Some(refused));
        }
        refused += 1;
        let (voters, book) = (&gated.group.members[..3], &mut gated.book);
        voters.iter().try_for_each(|member| note_on(book, member)).context("before the promotion")?;
        Ok(None)
    })
}

fn with_learner(world: &World, base: &Path) -> Result<(Gated, usize, u64)> {
    let mut gated = Gated::agreed(world, base)?;
    let n = gated.group.add("m4", &proposing(&world.ours, ON), Host::default(), true)?;
    let id = learner_id(&gated.group, n)?;
    gated.wait("the learner has proposed", |seen| seen.said(INCREMENT, id) == Some(true))?;
    Ok((gated, n, id))
}

/// Why the promotion is refused, once the learner has caught up.
fn refusal(gated: &Gated, id: u64) -> Result<String> {
    until_some(&format!("{id:x} has caught up"), || {
        match gated.any()?.ask("/v3/cluster/member/promote", &json!({"ID": id.to_string()})) {
            Ok(_) => bail!("{id:x} was promoted"),
            Err(error) if format!("{error:#}").contains("in sync with leader") => Ok(None),
            Err(error) => Ok(Some(format!("{error:#}"))),
        }
    })
}
