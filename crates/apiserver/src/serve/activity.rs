//! The activity of a connection. Idle connections are closed after a while, so that clients that open many and stay silent leave
//! room for others.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::answer::Body;

#[derive(Clone)]
pub(crate) struct Activity {
    state: Arc<Mutex<State>>,
}

struct State {
    under_way: usize,
    /// When the last request ended.
    idle_since: Instant,
}

/// A request under way, until it is dropped.
pub(crate) struct Busy {
    activity: Activity,
}

impl Activity {
    pub(crate) fn new() -> Activity {
        Activity { state: Arc::new(Mutex::new(State { under_way: 0, idle_since: Instant::now() })) }
    }

    pub(crate) fn begin(&self) -> Busy {
        self.state.lock().under_way += 1;
        Busy { activity: self.clone() }
    }

    /// Waits until there has been no request for the time `max`.
    pub(crate) async fn idle_for(&self, max: Duration) {
        loop {
            let wait = self.wait(max);
            if wait.is_zero() {
                return;
            }
            tokio::time::sleep(wait).await;
        }
    }

    fn wait(&self, max: Duration) -> Duration {
        let state = self.state.lock();
        if state.under_way > 0 { max } else { max.saturating_sub(state.idle_since.elapsed()) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.activity.state.lock();
        state.under_way -= 1;
        state.idle_since = Instant::now();
    }
}

impl Busy {
    /// Keeps the request under way until the whole body, such as that of a watch, is sent.
    pub(crate) fn until_sent(self, body: Body) -> Body {
        Answering { body, _busy: self }.boxed_unsync()
    }
}

struct Answering {
    body: Body,
    _busy: Busy,
}

impl http_body::Body for Answering {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_is_idle() {
        let activity = Activity::new();
        let busy = activity.begin();
        let idle = tokio::time::timeout(MAX * 5, activity.idle_for(MAX));
        assert!(idle.await.is_err(), "a request is under way");
        let began = Instant::now();
        drop(busy);
        activity.idle_for(MAX).await;
        assert!(began.elapsed() >= MAX);
    }
}
