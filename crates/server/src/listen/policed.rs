//! A connection whose client is left when it pings too often. The HTTP/2 library answers pings and tells nobody, so frames
//! are followed here, on their way.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    frame::{Frames, goaway},
    ping_policy::PingPolicy,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const ENHANCE_YOUR_CALM: u32 = 11;

pub(super) struct Policed<S> {
    stream: S,
    protocol: Protocol,
    received: Frames,
    sent: Frames,
    policy: PingPolicy,
}

enum Protocol {
    /// So many bytes are those of HTTP/2's preface.
    Unknown(usize),
    Http1,
    Http2,
}

impl<S: AsyncWrite + Unpin> Policed<S> {
    pub(super) fn new(stream: S, min_time: Duration) -> Policed<S> {
        let (received, sent) = (Frames::default(), Frames::default());
        Policed { stream, protocol: Protocol::Unknown(0), received, sent, policy: PingPolicy::new(min_time) }
    }

    /// False if the client has pinged too often.
    fn note_received(&mut self, bytes: &[u8]) -> bool {
        let frames = match self.protocol {
            Protocol::Http1 => return true,
            Protocol::Http2 => bytes,
            Protocol::Unknown(seen) => {
                let count = bytes.len().min(PREFACE.len() - seen);
                if bytes[..count] != PREFACE[seen..seen + count] {
                    self.protocol = Protocol::Http1;
                    return true;
                }
                let is_whole = seen + count == PREFACE.len();
                self.protocol = if is_whole { Protocol::Http2 } else { Protocol::Unknown(seen + count) };
                &bytes[count..]
            }
        };
        let mut too_many = false;
        self.received.read(frames, |frame| too_many |= self.policy.handle_received(frame, Instant::now));
        !too_many
    }

    fn note_sent<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>, mut count: usize) {
        if !matches!(self.protocol, Protocol::Http2) {
            return;
        }
        for piece in pieces {
            let taken = count.min(piece.len());
            self.sent.read(&piece[..taken], |frame| self.policy.handle_sent(frame));
            count -= taken;
        }
    }

    /// Says why, if no frame is half sent and the line takes it at once, and ends the connection.
    fn leave(&mut self, cx: &mut Context<'_>) -> io::Error {
        if self.sent.is_between() {
            let frame = goaway(self.policy.newest(), ENHANCE_YOUR_CALM, b"too_many_pings");
            let _ = Pin::new(&mut self.stream).poll_write(cx, &frame);
            let _ = Pin::new(&mut self.stream).poll_shutdown(cx);
        }
        io::Error::new(io::ErrorKind::ConnectionAborted, "got too many pings from the client")
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Policed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let is_calm = this.note_received(&buf.filled()[before..]);
        Poll::Ready(if is_calm { Ok(()) } else { Err(this.leave(cx)) })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Policed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write(cx, buf))?;
        this.note_sent(std::iter::once(buf), count);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.stream).poll_write_vectored(cx, bufs))?;
        this.note_sent(bufs.iter().map(|buf| &**buf), count);
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
