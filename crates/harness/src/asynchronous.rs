//! Waiting in async tests.

use std::time::Instant;

use crate::{wait::POLL_INTERVAL, wait_max};

/// Returns once `holds` is true; panics if that takes longer than [`wait_max`]. `what` completes "waiting until …".
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    until_some(what, async || holds().await.then_some(())).await;
}

/// Returns the first value; panics if there is none within [`wait_max`]. `what` completes "waiting until …".
pub async fn until_some<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ask().await {
            return value;
        }
        assert!(begin.elapsed() < wait_max(), "gave up after {:?} waiting until {what}", wait_max());
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the output of `future`; panics if that takes longer than [`wait_max`]. `what` completes "waiting until …".
pub async fn finish<T>(what: &str, future: impl Future<Output = T>) -> T {
    let output = tokio::time::timeout(wait_max(), future).await;
    output.unwrap_or_else(|_| panic!("gave up after {:?} waiting until {what}", wait_max()))
}
