//! Who waits for what: answers by request id, and reads by applied index.
#![expect(clippy::disallowed_types, reason = "looked up by key, never iterated")]

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Proposals of this member that wait for their entry to be applied.
pub(crate) struct Waits<T> {
    /// `None` once the node has stopped.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<T>>>>,
}

impl<T> Default for Waits<T> {
    fn default() -> Self {
        Waits { waiting: Mutex::new(Some(HashMap::new())) }
    }
}

impl<T> Waits<T> {
    pub(crate) fn register(&self, id: u64) -> oneshot::Receiver<T> {
        let (sender, receiver) = oneshot::channel();
        // After the end the sender is dropped here, so that nobody waits for an answer that cannot come.
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.insert(id, sender);
        }
        receiver
    }

    /// Answers, if anyone still waits.
    pub(crate) fn answer(&self, id: u64, result: impl FnOnce() -> T) {
        let sender = self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id));
        if let Some(sender) = sender {
            // A caller that has gone away needs no answer.
            let _ = sender.send(result());
        }
    }

    pub(crate) fn forget(&self, id: u64) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.remove(&id);
        }
    }

    /// Drops every sender, so that all receivers, also later ones, learn that the node has stopped.
    pub(crate) fn close(&self) {
        self.waiting.lock().take();
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().as_ref().map_or(0, HashMap::len)
    }
}

/// The applied index, and who waits for it to reach a value.
#[derive(Default)]
pub(crate) struct Applied {
    index: AtomicU64,
    waiting: Mutex<BTreeMap<u64, Vec<oneshot::Sender<()>>>>,
}

impl Applied {
    pub(crate) fn index(&self) -> u64 {
        self.index.load(Ordering::Acquire)
    }

    pub(crate) fn advance(&self, index: u64) {
        self.index.store(index, Ordering::Release);
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return;
        }
        let later = waiting.split_off(&(index + 1));
        for sender in std::mem::replace(&mut *waiting, later).into_values().flatten() {
            let _ = sender.send(());
        }
    }

    /// Sends to `done` when `index` is applied, at once if it is.
    pub(crate) fn when(&self, index: u64, done: oneshot::Sender<()>) {
        let mut waiting = self.waiting.lock();
        // Under the lock: `advance` stores before it locks, so either we see the index or it sees us.
        if self.index() >= index {
            drop(waiting);
            let _ = done.send(());
        } else {
            waiting.entry(index).or_default().push(done);
        }
    }

    /// Returns when `index` is applied; false if the node ends first. Who stops waiting leaves nothing behind: the index may be
    /// one that somebody made up.
    pub(crate) async fn reached(&self, index: u64) -> bool {
        if self.index() >= index {
            return true;
        }
        let (done, reached) = oneshot::channel();
        let _leave = Leave { applied: self, index };
        self.when(index, done);
        reached.await.is_ok()
    }

    pub(crate) fn close(&self) {
        self.waiting.lock().clear();
    }
}

struct Leave<'a> {
    applied: &'a Applied,
    index: u64,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut waiting = self.applied.waiting.lock();
        if let Some(senders) = waiting.get_mut(&self.index) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                waiting.remove(&self.index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_wait_for_their_index() {
        let applied = Applied::default();
        let (early, mut early_rx) = oneshot::channel();
        let (late, mut late_rx) = oneshot::channel();
        applied.when(5, early);
        applied.when(6, late);
        applied.advance(5);
        assert!(early_rx.try_recv().is_ok());
        assert!(late_rx.try_recv().is_err());
        let (now, mut now_rx) = oneshot::channel();
        applied.when(4, now);
        assert!(now_rx.try_recv().is_ok());
    }

    #[test]
    fn who_stops_waiting_leaves_nothing_behind() {
        use futures_util::FutureExt;
        let applied = Applied::default();
        let (other, _other_rx) = oneshot::channel();
        applied.when(9, other);
        let mut waits = Box::pin(applied.reached(9));
        assert_eq!(waits.as_mut().now_or_never(), None);
        let mut alone = Box::pin(applied.reached(u64::MAX));
        assert_eq!(alone.as_mut().now_or_never(), None);
        drop((waits, alone));
        assert_eq!(applied.waiting.lock().values().map(Vec::len).collect::<Vec<_>>(), [1], "another waits there");
        applied.advance(9);
        assert_eq!(applied.reached(9).now_or_never(), Some(true));
    }

    #[test]
    fn a_forgotten_wait_is_not_answered() {
        let waits = Waits::default();
        let mut receiver = waits.register(7);
        waits.forget(7);
        waits.answer(7, || 1);
        assert!(receiver.try_recv().is_err());
        assert_eq!(waits.len(), 0);
    }

    #[test]
    fn nobody_waits_after_the_end() {
        let waits = Waits::<i32>::default();
        let mut before = waits.register(1);
        waits.close();
        let mut after = waits.register(2);
        assert_eq!(before.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(after.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}
