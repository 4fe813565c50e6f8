//! Waiting for a condition, with one limit for all.

use std::{
    env,
    sync::LazyLock,
    thread,
    time::{Duration, Instant},
};

/// How often a condition is looked at.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The time after which a condition is taken to never hold: two minutes, or `LOCKGATE_TEST_WAIT_SECONDS`.
///
/// It bounds how long a broken test hangs and says nothing about how fast a server has to be.
pub fn wait_max() -> Duration {
    static MAX: LazyLock<Duration> = LazyLock::new(|| {
        let given = env::var("LOCKGATE_TEST_WAIT_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
        Duration::from_secs(given.unwrap_or(120))
    });
    *MAX
}

/// Returns once `holds` is true; panics if that takes longer than [`wait_max`]. `what` completes "waiting until …".
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    until_some(what, || holds().then_some(()));
}

/// Returns the first value; panics if there is none within [`wait_max`]. `what` completes "waiting until …".
#[track_caller]
pub fn until_some<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(value) = ask() {
            return value;
        }
        assert!(begin.elapsed() < wait_max(), "gave up after {:?} waiting until {what}", wait_max());
        thread::sleep(POLL_INTERVAL);
    }
}
