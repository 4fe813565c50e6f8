//! Requests on keys as builders: each is a call of its own or a step of a [`Txn`](crate::Txn).

use bytes::Bytes;
use proto::etcdserverpb::{
    DeleteRangeRequest, IncrementRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    range_request::{SortOrder, SortTarget},
    request_op::Request,
};

/// Returns the first key after all keys with this prefix. After a prefix of `0xff` bytes only there
/// is none, and the result is `"\0"`, which the API reads as no end.
///
/// ```
/// assert_eq!(client::prefix_end(b"ab"), "ac");
/// assert_eq!(client::prefix_end(b"a\xff"), "b");
/// assert_eq!(client::prefix_end(b"\xff"), "\0");
/// ```
pub fn prefix_end(prefix: &[u8]) -> Bytes {
    match prefix.iter().rposition(|byte| *byte < 0xff) {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end.into()
        }
        None => OPEN_END,
    }
}

const OPEN_END: Bytes = Bytes::from_static(b"\0");

/// A key and range end; the empty prefix and the empty start mean all keys, which the wire spells `"\0"`.
pub(crate) fn prefix_range(prefix: Bytes) -> (Bytes, Bytes) {
    if prefix.is_empty() {
        return (OPEN_END, OPEN_END);
    }
    let end = prefix_end(&prefix);
    (prefix, end)
}

pub(crate) fn from_key_range(key: Bytes) -> (Bytes, Bytes) {
    (if key.is_empty() { OPEN_END } else { key }, OPEN_END)
}

/// The four ways to name keys, for each builder that has `key` and `range_end`.
macro_rules! key_range {
    ($name:ident) => {
        impl $name {
            /// One key.
            pub fn key(key: impl Into<bytes::Bytes>) -> Self {
                let mut this = Self::default();
                this.request.key = key.into();
                this
            }

            /// All keys from `start` up to but without `end`.
            pub fn range(start: impl Into<bytes::Bytes>, end: impl Into<bytes::Bytes>) -> Self {
                let mut this = Self::key(start);
                this.request.range_end = end.into();
                this
            }

            /// All keys that begin with `prefix`; the empty prefix means every key.
            pub fn prefix(prefix: impl Into<bytes::Bytes>) -> Self {
                let (start, end) = $crate::op::prefix_range(prefix.into());
                Self::range(start, end)
            }

            /// All keys that are not less than `start`.
            pub fn from_key(start: impl Into<bytes::Bytes>) -> Self {
                let (start, end) = $crate::op::from_key_range(start.into());
                Self::range(start, end)
            }
        }
    };
}
pub(crate) use key_range;

/// A read of one key or a range.
///
/// ```
/// let newest = client::Get::prefix("/jobs/").sort_by_mod_revision().descending().limit(1);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Get {
    pub(crate) request: RangeRequest,
}

key_range!(Get);

impl Get {
    /// Returns at most this many keys (`limit`); 0 means all. `more` in the response shows that
    /// keys were omitted.
    pub fn limit(mut self, limit: i64) -> Self {
        self.request.limit = limit;
        self
    }

    /// Reads the state at this revision (`revision`); 0 means the latest.
    pub fn revision(mut self, revision: i64) -> Self {
        self.request.revision = revision;
        self
    }

    /// Lets the contacted member answer from its own state (`serializable`): faster, and possibly
    /// outdated.
    pub fn serializable(mut self) -> Self {
        self.request.serializable = true;
        self
    }

    /// Omits the values (`keys_only`).
    pub fn keys_only(mut self) -> Self {
        self.request.keys_only = true;
        self
    }

    /// Returns the number of keys and no keys (`count_only`).
    pub fn count_only(mut self) -> Self {
        self.request.count_only = true;
        self
    }

    /// Sorts the result (`sort_target`, `sort_order`). Without a sort it is in key order.
    pub fn sort(mut self, target: SortTarget, order: SortOrder) -> Self {
        self.request.sort_target = target.into();
        self.request.sort_order = order.into();
        self
    }

    /// Sorts by the revision of the last write, oldest first.
    pub fn sort_by_mod_revision(self) -> Self {
        self.sort(SortTarget::Mod, SortOrder::Ascend)
    }

    /// Sorts by the revision of the creation, oldest first.
    pub fn sort_by_create_revision(self) -> Self {
        self.sort(SortTarget::Create, SortOrder::Ascend)
    }

    /// Reverses the order. Call it after the choice of a sort target, which sets the order to
    /// ascending.
    pub fn descending(mut self) -> Self {
        self.request.sort_order = SortOrder::Descend.into();
        self
    }

    /// Omits keys whose last write is older (`min_mod_revision`).
    pub fn mod_revision_min(mut self, revision: i64) -> Self {
        self.request.min_mod_revision = revision;
        self
    }

    /// Omits keys whose last write is newer (`max_mod_revision`).
    pub fn mod_revision_max(mut self, revision: i64) -> Self {
        self.request.max_mod_revision = revision;
        self
    }

    /// Omits keys that were created earlier (`min_create_revision`).
    pub fn create_revision_min(mut self, revision: i64) -> Self {
        self.request.min_create_revision = revision;
        self
    }

    /// Omits keys that were created later (`max_create_revision`).
    pub fn create_revision_max(mut self, revision: i64) -> Self {
        self.request.max_create_revision = revision;
        self
    }
}

impl<K: Into<Bytes>> From<K> for Get {
    fn from(key: K) -> Get {
        Get::key(key)
    }
}

/// A write of one key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Put {
    pub(crate) request: PutRequest,
}

impl Put {
    /// A write of `value` to `key`, without a lease.
    pub fn new(key: impl Into<Bytes>, value: impl Into<bytes::Bytes>) -> Self {
        Put { request: PutRequest { key: key.into(), value: value.into(), ..Default::default() } }
    }

    /// Attaches the key to this lease (`lease`): it is deleted when the lease ends.
    pub fn lease(mut self, id: i64) -> Self {
        self.request.lease = id;
        self
    }

    /// Returns the key as it was before the write (`prev_kv`).
    pub fn prev_kv(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }

    /// Keeps the key's value and changes only its lease (`ignore_value`). The key must exist, and
    /// the value given must be empty.
    pub fn ignore_value(mut self) -> Self {
        self.request.ignore_value = true;
        self
    }

    /// Keeps the key's lease (`ignore_lease`). The key must exist.
    pub fn ignore_lease(mut self) -> Self {
        self.request.ignore_lease = true;
        self
    }
}

/// A deletion of one key or a range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delete {
    pub(crate) request: DeleteRangeRequest,
}

key_range!(Delete);

impl Delete {
    /// Returns the deleted keys with their values (`prev_kv`).
    pub fn prev_kv(mut self) -> Self {
        self.request.prev_kv = true;
        self
    }
}

impl<K: Into<Bytes>> From<K> for Delete {
    fn from(key: K) -> Delete {
        Delete::key(key)
    }
}

/// One step of a transaction. Build it from [`Get`], [`Put`], [`Delete`] or [`crate::Txn`] with
/// `into()`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A read.
    Get(RangeRequest),
    /// A write of one key.
    Put(PutRequest),
    /// A deletion.
    Delete(DeleteRangeRequest),
    /// A nested transaction.
    Txn(TxnRequest),
}

impl From<Get> for Op {
    fn from(get: Get) -> Op {
        Op::Get(get.request)
    }
}

impl From<Put> for Op {
    fn from(put: Put) -> Op {
        Op::Put(put.request)
    }
}

impl From<Delete> for Op {
    fn from(delete: Delete) -> Op {
        Op::Delete(delete.request)
    }
}

impl From<Op> for RequestOp {
    fn from(op: Op) -> RequestOp {
        let request = match op {
            Op::Get(request) => Request::RequestRange(request),
            Op::Put(request) => Request::RequestPut(request),
            Op::Delete(request) => Request::RequestDeleteRange(request),
            Op::Txn(request) => Request::RequestTxn(request),
        };
        RequestOp { request: Some(request) }
    }
}

/// An addition to a number that is stored as decimal text.
///
/// ```
/// let ticket = client::Increment::new("/tickets/last", 1).initial(1000).max(1999);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Increment {
    pub(crate) request: IncrementRequest,
}

impl Increment {
    /// An addition of `delta`, which may be negative, to the number in `key`.
    pub fn new(key: impl Into<Bytes>, delta: i64) -> Self {
        Increment { request: IncrementRequest { key: key.into(), delta, ..Default::default() } }
    }

    /// The number to start from if the key does not exist; 0 by default.
    pub fn initial(mut self, initial: i64) -> Self {
        self.request.initial = initial;
        self
    }

    /// The least allowed sum: a smaller one is an error and changes nothing.
    pub fn min(mut self, min: i64) -> Self {
        self.request.min = Some(min);
        self
    }

    /// The greatest allowed sum: a larger one is an error and changes nothing.
    pub fn max(mut self, max: i64) -> Self {
        self.request.max = Some(max);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_prefix_and_empty_start_mean_every_key() {
        for get in [Get::prefix(""), Get::from_key("")] {
            assert_eq!((&get.request.key[..], &get.request.range_end[..]), (&b"\0"[..], &b"\0"[..]));
        }
        let get = Get::from_key("b");
        assert_eq!((&get.request.key[..], &get.request.range_end[..]), (&b"b"[..], &b"\0"[..]));
    }
}
