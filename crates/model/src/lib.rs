//! The gate protocol, explored completely with `stateright`.
//!
//! What is explored is the code that runs: every entry is applied by [`membership::Cluster`], every proposal and
//! decision is planned by it, and [`membership::VersionsAhead`] says what a leader may append. Raft is trusted (it is
//! simulated elsewhere): there is one agreed log. All else may go wrong.
//!
//! - **A message that was sent stays sent.** It may be appended at any later time, any number of times, or never: late,
//!   lost, doubled and reordered are all in that. Members send as soon as they can; as nothing forces a message into the log,
//!   that covers every member that sends later or not at all.
//! - **A member is where it is in the log**, if the configuration lets members lag. It plans, decides and leads from
//!   there, applies the next entry, or jumps ahead with another's database.
//! - **A crash** ends a life: the member comes back with any flags and with a database of any index that it had. Being down
//!   is taking no step, which every member may do at any time.
//! - **Anyone may lead**, and what an old leader decided is a message like any other.
//!
//! Without lag each member applies an entry when it is appended. What a lagging member sends follows from its own place in the
//! log and its flags, so it could have sent it before the entries that it has not applied, as a message that is late: the
//! log comes to the same states. Only what a lagging leader appends is not in that.
//!
//! Why it ends: indices are compared with each other and otherwise mean nothing, so that a state is stored with its
//! indices counted anew (`canon.rs`); then only what is in [`Counts`] is bounded.

mod action;
mod apply;
mod ask;
mod canon;
mod check;
mod config;
mod entry;
mod fair;
mod load;
mod memo;
mod state;
mod step;
mod view;

pub use action::Action;
pub use check::{Report, explore, explore_for};
pub use config::{Config, Counts};
pub use state::{Fault, State};
pub use step::Gates;
