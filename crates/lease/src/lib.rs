//! Leases: grant, revoke, renew, expiry, checkpoints.
//!
//! A pure core. Time enters as `now`, a [`Duration`](std::time::Duration) since some fixed point of the owner's
//! choice; nothing here reads a clock. What apply does ([`Lessor::grant`], [`Lessor::revoke`],
//! [`Lessor::checkpoint`]) changes replicated state through a [`storage::Batch`] and depends on the entry alone;
//! what the primary does ([`Lessor::renew`], [`Lessor::take_expired`], [`Lessor::take_due_checkpoints`]) is local.
//!
//! **Invariants.** A lease is in the file if and only if it is in the map. A key is linked to at most one lease, and
//! both directions of the link agree. Only a primary lets leases expire: on any other member they last for ever.

mod deadline;
mod lessor;
#[cfg(test)]
mod tests;

pub use lessor::{Error, Lessor, Options, Renewal, TimeToLive};

/// The longest lease that can be granted, in seconds: about 285 years.
pub const TTL_MAX: i64 = 9_000_000_000;
