//! This member among the others: the peer port, and the glue between `node` and `peer`.

mod local;
mod network;
mod observer;

pub(crate) use self::{local::Local, network::Wire, observer::PeerObserver};
