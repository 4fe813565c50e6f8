//! Requests that would stop a member which applies them: they must not reach the log.
//!
//! A real etcd refuses them where clients enter, if at all, and panics when one comes out of the log. A member of ours
//! may stand beside a real one, and proposals also come from peers, so what goes into the log is looked at here.

use bytes::Bytes;
use proto::etcdserverpb::{InternalRaftRequest, RequestOp, TxnRequest, request_op::Request};

use crate::parse_release;

/// What about a request would stop a member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Harm {
    #[error("it has neither an id nor a header")]
    NoId,
    #[error("it asks for nothing that is known")]
    NoRequest,
    #[error("{0:?} is no cluster version; the right form is X.Y.Z")]
    BadClusterVersion(String),
    #[error("{0:?} is no version to downgrade to; the right form is X.Y.Z")]
    BadDowngradeTarget(String),
    #[error("it sets the attributes of member {0:x} to nothing")]
    NoAttributes(u64),
    #[error("its transaction holds an empty operation")]
    EmptyOperation,
    #[error(
        "its transaction puts key {key:?} with ignore_value or ignore_lease after deleting a range that holds the key"
    )]
    PutAfterDelete { key: Bytes },
}

impl Harm {
    /// Whether only members that are not ours stop at it.
    pub fn is_foreign(&self) -> bool {
        matches!(self, Harm::PutAfterDelete { .. })
    }
}

/// What about this request would stop a member, ours or etcd's.
pub fn harm_of_request(request: &InternalRaftRequest) -> Option<Harm> {
    if request.id == 0 && request.header.is_none() {
        return Some(Harm::NoId);
    }
    if let Some(txn) = &request.txn {
        return harms_etcd(txn);
    }
    if let Some(set) = &request.cluster_version_set
        && parse_release(&set.ver).is_none()
    {
        return Some(Harm::BadClusterVersion(set.ver.clone()));
    }
    if let Some(set) = &request.downgrade_info_set
        && set.enabled
        && parse_release(&set.ver).is_none()
    {
        return Some(Harm::BadDowngradeTarget(set.ver.clone()));
    }
    if let Some(set) = &request.cluster_member_attr_set
        && set.member_attributes.is_none()
    {
        return Some(Harm::NoAttributes(set.member_id));
    }
    let empty = InternalRaftRequest { id: request.id, header: request.header.clone(), ..Default::default() };
    (*request == empty).then_some(Harm::NoRequest)
}

/// Whether a real etcd (seen in 3.7.3) panics when it applies this transaction.
///
/// A put with `ignore_value` or `ignore_lease` takes the old value or lease from the key as it is at that moment,
/// although only the key as it was before the transaction was checked; if an operation before it has deleted the key,
/// etcd reads past the end of an empty list. Its check for keys used twice would refuse that, but takes the range end
/// `\0`, "from the key on", for an ordinary key and so sees an empty range. Ranges that it does see are looked at too,
/// for proposals from members that might not check.
pub fn harms_etcd(txn: &TxnRequest) -> Option<Harm> {
    if !has_suspect(&txn.success) && !has_suspect(&txn.failure) {
        return None;
    }
    let mut walk = Walk::default();
    // Only one of the two branches runs.
    walk.branch(&txn.success).or_else(|| Walk::default().branch(&txn.failure))
}

/// Whether these operations, or those inside them, hold one without which there is no harm.
fn has_suspect(ops: &[RequestOp]) -> bool {
    ops.iter().any(|op| match &op.request {
        None => true,
        Some(Request::RequestPut(put)) => put.ignore_value || put.ignore_lease,
        Some(Request::RequestTxn(txn)) => has_suspect(&txn.success) || has_suspect(&txn.failure),
        Some(Request::RequestRange(_) | Request::RequestDeleteRange(_)) => false,
    })
}

/// What has been deleted on the way to the operation that is looked at.
#[derive(Clone, Default)]
struct Walk<'a> {
    /// The lowest key of all deletions without an upper bound.
    from: Option<&'a [u8]>,
    /// Half-open.
    ranges: Vec<(&'a [u8], &'a [u8])>,
    compared: usize,
}

/// Comparisons of keys with ranges in one transaction. Twenty times what etcd's default of 128 operations can need with
/// both kinds nested; a transaction beyond it counts as harmful rather than holding up the log.
const COMPARED_MAX: usize = 1 << 22;

impl<'a> Walk<'a> {
    fn branch(&mut self, ops: &'a [RequestOp]) -> Option<Harm> {
        for op in ops {
            match op.request.as_ref() {
                None => return Some(Harm::EmptyOperation),
                Some(Request::RequestRange(_)) => {}
                Some(Request::RequestDeleteRange(delete)) => self.delete(&delete.key, &delete.range_end),
                Some(Request::RequestPut(put)) => {
                    if (put.ignore_value || put.ignore_lease) && self.is_deleted(&put.key) {
                        return Some(Harm::PutAfterDelete { key: put.key.clone() });
                    }
                }
                Some(Request::RequestTxn(txn)) => {
                    if let Some(harm) = self.either(txn) {
                        return Some(harm);
                    }
                }
            }
        }
        None
    }

    /// Afterwards the deletions of both branches count, because either may have run.
    fn either(&mut self, txn: &'a TxnRequest) -> Option<Harm> {
        let (before, from) = (self.ranges.len(), self.from);
        if let Some(harm) = self.branch(&txn.success) {
            return Some(harm);
        }
        let deleted = self.ranges.split_off(before);
        let deleted_from = std::mem::replace(&mut self.from, from);
        if let Some(harm) = self.branch(&txn.failure) {
            return Some(harm);
        }
        self.ranges.extend(deleted);
        self.from = lowest(self.from, deleted_from);
        None
    }

    fn delete(&mut self, key: &'a Bytes, range_end: &'a Bytes) {
        match range_end.as_ref() {
            // A single key; `is_deleted` takes the start of a range as part of it.
            [] => self.ranges.push((key, key)),
            [0] => self.from = lowest(self.from, Some(key)),
            end => self.ranges.push((key, end)),
        }
    }

    fn is_deleted(&mut self, key: &[u8]) -> bool {
        self.compared += self.ranges.len();
        let in_range = |(start, end): &(&[u8], &[u8])| key == *start || (*start < key && key < *end);
        self.compared > COMPARED_MAX || self.from.is_some_and(|from| from <= key) || self.ranges.iter().any(in_range)
    }
}

fn lowest<'a>(a: Option<&'a [u8]>, b: Option<&'a [u8]>) -> Option<&'a [u8]> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}
