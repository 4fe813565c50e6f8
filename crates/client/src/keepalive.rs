//! Renewing many leases over one stream, through reconnects.

use std::{
    collections::HashMap,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt};
use proto::etcdserverpb::{LeaseKeepAliveRequest, LeaseKeepAliveResponse, lease_client::LeaseClient};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    Error, Kind, Result,
    call::{Backoff, Caller},
    stream::Broken,
};

/// Between two requests for a lease whose renewal has not been answered.
const RETRY: Duration = Duration::from_millis(500);

/// The renewals of one lease, from [`Client::lease_keep_alive`](crate::Client::lease_keep_alive).
///
/// Ends after an error: the server does not know the lease (any more), or no server could be reached for as long
/// as the lease lives.
pub struct KeepAlive {
    renewals: mpsc::UnboundedReceiver<Result<LeaseKeepAliveResponse>>,
    _keeper: Keeper,
}

impl Stream for KeepAlive {
    type Item = Result<LeaseKeepAliveResponse>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.renewals.poll_recv(cx)
    }
}

type Listener = mpsc::UnboundedSender<Result<LeaseKeepAliveResponse>>;

/// The handle of the task that renews.
#[derive(Clone)]
pub(crate) struct Keeper {
    added: mpsc::UnboundedSender<(i64, Listener)>,
}

impl Keeper {
    pub(crate) fn start(caller: Caller) -> Keeper {
        let (added, receiver) = mpsc::unbounded_channel();
        tokio::spawn(Task { caller, added: receiver, leases: HashMap::new() }.run());
        Keeper { added }
    }

    pub(crate) fn add(&self, id: i64) -> KeepAlive {
        let (sender, renewals) = mpsc::unbounded_channel();
        if let Err(refused) = self.added.send((id, sender)) {
            let _ = refused.0.1.send(Err(Error::Closed));
        }
        KeepAlive { renewals, _keeper: self.clone() }
    }
}

struct Lease {
    listeners: Vec<Listener>,
    next: Instant,
    /// When the lease must be taken for lost.
    deadline: Instant,
}

impl Lease {
    fn tell(&mut self, message: &Result<LeaseKeepAliveResponse>) {
        self.listeners.retain(|listener| listener.send(message.clone()).is_ok());
    }
}

struct Task {
    caller: Caller,
    added: mpsc::UnboundedReceiver<(i64, Listener)>,
    leases: HashMap<i64, Lease>,
}

enum End {
    /// Nobody is left who could add a lease.
    Closed,
    /// Nothing to renew.
    Idle,
    /// The stream broke; `renewed` tells whether it had been of use.
    Lost { renewed: bool },
    /// The same, but with a new token it may go on.
    NewToken { logged_in: bool },
}

impl Task {
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.caller.pool.len());
        let mut token_is_new = false;
        loop {
            if self.leases.is_empty() {
                let Some((id, listener)) = self.added.recv().await else { return };
                self.add(id, listener);
            }
            let end = self.serve(!token_is_new).await;
            token_is_new = matches!(end, End::NewToken { logged_in: true });
            match end {
                End::Closed => return,
                End::NewToken { .. } => {}
                End::Idle | End::Lost { renewed: true } => backoff = Backoff::new(self.caller.pool.len()),
                End::Lost { renewed: false } => backoff.wait().await,
            }
            self.expire();
        }
    }

    /// Renews over one stream until it breaks.
    async fn serve(&mut self, may_renew: bool) -> End {
        let member = self.caller.pool.pick();
        let (requests, receiver) = mpsc::unbounded_channel();
        // The server answers nothing before it is asked, so opening must not hold up asking.
        let open = |channel, _, request| async move { LeaseClient::new(channel).lease_keep_alive(request).await };
        let mut responses = self.caller.stream(member.clone(), receiver, may_renew, open);
        let mut renewed = false;
        loop {
            let Some(due) = self.leases.values().map(|lease| lease.next.min(lease.deadline)).min() else {
                return End::Idle;
            };
            tokio::select! {
                added = self.added.recv() => match added {
                    Some((id, listener)) => self.add(id, listener),
                    None => return End::Closed,
                },
                response = responses.next() => match response {
                    Some(Ok(response)) => {
                        member.succeeded();
                        renewed = true;
                        self.renewed(response);
                    }
                    Some(Err(Broken::Renewed { logged_in })) => return End::NewToken { logged_in },
                    Some(Err(Broken::Failed(error))) => {
                        if self.is_final(&error) {
                            self.fail_all(&error);
                        }
                        return End::Lost { renewed };
                    }
                    None => return End::Lost { renewed },
                },
                _ = tokio::time::sleep_until(due) => {
                    self.expire();
                    self.ask(&requests);
                }
            }
        }
    }

    /// What is required is off, or the server does not know of it, or the password does not hold any more: waiting would only
    /// let the leases run out.
    fn is_final(&self, error: &Error) -> bool {
        let required = !self.caller.required.is_empty() && error.halts_stream();
        required || (self.caller.login.is_some() && error.kind() == Some(Kind::AuthFailed))
    }

    fn fail_all(&mut self, error: &Error) {
        self.leases.drain().for_each(|(_, mut lease)| lease.tell(&Err(error.clone())));
    }

    fn add(&mut self, id: i64, listener: Listener) {
        let now = Instant::now();
        let deadline = now + self.caller.options.dial_timeout + Duration::from_secs(1);
        let lease = self.leases.entry(id).or_insert(Lease { listeners: Vec::new(), next: now, deadline });
        lease.listeners.push(listener);
        lease.next = now;
    }

    fn ask(&mut self, requests: &mpsc::UnboundedSender<LeaseKeepAliveRequest>) {
        let now = Instant::now();
        self.leases.retain(|_, lease| lease.listeners.iter().any(|listener| !listener.is_closed()));
        for (id, lease) in self.leases.iter_mut().filter(|(_, lease)| lease.next <= now) {
            let _ = requests.send(LeaseKeepAliveRequest { id: *id });
            lease.next = now + RETRY;
        }
    }

    fn renewed(&mut self, response: LeaseKeepAliveResponse) {
        let (id, ttl) = (response.id, response.ttl);
        let Some(lease) = self.leases.get_mut(&id) else { return };
        if ttl <= 0 {
            lease.tell(&Err(Error::from_kind(Kind::LeaseNotFound)));
            self.leases.remove(&id);
            return;
        }
        let (now, ttl) = (Instant::now(), Duration::from_secs(ttl.unsigned_abs()));
        lease.next = now + ttl / 3;
        lease.deadline = now + ttl;
        lease.tell(&Ok(response));
    }

    fn expire(&mut self) {
        let now = Instant::now();
        for (id, lease) in self.leases.extract_if(|_, lease| lease.deadline <= now) {
            let mut lease = lease;
            lease.tell(&Err(Error::LeaseLost { id }));
        }
    }
}
