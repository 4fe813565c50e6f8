//! Going on with another file, under all who read and watch.

use bytes::Bytes;

use crate::{OpenError, Store, restore, restore::Restored, store::Shared};

impl Store {
    /// Reads the index anew after [`storage::Backend::take_over`]. A reader sees all as it was before, the file
    /// included, or all as it is now. Watchers go on where they were, with what the new file holds, or are told that it
    /// is compacted there. `attach` is called as by [`open`](Self::open).
    ///
    /// For the one who applies, between two entries. After a failure readers still see what was before, but it is not
    /// what the file holds: nothing may be applied any more.
    pub fn reload(&self, mut attach: impl FnMut(i64, &Bytes)) -> Result<(), OpenError> {
        let shared = &*self.shared;
        let view = shared.backend.view();
        let restored = restore::read(&view)?;
        shared.check_reload(&restored)?;
        for (key, lease) in &restored.leases {
            attach(*lease, key);
        }
        let (contents, revision, pending) = restored.into_contents(view.generation());
        drop(view);
        let old = {
            let mut hub = shared.hub.lock();
            let old = std::mem::replace(&mut *shared.published.write(), contents.publish(revision));
            shared.turn_to_history(&mut hub, old.revision + 1, revision);
            *shared.pending_compaction.lock() = pending;
            old
        };
        shared.backend.forget_replaced();
        // Reading it all has mapped it all in.
        shared.backend.release_memory();
        // A large index takes a while to free, so not under the locks.
        drop(old);
        Ok(())
    }
}

impl Shared {
    fn check_reload(&self, restored: &Restored) -> Result<(), OpenError> {
        // A damaged page ends a scan early.
        if let Some(failure) = self.backend.failed() {
            return Err(failure.clone().into());
        }
        let (found, found_compact) = (restored.revision, restored.compact_revision);
        let (current, current_compact) = (self.revision(), self.compact_revision());
        if found < current || found_compact < current_compact {
            return Err(OpenError::Behind { found, found_compact, current, current_compact });
        }
        Ok(())
    }
}
