//! etcd's messages: client API, membership, raft and its log, leases, auth.
//!
//! The `.proto` files of this crate are the single source for names and numbers. Bytes fields are
//! [`bytes::Bytes`], so that a decoded message shares the buffer it came from.

macro_rules! packages {
    ($($name:ident),* $(,)?) => {$(
        #[allow(clippy::all, rustdoc::all)]
        pub mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
        }
    )*};
}

packages!(authpb, etcdserverpb, leasepb, membershippb, mvccpb, raftpb, snappb, v3electionpb, v3lockpb, walpb);

/// The encoded descriptor set, with custom options intact.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
