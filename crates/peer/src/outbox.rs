//! Messages that wait for a stream, and the stream's endless body that takes them from there.
//!
//! A body is polled by its connection, so a message goes from the sender's thread to the connection's task with nothing
//! in between, and all that wait leave in one write.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use proto::raftpb::Message;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{
    codec::{Encoder, StreamKind, link_heartbeat},
    route::take_out_newer,
};

/// As many messages wait at most; more are dropped.
const MESSAGES_MAX: usize = 4096;
/// Memory for this many is kept; what a burst needed beyond is given back.
const KEPT_MESSAGES: usize = 256;
/// A frame is closed after this many bytes, so that a long queue does not become one huge buffer.
const FRAME_BYTES: usize = 1 << 20;

/// The queue of one stream. It takes messages only while a body is attached.
#[derive(Default)]
pub(crate) struct Outbox {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    queue: Vec<Message>,
    /// Counts attachments. The body of an earlier one ends.
    generation: u64,
    attached: bool,
    /// Who reads the attached body has said on its connection that it is one of ours.
    is_ours: bool,
    waker: Option<Waker>,
}

/// Why a message was not queued.
#[derive(Debug)]
pub(crate) enum Refused {
    Detached(Box<Message>),
    Full,
}

/// What a stream's owner is told.
pub(crate) trait Events: Send + Sync + 'static {
    fn sent(&self, bytes: u64);
    /// The connection is gone. What was queued or under way is lost.
    fn lost(&self);
}

impl Outbox {
    pub(crate) fn is_attached(&self) -> bool {
        self.state.lock().attached
    }

    /// Queues a message. Proposals at which a real etcd would stop are left out if the reader may be one; returns their
    /// number.
    pub(crate) fn push(&self, mut message: Message) -> Result<usize, Refused> {
        let mut state = self.state.lock();
        if !state.attached {
            return Err(Refused::Detached(Box::new(message)));
        }
        let left_out = if state.is_ours { 0 } else { take_out_newer(&mut message) };
        if left_out > 0 && message.entries.is_empty() {
            return Ok(left_out);
        }
        if state.queue.len() >= MESSAGES_MAX {
            return Err(Refused::Full);
        }
        state.queue.push(message);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(left_out)
    }

    /// A body that sends what is queued from now on; `true` if it takes the place of another.
    pub(crate) fn attach(
        self: &Arc<Outbox>,
        kind: StreamKind,
        is_ours: bool,
        heartbeat: Duration,
        events: Arc<dyn Events>,
    ) -> (StreamBody, bool) {
        let mut state = self.state.lock();
        state.is_ours = is_ours;
        state.generation += 1;
        state.queue.clear();
        let replaced = std::mem::replace(&mut state.attached, true);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        let mut heartbeat = interval(heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let body = StreamBody {
            outbox: self.clone(),
            generation: state.generation,
            encoder: Encoder::new(kind),
            heartbeat,
            taken: Vec::new(),
            sent: 0,
            events,
        };
        (body, replaced)
    }

    /// Ends the attached body, if who reads it has not said that it is one of ours. `true` if there was one.
    pub(crate) fn detach_foreign(&self) -> bool {
        let state = self.state.lock();
        let is_foreign = state.attached && !state.is_ours;
        drop(state);
        if is_foreign {
            self.detach();
        }
        is_foreign
    }

    /// Ends the attached body, if there is one.
    pub(crate) fn detach(&self) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.attached = false;
        state.queue.clear();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

/// The body of a stream's response. It ends when another one is attached.
pub(crate) struct StreamBody {
    outbox: Arc<Outbox>,
    generation: u64,
    encoder: Encoder,
    heartbeat: Interval,
    /// Taken from the queue; the first `sent` have been encoded.
    taken: Vec<Message>,
    sent: usize,
    events: Arc<dyn Events>,
}

enum Taken {
    Some,
    None,
    Ended,
}

impl StreamBody {
    /// Swaps the queue against the empty buffer, so that both keep their memory.
    fn take(&mut self, cx: &mut Context<'_>) -> Taken {
        let mut state = self.outbox.state.lock();
        if state.generation != self.generation {
            return Taken::Ended;
        }
        if state.queue.is_empty() {
            let same = state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if !same {
                state.waker = Some(cx.waker().clone());
            }
            return Taken::None;
        }
        if self.taken.capacity() > KEPT_MESSAGES {
            self.taken = Vec::new();
        }
        self.taken.clear();
        self.sent = 0;
        std::mem::swap(&mut self.taken, &mut state.queue);
        Taken::Some
    }

    fn encode_taken(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        while self.sent < self.taken.len() && out.len() < FRAME_BYTES {
            let message = std::mem::take(&mut self.taken[self.sent]);
            self.encoder.encode(&message, &mut out);
            self.sent += 1;
        }
        self.events.sent(out.len() as u64);
        out.freeze()
    }

    fn encode_heartbeat(&mut self) -> Bytes {
        let mut out = BytesMut::with_capacity(16);
        self.encoder.encode(&link_heartbeat(), &mut out);
        self.events.sent(out.len() as u64);
        out.freeze()
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if this.sent == this.taken.len() {
            match this.take(cx) {
                Taken::Ended => return Poll::Ready(None),
                Taken::Some => {}
                Taken::None => {
                    return match this.heartbeat.poll_tick(cx) {
                        Poll::Ready(_) => Poll::Ready(Some(Ok(Frame::data(this.encode_heartbeat())))),
                        Poll::Pending => Poll::Pending,
                    };
                }
            }
        }
        Poll::Ready(Some(Ok(Frame::data(this.encode_taken()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Drop for StreamBody {
    fn drop(&mut self) {
        let mut state = self.outbox.state.lock();
        if state.generation != self.generation {
            return;
        }
        state.attached = false;
        state.queue.clear();
        state.waker = None;
        drop(state);
        self.events.lost();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use http_body_util::BodyExt;

    use super::*;
    use crate::codec::MessageDecoder;

    #[derive(Default)]
    struct Counted {
        sent: AtomicU64,
        lost: AtomicU64,
    }

    impl Events for Counted {
        fn sent(&self, bytes: u64) {
            self.sent.fetch_add(bytes, Ordering::Relaxed);
        }
        fn lost(&self) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn message(index: u64) -> Message {
        Message { from: Some(1), to: Some(2), index: Some(index), ..Message::default() }
    }

    async fn next(body: &mut StreamBody) -> Vec<u64> {
        let mut decoder = MessageDecoder::new(1 << 20);
        decoder.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
        std::iter::from_fn(|| decoder.next_message().unwrap()).map(|m| m.index()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn all_that_wait_leave_together() {
        let (outbox, events) = (Arc::new(Outbox::default()), Arc::new(Counted::default()));
        assert!(matches!(outbox.push(message(1)), Err(Refused::Detached(_))));
        let heartbeat = Duration::from_secs(2);
        let (mut body, replaced) = outbox.attach(StreamKind::Message, false, heartbeat, events.clone());
        assert!(!replaced);
        for index in 1..=3 {
            outbox.push(message(index)).unwrap();
        }
        assert_eq!(next(&mut body).await, [1, 2, 3]);
        assert_eq!(next(&mut body).await, [0], "a heartbeat at once");
        let start = tokio::time::Instant::now();
        assert_eq!(next(&mut body).await, [0]);
        assert_eq!(start.elapsed(), heartbeat);

        for index in 0..MESSAGES_MAX as u64 {
            outbox.push(message(index)).unwrap();
        }
        assert!(matches!(outbox.push(message(1)), Err(Refused::Full)));

        let (second, replaced) = outbox.attach(StreamKind::Message, false, heartbeat, events.clone());
        assert!(replaced);
        assert!(body.frame().await.is_none(), "the first body ends");
        drop(body);
        assert_eq!(events.lost.load(Ordering::Relaxed), 0, "a stream that was replaced is not lost");
        assert!(outbox.is_attached());
        drop(second);
        assert_eq!(events.lost.load(Ordering::Relaxed), 1);
        assert!(!outbox.is_attached());
    }

    /// A proposal of 3.8 goes only to who has said on that connection that it can read it.
    #[tokio::test]
    async fn what_is_newer_goes_to_ours_alone() {
        use prost::Message as _;
        use proto::{etcdserverpb as pb, raftpb};
        let increment = pb::IncrementRequest { key: "k".into(), ..Default::default() };
        let put = pb::PutRequest { key: "k".into(), ..Default::default() };
        let header = Some(pb::RequestHeader { id: 7, ..Default::default() });
        let newer =
            pb::InternalRaftRequest { header: header.clone(), increment: Some(increment), ..Default::default() };
        let plain = pb::InternalRaftRequest { header, put: Some(put), ..Default::default() };
        let entry = |request: &pb::InternalRaftRequest| raftpb::Entry {
            data: Some(request.encode_to_vec().into()),
            ..Default::default()
        };
        let proposal = |entries: Vec<raftpb::Entry>| {
            let kind = Some(raftpb::MessageType::MsgProp as i32);
            Message { r#type: kind, entries, ..Message::default() }
        };
        let (plain, newer) = (entry(&plain), entry(&newer));
        let (outbox, events) = (Arc::new(Outbox::default()), Arc::new(Counted::default()));
        for is_ours in [false, true] {
            let (mut body, _) = outbox.attach(StreamKind::Message, is_ours, Duration::from_secs(60), events.clone());
            let dropped = usize::from(!is_ours);
            assert_eq!(outbox.push(proposal(vec![plain.clone()])).unwrap(), 0);
            assert_eq!(outbox.push(proposal(vec![newer.clone()])).unwrap(), dropped);
            let both = proposal(vec![plain.clone(), newer.clone(), plain.clone()]);
            assert_eq!(outbox.push(both.clone()).unwrap(), dropped);
            let mut decoder = MessageDecoder::new(1 << 20);
            decoder.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
            let sent: Vec<_> = std::iter::from_fn(|| decoder.next_message().unwrap()).map(|m| m.entries).collect();
            if is_ours {
                assert_eq!(sent, [vec![plain.clone()], vec![newer.clone()], both.entries]);
            } else {
                assert_eq!(sent, [vec![plain.clone()], vec![plain.clone(), plain.clone()]]);
            }
            assert_eq!(outbox.detach_foreign(), !is_ours);
        }
    }

    #[tokio::test]
    async fn a_waiting_body_is_woken() {
        let (outbox, events) = (Arc::new(Outbox::default()), Arc::new(Counted::default()));
        let (mut body, _) = outbox.attach(StreamKind::Message, false, Duration::from_secs(60), events.clone());
        assert_eq!(next(&mut body).await, [0]);
        let waiting = tokio::spawn(async move { next(&mut body).await });
        tokio::task::yield_now().await;
        outbox.push(message(7)).unwrap();
        assert_eq!(waiting.await.unwrap(), [7]);
    }
}
