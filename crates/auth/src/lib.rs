//! Users, roles and permissions as replicated state, and the checks of requests against them.
//!
//! A pure core. [`Store::decide`] says what a request changes, as data; [`Change::write`] puts that into a
//! [`storage::Batch`] and [`Store::take`] into memory; neither has a choice left. [`Store::check`] says whether the user
//! in an entry's header may do what the entry asks for, and `may_…` whether a caller may who is answered without an entry;
//! [`token`] has what callers show. All of it behaves as etcd's auth store and auth applier do,
//! down to the bytes: the same checks in the same order, the same errors, the same moments at which the revision of the
//! store counts up.
//!
//! **Invariants.** What is in memory is what is in the file. A request that is refused changes nothing, and does not count
//! the revision up. The revision counts up by one with every change, except when authentication is turned on.

mod check;
mod error;
mod go_sort;
mod interval;
mod password;
mod permission;
mod question;
mod role;
mod store;
pub mod token;
mod user;

pub use check::{KeysOf, Who, administers};
pub use error::Error;
pub use interval::Order;
pub use password::{COST_DEFAULT, COSTS, Salt, carries_plain, hash_to_propose, matches};
pub use question::Login;
pub use store::{Change, Store, Write};

/// The user without whom authentication cannot be turned on.
pub const ROOT_USER: &str = "root";
/// The role that may do everything, whether it is stored or not.
pub const ROOT_ROLE: &str = "root";
