//! Batched writes and read views on one bbolt-format file; the schema table.

mod backend;
pub mod schema;

pub use backend::{Backend, Batch, OpenError, Options, Read, View};
pub use schema::Bucket;
