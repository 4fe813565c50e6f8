//! Wake-ups from other threads, handed on together.
//!
//! The raft and apply threads answer many calls at once. If each answer woke its call by itself, each would cost a system
//! call here, and the runtime would run one call, then its connection's writer, then the next call: as many writes as answers.
//! So such wake-ups are put into the thread's mailbox, and one task of that thread hands on all that are there. The
//! writer's turn then comes after all of them, and one write takes all their answers.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use parking_lot::Mutex;
use pin_project_lite::pin_project;

thread_local! {
    static MAILBOX: RefCell<Option<Arc<Mailbox>>> = const { RefCell::new(None) };
    /// The number of this thread's mailbox; looked at for every wake-up.
    static HERE: Cell<usize> = const { Cell::new(NOWHERE) };
}

const NOWHERE: usize = 0;

/// What other threads want to wake on this one.
struct Mailbox {
    number: usize,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    posted: Vec<Arc<Wakeup>>,
    /// Whoever empties the box, while it is empty.
    postman: Option<Waker>,
}

/// Gives the current thread, which must be all of its runtime, a mailbox. What is returned empties it, without end.
pub(crate) fn open_mailbox() -> impl Future<Output = ()> {
    static NEXT: AtomicUsize = AtomicUsize::new(NOWHERE + 1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mailbox = Arc::new(Mailbox { number, inside: Mutex::default() });
    HERE.set(number);
    MAILBOX.set(Some(mailbox.clone()));
    poll_fn(move |cx| mailbox.poll_deliver(cx))
}

impl Mailbox {
    fn post(&self, wakeup: Arc<Wakeup>) {
        let postman = {
            let mut inside = self.inside.lock();
            inside.posted.push(wakeup);
            inside.postman.take()
        };
        if let Some(postman) = postman {
            postman.wake();
        }
    }

    fn poll_deliver(&self, cx: &Context<'_>) -> Poll<()> {
        let posted = {
            let mut inside = self.inside.lock();
            inside.postman = Some(cx.waker().clone());
            std::mem::take(&mut inside.posted)
        };
        for wakeup in posted {
            // Before the task is woken: what comes after this must be handed on again.
            wakeup.is_posted.store(false, Ordering::Release);
            wakeup.wake_task();
        }
        Poll::Pending
    }
}

/// How a task is woken.
struct Wakeup {
    mailbox: Arc<Mailbox>,
    task: Mutex<Option<Waker>>,
    is_posted: AtomicBool,
}

impl Wakeup {
    fn wake_task(&self) {
        if let Some(task) = &*self.task.lock() {
            task.wake_by_ref();
        }
    }

    fn set_task(&self, task: &Waker) {
        let mut known = self.task.lock();
        if !known.as_ref().is_some_and(|known| known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // A thread that ends has no number any more; then the mailbox is right as well.
        if HERE.try_with(Cell::get) == Ok(self.mailbox.number) {
            self.wake_task();
        } else if !self.is_posted.swap(true, Ordering::AcqRel) {
            self.mailbox.post(self.clone());
        }
    }
}

pin_project! {
    /// A future that is woken through its thread's mailbox.
    struct Gathered<F> {
        #[pin]
        future: F,
        wakeup: Arc<Wakeup>,
        waker: Waker,
    }
}

impl<F> Gathered<F> {
    fn new(future: F, mailbox: Arc<Mailbox>) -> Gathered<F> {
        let wakeup = Arc::new(Wakeup { mailbox, task: Mutex::default(), is_posted: AtomicBool::new(false) });
        Gathered { future, waker: wakeup.clone().into(), wakeup }
    }
}

impl<F: Future> Future for Gathered<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.wakeup.set_task(cx.waker());
        this.future.poll(&mut Context::from_waker(this.waker))
    }
}

/// Runs the calls of a connection, each woken through the thread's mailbox if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Executor;

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        match MAILBOX.with_borrow(Clone::clone) {
            Some(mailbox) => drop(tokio::spawn(Gathered::new(future, mailbox))),
            None => drop(tokio::spawn(future)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use harness::wait_max;
    use hyper::rt::Executor as _;
    use tokio::{
        runtime::Builder,
        sync::{mpsc, oneshot},
        time::timeout,
    };

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::spawn(open_mailbox());
            timeout(wait_max(), test).await.unwrap();
        });
    }

    /// The writer of a connection is woken by the first answer and runs when all answers are there.
    #[test]
    fn answers_from_another_thread_arrive_together() {
        run(async {
            let (answers, calls): (Vec<_>, Vec<_>) = (0..20).map(|_| oneshot::channel::<()>()).unzip();
            let (written, mut writer) = mpsc::unbounded_channel();
            for call in calls {
                let written = written.clone();
                Executor.execute(async move { written.send(call.await).unwrap() });
            }
            tokio::task::yield_now().await;
            // The runtime does not run while this thread waits for the other.
            thread::spawn(|| answers.into_iter().for_each(|answer| answer.send(()).unwrap())).join().unwrap();
            writer.recv().await.unwrap().unwrap();
            assert_eq!(writer.len(), 19);
        });
    }

    #[test]
    fn no_wake_up_is_lost() {
        run(async {
            let (to, mut from) = mpsc::unbounded_channel();
            let (back, mut returned) = mpsc::unbounded_channel();
            Executor.execute(async move {
                while let Some(i) = from.recv().await {
                    back.send(i).unwrap();
                }
            });
            let sender = thread::spawn(move || (0..10_000).for_each(|i| to.send(i).unwrap()));
            for i in 0..10_000 {
                assert_eq!(returned.recv().await, Some(i));
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn an_answer_to_a_call_that_timed_out_is_refused() {
        run(async {
            let (answer, call) = oneshot::channel::<()>();
            let (ended, end) = oneshot::channel();
            Executor.execute(async move {
                let _ = timeout(Duration::from_millis(1), call).await;
                ended.send(()).unwrap();
            });
            end.await.unwrap();
            assert!(thread::spawn(move || answer.send(())).join().unwrap().is_err());
        });
    }
}
