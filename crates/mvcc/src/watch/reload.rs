//! What becomes of watchers when another file is taken over.

use super::Hub;
use crate::store::Shared;

impl Shared {
    /// Lets all watchers that have everything before revision `from` read the rest, up to `newest`, from history. Those
    /// that wait for a later revision go on waiting.
    pub(crate) fn turn_to_history(&self, hub: &mut Hub, from: i64, newest: i64) {
        for slot in hub.synced.slots() {
            let Some(audience) = hub.synced.get(slot) else { continue };
            let min_revision = from.max(audience.start_revision);
            if min_revision <= newest {
                hub.fall_behind(self, slot, min_revision);
            }
        }
    }
}
