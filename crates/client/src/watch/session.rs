//! The task behind a watcher: one stream to one member, opened again elsewhere when it breaks.
//!
//! **Invariant:** `Watching::request.start_revision` is always the first revision that its owner has not been
//! given, or 0 before the server has told where "now" is. Resuming is creating again with the same request.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use proto::etcdserverpb::{
    WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
    watch_client::WatchClient, watch_request::RequestUnion,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::Code;

use super::{Canceled, fragment::Fragments};
use crate::{
    Error, Kind,
    call::{Backoff, Caller, note, noted},
    pool::Member,
};

/// Progress for all watches of the stream.
const EVERY_WATCH: i64 = -1;

pub(super) enum Command {
    Create { request: WatchCreateRequest, sender: Sender },
    Cancel(i64),
    Progress,
}

type Sender = mpsc::UnboundedSender<Result<WatchResponse, Canceled>>;
type Requests = mpsc::UnboundedSender<WatchRequest>;
type Responses = BoxStream<'static, Result<WatchResponse, Error>>;

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
}

enum End {
    Closed,
    Broken(Option<Error>),
}

impl Session {
    pub fn new(caller: Caller, commands: mpsc::UnboundedReceiver<Command>) -> Session {
        Session { caller, commands, watches: BTreeMap::new() }
    }

    pub async fn run(mut self) {
        let mut backoff = Backoff::new(self.caller.pool.len());
        loop {
            while self.watches.is_empty() {
                let Some(command) = self.commands.recv().await else { return };
                self.obey(command, None);
            }
            let (end, answered) = self.serve().await;
            if answered {
                backoff = Backoff::new(self.caller.pool.len());
            }
            match end {
                End::Closed => return,
                End::Broken(Some(error)) if self.is_final(&error) => self.fail_all(error),
                End::Broken(_) => backoff.wait().await,
            }
        }
    }

    /// Serves one stream until it breaks; also tells whether the server answered at all.
    async fn serve(&mut self) -> (End, bool) {
        let member = self.caller.pool.pick();
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut responses = self.open(member.clone(), receiver);
        let mut fragments = Fragments::default();
        let mut answered = false;
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
                    Some(Err(error)) => return (End::Broken(Some(error)), answered),
                    None => return (End::Broken(None), answered),
                },
            }
        }
    }

    fn open(&self, member: Arc<Member>, receiver: mpsc::UnboundedReceiver<WatchRequest>) -> Responses {
        let caller = self.caller.clone();
        // The server sends its headers with its first answer, so opening must not hold up requests.
        let open = async move {
            let request = caller.request(UnboundedReceiverStream::new(receiver));
            let channel = caller.channel(&member).await?;
            let mut client = WatchClient::new(channel).max_decoding_message_size(caller.limits().recv);
            let answers = caller.accept(&member, note(&member, client.watch(request).await).await?)?;
            Ok(answers.or_else(move |status| noted(member.clone(), status)))
        };
        stream::once(open).try_flatten().boxed()
    }

    fn obey(&mut self, command: Command, requests: Option<&Requests>) {
        let union = match command {
            Command::Create { request, sender } => {
                let watching = Watching { request: request.clone(), sender, created: false };
                self.watches.insert(request.watch_id, watching);
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
        if response.watch_id == EVERY_WATCH {
            return self.handle_progress(&response);
        }
        let id = response.watch_id;
        let Some(watching) = self.watches.get_mut(&id) else { return };
        if response.canceled {
            let error = cancel_error(&response);
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

fn cancel_error(response: &WatchResponse) -> Error {
    if response.compact_revision != 0 {
        Error::from_kind(Kind::Compacted)
    } else if response.cancel_reason.is_empty() {
        Error::from_kind(Kind::FutureRevision)
    } else {
        Error::Etcd { code: Code::FailedPrecondition, message: response.cancel_reason.clone() }
    }
}
