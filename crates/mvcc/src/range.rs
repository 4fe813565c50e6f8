//! Reading ranges: find in the index, filter, order, cut, and only then read values.

use std::{cmp::Reverse, ops::ControlFlow};

use bytes::{BufMut, Bytes};
use parking_lot::{Mutex, RwLock};
use prost::Message;
use proto::{
    etcdserverpb::{
        RangeRequest, RangeResponse, ResponseHeader,
        range_request::{SortOrder, SortTarget},
    },
    mvccpb::KeyValue,
};

use crate::{
    Error, KeyRange, Revision,
    index::{Index, visit_in_steps},
    key_index::Found,
    raw_kv::{KvFields, RawKvs, RawKvsBuilder},
    replay::Replay,
};

/// What a range found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeResult {
    pub kvs: RawKvs,
    /// Keys in the range, whatever the limit and the filters.
    pub count: i64,
    /// Whether the limit left some out.
    pub more: bool,
    /// The newest revision when it was read.
    pub revision: i64,
}

impl RangeResult {
    pub fn header(&self) -> ResponseHeader {
        ResponseHeader { revision: self.revision, ..Default::default() }
    }

    /// As a message whose keys and values share one buffer.
    pub fn into_response(self) -> RangeResponse {
        RangeResponse { header: Some(self.header()), kvs: self.kvs.decode(), more: self.more, count: self.count }
    }

    /// Bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self, header: Option<&ResponseHeader>) -> usize {
        self.frame(header).encoded_len() + self.kvs.wire().len()
    }

    /// Writes the `RangeResponse`, without decoding what was stored.
    pub fn encode(&self, header: Option<&ResponseHeader>, out: &mut impl BufMut) {
        let (head, tail) = self.around(header);
        out.put_slice(&head);
        out.put_slice(self.kvs.wire());
        out.put_slice(&tail);
    }

    /// The `RangeResponse` in the parts it is made of, for a body that is sent in pieces.
    pub fn encode_parts(&self, header: Option<&ResponseHeader>) -> [Bytes; 3] {
        let (head, tail) = self.around(header);
        [head.into(), self.kvs.wire().clone(), tail.into()]
    }

    fn around(&self, header: Option<&ResponseHeader>) -> (Vec<u8>, Vec<u8>) {
        let head = RangeResponse { header: header.copied(), ..Default::default() }.encode_to_vec();
        let tail = RangeResponse { more: self.more, count: self.count, ..Default::default() }.encode_to_vec();
        (head, tail)
    }

    fn frame(&self, header: Option<&ResponseHeader>) -> RangeResponse {
        RangeResponse { header: header.copied(), more: self.more, count: self.count, kvs: Vec::new() }
    }
}

/// Stored values by revision.
pub(crate) trait Values {
    fn with<R>(&self, revision: Revision, f: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// Where and when to read.
pub(crate) struct At<'a, V> {
    pub index: &'a RwLock<Index>,
    pub values: &'a V,
    /// The newest revision that may be seen.
    pub current: i64,
    /// The compact revision of now, which may move while a read runs.
    pub compact_revision: &'a dyn Fn() -> i64,
    /// Asked instead of the index.
    pub replay: Option<&'a Mutex<Replay>>,
}

/// Whether all keys are to be counted, or only those read: counting a large range costs more than a page of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    All,
    Read,
}

impl<V: Values> At<'_, V> {
    pub(crate) fn range(&self, req: &RangeRequest, count: Count) -> Result<RangeResult, Error> {
        let rev = self.revision(req.revision)?;
        let range = KeyRange::new(&req.key, &req.range_end);
        let by_value = req.sort_target == SortTarget::Value as i32;
        let keys_only = req.keys_only && !by_value;
        let mut hits = Hits::default();
        let limit = if req.count_only { 0 } else { fetch_limit(req) };
        let keep = if req.count_only {
            Keep::Count
        } else if keys_only {
            Keep::Keys
        } else {
            Keep::Revisions
        };
        hits.find(self.index, range, rev, limit, keep, count);
        self.check_compacted(rev)?;
        let mut result = RangeResult { count: hits.count, revision: self.current, ..Default::default() };
        if req.count_only {
            return Ok(result);
        }
        hits.filter(req);
        let values = if by_value { Some(self.read_values(&hits.found, rev)?) } else { None };
        let order = sorted(req, &hits, values.as_deref());
        let taken = match usize::try_from(req.limit) {
            Ok(limit) if limit > 0 && order.len() > limit => {
                result.more = true;
                &order[..limit]
            }
            _ => &order[..],
        };
        result.kvs = match values {
            Some(values) => collect_values(&values, taken, req.keys_only),
            None if keys_only => hits.collect_keys(taken),
            None => self.collect(&hits.found, taken, rev)?,
        };
        Ok(result)
    }

    /// Calls `f` on each key of a range at the newest revision, with values only if asked for; `false` from `f` ends it.
    pub(crate) fn each(
        &self,
        range: KeyRange<'_>,
        values: bool,
        f: &mut dyn FnMut(&KvFields<'_>) -> bool,
    ) -> Result<(), Error> {
        if let Some(replay) = self.replay {
            return self.each_replayed(replay, range, values, f);
        }
        let mut hits = Hits::default();
        hits.find(self.index, range, self.current, 0, Keep::Revisions, Count::Read);
        self.check_compacted(self.current)?;
        for found in &hits.found {
            let goes_on = if values {
                self.value(found.modified, self.current, |raw| KvFields::parse(raw).map(|kv| f(&kv)))?
                    .ok_or(Error::Missing { revision: found.modified })?
            } else {
                f(&KvFields {
                    create_revision: found.created,
                    mod_revision: found.modified.main,
                    version: found.version,
                    ..Default::default()
                })
            };
            if !goes_on {
                break;
            }
        }
        Ok(())
    }

    /// The newest value of one key, as a message of its own.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<KeyValue>, Error> {
        let Some(raw) = self.get_raw(key, self.current)? else { return Ok(None) };
        Ok(KvFields::parse(&raw).map(|kv| kv.to_message(&raw)))
    }

    /// The stored bytes of one key as it was at a revision.
    pub(crate) fn get_raw(&self, key: &[u8], at: i64) -> Result<Option<Bytes>, Error> {
        let found = match self.replay {
            Some(replay) => replay.lock().get(key).map(|last| last.found),
            None => self.index.read().get(key, at),
        };
        self.check_compacted(at)?;
        found.map(|found| self.value(found.modified, at, Bytes::copy_from_slice)).transpose()
    }

    /// The revision a request asks for; what is not positive means the newest.
    fn revision(&self, requested: i64) -> Result<i64, Error> {
        match requested {
            r if r > self.current => Err(Error::FutureRevision { requested, current: self.current }),
            r if r <= 0 => Ok(self.current),
            r => Ok(r),
        }
    }

    /// Asked after the index was read: if revisions that the read needed were dropped before, this shows it.
    fn check_compacted(&self, rev: i64) -> Result<(), Error> {
        let compact_revision = (self.compact_revision)();
        if rev < compact_revision { Err(Error::Compacted { requested: rev, compact_revision }) } else { Ok(()) }
    }

    fn value<R>(&self, revision: Revision, at: i64, f: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        match self.values.with(revision, f) {
            Some(r) => Ok(r),
            // A compaction may have begun and removed it since the index was read.
            None => Err(self.check_compacted(at).err().unwrap_or(Error::Missing { revision })),
        }
    }

    fn collect(&self, found: &[Found], taken: &[u32], at: i64) -> Result<RawKvs, Error> {
        let mut kvs = RawKvsBuilder::default();
        for (n, &i) in taken.iter().enumerate() {
            let more = taken.len() - n - 1;
            self.value(found[i as usize].modified, at, |raw| kvs.push(raw, more))?;
        }
        Ok(kvs.finish())
    }

    fn read_values(&self, found: &[Found], at: i64) -> Result<Vec<Bytes>, Error> {
        let read = |found: &Found| {
            let raw = self.value(found.modified, at, Bytes::copy_from_slice)?;
            KvFields::parse(&raw).ok_or(Error::Missing { revision: found.modified })?;
            Ok(raw)
        };
        found.iter().map(read).collect()
    }
}

/// How many keys the index must give. One more than the limit tells whether there are more. Ordering and filters
/// need all, except that an order which names a target but no direction sorts within the limit, as etcd does.
fn fetch_limit(req: &RangeRequest) -> usize {
    if !default_order(req.sort_target, req.sort_order) || has_revision_filter(req) {
        return 0;
    }
    usize::try_from(req.limit).map_or(0, |l| if l == 0 { 0 } else { l.saturating_add(1) })
}

/// Whether keys come in the order of the index, going by the request alone.
pub fn default_order(target: i32, order: i32) -> bool {
    order == SortOrder::None as i32 || (target == SortTarget::Key as i32 && order == SortOrder::Ascend as i32)
}

/// Whether a range asks for keys by when they were made or changed.
pub fn has_revision_filter(req: &RangeRequest) -> bool {
    [req.min_mod_revision, req.max_mod_revision, req.min_create_revision, req.max_create_revision] != [0; 4]
}

fn needs_sort(req: &RangeRequest) -> bool {
    let order = match req.sort_order {
        o if o == SortOrder::None as i32 && req.sort_target != SortTarget::Key as i32 => SortOrder::Ascend as i32,
        o => o,
    };
    !default_order(req.sort_target, order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Count,
    Revisions,
    Keys,
}

/// What the index gave.
#[derive(Default)]
struct Hits {
    found: Vec<Found>,
    /// With [`Keep::Keys`]: the keys behind one another, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    count: i64,
}

impl Hits {
    fn find(&mut self, index: &RwLock<Index>, range: KeyRange<'_>, at: i64, limit: usize, keep: Keep, count: Count) {
        visit_in_steps(index, range, |key, ki| {
            let full = limit > 0 && self.found.len() >= limit;
            if full && count == Count::Read {
                return ControlFlow::Break(());
            }
            let Some(found) = ki.get(at) else { return ControlFlow::Continue(()) };
            self.count += 1;
            if !full && keep != Keep::Count {
                self.found.push(found);
                if keep == Keep::Keys {
                    self.keys.extend_from_slice(key);
                    self.ends.push(self.keys.len());
                }
            }
            ControlFlow::Continue(())
        });
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.keys[start..self.ends[i]]
    }

    /// Leaves the revisions that the request's bounds allow.
    fn filter(&mut self, req: &RangeRequest) {
        if !has_revision_filter(req) {
            return;
        }
        let within = |n: i64, min: i64, max: i64| (min == 0 || n >= min) && (max == 0 || n <= max);
        let allowed = |f: &Found| {
            within(f.modified.main, req.min_mod_revision, req.max_mod_revision)
                && within(f.created, req.min_create_revision, req.max_create_revision)
        };
        if self.ends.is_empty() {
            return self.found.retain(allowed);
        }
        let mut kept = Hits { count: self.count, ..Default::default() };
        for (i, found) in self.found.iter().enumerate().filter(|(_, f)| allowed(f)) {
            kept.found.push(*found);
            kept.keys.extend_from_slice(self.key(i));
            kept.ends.push(kept.keys.len());
        }
        *self = kept;
    }

    fn collect_keys(&self, taken: &[u32]) -> RawKvs {
        let mut kvs = RawKvsBuilder::default();
        for (n, &i) in taken.iter().enumerate() {
            let found = &self.found[i as usize];
            // From the index alone, as etcd 3.7 does; so the lease is not told.
            let kv = KvFields {
                key: self.key(i as usize),
                create_revision: found.created,
                mod_revision: found.modified.main,
                version: found.version,
                ..Default::default()
            };
            kvs.push_fields(&kv, taken.len() - n - 1);
        }
        kvs.finish()
    }
}

fn collect_values(values: &[Bytes], taken: &[u32], keys_only: bool) -> RawKvs {
    let mut kvs = RawKvsBuilder::default();
    for (n, &i) in taken.iter().enumerate() {
        let (raw, more) = (&values[i as usize], taken.len() - n - 1);
        match KvFields::parse(raw) {
            Some(kv) if keys_only => kvs.push_fields(&KvFields { value: b"", ..kv }, more),
            _ => kvs.push(raw, more),
        }
    }
    kvs.finish()
}

/// Positions of the hits in the order asked for. Equal ones stay in the order of their keys.
fn sorted(req: &RangeRequest, hits: &Hits, values: Option<&[Bytes]>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..hits.found.len() as u32).collect();
    if !needs_sort(req) {
        return order;
    }
    let descend = req.sort_order == SortOrder::Descend as i32;
    let by_number = |order: &mut Vec<u32>, number: fn(&Found) -> i64| {
        let key = |i: &u32| number(&hits.found[*i as usize]);
        if descend { order.sort_by_key(|i| Reverse(key(i))) } else { order.sort_by_key(key) }
    };
    match SortTarget::try_from(req.sort_target) {
        // Only descending comes here; keys are unique.
        Ok(SortTarget::Key) => order.reverse(),
        Ok(SortTarget::Version) => by_number(&mut order, |f| f.version),
        Ok(SortTarget::Create) => by_number(&mut order, |f| f.created),
        Ok(SortTarget::Mod) => by_number(&mut order, |f| f.modified.main),
        Ok(SortTarget::Value) => {
            let parsed: Vec<_> = values.unwrap_or_default().iter().map(|v| KvFields::parse(v)).collect();
            let key = |i: &u32| parsed[*i as usize].map(|kv| kv.value);
            if descend { order.sort_by_key(|i| Reverse(key(i))) } else { order.sort_by_key(key) }
        }
        // Requests are checked before they are proposed.
        Err(_) => {}
    }
    order
}
