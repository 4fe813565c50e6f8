//! Lock and Election: the recipes of etcd's clients, run by the server for clients that have none. They are made of the same
//! txns, leases and watches, so that both kinds of clients share locks and elections.

mod election;
mod events;
mod lock;
mod view;

pub(crate) use self::{election::ElectionService, lock::LockService};
