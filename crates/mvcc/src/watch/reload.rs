//! What becomes of watchers when another file is taken over.

use super::Hub;
use crate::store::Shared;

impl Shared {
    /// Lets all watchers that have everything before revision `from` read the rest, up to `newest`, from history. Those
    /// that wait for a later revision go on waiting.
    pub fn turn_to_history(&self, hub: &mut Hub, from: i64, newest: i64) {
        for watcher in std::mem::take(&mut hub.synced).into_watchers() {
            let min_revision = from.max(watcher.start_revision);
            let mut inner = watcher.stream.inner.lock();
            if min_revision > newest {
                let slot = hub.synced.insert(&watcher.key, &watcher.range_end, watcher.clone());
                inner.set_synced(watcher.id, slot);
            } else {
                inner.set_unsynced(watcher.id, min_revision);
                self.counters.slow_watchers.add(1);
                watcher.stream.wake(inner, &self.options);
            }
        }
    }
}
