//! A connection that writes once for each time its task runs.
//!
//! The HTTP/2 library writes every data frame of more than a few bytes by itself. When many calls are answered at once, or a
//! watch sends many events, those system calls cost more than all else. So what is written while the connection's task
//! runs is held, and leaves in one write when it has run. Nothing is held while the task sleeps, unless the line is full.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What does not fit is written at once, together with what is held.
const HELD_MAX: usize = 64 * 1024;
/// Memory that a connection keeps for its next answers.
const KEPT_BYTES: usize = 16 * 1024;
/// Pieces in one system call.
const PIECES_MAX: usize = 16;

/// All clones are the same connection.
pub(super) struct Corked<S>(Arc<Mutex<Line<S>>>);

impl<S> Clone for Corked<S> {
    fn clone(&self) -> Self {
        Corked(self.0.clone())
    }
}

struct Line<S> {
    stream: S,
    held: Vec<u8>,
    /// Of `held`.
    written: usize,
    is_corked: bool,
}

impl<S: AsyncWrite + Unpin> Corked<S> {
    pub(super) fn new(stream: S) -> Corked<S> {
        Corked(Arc::new(Mutex::new(Line { stream, held: Vec::new(), written: 0, is_corked: false })))
    }

    /// Polls `task`, which writes to this connection, and sends what it has written. Ready when the task is, or when the line
    /// is broken.
    pub(super) fn poll_task(&self, task: Pin<&mut impl Future>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.lock().is_corked = true;
        let done = task.poll(cx).is_ready();
        let mut line = self.0.lock();
        line.is_corked = false;
        let is_broken = matches!(line.poll_drain(cx), Poll::Ready(Err(_)));
        if done || is_broken { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: AsyncWrite + Unpin> Line<S> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.held.len() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.held[self.written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.clear();
        Poll::Ready(Ok(()))
    }

    fn clear(&mut self) {
        self.held.clear();
        self.written = 0;
        if self.held.capacity() > KEPT_BYTES {
            self.held = Vec::new();
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let len = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if self.is_corked && self.held.len() + len <= HELD_MAX {
            bufs.iter().for_each(|buf| self.held.extend_from_slice(buf));
            return Poll::Ready(Ok(len));
        }
        self.poll_write_through(cx, bufs)
    }

    /// Writes what is held and `bufs` in one go. Gives how many bytes of `bufs` are written.
    fn poll_write_through(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let held = &self.held[self.written..];
        if held.is_empty() {
            return Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        }
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        pieces[0] = IoSlice::new(held);
        let count = 1 + bufs.len().min(PIECES_MAX - 1);
        pieces[1..count].copy_from_slice(&bufs[..count - 1]);
        let held = held.len();
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &pieces[..count]))?;
        if written > held {
            self.clear();
            return Poll::Ready(Ok(written - held));
        }
        // The line took no more than what is held, so it is full.
        self.written += written;
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Corked<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Corked<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().stream.is_write_vectored()
    }

    /// What is held goes out when the task has run.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        if !line.is_corked {
            ready!(line.poll_drain(cx))?;
        }
        Pin::new(&mut line.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut line = self.0.lock();
        ready!(line.poll_drain(cx))?;
        Pin::new(&mut line.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Takes so many bytes before it is full, and notes each write.
    #[derive(Default)]
    struct Pipe {
        room: usize,
        writes: Vec<Vec<u8>>,
    }

    impl AsyncWrite for Pipe {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(cx, &[IoSlice::new(buf)])
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let mut bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            bytes.truncate(self.room);
            if bytes.is_empty() {
                return Poll::Pending;
            }
            self.room -= bytes.len();
            self.writes.push(bytes);
            Poll::Ready(Ok(self.writes.last().map_or(0, Vec::len)))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn pipe(room: usize) -> Corked<Pipe> {
        Corked::new(Pipe { room, writes: Vec::new() })
    }

    fn lens(corked: &Corked<Pipe>) -> Vec<usize> {
        corked.0.lock().stream.writes.iter().map(Vec::len).collect()
    }

    fn poll_once(corked: &Corked<Pipe>, task: Pin<&mut impl Future>) -> Poll<()> {
        corked.poll_task(task, &mut Context::from_waker(std::task::Waker::noop()))
    }

    #[test]
    fn a_task_that_runs_once_writes_once() {
        let corked = pipe(usize::MAX);
        let mut io = corked.clone();
        let mut task = pin!(async move {
            for _ in 0..100 {
                io.write_all(&[7; 300]).await.unwrap();
                io.flush().await.unwrap();
            }
            std::future::pending::<()>().await;
        });
        assert!(poll_once(&corked, task.as_mut()).is_pending());
        assert_eq!(lens(&corked), [30_000]);
    }

    #[test]
    fn what_is_too_much_to_hold_goes_with_what_is_held() {
        let corked = pipe(usize::MAX);
        let mut io = corked.clone();
        let mut task = pin!(async move {
            io.write_all(b"head").await.unwrap();
            io.write_all(&[7; HELD_MAX]).await.unwrap();
            io.write_all(b"tail").await.unwrap();
        });
        assert!(poll_once(&corked, task.as_mut()).is_ready());
        assert_eq!(lens(&corked), [4 + HELD_MAX, 4]);
    }

    #[test]
    fn a_full_line_holds_the_writer_up_and_loses_nothing() {
        for room in [1, 3, 4, 5, HELD_MAX] {
            let corked = pipe(0);
            let mut io = corked.clone();
            let mut task = pin!(async move {
                for i in 0..5_u8 {
                    io.write_all(&[i; 4]).await.unwrap();
                    io.write_all(&[i; HELD_MAX]).await.unwrap();
                }
            });
            let mut turns = 0;
            let left = loop {
                let done = poll_once(&corked, task.as_mut()).is_ready();
                let mut line = corked.0.lock();
                assert!(line.held.len() - line.written <= HELD_MAX);
                line.stream.room = if turns % 2 == 0 { room } else { HELD_MAX };
                turns += 1;
                if done {
                    break line.held[line.written..].to_vec();
                }
            };
            let sent = [corked.0.lock().stream.writes.concat(), left].concat();
            let whole: Vec<u8> = (0..5_u8).flat_map(|i| vec![i; 4 + HELD_MAX]).collect();
            assert!(sent == whole, "room {room}");
        }
    }

    #[tokio::test]
    async fn without_its_task_it_is_an_ordinary_connection() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Corked::new(near);
        near.write_all(b"a").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'a');
        let task = {
            let mut near = near.clone();
            async move { near.write_all(b"b").await }
        };
        let mut task = pin!(task);
        poll_fn(|cx| near.poll_task(task.as_mut(), cx)).await;
        near.shutdown().await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'b');
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
    }
}
