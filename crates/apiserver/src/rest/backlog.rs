//! Events that wait for one client. They wait only here: the sender checks whether the backlog is full, and stops until there is
//! room again.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use futures_util::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The limits of the bytes that wait for a client, and of the time in which it takes none of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub bytes_max: usize,
    pub patience: Duration,
}

/// The client is gone, or has to watch again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended;

/// The sending end. The stream ends when it is dropped.
pub(super) struct Feed {
    shared: Arc<Shared>,
    limits: Limits,
}

/// The receiving end.
pub(super) struct Flow {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when an event was taken, or when the receiving end is dropped.
    taken: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Bytes>,
    bytes: usize,
    /// True if the sending end is dropped.
    fed: bool,
    /// True if the receiving end is dropped or the client was too slow.
    gone: bool,
    /// True if the sending end waits for room and has to be notified of events that are taken.
    awaited: bool,
    waker: Option<Waker>,
}

pub(super) fn new(limits: Limits) -> (Feed, Flow) {
    let shared = Arc::new(Shared::default());
    (Feed { shared: shared.clone(), limits }, Flow { shared })
}

impl Feed {
    pub(super) fn put(&self, event: Bytes) -> Result<(), Ended> {
        let mut state = self.shared.state.lock();
        if state.gone {
            return Err(Ended);
        }
        state.bytes += event.len();
        state.events.push_back(event);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.shared.state.lock().bytes > self.limits.bytes_max
    }

    /// Waits until half of a full backlog is free. A client that takes nothing for too long is given up, and its waiting
    /// events are dropped: it knows the last event that it got, and can resume there.
    pub(super) async fn room(&self) -> Result<(), Ended> {
        loop {
            let taken = self.shared.taken.notified();
            {
                let mut state = self.shared.state.lock();
                if state.gone {
                    return Err(Ended);
                }
                state.awaited = state.bytes > self.limits.bytes_max / 2;
                if !state.awaited {
                    return Ok(());
                }
            }
            if tokio::time::timeout(self.limits.patience, taken).await.is_err() {
                let mut state = self.shared.state.lock();
                state.events = VecDeque::new();
                state.bytes = 0;
                return Err(Ended);
            }
        }
    }

    /// Waits until the receiving end is dropped.
    pub(super) async fn gone(&self) {
        loop {
            let taken = self.shared.taken.notified();
            if self.shared.state.lock().gone {
                return;
            }
            taken.await;
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.fed = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Stream for Flow {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.shared.state.lock();
        match state.events.pop_front() {
            Some(event) => {
                state.bytes -= event.len();
                let awaited = state.awaited;
                drop(state);
                if awaited {
                    self.shared.taken.notify_one();
                }
                Poll::Ready(Some(event))
            }
            None if state.fed => Poll::Ready(None),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.gone = true;
        state.events = VecDeque::new();
        drop(state);
        self.shared.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    fn limits(bytes_max: usize) -> Limits {
        Limits { bytes_max, patience: Duration::from_secs(60) }
    }

    /// Runs a test in virtual time.
    fn run(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn events_come_out_in_order_and_the_end_after_the_last() {
        run(async {
            let (feed, mut flow) = new(limits(10));
            feed.put(Bytes::from_static(b"a")).unwrap();
            feed.put(Bytes::from_static(b"b")).unwrap();
            drop(feed);
            assert_eq!(flow.next().await, Some(Bytes::from_static(b"a")));
            assert_eq!(flow.next().await, Some(Bytes::from_static(b"b")));
            assert_eq!(flow.next().await, None);
        });
    }

    #[test]
    fn a_client_that_takes_nothing_is_disconnected_and_its_events_are_dropped() {
        run(async {
            let (feed, mut flow) = new(Limits { patience: Duration::from_millis(20), ..limits(10) });
            feed.put(Bytes::from(vec![0; 11])).unwrap();
            assert!(feed.is_full());
            assert_eq!(feed.room().await, Err(Ended));
            assert!(!feed.is_full(), "waiting events are dropped");
            drop(feed);
            assert_eq!(flow.next().await, None);
        });
    }

    #[test]
    fn a_client_that_takes_a_little_is_waited_for() {
        run(async {
            let (feed, mut flow) = new(limits(3));
            (0..8).for_each(|_| feed.put(Bytes::from_static(b"x")).unwrap());
            let slow = async {
                for _ in 0..8 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    flow.next().await;
                }
            };
            let (room, ()) = tokio::join!(feed.room(), slow);
            assert_eq!(room, Ok(()));
        });
    }

    #[test]
    fn a_disconnected_client_is_noticed() {
        run(async {
            let (feed, flow) = new(limits(10));
            drop(flow);
            feed.gone().await;
            assert_eq!((feed.put(Bytes::new()), feed.room().await), (Err(Ended), Err(Ended)));
        });
    }
}
