//! Whole clusters in one thread, from one seed, in virtual time.
//!
//! The members are the ones that run in production ([`node::sim`]): the same raft loop, apply loop, log and database. What
//! is simulated is their world: machines whose power is cut, disks that lose what was not synced, a network that loses,
//! delays, repeats and reorders, clocks and processes that stand still; and clients, whose history is judged.
//!
//! Everything follows from the seed: [`run`] twice with one seed gives one [`Report::trace`].

mod check;
mod client;
mod clock;
mod database;
mod event;
mod fault;
mod finish;
mod gate;
#[cfg(test)]
mod lower;
mod machine;
mod network;
mod operation;
mod simulation;
mod step;
mod transfer;

pub use self::{
    check::Violation,
    simulation::{Config, Report, run},
};
