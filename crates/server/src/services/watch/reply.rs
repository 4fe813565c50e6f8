//! What a watch stream sends.

use std::ops::Range;

use bytes::BufMut;
use mvcc::WatchItem;
use proto::etcdserverpb::{ResponseHeader, WatchResponse};
use tonic::codec::EncodeBuf;

use crate::codec::Wire;

/// More than is sent in one go.
const GROW_BYTES: usize = 40 << 10;

/// A message of a watch stream. Events stay the bytes that the store made once for all watchers.
pub(crate) enum WatchReply {
    /// A watcher is made or ended.
    Control(Box<WatchResponse>),
    Events {
        item: WatchItem,
        header: ResponseHeader,
        part: Range<usize>,
        more: bool,
    },
}

impl Wire for WatchReply {
    fn write(self, out: &mut EncodeBuf<'_>) {
        match self {
            WatchReply::Control(response) => proto::codec::encode(&*response, out),
            WatchReply::Events { item, header, part, more } => {
                make_room(out, item.encoded_len(header, part.clone(), more));
                item.encode_fragment(header, part, more, out);
            }
        }
    }
}

/// Messages gather in the buffer until they are sent in one go. One that does not fit makes it as large as it will get:
/// a buffer that doubles copies what is there again and again.
fn make_room(out: &mut EncodeBuf<'_>, bytes: usize) {
    if out.chunk_mut().len() < bytes {
        out.reserve(bytes.max(GROW_BYTES));
    }
}

/// The parts to cut an item into, so that each message stays below `bytes_max` if its events allow it.
pub(super) fn fragments(item: &WatchItem, header: ResponseHeader, bytes_max: usize) -> Vec<Range<usize>> {
    let count = item.events.len();
    if count < 2 || item.encoded_len(header, 0..count, false) < bytes_max {
        return std::iter::once(0..count).collect();
    }
    let mut parts = Vec::new();
    let mut start = 0;
    while start < count {
        let mut end = start + 1;
        while end < count && item.encoded_len(header, start..end + 1, true) < bytes_max {
            end += 1;
        }
        parts.push(start..end);
        start = end;
    }
    parts
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn fragments_cover_all_events_in_order() {
        let event = Bytes::from(vec![0; 100]);
        let item = WatchItem { events: vec![event; 10].into(), ..Default::default() };
        let header = ResponseHeader::default();
        assert_eq!(fragments(&item, header, 100_000).first(), Some(&(0..10)));
        let parts = fragments(&item, header, 350);
        assert!(parts.len() > 1);
        assert_eq!(parts.iter().flat_map(Clone::clone).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        // An event that alone is too large is sent alone.
        assert_eq!(fragments(&item, header, 10).len(), 10);
    }
}
