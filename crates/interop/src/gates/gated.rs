//! A cluster whose gate is watched: every look at it goes through the book.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::{
    super::{
        base64,
        cluster::{
            World,
            faults::pause,
            group::Group,
            member::{Host, Member},
            verdict,
        },
        load::number,
        server::Program,
        unbase64,
        wait::until_some,
    },
    book::{Book, Change, Seen, history},
};

/// The feature whose flags are changed most.
pub(super) const INCREMENT: &str = "AtomicIncrement";
pub(super) const CHECKPOINTS: &str = "PersistedLeaseCheckpoints";
pub(super) const ON: &str = "AtomicIncrement=true";
pub(super) const OFF: &str = "AtomicIncrement=false";

const LOOK_MS: u64 = 50;

pub(super) struct Gated {
    pub group: Group,
    pub book: Book,
}

/// A program that proposes this.
pub(super) fn proposing(program: &Program, value: &str) -> Program {
    let mut program = program.clone();
    program.flags.push(format!("--cluster-feature-gates={value}"));
    program
}

impl Gated {
    /// Three Lockgate members, each with this value of the flag, that serve; the gate may still be off.
    pub(super) fn found(world: &World, base: &Path, value: &str) -> Result<Gated> {
        let program = proposing(&world.ours, value);
        Gated::of(base, &[&program, &program, &program], &[])
    }

    /// Three that agree on [`INCREMENT`].
    pub(super) fn agreed(world: &World, base: &Path) -> Result<Gated> {
        let mut gated = Gated::found(world, base, ON)?;
        gated.wait_on(INCREMENT)?;
        Ok(gated)
    }

    pub(super) fn of(base: &Path, programs: &[&Program], flags: &[&str]) -> Result<Gated> {
        Ok(Gated { group: Group::found(base, programs, flags)?, book: Book::default() })
    }

    pub(super) fn with(group: Group) -> Gated {
        Gated { group, book: Book::default() }
    }

    /// From its next start on.
    pub(super) fn set_flag(&mut self, n: usize, value: &str) {
        let flags = &mut self.group.members[n].program.flags;
        flags.retain(|flag| !flag.starts_with("--cluster-feature-gates="));
        flags.push(format!("--cluster-feature-gates={value}"));
    }

    /// Restarts a member in order, with another value.
    pub(super) fn restart_with(&mut self, n: usize, value: &str) -> Result<()> {
        self.set_flag(n, value);
        self.group.members[n].stop()?;
        self.group.restart(n);
        self.group.wait_member(n)
    }

    /// kill -9 of whoever leads, and back with the same flags once another leads.
    pub(super) fn kill_leader(&mut self) -> Result<()> {
        let leader = self.group.leader()?;
        self.group.members[leader].kill();
        self.group.leader().context("after the leader was killed")?;
        self.group.restart(leader);
        self.group.wait_member(leader)
    }

    /// kill -9 of whoever leads, and back at once: also where the others alone are no quorum.
    pub(super) fn restart_leader(&mut self) -> Result<()> {
        let leader = self.group.leader()?;
        self.group.members[leader].kill();
        self.group.restart(leader);
        self.group.wait_member(leader)?;
        self.group.leader().context("after the leader was killed").map(drop)
    }

    /// Every running member's answer.
    pub(super) fn look(&mut self) -> Result<Vec<Seen>> {
        let running = self.group.members.iter().filter(|member| member.running());
        let all = running.map(Seen::ask).collect::<Result<Vec<_>>>()?;
        all.iter().try_for_each(|seen| self.book.note(seen))?;
        Ok(all)
    }

    /// As `look`, in the book; `None` while a member that starts does not answer yet.
    fn try_look(&mut self) -> Result<Option<Vec<Seen>>> {
        let running = self.group.members.iter().filter(|member| member.running());
        let all: Vec<Seen> = running.clone().filter_map(|member| Seen::ask(member).ok()).collect();
        all.iter().try_for_each(|seen| self.book.note(seen))?;
        Ok((all.len() == running.count()).then_some(all))
    }

    /// Until all members, at one applied index, say what is wanted.
    pub(super) fn wait(&mut self, what: &str, wanted: impl Fn(&Seen) -> bool) -> Result<Seen> {
        let mut last = Vec::new();
        let waited = until_some(what, || {
            let all = self.try_look()?.unwrap_or_default();
            let level = all.windows(2).all(|pair| pair[0].applied == pair[1].applied);
            let found = all.first().filter(|_| level && all.iter().all(&wanted)).cloned();
            last = all;
            Ok(found)
        });
        waited.with_context(|| format!("the members say {last:?}"))
    }

    pub(super) fn wait_on(&mut self, feature: &str) -> Result<Seen> {
        self.wait(&format!("{feature} is on"), |seen| seen.is_on(feature))
    }

    pub(super) fn wait_off(&mut self, feature: &str) -> Result<Seen> {
        self.wait(&format!("{feature} is off"), |seen| !seen.is_on(feature))
    }

    /// Until the proposals for a feature are these, of all voters, in any order.
    pub(super) fn wait_said(&mut self, feature: &str, on: usize, off: usize) -> Result<Seen> {
        let count = |seen: &Seen, value| seen.voters(feature).iter().filter(|said| **said == Some(value)).count();
        let what = format!("{on} say on for {feature}, {off} off");
        self.wait(&what, |seen| {
            (count(seen, true), count(seen, false)) == (on, off) && seen.voters(feature).len() == on + off
        })
    }

    /// For a while all members stay as they are.
    pub(super) fn stays(&mut self, ms: u64, what: &str, wanted: impl Fn(&Seen) -> bool) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(ms) {
            for seen in self.look()? {
                ensure!(wanted(&seen), "{what}, but: {seen:?}");
            }
            pause(LOOK_MS);
        }
        Ok(())
    }

    /// The changes so far, equal on all members.
    pub(super) fn history(&mut self) -> Result<Vec<Change>> {
        self.wait("members have applied the same", |_| true)?;
        let mut all = Vec::new();
        for member in self.group.members.iter().filter(|member| member.running()) {
            all.push(history(member)?);
        }
        ensure!(all.windows(2).all(|pair| pair[0] == pair[1]), "members remember different changes: {all:?}");
        all.pop().context("no member runs")
    }

    /// Each change as `cause after`, and nothing else has changed.
    pub(super) fn expect_history(&mut self, wanted: &[&str]) -> Result<Vec<Change>> {
        let changes = self.history()?;
        let found: Vec<String> = changes.iter().map(short).collect();
        ensure!(found == wanted, "the changes are {found:?}, and should be {wanted:?}");
        Ok(changes)
    }

    pub(super) fn any(&self) -> Result<&Member> {
        self.group.members.iter().find(|member| member.running()).context("no member runs")
    }

    /// Adds a voter that does not run; its place and id.
    pub(super) fn add_stopped(&mut self, name: &str, program: &Program) -> Result<(usize, u64)> {
        self.group.add_stopped(name, program, Host::default(), false)
    }

    /// No member has panicked, and data is equal.
    pub(super) fn finish(&mut self) -> Result<String> {
        self.wait("members have applied the same", |_| true)?;
        self.group.check_hashes()?;
        verdict::check_logs(&self.group)?;
        Ok(format!("{} answers at {} indices agree", self.book.answers, self.book.indices()))
    }
}

/// An action between two steps of a scenario.
pub(super) type Between = fn(&mut Gated) -> Result<()>;

pub(super) fn nothing(_: &mut Gated) -> Result<()> {
    Ok(())
}

/// `CAUSE: what is on after it`.
pub(super) fn short(change: &Change) -> String {
    let after: Vec<&str> = change.after.iter().map(String::as_str).collect();
    format!("{}: {}", change.cause, after.join(","))
}

/// Adds one through a member; the sum.
pub(super) fn increment(member: &Member, key: &str) -> Result<u64> {
    let answer = member.ask("/v3/kv/increment", &json!({"key": base64(key.as_bytes()), "delta": "1"}))?;
    number(&answer["value"])
}

/// Why an addition is refused.
pub(super) fn refused_increment(member: &Member) -> Result<String> {
    match increment(member, "refused") {
        Ok(sum) => bail!("{} added up to {sum}, and should have refused", member.name),
        Err(error) => Ok(format!("{error:#}")),
    }
}

pub(super) fn value(member: &Member, key: &str) -> Result<Option<String>> {
    let answer = member.ask("/v3/kv/range", &json!({"key": base64(key.as_bytes())}))?;
    answer["kvs"][0]["value"].as_str().map(unbase64).transpose()
}
