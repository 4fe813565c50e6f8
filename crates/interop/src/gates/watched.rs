//! The invariant watched from outside: every member is asked all the time, while clients work and are checked, members are
//! killed, paused and restarted, and flags change.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use harness::Signal;

use super::{
    super::{
        cluster::{Ending, Scenario, World, faults::pause, member::Member, traffic::Traffic, verdict},
        wait::until_some,
    },
    book::{Book, Seen},
    gated::{Gated, INCREMENT, OFF, ON},
};

pub(super) const SCENARIOS: &[Scenario] =
    &[Scenario { name: "watched: linearizable load, kills, rolling flips", short: true, run: watched }];

const LOOK: Duration = Duration::from_millis(15);

/// Asks every member, each from a thread of its own.
struct Watchers {
    stop: Arc<AtomicBool>,
    book: Arc<Mutex<Book>>,
    threads: Vec<thread::JoinHandle<Result<()>>>,
}

impl Watchers {
    fn start(members: &[Member]) -> Watchers {
        let (stop, book) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Book>>::default());
        let watch = |member: &Member| {
            let (member, stop, book) = (member.twin(), stop.clone(), book.clone());
            thread::spawn(move || watch(&member, &stop, &book))
        };
        let threads = members.iter().map(watch).collect();
        Watchers { stop, book, threads }
    }

    fn finish(self) -> Result<Book> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| anyhow::anyhow!("a watcher panicked"))??;
        }
        let mut book = self.book.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        Ok(std::mem::take(&mut *book))
    }
}

fn watch(member: &Member, stop: &AtomicBool, book: &Mutex<Book>) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        // Who is down says nothing wrong.
        if let Ok(seen) = Seen::ask(member) {
            book.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).note(&seen)?;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn watched(world: &World, base: &Path) -> Result<Ending> {
    let mut gated = Gated::agreed(world, base)?;
    let watchers = Watchers::start(&gated.group.members);
    let traffic = Traffic::start(gated.group.endpoints(), world.seed)?;
    pause(500);
    for _ in 0..if world.all { 3 } else { 1 } {
        roll(&mut gated, OFF)?;
        gated.kill_leader()?;
        roll(&mut gated, ON)?;
        let leader = gated.group.leader()?;
        gated.group.members[leader].signal(Signal::STOP)?;
        pause(2000);
        gated.group.members[leader].signal(Signal::CONT)?;
        pause(500);
    }
    let figures = verdict::finish(traffic, &mut gated.group)?;
    gated.wait_on(INCREMENT)?;
    let book = watchers.finish()?;
    let changes = gated.history()?.len();
    ensure!(changes >= 3 && book.indices() > 50, "{changes} changes, {} indices: too few to tell", book.indices());
    let (answers, indices) = (book.answers, book.indices());
    Ok(Ending::Well(format!("{answers} answers at {indices} indices agree, {changes} changes; {figures}")))
}

/// Restarts one member after the other with kill -9. The next one follows when the proposal of the one before has arrived:
/// a member that ends earlier may propose nothing.
fn roll(gated: &mut Gated, value: &str) -> Result<()> {
    for n in 0..3 {
        gated.set_flag(n, value);
        gated.group.members[n].kill();
        gated.group.restart(n);
        gated.group.wait_member(n)?;
        let id = gated.group.id(n)?;
        let member = &gated.group.members[n];
        until_some(&format!("{} has proposed {value}", member.name), || {
            Ok((Seen::ask(member)?.said(INCREMENT, id) == Some(value == ON)).then_some(()))
        })?;
    }
    Ok(())
}
