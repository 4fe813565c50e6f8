//! Linearizable reads that wait for the leader's word: batched, never answered from an older leader.
//!
//! At most one question is under way. Reads that arrive meanwhile go with the next one. When the leader or the term
//! changes before the answer, or none comes for a while, all are asked again under a context that was never used.
//!
//! A question costs messages between all members, however many reads it serves. So the next one waits for as many reads
//! as the last one had, for a moment: clients that were just answered are about to ask again. A lone reader never waits.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// As in etcd: a question may be lost on its way.
const RETRY: Duration = Duration::from_millis(500);
/// How long a question waits for more reads.
const GATHER: Duration = Duration::from_millis(1);

/// Reads that no question has been asked for yet. Callers put them in, the raft thread takes them out.
pub(crate) struct ReadQueue {
    /// `None` once the node has stopped.
    waiting: Mutex<Option<Vec<oneshot::Sender<()>>>>,
    /// So many make a question worth its messages.
    wanted: AtomicUsize,
}

impl Default for ReadQueue {
    fn default() -> Self {
        ReadQueue { waiting: Mutex::new(Some(Vec::new())), wanted: AtomicUsize::new(1) }
    }
}

impl ReadQueue {
    /// True if the raft thread should look: for the first one, and when there are enough.
    pub fn push(&self, done: oneshot::Sender<()>) -> bool {
        let mut waiting = self.waiting.lock();
        // After the end the sender is dropped here, so that nobody waits for an answer that cannot come.
        let Some(waiting) = &mut *waiting else { return false };
        waiting.push(done);
        waiting.len() == 1 || waiting.len() == self.wanted.load(Ordering::Relaxed)
    }

    /// Drops all, so that those who wait learn that the node has stopped.
    pub fn close(&self) {
        self.waiting.lock().take();
    }

    fn put_back(&self, reads: Vec<oneshot::Sender<()>>) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.extend(reads);
        }
    }

    /// How many wait and have not given up.
    fn count(&self) -> usize {
        let mut waiting = self.waiting.lock();
        waiting.as_mut().map_or(0, |waiting| {
            waiting.retain(|done| !done.is_closed());
            waiting.len()
        })
    }

    /// All that wait; as many are wanted for the next question.
    fn take(&self) -> Vec<oneshot::Sender<()>> {
        let reads = self.waiting.lock().as_mut().map(std::mem::take).unwrap_or_default();
        self.wanted.store(reads.len().max(1), Ordering::Relaxed);
        reads
    }
}

#[derive(Default)]
pub(crate) struct Reads {
    asked: Option<Asked>,
    /// Until when the next question waits for more reads.
    gathering: Option<Instant>,
}

struct Asked {
    context: u64,
    at: Instant,
    term: u64,
    leader: u64,
    reads: Vec<oneshot::Sender<()>>,
}

impl Reads {
    /// The context to ask with now, if there is something to ask and someone to ask.
    pub fn next(
        &mut self,
        queue: &ReadQueue,
        now: Instant,
        (term, leader): (u64, u64),
        context: impl FnOnce() -> u64,
    ) -> Option<u64> {
        let stale = |a: &mut Asked| (a.term, a.leader) != (term, leader) || now.duration_since(a.at) >= RETRY;
        if let Some(asked) = self.asked.take_if(stale) {
            queue.put_back(asked.reads);
            // They have waited long enough.
            self.gathering = Some(now);
        }
        if leader == 0 || self.asked.is_some() {
            // Nothing to look for until something else happens.
            self.gathering = None;
            return None;
        }
        let count = queue.count();
        if count == 0 {
            self.gathering = None;
            return None;
        }
        let until = *self.gathering.get_or_insert(now + GATHER);
        if count < queue.wanted.load(Ordering::Relaxed) && now < until {
            return None;
        }
        self.gathering = None;
        let context = context();
        self.asked = Some(Asked { context, at: now, term, leader, reads: queue.take() });
        Some(context)
    }

    /// When to look again although nothing else happens.
    pub fn deadline(&self) -> Option<Instant> {
        self.gathering.filter(|_| self.asked.is_none())
    }

    /// Who may read, once the confirmed index is applied. Nobody, for a question that was given up.
    pub fn confirmed(&mut self, context: u64) -> Vec<oneshot::Sender<()>> {
        self.asked.take_if(|asked| asked.context == context).map(|asked| asked.reads).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Bench { queue, reads, now: Instant::now(), next: 0, alive: Vec::new() }
        }

        fn read(&mut self) -> bool {
            let (done, receiver) = oneshot::channel();
            self.alive.push(receiver);
            self.queue.push(done)
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
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        b.read();
        b.read();
        assert_eq!(b.ask(1, 9), None, "one is under way");
        assert_eq!(b.reads.confirmed(1).len(), 1);
        assert_eq!(b.ask(1, 9), Some(2));
        assert_eq!(b.reads.confirmed(2).len(), 2);
        assert_eq!(b.ask(1, 9), None);
    }

    #[test]
    fn a_question_waits_a_moment_for_as_many_as_the_last_one_had() {
        let mut b = Bench::new();
        assert!(b.read(), "the first one is looked at");
        assert!(!b.read());
        assert!(!b.read());
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.reads.confirmed(1).len(), 3);
        b.read();
        assert!(!b.read());
        assert_eq!(b.ask(1, 9), None, "two of three");
        assert_eq!(b.reads.deadline(), Some(b.now + GATHER));
        assert!(b.read(), "now there are enough");
        assert_eq!(b.ask(1, 9), Some(2));
        assert_eq!(b.reads.confirmed(2).len(), 3);
        b.read();
        assert_eq!(b.ask(1, 9), None);
        b.now += GATHER;
        assert_eq!(b.ask(1, 9), Some(3), "nobody else came");
        assert_eq!(b.reads.confirmed(3).len(), 1);
        b.read();
        assert_eq!(b.ask(1, 9), Some(4), "a lone reader does not wait");
    }

    #[test]
    fn a_new_leader_is_asked_anew() {
        let mut b = Bench::new();
        b.read();
        assert_eq!(b.ask(1, 9), Some(1));
        assert_eq!(b.ask(2, 0), None, "nobody to ask");
        assert_eq!(b.reads.deadline(), None, "and nothing to look for");
        assert_eq!(b.ask(2, 8), Some(2));
        assert!(b.reads.confirmed(1).is_empty(), "the old leader's word no longer counts");
        assert_eq!(b.reads.confirmed(2).len(), 1);
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
