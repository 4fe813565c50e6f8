//! Whether a request is one that may be proposed. The order of checks is etcd's, so the same error comes first.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use proto::etcdserverpb::{
    Compare, DeleteRangeRequest, IncrementRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    range_request::{SortOrder, SortTarget},
    request_op::Request,
};

use crate::range::{default_order, has_revision_filter};

/// What is wrong with a request. The server gives etcd's text and code for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the request names no key")]
    EmptyKey,
    #[error("an operation of the transaction is empty")]
    EmptyOperation,
    #[error("a value is given although the request says to keep the old one")]
    ValueProvided,
    #[error("a lease is given although the request says to keep the old one")]
    LeaseProvided,
    #[error("the transaction has more operations than are allowed")]
    TooManyOperations,
    #[error("the transaction changes a key twice")]
    DuplicateKey,
    #[error("the order or what to order by is not known")]
    InvalidSortOption,
    #[error("a streamed range comes in the order of its keys only")]
    StreamOrder,
    #[error("a streamed range takes no bounds on revisions")]
    StreamFilter,
}

pub fn range(req: &RangeRequest) -> Result<(), RequestError> {
    key(&req.key)?;
    if SortOrder::try_from(req.sort_order).is_err() || SortTarget::try_from(req.sort_target).is_err() {
        return Err(RequestError::InvalidSortOption);
    }
    Ok(())
}

pub fn range_stream(req: &RangeRequest) -> Result<(), RequestError> {
    range(req)?;
    if !default_order(req.sort_target, req.sort_order) {
        return Err(RequestError::StreamOrder);
    }
    if has_revision_filter(req) {
        return Err(RequestError::StreamFilter);
    }
    Ok(())
}

pub fn put(req: &PutRequest) -> Result<(), RequestError> {
    key(&req.key)?;
    if req.ignore_value && !req.value.is_empty() {
        return Err(RequestError::ValueProvided);
    }
    if req.ignore_lease && req.lease != 0 {
        return Err(RequestError::LeaseProvided);
    }
    Ok(())
}

pub fn increment(req: &IncrementRequest) -> Result<(), RequestError> {
    key(&req.key)
}

pub fn delete_range(req: &DeleteRangeRequest) -> Result<(), RequestError> {
    key(&req.key)
}

/// Compares, and each of the two lists, may have `max_txn_ops` operations; a nested transaction has what its parent
/// left.
pub fn txn(req: &TxnRequest, max_txn_ops: usize) -> Result<(), RequestError> {
    operations(req, max_txn_ops)?;
    changes(&req.success)?;
    changes(&req.failure)?;
    Ok(())
}

fn key(key: &[u8]) -> Result<(), RequestError> {
    if key.is_empty() { Err(RequestError::EmptyKey) } else { Ok(()) }
}

fn operations(req: &TxnRequest, max: usize) -> Result<(), RequestError> {
    let most = req.compare.len().max(req.success.len()).max(req.failure.len());
    let left = max.checked_sub(most).ok_or(RequestError::TooManyOperations)?;
    req.compare.iter().try_for_each(|Compare { key: k, .. }| key(k))?;
    req.success.iter().chain(&req.failure).try_for_each(|op| operation(op, left))
}

fn operation(op: &RequestOp, max: usize) -> Result<(), RequestError> {
    match &op.request {
        Some(Request::RequestRange(req)) => range(req),
        Some(Request::RequestPut(req)) => put(req),
        Some(Request::RequestDeleteRange(req)) => delete_range(req),
        Some(Request::RequestTxn(req)) => operations(req, max),
        None => Err(RequestError::EmptyOperation),
    }
}

/// What a list of operations puts and deletes.
#[derive(Default)]
struct Changes {
    puts: BTreeSet<Bytes>,
    deletes: Intervals,
}

/// Refuses a list in which a key that is put may also be changed by another operation. Two branches of one nested
/// transaction may put the same key, since only one of them runs. As in etcd, deletions of a nested transaction are
/// not held against puts of an earlier one.
fn changes(ops: &[RequestOp]) -> Result<Changes, RequestError> {
    let mut all = Changes::default();
    for op in ops {
        if let Some(Request::RequestDeleteRange(req)) = &op.request {
            all.deletes.insert(&req.key, &req.range_end);
        }
    }
    for op in ops {
        if let Some(Request::RequestTxn(req)) = &op.request {
            all.add_nested(changes(&req.success)?, changes(&req.failure)?)?;
        }
    }
    for op in ops {
        if let Some(Request::RequestPut(req)) = &op.request {
            all.add_put(req.key.clone())?;
        }
    }
    Ok(all)
}

impl Changes {
    fn add_put(&mut self, key: Bytes) -> Result<(), RequestError> {
        if self.deletes.contains(&key) || !self.puts.insert(key) {
            return Err(RequestError::DuplicateKey);
        }
        Ok(())
    }

    fn add_nested(&mut self, then: Changes, other: Changes) -> Result<(), RequestError> {
        for key in &then.puts {
            self.add_put(key.clone())?;
        }
        for key in other.puts {
            if !then.puts.contains(&key) {
                self.add_put(key)?;
            }
        }
        self.deletes.extend(then.deletes);
        self.deletes.extend(other.deletes);
        Ok(())
    }
}

/// Disjoint ranges of keys by their start. An end of `None` is after every key.
#[derive(Default)]
struct Intervals(BTreeMap<Bytes, Option<Bytes>>);

impl Intervals {
    /// Takes the end as written: etcd compares «from this key on», which is written as a zero byte, as an empty range.
    fn insert(&mut self, key: &Bytes, range_end: &Bytes) {
        let end = if range_end.is_empty() { [key, &b"\0"[..]].concat().into() } else { range_end.clone() };
        if *key < end {
            self.merge(key.clone(), Some(end));
        }
    }

    fn extend(&mut self, other: Intervals) {
        for (start, end) in other.0 {
            self.merge(start, end);
        }
    }

    fn merge(&mut self, mut start: Bytes, mut end: Option<Bytes>) {
        // Those that begin inside or touch are swallowed; at most one that begins before reaches in.
        let reaches = |e: &Option<Bytes>, s: &Bytes| e.as_ref().is_none_or(|e| e >= s);
        if let Some((s, e)) = self.0.range(..=start.clone()).next_back()
            && reaches(e, &start)
        {
            end = later(end, e.clone());
            start = s.clone();
        }
        while let Some((s, e)) = self.0.range(start.clone()..).next()
            && reaches(&end, s)
        {
            let s = s.clone();
            end = later(end, e.clone());
            self.0.remove(&s);
        }
        self.0.insert(start, end);
    }

    fn contains(&self, key: &Bytes) -> bool {
        self.0.range(..=key.clone()).next_back().is_some_and(|(_, end)| end.as_ref().is_none_or(|end| key < end))
    }
}

fn later(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    Some(a?.max(b?))
}
