//! One call: which endpoint, which metadata, how long, and when to try again.

use std::{
    future::Future,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use prost::Message;
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status, metadata::MetadataValue, transport::Channel};

use crate::{
    ConnectOptions, Error, Kind, Result,
    login::{Login, Renewal, Token},
    pool::{Member, Pool},
    required::Required,
};

/// Sent with every request; servers count clients by it.
pub const API_VERSION: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

const BACKOFF_MIN: Duration = Duration::from_millis(25);
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Whether a request may reach the servers twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Reads, and writes that come to the same when repeated: tried again whenever a server is unavailable.
    Repeatable,
    /// Tried again only if it certainly was not sent.
    Once,
}

#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub send: usize,
    pub recv: usize,
}

/// Everything a call needs, shared by the client and its background tasks.
#[derive(Clone)]
pub(crate) struct Caller {
    pub pool: Arc<Pool>,
    pub options: Arc<ConnectOptions>,
    pub timeout: Option<Duration>,
    pub require_leader: bool,
    pub required: Required,
    pub login: Option<Arc<Login>>,
    /// Sent where nobody logs in.
    pub token: Token,
}

impl Caller {
    pub(crate) fn limits(&self) -> Limits {
        Limits { send: self.options.send_bytes_max, recv: self.options.recv_bytes_max }
    }

    /// A request with the metadata that every one carries.
    pub(crate) fn request<T>(&self, message: T, token: &Token) -> Request<T> {
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("client-api-version", MetadataValue::from_static(API_VERSION));
        if self.require_leader {
            metadata.insert("hasleader", MetadataValue::from_static("true"));
        }
        self.required.write(metadata);
        token.write(metadata);
        request
    }

    /// The connection to send over.
    pub(crate) async fn channel(&self, member: &Member, token: &Token) -> Result<Channel> {
        if self.required.is_empty() {
            return Ok(member.channel.clone());
        }
        let channel = self.required.channel(member, &self.options, token).await;
        if let Err(Error::Transport { .. }) = &channel {
            member.failed();
        }
        channel
    }

    /// What an answer holds, if its server has heeded what the call requires.
    pub(crate) fn accept<R>(&self, member: &Member, response: Response<R>) -> Result<R> {
        self.required.check_echo(response.metadata(), &member.endpoint)?;
        Ok(response.into_inner())
    }

    pub(crate) async fn call<Q, R, F, S>(&self, policy: Policy, message: Q, send: F) -> Result<R>
    where
        Q: Message + Clone,
        F: Fn(Channel, Limits, Request<Q>) -> S,
        S: Future<Output = Result<Response<R>, Status>>,
    {
        self.check_size(&message)?;
        let deadline = self.timeout.map(|timeout| Instant::now() + timeout);
        let mut last = None;
        let attempts = self.attempts(policy, message, send, deadline, &mut last);
        let Some(deadline) = deadline else { return attempts.await };
        let result = tokio::time::timeout_at(deadline, attempts).await;
        match result.unwrap_or(Err(Error::Timeout { last: None })) {
            Err(Error::Timeout { .. }) => Err(Error::Timeout { last: last.map(Box::new) }),
            result => result,
        }
    }

    async fn attempts<Q, R, F, S>(
        &self,
        policy: Policy,
        message: Q,
        send: F,
        deadline: Option<Instant>,
        last: &mut Option<Error>,
    ) -> Result<R>
    where
        Q: Message + Clone,
        F: Fn(Channel, Limits, Request<Q>) -> S,
        S: Future<Output = Result<Response<R>, Status>>,
    {
        let mut backoff = Backoff::new(self.pool.len());
        let mut renewed = false;
        loop {
            let token = self.token().await?;
            let member = self.pool.pick();
            let mut request = self.request(message.clone(), &token);
            if let Some(deadline) = deadline {
                request.set_timeout(deadline.saturating_duration_since(Instant::now()));
            }
            let result = match self.channel(&member, &token).await {
                Ok(channel) => note(&member, send(channel, self.limits(), request).await).await,
                Err(error) => Err(error),
            };
            let error = match result {
                Ok(response) => return self.accept(&member, response),
                Err(error) => error,
            };
            // The servers have done nothing yet. A second refusal is no matter of the token's age.
            if !renewed && self.renew(&token, &error).await? != Renewal::None {
                renewed = true;
                continue;
            }
            if !self.may_retry(policy, &error, backoff.attempts) {
                return Err(error);
            }
            tracing::debug!(endpoint = member.endpoint, %error, "trying again");
            *last = Some(error);
            backoff.wait().await;
        }
    }

    fn may_retry(&self, policy: Policy, error: &Error, attempts: u32) -> bool {
        if let Error::Transport { sent: false, .. } = error {
            return true; // as long as the caller's time lasts
        }
        if attempts + 1 >= self.options.attempts_max {
            return false;
        }
        // Among several endpoints, the next one may be a voter.
        let learner = error.kind() == Some(Kind::NotSupportedForLearner) && self.pool.len() > 1;
        learner || (policy == Policy::Repeatable && error.is_unavailable())
    }

    fn check_size(&self, message: &impl Message) -> Result<()> {
        let (size, max) = (message.encoded_len(), self.options.send_bytes_max);
        if size <= max {
            return Ok(());
        }
        let message = format!("trying to send message larger than max ({size} vs. {max})");
        Err(Error::Etcd { code: Code::ResourceExhausted, message })
    }
}

/// Turns a status into an error and tells the pool how the endpoint did.
pub(crate) async fn note<R>(member: &Member, result: Result<R, Status>) -> Result<R> {
    let result = result.map_err(|status| Error::from_status(status, &member.endpoint));
    match &result {
        Err(Error::Transport { .. }) => {
            member.failed();
            // It never connects again; the next call that needs one makes another.
            *member.proven.lock().await = None;
        }
        _ => member.succeeded(),
    }
    result
}

/// [`note`] for an error in the middle of a stream.
pub(crate) async fn noted<R>(member: Arc<Member>, status: Status) -> Result<R> {
    note(&member, Err(status)).await
}

/// Waits once per round over the endpoints, longer from round to round.
pub(crate) struct Backoff {
    attempts: u32,
    round: usize,
    wait: Duration,
}

impl Backoff {
    pub(crate) fn new(endpoints: usize) -> Backoff {
        Backoff { attempts: 0, round: endpoints / 2 + 1, wait: BACKOFF_MIN }
    }

    pub(crate) async fn wait(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
        if (self.attempts as usize).is_multiple_of(self.round) {
            tokio::time::sleep(jitter(self.wait)).await;
            self.wait = (self.wait * 2).min(BACKOFF_MAX);
        }
    }
}

/// Up to a tenth more or less, so that many clients do not come back in step.
fn jitter(wait: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 201;
    wait.mul_f64(0.9 + random as f64 / 1000.0)
}

/// One unary or server-streaming call of a generated client, with limits set: `rpc!(caller, Repeatable, KvClient::range, request)`.
macro_rules! rpc {
    ($caller:expr, $policy:ident, $client:ident::$method:ident, $message:expr) => {
        $caller
            .call($crate::call::Policy::$policy, $message, |channel, limits, request| async move {
                $client::new(channel)
                    .max_encoding_message_size(limits.send)
                    .max_decoding_message_size(limits.recv)
                    .$method(request)
                    .await
            })
            .await
    };
}
pub(crate) use rpc;
