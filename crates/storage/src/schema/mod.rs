//! The schema: the only code that names buckets and keys of the file and knows how their values are encoded.
//!
//! One module per bucket holds typed accessors over [`Read`](crate::Read) and [`Batch`](crate::Batch);
//! [`table::ROWS`] lists what they read and write, with the version that brought each key; [`plan`] and [`migrate`] bring a
//! file from one version to another by it.

pub mod alarm;
pub mod auth;
mod bucket;
pub mod cluster;
mod cut;
pub mod dump;
mod error;
pub mod gate;
mod go_json;
pub mod lease;
pub mod member;
pub mod meta;
pub mod migrate;
pub mod plan;
mod revision;
pub mod table;
pub mod version;

pub use bucket::Bucket;
pub use error::DecodeError;
pub use member::MemberRecord;
pub use revision::{EncodedRevision, RevisionKey};
pub use version::Version;
