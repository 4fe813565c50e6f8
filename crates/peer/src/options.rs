//! Settings of the transport: etcd's numbers, unless said otherwise.

use std::{net::IpAddr, time::Duration};

use crate::header::Identity;

#[derive(Clone, Debug)]
pub struct Options {
    pub identity: Identity,
    /// The address that connections to peers come from, if not any.
    pub local_address: Option<IpAddr>,
    /// How long a connection may take to come about. etcd: one second more than the election timeout.
    pub dial_timeout: Duration,
    /// Between two attempts to open a stream.
    pub redial_interval: Duration,
    /// A connection on which nothing moves for this long is given up. Streams carry a heartbeat three times in it.
    pub read_timeout: Duration,
    pub write_timeout: Duration,
    pub probe_interval: Duration,
    /// How long a receiver may take to sync and take in a snapshot after its last byte.
    pub snapshot_timeout: Duration,
    /// The largest message that is read from a stream or a post.
    pub message_bytes_max: u64,
    /// The largest head of a snapshot; the database behind it has its own limit.
    pub snapshot_message_bytes_max: u64,
    pub database_bytes_max: u64,
}

impl Options {
    pub fn new(identity: Identity) -> Options {
        Options {
            identity,
            local_address: None,
            dial_timeout: Duration::from_secs(2),
            redial_interval: Duration::from_millis(100),
            read_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(5),
            probe_interval: Duration::from_secs(4),
            snapshot_timeout: Duration::from_secs(300),
            message_bytes_max: 512 << 20,
            snapshot_message_bytes_max: 64 << 20,
            database_bytes_max: 1 << 40,
        }
    }

    /// How often an idle stream says that it lives.
    pub fn link_heartbeat_interval(&self) -> Duration {
        self.read_timeout / 3
    }
}
