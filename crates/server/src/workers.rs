//! The threads that serve connections, each with a runtime of its own.
//!
//! A connection and all calls on it stay on one thread: a message wakes nobody on another core, which is most of what
//! a small call costs on a shared pool. Calls that take long (a large range) are sent to the shared pool instead, so
//! that they do not hold up their neighbours.

use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::wakeups;

/// Sooner than any call times out; later than would be felt on an idle machine.
const NEXT_TIMER: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce() + Send>;

/// Cheap to share; the threads end when it is dropped and their connections are done.
pub(crate) struct Workers {
    jobs: Vec<UnboundedSender<Job>>,
    next: AtomicUsize,
}

impl Workers {
    /// As many threads as there are cores.
    pub(crate) fn start() -> io::Result<Workers> {
        let count = thread::available_parallelism().map_or(2, usize::from);
        let mut jobs = Vec::with_capacity(count);
        for i in 0..count {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (sender, receiver) = unbounded_channel();
            thread::Builder::new().name(format!("conn-{i}")).spawn(move || runtime.block_on(work(receiver)))?;
            jobs.push(sender);
        }
        Ok(Workers { jobs, next: AtomicUsize::new(0) })
    }

    /// Runs `job` on the next thread, in its runtime: what it spawns stays there.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let i = self.next.fetch_add(1, Ordering::Relaxed) % self.jobs.len();
        // The thread lives as long as we hold its sender.
        let _ = self.jobs[i].send(Box::new(job));
    }
}

async fn work(mut jobs: UnboundedReceiver<Job>) {
    tokio::spawn(wakeups::open_mailbox());
    tokio::spawn(keep_timers_cheap());
    while let Some(job) = jobs.recv().await {
        job();
    }
}

/// The runtime makes a system call for each new timer that would be the next one to fire. Every call has a timer, which is
/// to fire seconds later; as long as there is an earlier one, theirs cost nothing.
async fn keep_timers_cheap() {
    loop {
        tokio::time::sleep(NEXT_TIMER).await;
    }
}
