//! Members, cluster version and ids: pure state and decisions.
//!
//! Nothing here does I/O or reads a clock. [`Cluster`] is replicated state: it changes by apply alone, and the
//! caller writes to the file what a change returns.

mod cluster;
pub mod features;
mod id;
mod member;

pub use cluster::{ChangeError, Cluster};
pub use id::{ClusterId, MemberId};
pub use member::{BootstrapError, Member, members_of_new_cluster};
