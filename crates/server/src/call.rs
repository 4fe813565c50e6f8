//! What is noted of the call that the running task serves: what it requires, and whose it says it is. It is put in its place
//! for every poll of the call's work, so that those who propose and read find it without being handed it, and it costs
//! two moves.

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
};

use http::HeaderValue;
use pin_project_lite::pin_project;

use crate::required::Required;

/// What is noted of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    pub required: Option<Required>,
    /// Shown by who has logged in.
    pub token: Option<HeaderValue>,
}

thread_local! {
    static CURRENT: RefCell<Noted> = const { RefCell::new(Noted { required: None, token: None }) };
}

/// What is noted of the call that this task serves.
pub(crate) fn noted() -> Noted {
    CURRENT.with_borrow(Clone::clone)
}

/// What the call requires, if anything.
pub(crate) fn required() -> Option<Required> {
    CURRENT.with_borrow(|noted| noted.required)
}

/// Lets `act` change what is noted of it. `None` if nothing is required.
pub(crate) fn with_required<T>(act: impl FnOnce(&mut Required) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|noted| noted.required.as_mut().map(act))
}

/// Runs the server's own work inside of a call, which must be done whatever the call requires.
pub(crate) fn lifted<F: Future>(work: F) -> During<F> {
    during(Noted { required: None, ..noted() }, work)
}

pub(crate) fn during<F: Future>(noted: Noted, work: F) -> During<F> {
    During { noted, work }
}

pin_project! {
    /// Work of a call of which something is noted.
    pub struct During<F> {
        noted: Noted,
        #[pin]
        work: F,
    }
}

impl<F> During<F> {
    /// What is required, and how far it was judged.
    pub(crate) fn required(&self) -> Option<Required> {
        self.noted.required
    }
}

impl<F: Future> Future for During<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _turn = Turn::begin(this.noted);
        this.work.poll(cx)
    }
}

/// While it lives the call's own is the current one. Dropped too when the work panics: the thread serves other calls.
struct Turn<'a> {
    /// That of whoever is outside, while the call has its turn.
    own: &'a mut Noted,
}

impl Turn<'_> {
    fn begin(own: &mut Noted) -> Turn<'_> {
        swap(own);
        Turn { own }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        swap(self.own);
    }
}

fn swap(noted: &mut Noted) {
    CURRENT.with_borrow_mut(|current| std::mem::swap(current, noted));
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use futures_util::FutureExt;
    use membership::{ATOMIC_INCREMENT, ClusterFeatures, PERSISTED_LEASE_CHECKPOINTS};

    use super::*;

    fn requires(feature: membership::ClusterFeature) -> Noted {
        let mut features = ClusterFeatures::default();
        features.insert(feature);
        let token = Some(HeaderValue::from_static(feature.name()));
        Noted { required: Some(Required { features, judged_at: None }), token }
    }

    fn names() -> Vec<&'static str> {
        required().into_iter().flat_map(Required::names).collect()
    }

    #[tokio::test]
    async fn each_call_sees_its_own_however_they_take_turns() {
        let look = async |name: &'static str| {
            for _ in 0..3 {
                assert_eq!(names(), [name]);
                assert_eq!(noted().token.as_ref().map(HeaderValue::as_bytes), Some(name.as_bytes()));
                tokio::task::yield_now().await;
            }
            let token = noted().token;
            lifted(async { assert!(names().is_empty() && noted().token == token) }).await;
            assert_eq!(names(), [name]);
        };
        let one = during(requires(ATOMIC_INCREMENT), look("AtomicIncrement"));
        let other = during(requires(PERSISTED_LEASE_CHECKPOINTS), look("PersistedLeaseCheckpoints"));
        tokio::join!(one, other);
        assert!(names().is_empty() && noted().token.is_none());
    }

    #[test]
    fn what_was_noted_stays_with_the_call() {
        let mut work = Box::pin(during(requires(ATOMIC_INCREMENT), async {
            with_required(|required| required.judged_at = Some(7));
        }));
        work.as_mut().now_or_never().expect("done");
        assert_eq!(work.required().and_then(|required| required.judged_at), Some(7));
        assert!(with_required(|_| ()).is_none(), "nothing is required outside");
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let work = during(requires(ATOMIC_INCREMENT), async { panic!("in a call") });
        let ended = catch_unwind(AssertUnwindSafe(|| work.now_or_never()));
        assert!(ended.is_err());
        assert!(names().is_empty());
    }
}
