//! Which gates were asked for, and how often: a gate that no program asks for any more can go.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Counts how often each gate was queried. Clones share the counts. Only the first query of a gate
/// takes a write lock.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    counts: Arc<RwLock<BTreeMap<String, AtomicU64>>>,
}

/// Snapshots that say the same are the same, whatever was asked of them.
impl PartialEq for Asked {
    fn eq(&self, _: &Asked) -> bool {
        true
    }
}

impl Eq for Asked {}

impl Asked {
    pub(crate) fn count(&self, gate: &str) {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get(gate) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        drop(counts);
        let mut counts = self.counts.write().unwrap_or_else(PoisonError::into_inner);
        counts.entry(gate.to_owned()).or_default().fetch_add(1, Ordering::Relaxed);
    }

    /// The number of queries by gate. Gates that were never queried are absent.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(gate, count)| (gate.clone(), count.load(Ordering::Relaxed))).collect()
    }
}
