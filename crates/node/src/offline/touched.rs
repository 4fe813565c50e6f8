//! Which keys a tail of the log can read or change, so that only those have to be in memory while it is applied.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use bytes::Bytes;
use prost::Message;
use proto::{
    etcdserverpb::{InternalRaftRequest, PutRequest, RequestOp, TxnRequest, request_op::Request},
    raftpb::{Entry, EntryType},
};

/// Bytes of names above which all keys count as touched: they are kept on disk then, and names in memory bring nothing.
const NAMES_MAX: usize = 16 << 20;
/// About what a name takes besides its bytes.
const NAME_BYTES: usize = 64;

/// Keys by name, by range and by lease. Ranges that are only read are left out: what they find changes nothing.
#[derive(Debug, Default)]
pub struct Touched {
    /// All keys and all leases, whatever the rest says.
    every: bool,
    keys: BTreeSet<Bytes>,
    /// Of keys, ranges and leases.
    bytes: usize,
    /// By their begin, none overlapping or touching another; an empty end lies behind all keys.
    ranges: BTreeMap<Bytes, Bytes>,
    leases: BTreeSet<i64>,
}

impl Touched {
    /// Every key, and every lease.
    pub fn all() -> Touched {
        Touched { every: true, ..Touched::default() }
    }

    /// Takes note of an entry that will be applied.
    pub fn note(&mut self, entry: &Entry) {
        let data = entry.data.clone().unwrap_or_default();
        if entry.r#type() != EntryType::EntryNormal || data.is_empty() {
            return;
        }
        // What cannot be read is refused when it is applied; the v2 API touches no keys of the store.
        let Ok(r) = InternalRaftRequest::decode(data) else { return };
        r.put.iter().for_each(|r| self.put(r));
        r.increment.iter().for_each(|r| self.range(&r.key, b""));
        r.delete_range.iter().for_each(|r| self.range(&r.key, &r.range_end));
        r.txn.iter().for_each(|r| self.txn(r));
        r.lease_revoke.iter().for_each(|r| self.lease(r.id));
    }

    /// Whether the keys that hang on this lease are touched, or asked for.
    pub fn has_lease(&self, id: i64) -> bool {
        self.every || self.leases.contains(&id)
    }

    /// Whether there may be keys that are touched by their lease alone.
    pub fn seeks_leases(&self) -> bool {
        !self.every && !self.leases.is_empty()
    }

    /// One more key, which hangs on such a lease.
    pub fn add_key(&mut self, key: &[u8]) {
        if !self.has(key) {
            self.grow(key.len());
            self.keys.insert(Bytes::copy_from_slice(key));
        }
    }

    pub fn has(&self, key: &[u8]) -> bool {
        let range = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        self.every || range.is_some_and(|(_, end)| end.is_empty() || key < &end[..]) || self.keys.contains(key)
    }

    fn put(&mut self, r: &PutRequest) {
        self.range(&r.key, b"");
        if r.lease != 0 {
            self.lease(r.lease);
        }
    }

    fn lease(&mut self, id: i64) {
        if self.leases.insert(id) {
            self.grow(0);
        }
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes + NAME_BYTES;
        if self.bytes > NAMES_MAX {
            *self = Touched::all();
        }
    }

    fn txn(&mut self, r: &TxnRequest) {
        r.compare.iter().for_each(|c| self.range(&c.key, &c.range_end));
        r.success.iter().chain(&r.failure).for_each(|op| self.operation(op));
    }

    fn operation(&mut self, op: &RequestOp) {
        match &op.request {
            Some(Request::RequestPut(r)) => self.put(r),
            Some(Request::RequestDeleteRange(r)) => self.range(&r.key, &r.range_end),
            Some(Request::RequestTxn(r)) => self.txn(r),
            Some(Request::RequestRange(_)) | None => {}
        }
    }

    /// As requests write it: no end means the key alone, a zero byte all keys from it on.
    fn range(&mut self, key: &Bytes, range_end: &[u8]) {
        match range_end {
            // A key of a request shares the memory of all of it, so it is copied.
            [] => self.add_key(key),
            [0] => self.merge(Bytes::copy_from_slice(key), Bytes::new()),
            end if key[..] < *end => self.merge(Bytes::copy_from_slice(key), Bytes::copy_from_slice(end)),
            // It ends before it begins.
            _ => {}
        }
    }

    /// The last range that begins at or before `end`.
    fn last_from(&self, end: &Bytes) -> Option<(Bytes, Bytes)> {
        let found = if end.is_empty() {
            self.ranges.last_key_value()
        } else {
            self.ranges.range::<Bytes, _>(..=end).next_back()
        };
        found.map(|(begin, end)| (begin.clone(), end.clone()))
    }

    fn merge(&mut self, mut begin: Bytes, mut end: Bytes) {
        self.grow(begin.len() + end.len());
        let reaches = |end: &Bytes, to: &Bytes| end.is_empty() || (!to.is_empty() && end >= to);
        // From the last that begins before the end, back to the last that ends before the begin.
        while let Some((b, e)) = self.last_from(&end) {
            if !(e.is_empty() || e >= begin) {
                break;
            }
            self.ranges.remove(&b);
            if reaches(&e, &end) {
                end = e;
            }
            begin = begin.min(b);
        }
        self.ranges.insert(begin, end);
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    /// Ranges as `begin-end`, `-` at the end for all from there on.
    #[test_case("a-c b-d" => "a-d"; "overlapping")]
    #[test_case("a-b b-c" => "a-c"; "touching")]
    #[test_case("a-b c-d" => "a-b c-d"; "apart")]
    #[test_case("c-d a-b b-c" => "a-d"; "between")]
    #[test_case("b-c a-z" => "a-z"; "around")]
    #[test_case("a-z b-c" => "a-z"; "inside")]
    #[test_case("a-b f-g c-" => "a-b c-"; "open")]
    #[test_case("c- a-d" => "a-"; "into an open one")]
    #[test_case("a-b c-d e-f b-e" => "a-f"; "several")]
    #[test_case("c-a" => ""; "ends before it begins")]
    fn merges(ranges: &str) -> String {
        let mut touched = Touched::default();
        for range in ranges.split(' ') {
            let (begin, end) = range.split_once('-').unwrap();
            let end = if end.is_empty() { "\0" } else { end };
            touched.range(&Bytes::copy_from_slice(begin.as_bytes()), end.as_bytes());
        }
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let found = touched.ranges.iter().map(|(begin, end)| format!("{}-{}", text(begin), text(end)));
        found.collect::<Vec<_>>().join(" ")
    }
}
