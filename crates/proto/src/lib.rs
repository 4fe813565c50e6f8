//! etcd's messages: client API, membership, raft and its log, leases, auth.
//!
//! The `.proto` files of this crate are the single source for names and numbers, and for the release that brought each
//! message, field, enum and enum value; `testdata/versions.txt` lists them all. Bytes fields are [`bytes::Bytes`], so
//! that a decoded message shares the buffer it came from.
//!
//! Besides the generated types, one module per package:
//! - [`min_version`], [`min_version_of_entry`]: the lowest release that understands a message or a log entry;
//! - [`newest_version_named`]: the most that a message of some kind can ask for;
//! - [`V2Request`]: what logs of etcd up to 3.6 may hold in place of a request of today;
//! - [`json`]: any message from and to JSON, as etcd's gateway has it;
//! - [`http_routes`]: the gateway's paths;
//! - [`codec`]: how gRPC messages are encoded and decoded.
//!
//! ```
//! use proto::{MinVersion, Version, etcdserverpb::PutRequest, min_version};
//! use prost::Message;
//!
//! let put = PutRequest { key: "k".into(), ignore_lease: true, ..Default::default() };
//! assert_eq!(min_version::<PutRequest>(&put.encode_to_vec()).unwrap(), MinVersion::Known(Version::new(3, 2)));
//! assert_eq!(proto::json::to_vec(&put).unwrap(), br#"{"key":"aw==","ignore_lease":true}"#);
//! ```

pub mod codec;
pub mod json;
mod min_version;
mod newest;
mod route;
mod schema;
mod v2_request;
mod version;
mod wire;

pub use min_version::{
    MinVersion, MinVersionError, min_version, min_version_named, min_version_of_entry, min_version_of_request,
};
pub use newest::{fields_named, newest_version_named};
pub use route::{HttpRoute, http_routes};
pub use schema::{PACKAGES, annotation_text, pool};
pub use v2_request::{V2Change, V2Request};
pub use version::{ParseVersionError, Version};
pub use wire::WireError;

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
