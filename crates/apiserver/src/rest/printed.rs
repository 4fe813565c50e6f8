//! Events as they are sent, for the many watches that see one alike: it is read, defaulted and printed once for all of them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;

use crate::resource::Resource;

/// Watches of one resource are rarely further apart.
const EVENTS_MAX: usize = 64;
/// Larger ones are printed by each watch, so that what is kept stays small.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// Which change of which key. No key changes twice in one revision of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// How often the store had lost its past before: revisions count anew then.
    pub losses: u64,
    pub revision: i64,
    pub key: Bytes,
}

#[derive(Default)]
pub(crate) struct Printed {
    recent: Mutex<VecDeque<Kept>>,
}

struct Kept {
    /// Another state of a definition is another resource: nothing printed by an older schema is sent.
    resource: Arc<Resource>,
    change: Change,
    text: Bytes,
}

impl Printed {
    pub(crate) fn get(&self, resource: &Arc<Resource>, change: &Change) -> Option<Bytes> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |kept: &&Kept| kept.change == *change && Arc::ptr_eq(&kept.resource, resource);
        // The newest is what most ask for.
        recent.iter().rev().find(same).map(|kept| kept.text.clone())
    }

    pub(crate) fn keep(&self, resource: &Arc<Resource>, change: Change, text: &Bytes) {
        if text.len() > EVENT_BYTES_MAX {
            return;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() == EVENTS_MAX {
            recent.pop_front();
        }
        recent.push_back(Kept { resource: resource.clone(), change, text: text.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(revision: i64, key: &'static str) -> Change {
        Change { losses: 0, revision, key: Bytes::from_static(key.as_bytes()) }
    }

    #[test]
    fn only_the_same_change_by_the_same_definition_is_found() {
        let resource = || Arc::new(crate::builtin::resources().remove(0));
        let (printed, old, new) = (Printed::default(), resource(), resource());
        printed.keep(&old, change(7, "a"), &Bytes::from_static(b"x"));
        assert_eq!(printed.get(&old, &change(7, "a")), Some(Bytes::from_static(b"x")));
        for (resource, change) in [(&new, change(7, "a")), (&old, change(8, "a")), (&old, change(7, "b"))] {
            assert_eq!(printed.get(resource, &change), None);
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (printed, resource) = (Printed::default(), Arc::new(crate::builtin::resources().remove(0)));
        printed.keep(&resource, change(1, "large"), &Bytes::from(vec![0; EVENT_BYTES_MAX + 1]));
        assert_eq!(printed.get(&resource, &change(1, "large")), None);
        for revision in 0..=EVENTS_MAX as i64 {
            printed.keep(&resource, change(revision, "a"), &Bytes::from_static(b"x"));
        }
        assert_eq!(printed.get(&resource, &change(0, "a")), None);
        assert!(printed.get(&resource, &change(1, "a")).is_some());
    }
}
