//! HTTP requests to peers: connections of one use, and kept ones for short requests.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;

use crate::{
    dial::{DialError, dial},
    io::{Patience, Timed},
    url::PeerUrl,
};

/// A peer closes a connection that was idle for its read timeout (5 s in etcd). One that was idle for less than this is
/// most likely still open.
const IDLE_MAX: Duration = Duration::from_secs(3);
const IDLE_CONNECTIONS_MAX: usize = 8;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("failed to talk to {url}: {reason}")]
    Http { url: PeerUrl, reason: String },
    #[error("no answer from {url} within {timeout:?}")]
    Timeout { url: PeerUrl, timeout: Duration },
    #[error("the answer of {url} exceeds {max} bytes")]
    TooLarge { url: PeerUrl, max: usize },
}

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as text, without the newline that ends etcd's errors.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim_end_matches('\n').to_string()
    }
}

/// Opens a connection and sends one request on it; the answer's body is still to be read.
pub(crate) async fn request_once<B>(
    url: &PeerUrl,
    request: Request<B>,
    local: Option<IpAddr>,
    dial_timeout: Duration,
    patience: Patience,
) -> Result<Response<Incoming>, RequestError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut sender = connect(url, local, dial_timeout, patience).await?;
    sender.send_request(request).await.map_err(|error| failed(url, &error))
}

async fn connect<B>(
    url: &PeerUrl,
    local: Option<IpAddr>,
    dial_timeout: Duration,
    patience: Patience,
) -> Result<SendRequest<B>, RequestError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = dial(url, local, dial_timeout).await?;
    let io = TokioIo::new(Timed::new(stream, patience));
    let (sender, connection) = handshake(io).await.map_err(|error| failed(url, &error))?;
    // Ends when the sender and the answer's body are gone, or with an error that they see as well.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

fn failed(url: &PeerUrl, error: &hyper::Error) -> RequestError {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        reason = format!("{reason}: {error}");
        source = error.source();
    }
    RequestError::Http { url: url.clone(), reason }
}

/// Sends short requests, on connections that are kept for a while.
pub(crate) struct Client {
    local: Option<IpAddr>,
    dial_timeout: Duration,
    write_timeout: Duration,
    idle: Mutex<HashMap<PeerUrl, Vec<Idle>>>,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    since: Instant,
}

impl Client {
    pub(crate) fn new(local: Option<IpAddr>, dial_timeout: Duration, write_timeout: Duration) -> Client {
        Client { local, dial_timeout, write_timeout, idle: Mutex::default() }
    }

    /// Sends `request` and reads the answer, of at most `answer_bytes_max`, all within `timeout`.
    pub(crate) async fn request(
        &self,
        url: &PeerUrl,
        request: Request<Full<Bytes>>,
        answer_bytes_max: usize,
        timeout: Duration,
    ) -> Result<Answer, RequestError> {
        tokio::time::timeout(timeout, self.exchange(url, request, answer_bytes_max))
            .await
            .map_err(|_| RequestError::Timeout { url: url.clone(), timeout })?
    }

    async fn exchange(
        &self,
        url: &PeerUrl,
        request: Request<Full<Bytes>>,
        answer_bytes_max: usize,
    ) -> Result<Answer, RequestError> {
        let (mut sender, response) = match self.take_idle(url) {
            None => self.on_new_connection(url, request).await?,
            Some(mut sender) => match sender.try_send_request(request).await {
                Ok(response) => (sender, response),
                // The peer closed the connection before it took the request, which can be sent again.
                Err(mut error) => match error.take_message() {
                    Some(request) => self.on_new_connection(url, request).await?,
                    None => return Err(failed(url, error.error())),
                },
            },
        };
        let (head, body) = response.into_parts();
        let body = read_body(url, body, answer_bytes_max).await?;
        if sender.ready().await.is_ok() {
            self.keep(url, sender);
        }
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    async fn on_new_connection(
        &self,
        url: &PeerUrl,
        request: Request<Full<Bytes>>,
    ) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>), RequestError> {
        let patience = Patience { read: None, write: Some(self.write_timeout) };
        let mut sender = connect(url, self.local, self.dial_timeout, patience).await?;
        let response = sender.send_request(request).await.map_err(|error| failed(url, &error))?;
        Ok((sender, response))
    }

    fn take_idle(&self, url: &PeerUrl) -> Option<SendRequest<Full<Bytes>>> {
        let mut idle = self.idle.lock();
        let kept = idle.get_mut(url)?;
        kept.retain(|idle| idle.since.elapsed() < IDLE_MAX && idle.sender.is_ready());
        let sender = kept.pop().map(|idle| idle.sender);
        if kept.is_empty() {
            idle.remove(url);
        }
        sender
    }

    fn keep(&self, url: &PeerUrl, sender: SendRequest<Full<Bytes>>) {
        let mut idle = self.idle.lock();
        let kept = idle.entry(url.clone()).or_default();
        if kept.len() < IDLE_CONNECTIONS_MAX {
            kept.push(Idle { sender, since: Instant::now() });
        }
    }

    pub(crate) fn close_idle(&self) {
        self.idle.lock().clear();
    }
}

/// All of a body, refused as soon as it passes `max`.
pub(crate) async fn read_body(url: &PeerUrl, mut body: Incoming, max: usize) -> Result<Bytes, RequestError> {
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| failed(url, &error))?;
        let Ok(data) = frame.into_data() else { continue };
        if all.len() + data.len() > max {
            return Err(RequestError::TooLarge { url: url.clone(), max });
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}
