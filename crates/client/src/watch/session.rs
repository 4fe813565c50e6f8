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
    /// Whether this stream's member has confirmed the watch.
    created: bool,
}

pub(super) struct Session {
    caller: Caller,
    commands: mpsc::UnboundedReceiver<Command>,
    watches: BTreeMap<i64, Watching>,
    /// Watches asked for over this stream and not answered, in their order, which is that of the answers.
    asked: VecDeque<i64>,
}

enum End {
    Closed,
    Broken(Option<Broken>),
}

impl Session {
    pub(super) fn new(caller: Caller, commands: mpsc::UnboundedReceiver<Command>) -> Session {
        Session { caller, commands, watches: BTreeMap::new(), asked: VecDeque::new() }
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
        for watching in self.watches.values_mut() {
            watching.created = false;
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
                let watching = Watching { request: request.clone(), sender, created: false };
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
            Command::Progress => RequestUnion::ProgressRequest(WatchProgressRequest {}),
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

    /// A member answers for the watches it has confirmed, and only when all of them have seen everything.
    fn handle_progress(&mut self, response: &WatchResponse) {
        for (id, watching) in self.watches.iter_mut().filter(|(_, watching)| watching.created) {
            watching.deliver(WatchResponse { watch_id: *id, ..response.clone() });
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
        self.created = true;
        // The server starts right after the revision it answers with.
        if self.request.start_revision == 0 {
            self.request.start_revision = revision(response) + 1;
        }
    }

    /// Hands on what is new and moves the start revision past it; false if nobody listens.
    fn deliver(&mut self, mut response: WatchResponse) -> bool {
        let next = &mut self.request.start_revision;
        if response.events.is_empty() {
            *next = (*next).max(revision(&response) + 1);
            return self.sender.send(Ok(response)).is_ok();
        }
        let start = *next;
        let mod_revision = |event: &proto::mvccpb::Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
        response.events.retain(|event| mod_revision(event) >= start);
        let Some(last) = response.events.last() else { return true };
        *next = mod_revision(last) + 1;
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
