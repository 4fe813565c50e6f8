//! A connection that fails when nothing moves on it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// How long a connection may stand still. Progress in either direction counts for both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// While a read waits.
    pub read: Option<Duration>,
    /// While a write waits.
    pub write: Option<Duration>,
}

/// The timer is set anew only when it fires, so that traffic does not cost a timer operation each time.
pub(crate) struct Timed<S> {
    stream: S,
    patience: Patience,
    moved: Instant,
    /// A write has been waiting since `moved` or later.
    stalled: Option<Instant>,
    read_timer: Pin<Box<Sleep>>,
    write_timer: Pin<Box<Sleep>>,
}

impl<S> Timed<S> {
    pub(crate) fn new(stream: S, patience: Patience) -> Timed<S> {
        let timer = || Box::pin(tokio::time::sleep(Duration::ZERO));
        let (read_timer, write_timer) = (timer(), timer());
        Timed { stream, patience, moved: Instant::now(), stalled: None, read_timer, write_timer }
    }

    fn progress(&mut self) {
        self.moved = Instant::now();
        self.stalled = None;
    }

    fn poll_written<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(result) = poll {
            self.progress();
            return Poll::Ready(result);
        }
        let Some(patience) = self.patience.write else { return Poll::Pending };
        let since = *self.stalled.get_or_insert_with(Instant::now);
        ready!(poll_deadline(&mut self.write_timer, since + patience, cx));
        Poll::Ready(Err(timed_out("write", patience)))
    }
}

/// Ready once `deadline` has passed.
fn poll_deadline(timer: &mut Pin<Box<Sleep>>, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        ready!(timer.as_mut().poll(cx));
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        timer.as_mut().reset(deadline);
    }
}

fn timed_out(what: &str, patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("{what} made no progress for {patience:?}"))
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(result) = Pin::new(&mut this.stream).poll_read(cx, buf) {
            this.moved = Instant::now();
            return Poll::Ready(result);
        }
        let Some(patience) = this.patience.read else { return Poll::Pending };
        ready!(poll_deadline(&mut this.read_timer, this.moved + patience, cx));
        Poll::Ready(Err(timed_out("read", patience)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.poll_written(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.poll_written(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const PATIENCE: Patience = Patience { read: Some(Duration::from_secs(5)), write: Some(Duration::from_secs(5)) };

    #[tokio::test(start_paused = true)]
    async fn silence_is_found() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = Timed::new(near, PATIENCE);
        let mut buf = [0; 8];
        far.write_all(b"a").await.unwrap();
        assert_eq!(near.read(&mut buf).await.unwrap(), 1);
        let start = Instant::now();
        let later = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            far.write_all(b"b").await.unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(far);
        });
        assert_eq!(near.read(&mut buf).await.unwrap(), 1);
        assert_eq!(near.read(&mut buf).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 9);
        later.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_pipe_is_found() {
        let (near, far) = tokio::io::duplex(4);
        let mut near = Timed::new(near, PATIENCE);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let start = Instant::now();
        assert_eq!(near.write_all(&[0; 100]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 5, "counted from where the write got stuck");
        drop(far);
    }
}
