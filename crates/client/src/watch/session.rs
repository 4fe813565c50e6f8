//! The task behind a watcher: one stream to one member, opened again elsewhere when it breaks.
//!
//! **Invariant:** `Watching::request.start_revision` is always the first revision that its owner has not been
//! given, or 0 before the server has told where "now" is. Resuming is creating again with the same request.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use futures_util::StreamExt;
use proto::etcdserverpb::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
    watch_client::WatchClient, watch_request::RequestUnion,
};
use tokio::sync::mpsc;
use tonic::Status;

use super::{Canceled, fragment::Fragments, refusal};
use crate::{
    Error, Kind,
    call::{Backoff, Caller},
    pool::Member,
    stream::{Broken, Responses},
};

/// No watch: progress for all watches of the stream, or a watch that was refused and never got an id.
const NO_WATCH: i64 = -1;

pub(super) enum Command {
    Create { request: WatchCreateRequest, sender: Sender },
    Cancel(i64),
    Progress,
}

type Sender = mpsc::UnboundedSender<Result<WatchResponse, Canceled>>;
type Requests = mpsc::UnboundedSender<WatchRequest>;

struct Watching {
    request: WatchCreateRequest,
    sender: Sender,
    /// The progress requests of this stream that were sent before the watch.
    progress_before: u64,
    /// The revision at which this stream's member confirmed the watch.
    created_at: Option<i64>,
}

pub(super) struct Session {
    caller: Caller,
    commands: mpsc::UnboundedReceiver<Command>,
    watches: BTreeMap<i64, Watching>,
    /// Watches asked for over this stream and not answered, in their order, which is that of the answers.
    asked: VecDeque<i64>,
    /// Progress requests sent over this stream.
    progress_requests: u64,
    /// Progress notifications for all watches that came over this stream.
    progress_responses: u64,
}

enum End {
    Closed,
    Broken(Option<Broken>),
}

impl Session {
    pub(super) fn new(caller: Caller, commands: mpsc::UnboundedReceiver<Command>) -> Session {
        Session {
            caller,
            commands,
            watches: BTreeMap::new(),
            asked: VecDeque::new(),
            progress_requests: 0,
            progress_responses: 0,
        }
    }

    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(self.caller.pool.len());
        let mut renewed = false;
        loop {
            while self.watches.is_empty() {
                let Some(command) = self.commands.recv().await else { return };
                self.obey(command, None);
            }
            let (end, answered) = self.serve(!renewed).await;
            if answered {
                renewed = false;
                backoff = Backoff::new(self.caller.pool.len());
            }
            match end {
                End::Closed => return,
                End::Broken(Some(Broken::Renewed { logged_in })) => renewed = logged_in,
                End::Broken(Some(Broken::Failed(error))) if self.is_final(&error) => self.fail_all(error),
                End::Broken(_) => backoff.wait().await,
            }
        }
    }

    /// Serves one stream until it breaks; also tells whether the server answered at all.
    async fn serve(&mut self, may_renew: bool) -> (End, bool) {
        let member = self.caller.pool.pick();
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut responses = self.open(member.clone(), receiver, may_renew);
        let mut fragments = Fragments::default();
        let mut answered = false;
        self.asked = self.watches.keys().copied().collect();
        (self.progress_requests, self.progress_responses) = (0, 0);
        for watching in self.watches.values_mut() {
            (watching.progress_before, watching.created_at) = (0, None);
            send(&requests, RequestUnion::CreateRequest(watching.request.clone()));
        }
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.obey(command, Some(&requests)),
                    None => return (End::Closed, answered),
                },
                response = responses.next() => match response {
                    Some(Ok(response)) => {
                        if !answered {
                            member.succeeded();
                            answered = true;
                        }
                        if let Some(response) = fragments.join(response) {
                            self.handle_response(response, &requests);
                        }
                    }
                    Some(Err(broken)) => return (End::Broken(Some(broken)), answered),
                    None => return (End::Broken(None), answered),
                },
            }
        }
    }

    fn open(
        &self,
        member: Arc<Member>,
        receiver: mpsc::UnboundedReceiver<WatchRequest>,
        may_renew: bool,
    ) -> Responses<WatchResponse> {
        let has_login = self.caller.login.is_some();
        self.caller.stream(member, receiver, may_renew, move |channel, limits, request| async move {
            let response = WatchClient::new(channel).max_decoding_message_size(limits.recv).watch(request).await?;
            let check = move |answer: Result<_, Status>| answer.and_then(|answer| refused_token(answer, has_login));
            Ok(response.map(|answers| answers.map(check)))
        })
    }

    fn obey(&mut self, command: Command, requests: Option<&Requests>) {
        let union = match command {
            Command::Create { request, sender } => {
                let progress_before = self.progress_requests;
                let watching = Watching { request: request.clone(), sender, progress_before, created_at: None };
                self.watches.insert(request.watch_id, watching);
                if requests.is_some() {
                    self.asked.push_back(request.watch_id);
                }
                RequestUnion::CreateRequest(request)
            }
            Command::Cancel(id) => match self.watches.remove(&id) {
                Some(_) => RequestUnion::CancelRequest(WatchCancelRequest { watch_id: id }),
                None => return,
            },
            Command::Progress => {
                self.progress_requests += u64::from(requests.is_some());
                RequestUnion::ProgressRequest(WatchProgressRequest {})
            }
        };
        if let Some(requests) = requests {
            send(requests, union);
        }
    }

    fn handle_response(&mut self, response: WatchResponse, requests: &Requests) {
        let id = match response.watch_id {
            NO_WATCH if !response.created => return self.handle_progress(&response),
            NO_WATCH => self.asked.pop_front().unwrap_or(NO_WATCH),
            id => id,
        };
        if response.created {
            self.asked.retain(|asked| *asked != id);
        }
        let Some(watching) = self.watches.get_mut(&id) else { return };
        if response.canceled {
            let error = refusal::error(&response);
            let _ = watching.sender.send(Err(Canceled { response, error }));
            self.watches.remove(&id);
        } else if response.created {
            watching.handle_created(&response);
        } else if !watching.deliver(response) {
            self.watches.remove(&id);
            send(requests, RequestUnion::CancelRequest(WatchCancelRequest { watch_id: id }));
        }
    }

    /// A notification holds for the watches that the member knew when it handled the progress request.
    fn handle_progress(&mut self, response: &WatchResponse) {
        let earlier = self.progress_responses;
        self.progress_responses += 1;
        for (id, watching) in &mut self.watches {
            if watching.is_covered(revision(response), earlier) {
                watching.deliver(WatchResponse { watch_id: *id, ..response.clone() });
            }
        }
    }

    fn is_final(&self, error: &Error) -> bool {
        error.halts_stream() || (self.caller.require_leader && error.kind() == Some(Kind::NoLeader))
    }

    fn fail_all(&mut self, error: Error) {
        for (id, watching) in std::mem::take(&mut self.watches) {
            let response = WatchResponse { watch_id: id, canceled: true, ..Default::default() };
            let _ = watching.sender.send(Err(Canceled { response, error: error.clone() }));
        }
    }
}

impl Watching {
    fn handle_created(&mut self, response: &WatchResponse) {
        self.created_at = Some(revision(response));
        // The server starts right after the revision it answers with.
        if self.request.start_revision == 0 {
            self.request.start_revision = revision(response) + 1;
        }
    }

    /// Returns whether a progress notification at `revision`, before which `earlier` others came over this stream, holds
    /// for this watch too. A notification that the member made before it knew the watch says nothing about the watch's
    /// history, and may arrive after the watch was confirmed: real etcd sends confirmations past notifications.
    fn is_covered(&self, revision: i64, earlier: u64) -> bool {
        let Some(created_at) = self.created_at else { return false };
        // Members handle requests in order and may ignore requests for progress, so this notification answers the
        // request with this number or a later one.
        let asked_with_watch = earlier >= self.progress_before;
        asked_with_watch || created_at < revision || revision < self.request.start_revision
    }

    /// Hands on a response and moves the start revision past it; false if nobody listens. Every event is handed on: the
    /// server sends none before the start revision that was requested.
    fn deliver(&mut self, response: WatchResponse) -> bool {
        let kv = response.events.last().and_then(|event| event.kv.as_ref());
        let seen = kv.map_or_else(|| revision(&response), |kv| kv.mod_revision);
        self.request.start_revision = self.request.start_revision.max(seen + 1);
        self.sender.send(Ok(response)).is_ok()
    }
}

fn send(requests: &Requests, union: RequestUnion) {
    let _ = requests.send(WatchRequest { request_union: Some(union) });
}

fn revision(response: &WatchResponse) -> i64 {
    response.header.as_ref().map_or(0, |header| header.revision)
}

/// A watch is refused for its token in an answer, where a call would fail; with a login it makes the stream fail, too, so
/// that all watches begin again under a new token.
fn refused_token(answer: WatchResponse, has_login: bool) -> Result<WatchResponse, Status> {
    let refused = has_login && answer.created && answer.canceled;
    let error = refused.then(|| refusal::error(&answer)).filter(Error::is_about_token);
    match error.and_then(|error| error.kind()) {
        Some(kind) => Err(Status::new(kind.code(), kind.message())),
        None => Ok(answer),
    }
}

#[cfg(test)]
mod tests;
