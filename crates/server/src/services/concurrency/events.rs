//! A watch from the inside.

use std::{future::poll_fn, sync::Arc, task::Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use mvcc::{WatchItem, WatchSpec, WatchStream};
use prost::Message;
use proto::{etcdserverpb::ResponseHeader, mvccpb};
use tonic::Status;

use crate::{services::Context, status};

/// The events of one key or range.
pub(super) struct Events {
    context: Context,
    stream: WatchStream,
    waker: Arc<AtomicWaker>,
}

impl Events {
    pub(super) fn of(context: &Context, key: Bytes, range_end: Bytes, start_revision: i64) -> Result<Events, Status> {
        let waker = Arc::new(AtomicWaker::new());
        let notify = waker.clone();
        let stream = context.node.store().watch_stream(move || notify.wake());
        let spec = WatchSpec { key, range_end, start_revision, ..Default::default() };
        stream.watch(spec).map_err(|error| status::unknown(error.to_string()))?;
        Ok(Events { context: context.clone(), stream, waker })
    }

    /// Waits for the next events; fails when the revisions to read are compacted.
    pub(super) async fn next(&mut self) -> Result<(ResponseHeader, Vec<mvccpb::Event>), Status> {
        let item = poll_fn(|cx| {
            self.waker.register(cx.waker());
            self.stream.next().map_or(Poll::Pending, Poll::Ready)
        });
        let WatchItem { events, revision, compact_revision, .. } = item.await;
        if compact_revision != 0 {
            return Err(status::unknown(status::compacted().message()));
        }
        let events = events.iter().map(|event| mvccpb::Event::decode(&event[..])).collect::<Result<_, _>>();
        let events = events.map_err(|error| status::unknown(format!("an event does not decode: {error}")))?;
        Ok((self.context.header_at(revision), events))
    }
}
