//! Virtual time, in microseconds since the run began. It moves when the simulator says so.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

pub(crate) const MS: u64 = 1_000;
pub(crate) const SECOND: u64 = 1_000 * MS;

pub(crate) struct SimClock {
    base: Instant,
    us: AtomicU64,
}

impl Default for SimClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "an `Instant` has no other origin; only differences from it are used"
    )]
    fn default() -> Self {
        SimClock { base: Instant::now(), us: AtomicU64::new(0) }
    }
}

impl SimClock {
    pub(crate) fn set(&self, us: u64) {
        self.us.store(us, Ordering::Relaxed);
    }

    pub(crate) fn us(&self) -> u64 {
        self.us.load(Ordering::Relaxed)
    }

    pub(crate) fn us_of(&self, instant: Instant) -> u64 {
        instant.saturating_duration_since(self.base).as_micros() as u64
    }
}

impl node::Clock for SimClock {
    fn now(&self) -> Instant {
        self.base + Duration::from_micros(self.us())
    }
}
