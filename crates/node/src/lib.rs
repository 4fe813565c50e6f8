//! Drives raft: persist, send, apply in order.
//!
//! A write is a line: [`Node::propose`] → the raft thread (one fsync for all that wait) → the apply thread → the answer. A
//! linearizable read waits in [`Node::read_index`] and then reads [`Node::store`] without any of them.
//!
//! **Invariants.** An answer is sent only after its entry is synced. Entries are applied once, in order, each in one
//! batch with its index and term. A thread that cannot go on stops the node ([`Life::Failed`]); nothing is answered
//! after that.

mod apply;
mod apply_loop;
mod bootstrap;
mod chores;
mod compactor;
mod convert;
mod core;
mod data_dir;
mod error;
mod force;
mod gate_keeper;
mod log_store;
mod lower;
mod members;
mod node;
pub mod offline;
mod proposer;
mod raft_loop;
mod reads;
mod request_id;
mod shared;
#[cfg(feature = "sim")]
pub mod sim;
mod slog_bridge;
mod standing;
mod start;
pub mod swap;
mod take_over;
mod users;
mod wait;
mod wal_log;
mod world;

pub use self::{
    apply::{AuthAnswer, Gates, IncrementError, Quota, Response, change_record, quota, request_name},
    bootstrap::{Identity, StartError, snapshot_record},
    data_dir::{DataDir, DataDirError},
    error::{ApplyError, FatalError, MoveError, ProposeError, ReadError},
    gate_keeper::{FeatureFlags, OwnFeatures},
    node::{Node, NodeOptions, NodeStatus},
    shared::Life,
    start::Introduction,
    users::Users,
    world::{Clock, Database, Network, NoNetwork, NoObserver, Observer, SystemClock, World},
};
