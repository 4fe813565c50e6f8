//! Test support for feature sets: a [`Cluster`] in memory, on which the controller's steps run without an API, and example
//! operators as processes that are restarted ([`Operator`]).

pub mod cluster;
mod operator;

pub use self::{cluster::Cluster, operator::Operator};
