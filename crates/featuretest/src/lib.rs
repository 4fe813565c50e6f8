//! Test support for feature sets: a [`Cluster`] in memory, on which the controller's steps run without an API, and example
//! operators as processes that are restarted ([`Operator`]).
#![allow(clippy::unwrap_used, reason = "a test reports the line of a failed unwrap")]

pub mod cluster;
mod operator;

pub use self::{cluster::Cluster, operator::Operator};
