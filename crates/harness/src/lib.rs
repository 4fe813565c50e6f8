//! What tests need around the code under test: directories, ports, processes, real peers, and waiting.
//!
//! **Invariants.** Nothing that the harness creates outlives the test program by more than a moment, however the program ends
//! (success, panic, Ctrl-C, SIGKILL):
//!
//! - directories are below one directory per test program, which a watching process removes ([`tempdir`]);
//! - started processes die with the test program ([`Process`]);
//! - port reservations are held by sockets of the test program, which the kernel closes ([`Port`]).
//!
//! A test waits for a condition ([`until`]), never for a duration, and all waits share one generous limit ([`wait_max`]).

mod at_end;
mod http;
mod kubectl;
mod member;
mod peer;
mod port;
mod process;
mod proxy;
mod restarted;
mod scratch;
mod seed;
mod tool;
mod wait;

pub use self::{
    at_end::AtEnd,
    http::{Reply, request},
    kubectl::{Kubectl, kubectl},
    member::{Group, Member, Place},
    peer::{ETCD, etcd_dir, peer, peers_dir, skip},
    port::Port,
    process::{Ended, Process, spawn_child, tail},
    proxy::Proxy,
    restarted::Restarted,
    scratch::{keep, scratch_root, tempdir},
    seed::seed,
    tool::{Output, run},
    wait::{until, until_some, wait_max},
};
pub use rustix::process::Signal;
pub use tempfile::TempDir;

/// Conditions that async tests wait for.
#[cfg(feature = "async")]
pub mod asynchronous;
#[cfg(feature = "client")]
mod connection;
