//! An answer that may be sent only as long as the required features are on.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::Stream;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use membership::gate::GateChange;
use node::Node;
use tokio_stream::wrappers::WatchStream;
use tonic::Status;

use super::{Kind, Required};
use crate::status;

/// A body that can stand for another one.
pub(crate) trait AnswerBody: http_body::Body<Data = Bytes> + Default + Send + Unpin + Sized + 'static {
    fn of(held: Held<Self>) -> Self;
}

impl AnswerBody for axum::body::Body {
    fn of(held: Held<Self>) -> Self {
        axum::body::Body::new(held)
    }
}

impl AnswerBody for tonic::body::Body {
    fn of(held: Held<Self>) -> Self {
        tonic::body::Body::new(held)
    }
}

/// The body of such an answer. It ends with a status when a feature goes off.
pub(crate) struct Held<B> {
    inner: Option<B>,
    node: Arc<Node>,
    required: Required,
    /// How far the gate was when all was last found on.
    seen: u64,
    /// Only for what waits: other answers are looked at as they are sent.
    changed: Option<WatchStream<u64>>,
}

impl<B: AnswerBody> Held<B> {
    /// An answer that was given before anything was judged is an error, and goes as it is.
    pub(crate) fn hold(body: B, node: Arc<Node>, required: Required, kind: Kind) -> B {
        let Some(seen) = required.judged_at else { return body };
        let changed = (kind == Kind::Stream).then(|| WatchStream::from_changes(node.gates().subscribe()));
        B::of(Held { inner: Some(body), node, required, seen, changed })
    }

    /// Whether all has been on since it was judged: what was off for a moment has been off.
    fn check(&mut self) -> Result<(), Status> {
        self.required.judge(&self.node)?;
        let now = self.required.judged_at.unwrap_or(self.seen);
        if now == self.seen {
            return Ok(());
        }
        if let Some(name) = went_off(&self.node.cluster().gate().history, self.seen, self.required.names()) {
            return Err(status::feature_off(name));
        }
        self.seen = now;
        Ok(())
    }
}

impl<B: AnswerBody> http_body::Body for Held<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        let frame = Pin::new(inner).poll_frame(cx);
        // The gate is looked at behind the frame: whatever is in it was there before.
        let mut look = frame.is_ready();
        if let Some(changed) = &mut this.changed {
            while let Poll::Ready(Some(_)) = Pin::new(&mut *changed).poll_next(cx) {
                look = true;
            }
        }
        if look && let Err(status) = this.check() {
            this.inner = None;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers(&status)))));
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// A feature that a change after `seen` turned off, though it may be on again.
fn went_off<'a>(
    history: &VecDeque<GateChange>,
    seen: u64,
    mut names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let is_off_in = |name: &str, change: &GateChange| change.before.contains(name) && !change.after.contains(name);
    let newer = history.iter().rev().take_while(|change| change.index > seen);
    names.find(|name| newer.clone().any(|change| is_off_in(name, change)))
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    if status.add_header(&mut trailers).is_err() {
        // Our texts are plain; a code says enough if one day they are not.
        trailers.insert(Status::GRPC_STATUS, (status.code() as i32).into());
    }
    trailers
}

#[cfg(test)]
mod tests {
    use membership::gate::Cause;

    use super::*;

    fn change(index: u64, before: &[&str], after: &[&str]) -> GateChange {
        let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let version = proto::Version::new(3, 8);
        GateChange { index, cause: Cause::Agreed, version, before: set(before), after: set(after) }
    }

    #[test]
    fn off_for_a_moment_is_off() {
        let history = VecDeque::from([
            change(3, &[], &["A", "B"]),
            change(5, &["A", "B"], &["B"]),
            change(6, &["B"], &["A", "B"]),
        ]);
        let went_off = |seen, names: &[&'static str]| went_off(&history, seen, names.iter().copied());
        assert_eq!(went_off(4, &["A"]), Some("A"));
        assert_eq!(went_off(4, &["B", "A"]), Some("A"));
        assert_eq!(went_off(4, &["B"]), None, "it stayed on");
        assert_eq!(went_off(5, &["A"]), None, "it was judged after it went off");
    }
}
