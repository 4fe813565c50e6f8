//! Seeds of tests with random choices.

use std::{env, time::SystemTime};

/// The seed in `LOCKGATE_SEED`, or a new one. It is printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let given = env::var("LOCKGATE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64));
    println!("LOCKGATE_SEED={seed}");
    seed
}
