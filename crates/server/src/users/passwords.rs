//! Hashing and comparing passwords, which is slow on purpose.
//!
//! Anyone who knows a user name can ask for a comparison, so few run at one time: the others wait without a thread, and a
//! caller that leaves while waiting costs nothing more.

use std::sync::Arc;

use tokio::sync::Semaphore;

/// Passwords that are worked on at one time.
const AT_ONCE: usize = 2;

pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
}

impl Default for Passwords {
    fn default() -> Passwords {
        Passwords { turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Passwords {
    /// Does `work` on a thread for blocking work when its turn has come. Returns `None` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let turn = self.turns.clone().acquire_owned().await.ok()?;
        let work = move || {
            // Given back when the work is done, also when nobody waits for it any more.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    };

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn work_of_a_caller_that_left_before_its_turn_is_not_done() {
        let passwords = Arc::new(Passwords::default());
        let (started, mut starts) = tokio::sync::mpsc::unbounded_channel();
        let mut running = Vec::new();
        for _ in 0..AT_ONCE {
            let (passwords, started) = (passwords.clone(), started.clone());
            let (end, ended) = mpsc::channel::<()>();
            let work = move || {
                started.send(()).expect("the test waits");
                ended.recv().is_ok()
            };
            running.push((end, tokio::spawn(async move { passwords.run(work).await })));
        }
        for _ in 0..AT_ONCE {
            starts.recv().await.expect("the work starts");
        }
        let done = Arc::new(AtomicBool::new(false));
        let flag = done.clone();
        assert!(passwords.run(move || flag.store(true, SeqCst)).now_or_never().is_none(), "all turns are taken");
        for (end, work) in running {
            end.send(()).expect("the work waits");
            assert_eq!(work.await.expect("a task"), Some(true));
        }
        // Turns are given in order, so the abandoned work would have come before this one.
        assert_eq!(passwords.run(|| 7).await, Some(7));
        assert!(!done.load(SeqCst));
    }

    #[tokio::test]
    async fn a_panic_gives_the_turn_back() {
        let passwords = Passwords::default();
        for _ in 0..=AT_ONCE {
            assert_eq!(passwords.run(|| -> u8 { panic!("on purpose") }).await, None);
        }
        assert_eq!(passwords.run(|| 7).await, Some(7));
    }
}
