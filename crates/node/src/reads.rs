//! Linearizable reads that wait for the leader's word: batched, never answered from an older leader.
//!
//! At most one question is under way. Reads that arrive meanwhile go with the next one. When the leader or the term
//! changes before the answer, or none comes for a while, all are asked again under a context that was never used.
//!
//! A question costs messages between members, however many reads it serves. So the next one waits for as many reads as the
//! last one had, for a moment: clients that were just answered are about to ask again. A lone reader never waits.
//!
//! To wake the raft thread costs as much as a read. So a read wakes it only if it would not look by itself in time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// As in etcd: a question may be lost on its way.
const RETRY: Duration = Duration::from_millis(500);
/// How long a question waits for more reads.
const GATHER: Duration = Duration::from_millis(1);

/// Reads that no question has been asked for yet. Callers put them in, the raft thread takes them out.
pub(crate) struct ReadQueue {
    /// `None` once the node has stopped.
    waiting: Mutex<Option<Waiting>>,
}

struct Waiting {
    reads: Vec<oneshot::Sender<()>>,
    /// The raft thread is to be woken when there are so many; `None`: it looks by itself.
    wake_at: Option<usize>,
}

impl Default for ReadQueue {
    fn default() -> Self {
        ReadQueue { waiting: Mutex::new(Some(Waiting { reads: Vec::new(), wake_at: Some(1) })) }
    }
}

impl ReadQueue {
    /// True if the raft thread should look.
    pub(crate) fn push(&self, done: oneshot::Sender<()>) -> bool {
        let mut waiting = self.waiting.lock();
        // After the end the sender is dropped here, so that nobody waits for an answer that cannot come.
        let Some(waiting) = &mut *waiting else { return false };
        waiting.reads.push(done);
        waiting.wake_at == Some(waiting.reads.len())
    }

    /// Drops all, so that those who wait learn that the node has stopped.
    pub(crate) fn close(&self) {
        self.waiting.lock().take();
    }

    fn put_back(&self, reads: Vec<oneshot::Sender<()>>) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.reads.extend(reads);
        }
    }

    /// The raft thread looks by itself, however many come.
    fn let_wait(&self) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.wake_at = None;
        }
    }

    /// Takes all, if at least so many wait that have not given up; else they wake the raft thread when so many do.
    fn take(&self, wanted: usize) -> Option<Vec<oneshot::Sender<()>>> {
        let mut waiting = self.waiting.lock();
        let waiting = waiting.as_mut()?;
        waiting.reads.retain(|done| !done.is_closed());
        let enough = waiting.reads.len() >= wanted;
        waiting.wake_at = (!enough).then_some(wanted);
        enough.then(|| std::mem::take(&mut waiting.reads))
    }
}

/// How far the raft thread is with the reads.
#[derive(Default)]
pub(crate) enum Reads {
    /// None came lately.
    #[default]
    Idle,
    /// The next question waits for so many reads, but not for longer.
    Gathering {
        wanted: usize,
        until: Instant,
    },
    Asked(Asked),
}

pub(crate) struct Asked {
    context: u64,
    at: Instant,
    term: u64,
    leader: u64,
    reads: Vec<oneshot::Sender<()>>,
}

impl Reads {
    /// The context to ask with now, if there is something to ask and someone to ask.
    pub(crate) fn next(
        &mut self,
        queue: &ReadQueue,
        now: Instant,
        (term, leader): (u64, u64),
        context: impl FnOnce() -> u64,
    ) -> Option<u64> {
        self.give_up_stale(queue, now, (term, leader));
        if leader == 0 && matches!(self, Reads::Gathering { .. }) {
            // Its end would come again and again while there is nobody to ask.
            *self = Reads::Idle;
        }
        if leader == 0 || matches!(self, Reads::Asked(_)) {
            queue.let_wait();
            return None;
        }
        let reads = self.gather(queue, now)?;
        let context = context();
        *self = Reads::Asked(Asked { context, at: now, term, leader, reads });
        Some(context)
    }

    /// Nobody will answer what was asked of another leader, or long ago.
    fn give_up_stale(&mut self, queue: &ReadQueue, now: Instant, leader: (u64, u64)) {
        let Reads::Asked(asked) = self else { return };
        if (asked.term, asked.leader) != leader || now.duration_since(asked.at) >= RETRY {
            queue.put_back(std::mem::take(&mut asked.reads));
            // They have waited long enough.
            *self = Reads::Idle;
        }
    }

    /// The reads to ask for now.
    fn gather(&mut self, queue: &ReadQueue, now: Instant) -> Option<Vec<oneshot::Sender<()>>> {
        if let Reads::Gathering { wanted, until } = self
            && now < *until
        {
            return queue.take(*wanted);
        }
        *self = Reads::Idle;
        queue.take(1)
    }

    /// When to look again although nothing else happens.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Reads::Gathering { until, .. } => Some(*until),
            Reads::Idle | Reads::Asked(_) => None,
        }
    }

    /// Who may read, once the confirmed index is applied. Nobody, for a question that was given up.
    pub(crate) fn confirmed(&mut self, context: u64, now: Instant) -> Vec<oneshot::Sender<()>> {
        let Reads::Asked(asked) = self else { return Vec::new() };
        if asked.context != context {
            return Vec::new();
        }
        let reads = std::mem::take(&mut asked.reads);
        *self = match reads.len() {
            0 | 1 => Reads::Idle,
            wanted => Reads::Gathering { wanted, until: now + GATHER },
        };
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{Clock, SystemClock};

    struct Bench {
        queue: ReadQueue,
        reads: Reads,
        now: Instant,
        next: u64,
        alive: Vec<oneshot::Receiver<()>>,
    }

    impl Bench {
        fn new() -> Bench {
            let (queue, reads) = (ReadQueue::default(), Reads::default());
            Bench { queue, reads, now: SystemClock.now(), next: 0, alive: Vec::new() }
        }

        fn read(&mut self) -> bool {
            let (done, receiver) = oneshot::channel();
            self.alive.push(receiver);
            self.queue.push(done)
        }

        fn answer(&mut self, context: u64) -> usize {
            self.reads.confirmed(context, self.now).len()
        }

        fn ask(&mut self, term: u64, leader: u64) -> Option<u64> {
            let next = &mut self.next;
            self.reads.next(&self.queue, self.now, (term, leader), || {
                *next += 1;
                *next
            })
        }
    }

    #[test]
    fn one_question_serves_all_that_wait() {
        let mut b = Bench::new();
        assert!(b.read(), "nobody looks");
        assert_eq!(b.ask(1, 9), Some(1));
        assert!(!b.read(), "it looks when the answer comes");
        assert!(!b.read());
        assert_eq!(b.ask(1, 9), None, "one is under way");
        assert_eq!(b.answer(1), 1);
        assert_eq!(b.ask(1, 9), Some(2));
        assert_eq!(b.answer(2), 2);
        assert_eq!(b.ask(1, 9), None);
    }

    #[test]
    fn a_question_waits_a_moment_for_as_many_as_the_last_one_had() {
        let mut b = Bench::new();
        assert!(b.read(), "the first one is looked at");
        assert!(!b.read());
        assert!(!b.read());
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.answer(1), 3);
        assert_eq!(b.ask(1, 9), None);
        assert_eq!(b.reads.deadline(), Some(b.now + GATHER));
        assert!(!b.read());
        assert!(!b.read());
        assert_eq!(b.ask(1, 9), None, "two of three");
        assert!(b.read(), "now there are enough");
        assert_eq!(b.ask(1, 9), Some(2));
        assert_eq!(b.answer(2), 3);
        assert_eq!(b.ask(1, 9), None);
        b.read();
        b.now += GATHER;
        assert_eq!(b.ask(1, 9), Some(3), "nobody else came");
        assert_eq!(b.answer(3), 1);
        assert_eq!(b.ask(1, 9), None);
        assert!(b.read());
        assert_eq!(b.ask(1, 9), Some(4), "a lone reader does not wait");
    }

    #[test]
    fn who_comes_after_a_pause_does_not_wait() {
        let mut b = Bench::new();
        b.read();
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.answer(1), 2);
        assert_eq!(b.ask(1, 9), None);
        b.now += GATHER;
        assert_eq!(b.ask(1, 9), None);
        assert_eq!(b.reads.deadline(), None);
        assert!(b.read());
        assert_eq!(b.ask(1, 9), Some(2));
    }

    #[test]
    fn a_new_leader_is_asked_anew() {
        let mut b = Bench::new();
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.ask(2, 0), None, "nobody to ask");
        assert!(!b.read(), "it looks when there is a leader");
        assert_eq!(b.reads.deadline(), None, "and nothing to look for");
        assert_eq!(b.ask(2, 8), Some(2));
        assert_eq!(b.answer(1), 0, "the old leader's word no longer counts");
        assert_eq!(b.answer(2), 2);
    }

    /// The raft thread would look again at once, and for ever.
    #[test]
    fn a_leader_lost_while_reads_gather_leaves_no_deadline() {
        let mut b = Bench::new();
        b.read();
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.answer(1), 2);
        assert!(b.reads.deadline().is_some());
        b.now += GATHER;
        assert_eq!(b.ask(2, 0), None);
        assert_eq!(b.reads.deadline(), None);
        b.read();
        assert_eq!(b.ask(2, 8), Some(2));
    }

    #[test]
    fn a_lost_question_is_repeated_under_another_context() {
        let mut b = Bench::new();
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        b.now += RETRY;
        assert_eq!(b.ask(1, 9), Some(2));
        b.alive.clear();
        b.now += RETRY;
        assert_eq!(b.ask(1, 9), None, "nobody waits any more");
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let mut b = Bench::new();
        b.read();
        b.queue.close();
        b.read();
        for receiver in &mut b.alive {
            assert_eq!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        }
    }
}
