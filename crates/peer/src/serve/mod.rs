//! The peer port: one HTTP/1.1 server, and which handler answers what.

mod control;
mod raft;
mod reply;
mod snapshot;

use std::{convert::Infallible, net::SocketAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use http::Request;
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};

use crate::{
    Transport,
    dial::accept,
    io::{Patience, Timed},
};
use reply::Reply;

/// After a failed accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the peer port until the transport is stopped.
pub async fn serve(listener: TcpListener, transport: Transport) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = transport.stopped() => return,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    accept(&stream);
                    connections.spawn(serve_connection(stream, remote, transport.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a peer connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// Serves one connection, on whatever lies under HTTP.
pub async fn serve_connection<S>(stream: S, remote: SocketAddr, transport: Transport)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = &transport.shared().options;
    let patience = Patience { read: None, write: Some(options.write_timeout) };
    let read_timeout = options.read_timeout;
    let service = service_fn(|request| {
        let transport = transport.clone();
        async move { Ok::<_, Infallible>(answer(&transport, remote, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .serve_connection(TokioIo::new(Timed::new(stream, patience)), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(remote_addr = %remote, %error, "a peer connection ended");
    }
}

async fn answer(
    transport: &Transport,
    remote: SocketAddr,
    request: Request<Incoming>,
) -> http::Response<reply::ReplyBody> {
    let Some(member) = transport.shared().member() else {
        return Reply::error(503, "the member is not running").into_response(transport);
    };
    let call = Call { transport, remote };
    let reply = match request.uri().path() {
        "/raft" => raft::post(&call, &*member, request).await,
        "/raft/snapshot" => snapshot::post(&call, &*member, request).await,
        "/raft/probing" => Reply::probing(),
        path if path.starts_with("/raft/stream/") => raft::stream(&call, &*member, &request),
        "/members" => control::members(&call, &*member, &request),
        "/members/hashkv" => control::hash_kv(&call, &*member, request).await,
        path if path.starts_with("/members/promote/") => control::promote(&call, &*member, &request).await,
        "/leases" => control::renew_lease(&call, &*member, request).await,
        "/leases/internal" => control::lease_time_to_live(&call, &*member, request).await,
        "/downgrade/enabled" => control::downgrade_enabled(&call, &*member, &request).await,
        "/version" => control::version(&call, &*member, &request),
        _ => Reply::not_found(),
    };
    reply.into_response(transport)
}

/// What a handler knows besides the request.
struct Call<'a> {
    transport: &'a Transport,
    remote: SocketAddr,
}

enum BodyError {
    TooLarge,
    /// The sender broke off, sent nonsense or nothing for too long.
    Broken(String),
}

impl Call<'_> {
    /// A request's body, of at most `max` bytes. Only a body in several pieces is put together.
    async fn body(&self, mut body: Incoming, max: u64) -> Result<Bytes, BodyError> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(data) = self.next_piece(&mut body).await? {
            if (first.len() + all.len() + data.len()) as u64 > max {
                return Err(BodyError::TooLarge);
            }
            if first.is_empty() && all.is_empty() {
                first = data;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&data);
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }

    /// The next bytes of a body, `None` at its end.
    async fn next_piece(&self, body: &mut Incoming) -> Result<Option<Bytes>, BodyError> {
        let timeout = self.transport.shared().options.read_timeout;
        loop {
            let frame = tokio::time::timeout(timeout, body.frame())
                .await
                .map_err(|_| BodyError::Broken(format!("nothing was received for {timeout:?}")))?;
            match frame.map(|frame| frame.map(http_body::Frame::into_data)) {
                None => return Ok(None),
                Some(Ok(Ok(data))) => return Ok(Some(data)),
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => return Err(BodyError::Broken(error.to_string())),
            }
        }
    }
}
