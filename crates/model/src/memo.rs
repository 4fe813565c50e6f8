//! Answers that are asked for again and again: many states have the same replicated state at the end of their log.
#![expect(clippy::disallowed_types, reason = "looked up by key, never iterated")]

use std::{collections::HashMap, hash::Hash, sync::Mutex};

/// Answers that follow from their question alone.
pub(crate) struct Memo<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Memo<K, V> {
        Memo(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memo<K, V> {
    pub(crate) fn get(&self, question: K, answer: impl FnOnce(&K) -> V) -> V {
        let lock = || self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let known = lock().get(&question).cloned();
        known.unwrap_or_else(|| {
            let answer = answer(&question);
            lock().insert(question, answer.clone());
            answer
        })
    }
}
