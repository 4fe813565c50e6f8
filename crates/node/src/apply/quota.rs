//! The space quota: what a request may cost.

use proto::etcdserverpb::{IncrementRequest, PutRequest, RequestOp, TxnRequest, request_op::Request};
use storage::Backend;

pub const LEASE_COST: u64 = 64;
const KV_OVERHEAD: u64 = 256;

/// How large the database may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    bytes_max: Option<u64>,
}

impl Quota {
    /// `None` is no limit.
    pub fn new(bytes_max: Option<u64>) -> Quota {
        Quota { bytes_max }
    }

    pub fn bytes_max(&self) -> Option<u64> {
        self.bytes_max
    }

    /// Whether a request of this cost leaves the database below the quota. One that costs nothing always does.
    pub fn fits(&self, backend: &Backend, cost: u64) -> bool {
        cost == 0 || self.bytes_max.is_none_or(|max| size_soon(backend) + cost < max)
    }
}

/// The size of the file after its next commit, about: what waits goes into free pages first.
fn size_soon(backend: &Backend) -> u64 {
    let free = backend.size().saturating_sub(backend.size_in_use());
    backend.size() + backend.pending_bytes().saturating_sub(free)
}

pub fn put_cost(put: &PutRequest) -> u64 {
    KV_OVERHEAD + (put.key.len() + put.value.len()) as u64
}

/// The longest number has twenty characters.
pub fn increment_cost(increment: &IncrementRequest) -> u64 {
    KV_OVERHEAD + increment.key.len() as u64 + 20
}

/// The dearer of both branches, since which one runs is known only at apply.
pub fn txn_cost(txn: &TxnRequest) -> u64 {
    let cost = |ops: &[RequestOp]| ops.iter().map(op_cost).sum::<u64>();
    cost(&txn.success).max(cost(&txn.failure))
}

fn op_cost(op: &RequestOp) -> u64 {
    match &op.request {
        Some(Request::RequestPut(put)) => put_cost(put),
        Some(Request::RequestTxn(txn)) => txn_cost(txn),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(len: usize) -> RequestOp {
        let put = PutRequest { key: vec![0; len].into(), ..Default::default() };
        RequestOp { request: Some(Request::RequestPut(put)) }
    }

    #[test]
    fn the_dearer_branch_counts() {
        let inner = TxnRequest { success: vec![put(1)], ..Default::default() };
        let nested = RequestOp { request: Some(Request::RequestTxn(inner)) };
        let txn = TxnRequest { success: vec![put(10)], failure: vec![put(1), nested], ..Default::default() };
        assert_eq!(txn_cost(&txn), 2 * (KV_OVERHEAD + 1));
        assert_eq!(txn_cost(&TxnRequest::default()), 0);
    }
}
