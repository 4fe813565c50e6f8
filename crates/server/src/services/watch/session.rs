//! One watch stream: requests in, created and cancelled watchers, events and progress out, in one place.

use std::{
    collections::{BTreeMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use bytes::Bytes;
use failpoint::failpoint;
use futures_util::{Stream, future::BoxFuture, task::AtomicWaker};
use http::HeaderValue;
use mvcc::{Created, WatchError, WatchItem, WatchSpec, WatchStream};
use proto::etcdserverpb::{
    ResponseHeader, WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion,
};
use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep};
use tonic::{Status, Streaming};

use super::{
    pace::Pace,
    reply::{WatchReply, fragments},
};
use crate::{services::Context, status, users::Permit};

/// The id in answers that belong to no watcher.
const NO_WATCHER: i64 = -1;

/// Answers that wait before no more requests are read: a client that asks without listening waits, and holds little memory.
const OUTGOING_MAX: usize = 64;

/// The stream of answers; polling it also reads the requests.
pub(crate) struct WatchSession {
    context: Context,
    requests: Option<Streaming<WatchRequest>>,
    /// Whose stream it is.
    token: Option<HeaderValue>,
    /// A watcher whose owner's rights are looked at; nothing more is read meanwhile.
    judging: Option<Judging>,
    stream: WatchStream,
    waker: Arc<AtomicWaker>,
    /// Answers that go out before any event: a watcher is announced before it speaks.
    outgoing: VecDeque<WatchReply>,
    watchers: BTreeMap<i64, Wants>,
    progress: Interval,
    /// Events that may still go out before requests and the clock are looked at again.
    events_left: u32,
    /// Since the last look: when it was, and how many events went out.
    run: Option<(Instant, usize)>,
    pace: Pace,
    /// Made when the stream rests for the first time.
    rest: Option<Pin<Box<Sleep>>>,
}

struct Judging {
    create: WatchCreateRequest,
    verdict: BoxFuture<'static, Result<Permit, Status>>,
}

/// Looking at requests costs as much as sending an event; a client that cancels in a flood waits for so many.
const EVENTS_PER_LOOK: u32 = 32;

/// What a watcher asked for besides events.
#[derive(Default)]
struct Wants {
    progress: bool,
    /// Nothing was sent since the last progress tick.
    quiet: bool,
    fragment: bool,
}

impl WatchSession {
    pub(crate) fn new(context: Context, requests: Streaming<WatchRequest>, token: Option<HeaderValue>) -> WatchSession {
        let waker = Arc::new(AtomicWaker::new());
        let notify = waker.clone();
        let stream = context.node.store().watch_stream(move || notify.wake());
        let progress = ticks(context.limits.watch_progress_interval);
        WatchSession {
            context,
            requests: Some(requests),
            token,
            judging: None,
            stream,
            waker,
            outgoing: VecDeque::new(),
            watchers: BTreeMap::new(),
            progress,
            events_left: 0,
            run: None,
            pace: Pace::default(),
            rest: None,
        }
    }

    fn handle(&mut self, request: WatchRequest) {
        let begin = Instant::now();
        // Who asks is answered now.
        self.pace.handle_hurry();
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) if self.is_to_be_judged(&create) => self.judge(create),
            Some(RequestUnion::CreateRequest(create)) => self.create(&create),
            Some(RequestUnion::CancelRequest(cancel)) => self.cancel(cancel.watch_id),
            Some(RequestUnion::ProgressRequest(_)) => {
                self.stream.progress_all();
            }
            None => tracing::info!("skipped an empty watch request"),
        }
        self.context.metrics.watch.send_loop_control_stream.observe(begin.elapsed().as_secs_f64());
    }

    /// As in etcd: a revision that cannot be is told to everybody.
    fn is_to_be_judged(&self, create: &WatchCreateRequest) -> bool {
        self.context.node.users().enabled() && create.start_revision >= 0
    }

    fn judge(&mut self, create: WatchCreateRequest) {
        let (context, token) = (self.context.clone(), self.token.clone());
        // No key stands for the first one.
        let key = if create.key.is_empty() { Bytes::from_static(&[0]) } else { create.key.clone() };
        let range_end = create.range_end.clone();
        let verdict = async move {
            context.permit_with(token.as_ref(), |users, who| users.may_read(who, &key, &range_end)).await
        };
        self.judging = Some(Judging { create, verdict: Box::pin(verdict) });
    }

    /// False while somebody's rights are still looked at.
    fn poll_judging(&mut self, cx: &mut TaskContext<'_>) -> bool {
        let Some(judging) = &mut self.judging else { return true };
        let Poll::Ready(verdict) = judging.verdict.as_mut().poll(cx) else { return false };
        if let Some(Judging { create, .. }) = self.judging.take() {
            match verdict {
                Ok(_) => self.create(&create),
                // As Go prints it, which is what clients look for.
                Err(why) => self.refuse(format!("rpc error: code = {:?} desc = {}", why.code(), why.message())),
            }
        }
        true
    }

    fn refuse(&mut self, cancel_reason: String) {
        let (created, canceled) = (true, true);
        let response = WatchResponse { watch_id: NO_WATCHER, created, canceled, cancel_reason, ..Default::default() };
        self.control(self.stream.revision(), response);
    }

    fn create(&mut self, create: &WatchCreateRequest) {
        match self.stream.watch(WatchSpec::from(create)) {
            Ok(Created { id, revision }) => {
                let wants = Wants { progress: create.progress_notify, quiet: true, fragment: create.fragment };
                self.watchers.insert(id, wants);
                self.control(revision, WatchResponse { watch_id: id, created: true, ..Default::default() });
            }
            Err(error) => self.refuse(reason(error)),
        }
    }

    fn cancel(&mut self, watch_id: i64) {
        // As in etcd: a watcher that is not there is not worth an answer.
        if self.stream.cancel(watch_id).is_ok() {
            self.watchers.remove(&watch_id);
            self.control(self.stream.revision(), WatchResponse { watch_id, canceled: true, ..Default::default() });
        }
    }

    fn control(&mut self, revision: i64, mut response: WatchResponse) {
        response.header = Some(self.context.header_at(revision));
        self.outgoing.push_back(WatchReply::Control(Box::new(response)));
    }

    fn events(&mut self, item: WatchItem) -> WatchReply {
        failpoint!("beforeSendWatchResponse");
        let header = self.context.header_at(item.revision);
        let count = item.events.len();
        self.pace.handle_sent(count);
        self.run.get_or_insert_with(|| (Instant::now(), 0)).1 += count;
        let mut fragment = false;
        if let Some(wants) = self.watchers.get_mut(&item.watch_id) {
            wants.quiet &= count == 0;
            fragment = wants.fragment;
        }
        if item.compact_revision != 0 {
            self.watchers.remove(&item.watch_id);
        }
        if fragment {
            return self.in_parts(item, header);
        }
        WatchReply::Events { item, header, part: 0..count, more: false }
    }

    /// The events since the last look are out: a run of the send loop, as etcd's metrics call it.
    fn end_run(&mut self) {
        if let Some((begin, events)) = self.run.take() {
            let (took, watch) = (begin.elapsed().as_secs_f64(), &self.context.metrics.watch);
            watch.send_loop_watch_stream.observe(took);
            watch.send_loop_watch_stream_per_event.observe(took / events.max(1) as f64);
        }
    }

    /// Cuts what is too large for one message; the rest waits.
    fn in_parts(&mut self, item: WatchItem, header: ResponseHeader) -> WatchReply {
        let mut parts = fragments(&item, header, self.context.message_bytes_max());
        let first = parts.remove(0);
        let last = parts.len();
        for (i, part) in parts.into_iter().enumerate() {
            let reply = WatchReply::Events { item: item.clone(), header, part, more: i + 1 < last };
            self.outgoing.push_back(reply);
        }
        WatchReply::Events { item, header, part: first, more: last > 0 }
    }

    /// Tells quiet watchers where the store is.
    fn report_progress(&mut self) {
        let begin = Instant::now();
        for (id, wants) in &mut self.watchers {
            if wants.progress && wants.quiet {
                self.stream.progress(*id);
            }
            wants.quiet = true;
        }
        self.context.metrics.watch.send_loop_progress.observe(begin.elapsed().as_secs_f64());
    }

    /// Whether events are to wait.
    fn poll_rest(&mut self, cx: &mut TaskContext<'_>) -> bool {
        let Some(end) = self.pace.handle_event(Instant::now()) else { return false };
        if self.stream.is_half_full() {
            self.pace.handle_hurry();
            return false;
        }
        self.rest_until(end, cx);
        true
    }

    /// Comes back at `end`, and not for events before it.
    fn rest_until(&mut self, end: Instant, cx: &mut TaskContext<'_>) {
        self.events_left = 0;
        self.stream.hush();
        let rest = self.rest.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if rest.deadline() != end {
            rest.as_mut().reset(end);
        }
        if rest.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    /// Takes requests that have come in, as long as their answers find room: if one is left unread, an answer is
    /// waiting, and taking that polls again. An error ends the stream.
    fn poll_requests(&mut self, cx: &mut TaskContext<'_>) -> Result<(), Status> {
        while self.poll_judging(cx)
            && self.outgoing.len() < OUTGOING_MAX
            && let Some(requests) = &mut self.requests
        {
            match Pin::new(requests).poll_next(cx) {
                Poll::Ready(Some(Ok(request))) => self.handle(request),
                Poll::Ready(Some(Err(status))) => {
                    self.context.metrics.grpc.receive_failed("watch", &status);
                    return Err(status);
                }
                // The client has said all it wants to say, and still listens.
                Poll::Ready(None) => self.requests = None,
                Poll::Pending => break,
            }
        }
        Ok(())
    }
}

impl Stream for WatchSession {
    type Item = Result<WatchReply, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        if let Some(reply) = this.outgoing.pop_front() {
            return Poll::Ready(Some(Ok(reply)));
        }
        if this.events_left > 0
            && let Some(item) = this.stream.next()
        {
            this.events_left -= 1;
            return Poll::Ready(Some(Ok(this.events(item))));
        }
        this.events_left = EVENTS_PER_LOOK;
        this.end_run();
        this.waker.register(cx.waker());
        if let Err(status) = this.poll_requests(cx) {
            return Poll::Ready(Some(Err(status)));
        }
        while this.progress.poll_tick(cx).is_ready() {
            this.report_progress();
        }
        if let Some(reply) = this.outgoing.pop_front() {
            return Poll::Ready(Some(Ok(reply)));
        }
        if this.poll_rest(cx) {
            return Poll::Pending;
        }
        if let Some(item) = this.stream.next() {
            return Poll::Ready(Some(Ok(this.events(item))));
        }
        if let Some(end) = this.pace.handle_dry(Instant::now()) {
            this.rest_until(end, cx);
        }
        Poll::Pending
    }
}

/// Ticks that are a period apart, also when nobody looked for some periods.
fn ticks(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Why a watcher was not made, in the words that clients know.
fn reason(error: WatchError) -> String {
    match error {
        WatchError::EmptyRange => "mvcc: watcher range is empty".into(),
        WatchError::DuplicateId => "mvcc: duplicate watch ID provided on the WatchStream".into(),
        WatchError::NegativeRevision => status::compacted().message().to_owned(),
        WatchError::NotFound => "mvcc: watcher not found".into(),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_was_stalled_reports_progress_once() {
        let period = Duration::from_millis(100);
        let mut ticks = ticks(period);
        tokio::time::advance(10 * period).await;
        assert!(ticks.tick().now_or_never().is_some());
        assert!(ticks.tick().now_or_never().is_none(), "the ticks that were missed do not follow at once");
        tokio::time::advance(period).await;
        assert!(ticks.tick().now_or_never().is_some());
    }
}
