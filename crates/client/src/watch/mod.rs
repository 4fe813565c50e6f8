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

/// What to watch.
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
    /// The first revision of interest; 0 means from now on.
    pub fn start_revision(mut self, revision: i64) -> Self {
        self.request.start_revision = revision;
        self
    }

    pub fn prev_kv(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }

    /// Empty responses from time to time that tell up to which revision everything has been seen.
    pub fn progress_notify(mut self) -> Self {
        self.request.progress_notify = true;
        self
    }

    pub fn no_put(self) -> Self {
        self.filter(FilterType::Noput)
    }

    pub fn no_delete(self) -> Self {
        self.filter(FilterType::Nodelete)
    }

    /// Lets the server cut large responses; the client joins them again.
    pub fn fragment(mut self) -> Self {
        self.request.fragment = true;
        self
    }

    fn filter(mut self, filter: FilterType) -> Self {
        self.request.filters.push(filter.into());
        self
    }
}

/// The end of a watch by the server or for good: compacted, refused, no leader.
#[derive(Clone, Debug, thiserror::Error)]
#[error("watch was canceled ({error})")]
pub struct Canceled {
    /// The server's last word. `compact_revision` is set if the next revision of interest is gone: read the
    /// state again, then watch from there.
    pub response: WatchResponse,
    #[source]
    pub error: Error,
}

/// Many watches over one stream. Clones share it; it closes when the last handle and watch is dropped.
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

    /// Begins to watch. Returns at once; the server is asked in the background.
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

    /// Asks the server to tell all watches of this stream how far they are.
    pub fn request_progress(&self) {
        let _ = self.commands.send(Command::Progress);
    }
}

/// The responses of one watch, in order, none twice and none missing, also over reconnects. Dropping it cancels.
///
/// Responses queue up without bound while they are not taken: take them as they come.
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
    /// Watches over the stream that all watches of this client share.
    pub fn watch(&self, watch: Watch) -> WatchStream {
        self.shared_watcher().watch(watch)
    }

    /// Asks how far the watches of [`Client::watch`] are.
    pub fn request_progress(&self) {
        self.shared_watcher().request_progress();
    }

    /// A stream of its own for a group of watches.
    pub fn watcher(&self) -> Watcher {
        Watcher::start(self.caller.clone())
    }
}
