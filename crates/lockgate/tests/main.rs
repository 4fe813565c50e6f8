//! The integration tests of this crate, as one program: linking it once keeps builds short.
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

mod common;
mod concurrency;
mod crash;
mod failed_sync;
mod failpoints;
mod feature_sets;
mod front;
mod increment;
mod limits;
mod locked;
mod metrics;
mod ofrep;
mod peer_errors;
mod ports;
mod refuse;
mod required;
mod required_calls;
mod required_docs;
mod stop;
mod users;
mod version_points;
mod watch;
