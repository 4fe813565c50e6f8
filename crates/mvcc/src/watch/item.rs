//! What a stream gives out, ready to be sent.

use std::{ops::Range, sync::Arc};

use bytes::{BufMut, Bytes};
use prost::Message;
use proto::etcdserverpb::{ResponseHeader, WatchResponse};

use crate::raw_kv::varint_len;

/// What [`WatchStream::next`](crate::WatchStream::next) gives: events of one watcher, or its end, or progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchItem {
    /// -1 for progress of all watchers of the stream.
    pub watch_id: i64,
    /// Each an encoded `mvccpb.Event`. All events of a revision are in one item, which
    /// shares them with those of other watchers. None: progress, up to `revision`.
    pub events: Arc<[Bytes]>,
    /// For the header.
    pub revision: i64,
    /// Not 0: the watcher has ended, since what it is to read is compacted up to here.
    pub compact_revision: i64,
}

impl WatchItem {
    /// The whole as an encoded `WatchResponse`.
    pub fn encode(&self, header: ResponseHeader, out: &mut impl BufMut) {
        self.encode_fragment(header, 0..self.events.len(), false, out);
    }

    /// The `WatchResponse` with some of the events; `more` tells that others follow.
    pub fn encode_fragment(&self, header: ResponseHeader, events: Range<usize>, more: bool, out: &mut impl BufMut) {
        const TAG_EVENTS: u8 = 0x5a;
        /// The tag and a varint.
        const EVENT_HEAD_BYTES_MAX: usize = 11;
        // Everything before an event is gathered: single bytes are cheaper to write to a `Vec` than to other buffers.
        let frame = self.frame(header, more);
        let mut head = Vec::with_capacity(frame.encoded_len() + EVENT_HEAD_BYTES_MAX);
        // A `Vec` grows as needed, so this does not fail.
        let _ = frame.encode(&mut head);
        for event in &self.events[events] {
            head.push(TAG_EVENTS);
            prost::encoding::encode_varint(event.len() as u64, &mut head);
            out.put_slice(&head);
            out.put_slice(event);
            head.clear();
        }
        out.put_slice(&head);
    }

    /// Bytes that [`encode_fragment`](Self::encode_fragment) writes.
    pub fn encoded_len(&self, header: ResponseHeader, events: Range<usize>, more: bool) -> usize {
        let one = |event: &Bytes| 1 + varint_len(event.len() as u64) + event.len();
        self.frame(header, more).encoded_len() + self.events[events].iter().map(one).sum::<usize>()
    }

    fn frame(&self, header: ResponseHeader, more: bool) -> WatchResponse {
        WatchResponse {
            header: Some(header),
            watch_id: self.watch_id,
            canceled: self.compact_revision != 0,
            compact_revision: self.compact_revision,
            fragment: more,
            ..Default::default()
        }
    }
}
