//! What to watch, and why not.

use bytes::Bytes;
use proto::etcdserverpb::{WatchCreateRequest, watch_create_request::FilterType};

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSpec {
    /// 0: the stream chooses one.
    pub id: i64,
    pub key: Bytes,
    pub range_end: Bytes,
    /// 0: what comes after now.
    pub start_revision: i64,
    pub filters: Filters,
    pub prev_kv: bool,
}

/// What not to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filters {
    pub no_put: bool,
    pub no_delete: bool,
}

impl From<&WatchCreateRequest> for WatchSpec {
    fn from(req: &WatchCreateRequest) -> Self {
        let has = |filter: FilterType| req.filters.contains(&(filter as i32));
        WatchSpec {
            id: req.watch_id,
            // No key is smaller, so with a range end this is a watch of all before it.
            key: if req.key.is_empty() { Bytes::from_static(b"\0") } else { req.key.clone() },
            range_end: req.range_end.clone(),
            start_revision: req.start_revision,
            filters: Filters { no_put: has(FilterType::Noput), no_delete: has(FilterType::Nodelete) },
            prev_kv: req.prev_kv,
        }
    }
}

/// A new watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    pub id: i64,
    /// The newest revision when the watcher was added. A watcher without a start revision gets every later event and no
    /// other, so a response that announces the watcher must carry this revision and not a newer one.
    pub revision: i64,
}

/// Why a watcher could not be made or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    #[error("the range of keys to watch is empty")]
    EmptyRange,
    #[error("the stream has a watcher with this id already")]
    DuplicateId,
    #[error("the start revision is negative")]
    NegativeRevision,
    #[error("the stream has no watcher with this id")]
    NotFound,
}
