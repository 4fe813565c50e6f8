//! Random requests over few keys, so that they meet.

use bytes::Bytes;
use proto::etcdserverpb::{
    CompactionRequest, Compare, DeleteRangeRequest, HashKvRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    compare::TargetUnion, request_op::Request,
};

use super::Random;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    Put(PutRequest),
    Delete(DeleteRangeRequest),
    Range(RangeRequest),
    Txn(TxnRequest),
    Compact(CompactionRequest),
    Hash(HashKvRequest),
}

/// Leases that exist.
pub(crate) const LEASES: [i64; 3] = [7, 8, 0x1234_5678_9abc];

/// Knows about where the store is, to ask for revisions around it.
pub(crate) struct Generator {
    pub random: Random,
    pub revision: i64,
    pub compact_revision: i64,
    pub keys: u64,
    /// Whether transactions may delete from a key on and put a key behind it. etcd lets that pass, and panics on it
    /// if the put is to keep value or lease of what was deleted.
    pub deletes_before_puts: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Generator { random: Random::new(seed), revision: 1, compact_revision: 0, keys: 10, deletes_before_puts: true }
    }

    pub(crate) fn op(&mut self) -> Op {
        match self.random.below(100) {
            0..35 => Op::Put(self.put()),
            35..47 => Op::Delete(self.delete()),
            47..72 => Op::Range(self.range()),
            72..92 => Op::Txn(self.txn(2)),
            92..94 => Op::Compact(self.compaction()),
            _ => Op::Hash(HashKvRequest { revision: self.revision() }),
        }
    }

    pub(crate) fn put(&mut self) -> PutRequest {
        let r = &mut self.random;
        let (ignore_value, ignore_lease) = (r.one_in(8), r.one_in(8));
        let value = if ignore_value && !r.one_in(20) { Bytes::new() } else { value(r) };
        let lease = match r.below(20) {
            _ if ignore_lease && !r.one_in(20) => 0,
            0 => 99,
            1..5 => r.choose(&LEASES),
            _ => 0,
        };
        let prev_kv = r.one_in(3);
        PutRequest { key: self.key(), value, lease, prev_kv, ignore_value, ignore_lease }
    }

    pub(crate) fn delete(&mut self) -> DeleteRangeRequest {
        let (key, range_end) = if self.random.one_in(2) { (self.key(), Bytes::new()) } else { self.key_range() };
        DeleteRangeRequest { key, range_end, prev_kv: self.random.one_in(3) }
    }

    pub(crate) fn range(&mut self) -> RangeRequest {
        let (key, range_end) = self.key_range();
        let revision = if self.random.one_in(2) { 0 } else { self.revision() };
        let bound = |g: &mut Self| if g.random.one_in(8) { g.revision() } else { 0 };
        RangeRequest {
            key,
            range_end,
            revision,
            limit: if self.random.one_in(2) { 0 } else { self.random.below(6) as i64 },
            sort_order: self.random.below(3) as i32,
            sort_target: self.random.below(5) as i32,
            serializable: true,
            keys_only: self.random.one_in(4),
            count_only: self.random.one_in(8),
            min_mod_revision: bound(self),
            max_mod_revision: bound(self),
            min_create_revision: bound(self),
            max_create_revision: bound(self),
        }
    }

    pub(crate) fn txn(&mut self, depth: u32) -> TxnRequest {
        let compare = (0..self.random.below(3)).map(|_| self.compare()).collect();
        let success = (0..self.random.below(5)).map(|_| self.operation(depth)).collect();
        let failure = (0..self.random.below(4)).map(|_| self.operation(depth)).collect();
        TxnRequest { compare, success, failure }
    }

    fn operation(&mut self, depth: u32) -> RequestOp {
        let request = match self.random.below(10) {
            0..4 => Request::RequestPut(self.put()),
            4..6 => {
                let mut delete = self.delete();
                if !self.deletes_before_puts && *delete.range_end == [0] {
                    delete.range_end = Bytes::new();
                }
                Request::RequestDeleteRange(delete)
            }
            6..8 if depth > 0 => Request::RequestTxn(self.txn(depth - 1)),
            _ => Request::RequestRange(self.range()),
        };
        RequestOp { request: Some(request) }
    }

    fn compare(&mut self) -> Compare {
        let (key, range_end) = if self.random.one_in(4) { self.key_range() } else { (self.key(), Bytes::new()) };
        let number = match self.random.below(3) {
            0 => 0,
            1 => self.random.below(4) as i64,
            _ => self.revision(),
        };
        let target = self.random.below(5) as i32;
        let union = match if self.random.one_in(20) { self.random.below(5) as i32 } else { target } {
            0 => TargetUnion::Version(number),
            1 => TargetUnion::CreateRevision(number),
            2 => TargetUnion::ModRevision(number),
            3 => TargetUnion::Value(value(&mut self.random)),
            _ => TargetUnion::Lease(if self.random.one_in(2) { 0 } else { self.random.choose(&LEASES) }),
        };
        let target_union = if self.random.one_in(20) { None } else { Some(union) };
        Compare { result: self.random.below(4) as i32, target, key, range_end, target_union }
    }

    fn compaction(&mut self) -> CompactionRequest {
        let revision = match self.random.below(4) {
            0 => self.revision(),
            _ => self.compact_revision.max(0) + self.random.below(self.distance() + 1) as i64,
        };
        CompactionRequest { revision, physical: true }
    }

    /// Mostly one that can be read.
    fn revision(&mut self) -> i64 {
        match self.random.below(12) {
            0 => self.revision + 1 + self.random.below(3) as i64,
            1 => (self.compact_revision - 1).max(0),
            2 => 0,
            3 => self.compact_revision.max(0),
            _ => self.compact_revision.max(0) + self.random.below(self.distance() + 1) as i64,
        }
    }

    fn distance(&self) -> u64 {
        (self.revision - self.compact_revision.max(0)).max(0) as u64
    }

    fn key(&mut self) -> Bytes {
        if self.random.one_in(200) {
            return Bytes::new();
        }
        let letter = b'a' + self.random.below(self.keys) as u8;
        Bytes::copy_from_slice(&[letter])
    }

    fn key_range(&mut self) -> (Bytes, Bytes) {
        match self.random.below(6) {
            0 => (Bytes::from_static(b"\0"), Bytes::from_static(b"\0")),
            1 => (self.key(), Bytes::from_static(b"\0")),
            2 => (self.key(), Bytes::new()),
            _ => {
                let (a, b) = (self.key(), self.key());
                if a < b || self.random.one_in(4) { (a, b) } else { (b, a) }
            }
        }
    }
}

fn value(random: &mut Random) -> Bytes {
    match random.below(8) {
        0 => Bytes::new(),
        1 => Bytes::from(vec![random.below(256) as u8; random.below(300) as usize]),
        _ => Bytes::from(format!("v{}", random.below(6))),
    }
}
