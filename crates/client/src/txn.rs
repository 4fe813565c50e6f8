//! Transactions: conditions, and what to do when all hold or when any does not.

use bytes::Bytes;
use proto::etcdserverpb::{
    self as pb, RequestOp, TxnRequest,
    compare::{CompareResult, CompareTarget, TargetUnion},
};

use crate::Op;

/// All or nothing: if every condition holds, the steps of `and_then`, else those of `or_else`.
///
/// ```
/// use client::{Compare, Get, Put, Txn};
/// // Create a key only if nobody else has.
/// let txn = Txn::new()
///     .when([Compare::create_revision("lock").eq(0)])
///     .and_then([Put::new("lock", "me").into()])
///     .or_else([Get::key("lock").into()]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Txn {
    pub(crate) request: TxnRequest,
}

impl Txn {
    /// A transaction without conditions and steps: the conditions hold.
    pub fn new() -> Txn {
        Txn::default()
    }

    /// Adds conditions (`compare`). All conditions must hold for [`Txn::and_then`] to run.
    pub fn when(mut self, compares: impl IntoIterator<Item = Compare>) -> Txn {
        self.request.compare.extend(compares.into_iter().map(|compare| compare.request));
        self
    }

    /// Adds steps to run if all conditions hold (`success`).
    pub fn and_then(mut self, ops: impl IntoIterator<Item = Op>) -> Txn {
        self.request.success.extend(ops.into_iter().map(RequestOp::from));
        self
    }

    /// Adds steps to run if a condition does not hold (`failure`).
    pub fn or_else(mut self, ops: impl IntoIterator<Item = Op>) -> Txn {
        self.request.failure.extend(ops.into_iter().map(RequestOp::from));
        self
    }

    /// True if no step, however deep, can change anything, so that the transaction may be repeated.
    pub(crate) fn is_read_only(&self) -> bool {
        reads_only(&self.request)
    }
}

fn reads_only(txn: &TxnRequest) -> bool {
    use pb::request_op::Request::*;
    txn.success.iter().chain(&txn.failure).all(|op| match &op.request {
        Some(RequestRange(_)) => true,
        Some(RequestTxn(inner)) => reads_only(inner),
        _ => false,
    })
}

impl From<Txn> for Op {
    fn from(txn: Txn) -> Op {
        Op::Txn(txn.request)
    }
}

/// A condition of a [`Txn`].
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    pub(crate) request: pb::Compare,
}

/// The property of a key to compare. `eq`, `ne`, `gt` and `lt` turn it into a [`Compare`].
#[derive(Clone, Debug)]
pub struct Target<V> {
    key: Bytes,
    range_end: Bytes,
    target: CompareTarget,
    union: fn(V) -> TargetUnion,
}

impl Compare {
    /// The number of writes since the key was created; 0 if the key does not exist.
    pub fn version(key: impl Into<Bytes>) -> Target<i64> {
        Target::new(key, CompareTarget::Version, TargetUnion::Version)
    }

    /// The revision of the key's creation; 0 if the key does not exist.
    pub fn create_revision(key: impl Into<Bytes>) -> Target<i64> {
        Target::new(key, CompareTarget::Create, TargetUnion::CreateRevision)
    }

    /// The revision of the key's last write; 0 if the key does not exist.
    pub fn mod_revision(key: impl Into<Bytes>) -> Target<i64> {
        Target::new(key, CompareTarget::Mod, TargetUnion::ModRevision)
    }

    /// The key's value. No comparison holds if the key does not exist.
    pub fn value(key: impl Into<Bytes>) -> Target<Bytes> {
        Target::new(key, CompareTarget::Value, TargetUnion::Value)
    }

    /// The id of the key's lease; 0 if the key has none or does not exist.
    pub fn lease(key: impl Into<Bytes>) -> Target<i64> {
        Target::new(key, CompareTarget::Lease, TargetUnion::Lease)
    }
}

impl<V> Target<V> {
    fn new(key: impl Into<Bytes>, target: CompareTarget, union: fn(V) -> TargetUnion) -> Target<V> {
        Target { key: key.into(), range_end: Bytes::new(), target, union }
    }

    /// Compares every key from the given one up to but excluding `end`; the condition must hold for
    /// all of them.
    pub fn range_end(mut self, end: impl Into<Bytes>) -> Self {
        self.range_end = end.into();
        self
    }

    /// Holds if the property equals `value`.
    pub fn eq(self, value: impl Into<V>) -> Compare {
        self.compare(CompareResult::Equal, value)
    }

    /// Holds if the property differs from `value`.
    pub fn ne(self, value: impl Into<V>) -> Compare {
        self.compare(CompareResult::NotEqual, value)
    }

    /// Holds if the property is greater than `value`.
    pub fn gt(self, value: impl Into<V>) -> Compare {
        self.compare(CompareResult::Greater, value)
    }

    /// Holds if the property is less than `value`.
    pub fn lt(self, value: impl Into<V>) -> Compare {
        self.compare(CompareResult::Less, value)
    }

    /// Holds if the property compares to `value` as `result` says.
    pub fn compare(self, result: CompareResult, value: impl Into<V>) -> Compare {
        let request = pb::Compare {
            result: result.into(),
            target: self.target.into(),
            key: self.key,
            range_end: self.range_end,
            target_union: Some((self.union)(value.into())),
        };
        Compare { request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Get, Put};

    #[test]
    fn only_reads_may_be_repeated() {
        let read = Txn::new().and_then([Get::key("a").into()]);
        assert!(read.is_read_only());
        let nested = Txn::new().and_then([read.clone().into()]).or_else([Txn::new().into()]);
        assert!(nested.is_read_only());
        assert!(!nested.and_then([Txn::new().or_else([Put::new("a", "b").into()]).into()]).is_read_only());
    }
}
