//! What the call requires that the running task serves. It is put in its place for every poll of the call's work, so that
//! those who propose and read find it without being handed it, and it costs two moves.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::Required;

thread_local! {
    static CURRENT: Cell<Option<Required>> = const { Cell::new(None) };
}

/// What the call that this task serves requires, if anything.
pub fn current() -> Option<Required> {
    CURRENT.get()
}

/// Lets `act` change what is noted of it. `None` if nothing is required.
pub(super) fn with_current<T>(act: impl FnOnce(&mut Required) -> T) -> Option<T> {
    let mut required = CURRENT.get()?;
    let done = act(&mut required);
    CURRENT.set(Some(required));
    Some(done)
}

/// Runs the server's own work inside of a call, which must be done whatever the call requires.
pub fn lifted<F: Future>(work: F) -> During<F> {
    During { required: None, work }
}

pub(super) fn during<F: Future>(required: Required, work: F) -> During<F> {
    During { required: Some(required), work }
}

pin_project! {
    /// Work of a call that requires features.
    pub struct During<F> {
        required: Option<Required>,
        #[pin]
        work: F,
    }
}

impl<F> During<F> {
    /// What is required, and how far it was judged.
    pub(super) fn required(&self) -> Option<Required> {
        self.required
    }
}

impl<F: Future> Future for During<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _turn = Turn::begin(this.required);
        this.work.poll(cx)
    }
}

/// While it lives the call's own is the current one. Dropped too when the work panics: the thread serves other calls.
struct Turn<'a> {
    own: &'a mut Option<Required>,
    outer: Option<Required>,
}

impl Turn<'_> {
    fn begin(own: &mut Option<Required>) -> Turn<'_> {
        let outer = CURRENT.replace(*own);
        Turn { own, outer }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.own = CURRENT.replace(self.outer);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use futures_util::FutureExt;
    use membership::{ATOMIC_INCREMENT, ClusterFeatures, PERSISTED_LEASE_CHECKPOINTS};

    use super::*;

    fn requires(feature: membership::ClusterFeature) -> Required {
        let mut features = ClusterFeatures::default();
        features.insert(feature);
        Required { features, judged_at: None }
    }

    fn names() -> Vec<&'static str> {
        current().into_iter().flat_map(Required::names).collect()
    }

    #[tokio::test]
    async fn each_call_sees_its_own_however_they_take_turns() {
        let look = async |name: &'static str| {
            for _ in 0..3 {
                assert_eq!(names(), [name]);
                tokio::task::yield_now().await;
            }
            lifted(async { assert!(names().is_empty()) }).await;
            assert_eq!(names(), [name]);
        };
        let one = during(requires(ATOMIC_INCREMENT), look("AtomicIncrement"));
        let other = during(requires(PERSISTED_LEASE_CHECKPOINTS), look("PersistedLeaseCheckpoints"));
        tokio::join!(one, other);
        assert!(names().is_empty());
    }

    #[test]
    fn what_was_noted_stays_with_the_call() {
        let mut work = Box::pin(during(requires(ATOMIC_INCREMENT), async {
            with_current(|required| required.judged_at = Some(7));
        }));
        work.as_mut().now_or_never().expect("done");
        assert_eq!(work.required().and_then(|required| required.judged_at), Some(7));
        assert!(with_current(|_| ()).is_none(), "nothing is required outside");
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let work = during(requires(ATOMIC_INCREMENT), async { panic!("in a call") });
        let ended = catch_unwind(AssertUnwindSafe(|| work.now_or_never()));
        assert!(ended.is_err());
        assert!(names().is_empty());
    }
}
