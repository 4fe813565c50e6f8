//! Waiting for a condition, with the one limit of [`harness::wait_max`].

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use harness::wait_max;

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Asks until there is a value. An error ends the waiting at once. `what` completes "waiting until …".
pub(crate) fn until_some<T>(what: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begin = Instant::now();
    loop {
        if let Some(value) = ask()? {
            return Ok(value);
        }
        if begin.elapsed() > wait_max() {
            bail!("gave up after {:?} waiting until {what}", wait_max());
        }
        thread::sleep(POLL);
    }
}

/// Asks until the answer is not an error; the last error is the reason for giving up. `what` completes "waiting until …".
pub(crate) fn until_ok<T>(what: &str, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    let begin = Instant::now();
    loop {
        match ask() {
            Err(_) if begin.elapsed() <= wait_max() => thread::sleep(POLL),
            answer => return answer.with_context(|| format!("gave up after {:?} waiting until {what}", wait_max())),
        }
    }
}
