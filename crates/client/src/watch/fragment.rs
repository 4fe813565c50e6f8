//! Responses that the server cut in pieces, joined again.

use std::collections::HashMap;

use proto::{etcdserverpb::WatchResponse, mvccpb::Event};

/// Pieces received so far, by watch. Only whole responses come out, so a stream that breaks in the middle of one
/// leaves nothing half seen.
#[derive(Default)]
pub(super) struct Fragments {
    events: HashMap<i64, Vec<Event>>,
}

impl Fragments {
    pub(super) fn join(&mut self, mut response: WatchResponse) -> Option<WatchResponse> {
        if response.fragment {
            self.events.entry(response.watch_id).or_default().append(&mut response.events);
            return None;
        }
        if let Some(mut events) = self.events.remove(&response.watch_id) {
            events.append(&mut response.events);
            response.events = events;
        }
        Some(response)
    }
}

#[cfg(test)]
mod tests {
    use proto::mvccpb::KeyValue;

    use super::*;

    fn piece(watch_id: i64, revisions: &[i64], fragment: bool) -> WatchResponse {
        let event =
            |r: &i64| Event { kv: Some(KeyValue { mod_revision: *r, ..Default::default() }), ..Default::default() };
        WatchResponse { watch_id, events: revisions.iter().map(event).collect(), fragment, ..Default::default() }
    }

    #[test]
    fn pieces_of_several_watches_may_mix() {
        let mut fragments = Fragments::default();
        assert!(fragments.join(piece(1, &[2, 3], true)).is_none());
        assert!(fragments.join(piece(2, &[9], true)).is_none());
        assert_eq!(fragments.join(piece(3, &[1], false)), Some(piece(3, &[1], false)));
        assert_eq!(fragments.join(piece(1, &[4], false)), Some(piece(1, &[2, 3, 4], false)));
        assert_eq!(fragments.join(piece(2, &[], false)), Some(piece(2, &[9], false)));
        assert_eq!(fragments.join(piece(1, &[5], false)), Some(piece(1, &[5], false)));
    }
}
