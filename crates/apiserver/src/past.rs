//! Whether the store still has the past that was seen. One that is put back from a copy, or made anew, counts its revisions from an
//! earlier one on: what was known of it is void, and a watch that waits for the next revision would miss all until it comes.
//!
//! Invariant: a call that begins after a revision was seen is answered with that revision or a later one, unless the past was lost. All
//! calls of [`crate::store`] are linearizable, so this holds for every member of a cluster.

use std::{sync::Arc, time::Duration};

use client::pb::ResponseHeader;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::status::Result;

const RETRY_AFTER: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(crate) struct Past {
    newest: Arc<Mutex<Newest>>,
    /// How often it was lost.
    losses: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Newest {
    cluster: u64,
    revision: i64,
}

/// What was known when a call began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    losses: u64,
    revision: i64,
}

impl Default for Past {
    fn default() -> Past {
        Past { newest: Arc::default(), losses: Arc::new(watch::channel(0).0) }
    }
}

impl Past {
    pub(crate) fn known(&self) -> Known {
        let newest = self.newest.lock();
        Known { losses: *self.losses.borrow(), revision: newest.revision }
    }

    /// Takes note of an answer; true if it shows that the past is lost.
    pub(crate) fn saw(&self, before: Known, answer: Option<&ResponseHeader>) -> bool {
        let Some(&ResponseHeader { cluster_id: cluster, revision, .. }) = answer else { return false };
        let mut newest = self.newest.lock();
        // What began before the loss was noticed tells of it once more, or of the past that is gone.
        if before.losses != *self.losses.borrow() {
            return false;
        }
        let is_other = newest.cluster != 0 && newest.cluster != cluster;
        if is_other || revision < before.revision {
            *newest = Newest { cluster, revision };
            self.losses.send_modify(|losses| *losses += 1);
            tracing::warn!(
                revision,
                seen = before.revision,
                "the store has gone back to an earlier state, or is another one"
            );
            return true;
        }
        *newest = Newest { cluster, revision: newest.revision.max(revision) };
        false
    }

    /// Tells when it is lost.
    pub(crate) fn losses(&self) -> watch::Receiver<u64> {
        self.losses.subscribe()
    }
}

/// Reads until it could be read. A loss after that is still to be told to who waits for `losses`.
pub(crate) async fn read_at_last<T, F>(losses: &mut watch::Receiver<u64>, what: &str, read: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T>>,
{
    loop {
        tokio::time::sleep(RETRY_AFTER).await;
        losses.mark_unchanged();
        match read().await {
            Ok(read) => return read,
            Err(error) => tracing::warn!(%error, what, "failed to read what is known of the store"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(cluster_id: u64, revision: i64) -> ResponseHeader {
        ResponseHeader { cluster_id, revision, ..Default::default() }
    }

    #[test]
    fn an_earlier_revision_than_was_seen_before_the_call_is_a_loss_told_once() {
        let past = Past::default();
        let (first, slow) = (past.known(), past.known());
        assert!(!past.saw(first, Some(&answer(1, 7))));
        assert!(!past.saw(slow, Some(&answer(1, 5))), "it may have been answered before the other");
        let (next, other, late) = (past.known(), past.known(), past.known());
        assert!(past.saw(next, Some(&answer(1, 2))));
        assert!(!past.saw(other, Some(&answer(1, 2))));
        assert!(!past.saw(late, Some(&answer(1, 8))), "an answer from before is nothing to go by");
        assert_eq!((*past.losses().borrow(), past.known().revision), (1, 2));
    }

    #[test]
    fn another_cluster_has_another_past() {
        let past = Past::default();
        assert!(!past.saw(past.known(), Some(&answer(1, 7))));
        assert!(past.saw(past.known(), Some(&answer(2, 9))));
        assert!(!past.saw(past.known(), Some(&answer(2, 9))));
    }
}
