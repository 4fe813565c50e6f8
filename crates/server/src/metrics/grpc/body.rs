//! Bodies of calls, whose messages are counted and judged as they pass.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

use super::{
    Grpc,
    call::Call,
    deadline::{Deadline, exceeded},
    frame::FrameReader,
    unpack::{Packing, Unpacker, bad_flag},
    words::reword,
};
use crate::{metrics::methods::METHODS, status};

pub(super) enum Direction {
    Uncounted,
    Received(Arc<Grpc>, usize),
    Sent(Call),
}

/// A body whose gRPC messages are counted as they pass.
pub struct Counted<B> {
    /// `None` if there is nothing to read, or nothing any more after the call's deadline.
    inner: Option<B>,
    direction: Direction,
    frames: FrameReader,
    /// Given to whoever reads the body, in place of it.
    refusal: Option<Status>,
    lost: Option<BoxFuture<'static, ()>>,
    deadline: Option<Deadline>,
    bytes_max: usize,
    packing: Packing,
    unpacker: Option<Unpacker>,
    /// What there is to say about the end is said.
    ended: bool,
}

impl<B> Counted<B> {
    pub(super) fn new(inner: B, direction: Direction) -> Counted<B> {
        Counted::of(Some(inner), direction)
    }

    fn of(inner: Option<B>, direction: Direction) -> Counted<B> {
        Counted {
            inner,
            direction,
            frames: FrameReader::default(),
            refusal: None,
            lost: None,
            deadline: None,
            bytes_max: usize::MAX,
            packing: Packing::None,
            unpacker: None,
            ended: false,
        }
    }

    /// Whoever reads the body is refused at once, when the leader is lost, or with a message that is larger.
    pub(super) fn judged(
        mut self,
        refusal: Option<Status>,
        lost: Option<BoxFuture<'static, ()>>,
        bytes_max: usize,
    ) -> Counted<B> {
        (self.refusal, self.lost, self.bytes_max) = (refusal, lost, bytes_max);
        self
    }

    /// The body of an answer that consists of headers.
    pub(super) fn empty() -> Counted<B> {
        Counted::of(None, Direction::Uncounted)
    }

    /// The body is cut off at the deadline, and says so.
    pub(super) fn until(mut self, deadline: Option<Deadline>) -> Counted<B> {
        self.deadline = deadline;
        self
    }

    /// Whoever reads the body gets its messages unpacked.
    pub(super) fn unpacked(mut self, packing: Packing) -> Counted<B> {
        self.packing = packing;
        self.unpacker = (packing == Packing::Gzip).then(|| Unpacker::new(self.bytes_max));
        self
    }

    /// What is wrong with what has passed.
    fn complaint(&mut self) -> Option<Status> {
        if self.frames.largest > self.bytes_max {
            return Some(status::message_too_large(self.frames.largest, self.bytes_max));
        }
        if !matches!(self.direction, Direction::Received(..)) {
            return None;
        }
        self.frames.strange.take().and_then(|flag| bad_flag(flag, self.packing))
    }

    /// The frame as it is read. `None` if nothing in it is whole yet.
    fn unpack(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, Status> {
        let (Some(unpacker), Some(data)) = (&mut self.unpacker, frame.data_ref()) else { return Ok(Some(frame)) };
        let unpacked = unpacker.feed(data)?;
        Ok((!unpacked.is_empty()).then(|| Frame::data(unpacked)))
    }

    pub(super) fn uncounted(inner: B) -> Counted<B> {
        Counted::new(inner, Direction::Uncounted)
    }

    /// Drops the rest of the body when the deadline has passed, and gives the trailers that say so.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.poll(cx));
        (self.inner, self.deadline) = (None, None);
        let mut trailers = HeaderMap::new();
        // Without a text of its own a status always fits into headers.
        let _ = exceeded().add_header(&mut trailers);
        if let Direction::Sent(call) = &mut self.direction {
            call.finish_by(&trailers);
        }
        Poll::Ready(Frame::trailers(trailers))
    }

    /// What is wrong with a request that ends here.
    fn cut_short(&self) -> Option<Status> {
        match &self.direction {
            Direction::Received(_, method) if !self.ended => self.frames.cut_short(METHODS[*method].2),
            _ => None,
        }
    }

    fn count(&mut self, frame: &mut Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            let (messages, bytes) = self.frames.read(data);
            let (grpc, method, sent) = match &self.direction {
                Direction::Uncounted => return,
                Direction::Received(grpc, method) => (grpc, *method, false),
                Direction::Sent(call) => (&call.grpc, call.method, true),
            };
            let method = &grpc.methods[method];
            let (counter, total) =
                if sent { (&method.sent, &grpc.sent_bytes) } else { (&method.received, &grpc.received_bytes) };
            counter.inc_by(messages);
            total.inc_by(bytes);
        } else if let (Some(trailers), Direction::Sent(call)) = (frame.trailers_mut(), &mut self.direction) {
            reword(trailers, call.method);
            call.finish_by(trailers);
        }
    }
}

impl<B> Body for Counted<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = self.get_mut();
        if let Some(status) = this.refusal.take() {
            return Poll::Ready(Some(Err(status.into())));
        }
        if let Some(lost) = &mut this.lost
            && lost.as_mut().poll(cx).is_ready()
        {
            this.lost = None;
            return Poll::Ready(Some(Err(status::no_leader().into())));
        }
        loop {
            let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
            let Poll::Ready(polled) = Pin::new(inner).poll_frame(cx) else {
                return this.poll_deadline(cx).map(|frame| Some(Ok(frame)));
            };
            let mut frame = match polled {
                Some(Ok(frame)) => frame,
                None => {
                    let cut_short = this.cut_short();
                    this.ended = true;
                    return Poll::Ready(cut_short.map(|status| Err(status.into())));
                }
                other => return Poll::Ready(other.map(|frame| frame.map_err(Into::into))),
            };
            this.count(&mut frame);
            if let Some(status) = this.complaint() {
                return Poll::Ready(Some(Err(status.into())));
            }
            match this.unpack(frame) {
                Ok(Some(frame)) => return Poll::Ready(Some(Ok(frame))),
                Ok(None) => {}
                Err(status) => return Poll::Ready(Some(Err(status.into()))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_at_end = self.inner.as_ref().is_none_or(Body::is_end_stream);
        self.refusal.is_none() && is_at_end && self.cut_short().is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // Unpacked, it has another length.
        let inner = self.inner.as_ref().filter(|_| self.unpacker.is_none());
        inner.map_or_else(SizeHint::default, Body::size_hint)
    }
}
