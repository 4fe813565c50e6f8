//! Watches: what to watch, and the stream of what happened.

mod fragment;
mod refusal;
mod session;

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use futures_util::Stream;
use proto::etcdserverpb::{WatchCreateRequest, WatchResponse, watch_create_request::FilterType};
use tokio::sync::mpsc;

use self::session::{Command, Session};
use crate::{Client, Error, call::Caller, op::key_range};

/// The keys to watch, and from which revision on.
///
/// ```
/// let watch = client::Watch::prefix("/jobs/").start_revision(17).prev_kv().no_delete();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watch {
    request: WatchCreateRequest,
}

key_range!(Watch);

impl Watch {
    /// Sets the first revision to report (`start_revision`); 0 means only later changes.
    pub fn start_revision(mut self, revision: i64) -> Self {
        self.request.start_revision = revision;
        self
    }

    /// Adds the key as it was before each event (`prev_kv`).
    pub fn prev_kv(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }

    /// Requests an empty response from time to time (`progress_notify`); its revision shows that
    /// all earlier events were sent.
    pub fn progress_notify(mut self) -> Self {
        self.request.progress_notify = true;
        self
    }

    /// Omits writes (filter `NOPUT`).
    pub fn no_put(self) -> Self {
        self.filter(FilterType::Noput)
    }

    /// Omits deletions (filter `NODELETE`).
    pub fn no_delete(self) -> Self {
        self.filter(FilterType::Nodelete)
    }

    /// Lets the server split large responses (`fragment`); the client joins the parts.
    pub fn fragment(mut self) -> Self {
        self.request.fragment = true;
        self
    }

    fn filter(mut self, filter: FilterType) -> Self {
        self.request.filters.push(filter.into());
        self
    }
}

/// The end of a watch that the client did not request: compacted, rejected, or no leader.
#[derive(Clone, Debug, thiserror::Error)]
#[error("watch was canceled ({error})")]
pub struct Canceled {
    /// The last response of the server. If `compact_revision` is set, the next revision has been
    /// compacted: read the current state and watch from its revision.
    pub response: WatchResponse,
    /// The reason as an error.
    #[source]
    pub error: Error,
}

/// A stream that many watches share. Clones share it, too. It closes when the last handle and watch
/// is dropped.
#[derive(Clone)]
pub struct Watcher {
    commands: mpsc::UnboundedSender<Command>,
    next_id: Arc<AtomicI64>,
}

impl Watcher {
    pub(crate) fn start(caller: Caller) -> Watcher {
        let (commands, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Session::new(caller, receiver).run());
        // 0 would let the server choose an id; choosing here lets creations overlap and survive reconnects.
        Watcher { commands, next_id: Arc::new(AtomicI64::new(1)) }
    }

    /// Starts a watch and returns at once; the request is sent in the background. A rejection
    /// arrives as the first item.
    pub fn watch(&self, watch: Watch) -> WatchStream {
        let (sender, responses) = mpsc::unbounded_channel();
        let id = self.next_id.fetch_add(1, Relaxed);
        let mut request = watch.request;
        request.watch_id = id;
        if let Err(refused) = self.commands.send(Command::Create { request, sender })
            && let Command::Create { sender, .. } = refused.0
        {
            let _ = sender.send(Err(Canceled { response: WatchResponse::default(), error: Error::Closed }));
        }
        WatchStream { id, responses, watcher: self.clone() }
    }

    /// Requests a progress notification for all watches of this stream.
    pub fn request_progress(&self) {
        let _ = self.commands.send(Command::Progress);
    }
}

/// The responses of one watch, in order, each exactly once, also across reconnects. Dropping it
/// cancels the watch.
///
/// Responses are queued without bound until they are taken.
pub struct WatchStream {
    id: i64,
    responses: mpsc::UnboundedReceiver<Result<WatchResponse, Canceled>>,
    watcher: Watcher,
}

impl Stream for WatchStream {
    type Item = Result<WatchResponse, Canceled>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.responses.poll_recv(cx)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        let _ = self.watcher.commands.send(Command::Cancel(self.id));
    }
}

impl Client {
    /// Starts a watch on the stream that all watches of this client share.
    pub fn watch(&self, watch: Watch) -> WatchStream {
        self.shared_watcher().watch(watch)
    }

    /// Requests a progress notification for all watches that [`Client::watch`] started.
    pub fn request_progress(&self) {
        self.shared_watcher().request_progress();
    }

    /// Opens a separate stream for a group of watches.
    pub fn watcher(&self) -> Watcher {
        Watcher::start(self.caller.clone())
    }
}
