//! The changes of one request.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use proto::{
    etcdserverpb::{
        DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, ResponseHeader, TxnRequest,
        TxnResponse,
    },
    mvccpb::KeyValue,
};
use storage::Batch;

use crate::{
    Error, KeyRange, RangeResult, Revision,
    contents::Contents,
    index::Before,
    key_index::Found,
    range::{At, Count, Values},
    raw_kv::KvFields,
    replay::{self, Replay},
    store::Shared,
    txn,
    values::{InBatch, Tail, TailChange},
};

/// The leases that keys are attached to.
pub trait Leases {
    fn exists(&self, id: i64) -> bool;
    fn attach(&mut self, id: i64, key: &Bytes);
    /// The lease may be gone already.
    fn detach(&mut self, id: i64, key: &[u8]);
}

/// For stores without leases.
impl Leases for () {
    fn exists(&self, _id: i64) -> bool {
        false
    }
    fn attach(&mut self, _id: i64, _key: &Bytes) {}
    fn detach(&mut self, _id: i64, _key: &[u8]) {}
}

/// Changes that become one revision. Each operation sees those before it. An operation that fails has changed
/// nothing. Ends, and is published, when dropped or by [`end`](WriteTxn::end).
pub struct WriteTxn<'a, 'b> {
    store: &'a Arc<Shared>,
    batch: &'a mut Batch<'b>,
    leases: &'a mut dyn Leases,
    contents: Arc<Contents>,
    /// The newest revision before this.
    begun_at: i64,
    /// How many so far.
    count: u32,
    /// Those that readers and watchers are told of.
    changes: Vec<TailChange>,
    keys: Vec<Bytes>,
    operations: usize,
}

impl<'a, 'b> WriteTxn<'a, 'b> {
    pub(crate) fn begin(store: &'a Arc<Shared>, batch: &'a mut Batch<'b>, leases: &'a mut dyn Leases) -> Self {
        let published = store.published.read();
        let (begun_at, contents) = (published.revision, published.tail.contents.clone());
        drop(published);
        WriteTxn {
            store,
            batch,
            leases,
            contents,
            begun_at,
            count: 0,
            changes: Vec::new(),
            keys: Vec::new(),
            operations: 0,
        }
    }

    /// The revision that a read sees now: the next one, once something was changed.
    pub fn revision(&self) -> i64 {
        self.begun_at + i64::from(self.count > 0)
    }

    pub fn put(&mut self, req: &PutRequest) -> Result<PutResponse, Error> {
        self.check_put(req)?;
        self.put_checked(req)
    }

    pub fn delete_range(&mut self, req: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        self.operations += 1;
        self.store.counters.deletes.add(1);
        let range = KeyRange::new(&req.key, &req.range_end);
        let prev_kvs = if req.prev_kv && self.contents.replay.is_none() {
            let read = RangeRequest { key: req.key.clone(), range_end: req.range_end.clone(), ..Default::default() };
            self.at(|at| at.range(&read, Count::Read))?.kvs.decode()
        } else {
            Vec::new()
        };
        let deleted = match self.contents.clone().replay.as_ref() {
            Some(replay) => self.delete_replayed(replay, range)?,
            None => self.delete_keys(range)?,
        };
        Ok(DeleteRangeResponse { header: self.header(), deleted, prev_kvs })
    }

    /// Deletes the keys of a lease that is revoked: those given, which the lessor knew of, or in a replay those that the store
    /// knows of.
    pub fn delete_leased(&mut self, lease: i64, keys: Vec<Bytes>) -> Result<(), Error> {
        if let Some(replay) = &self.contents.clone().replay {
            return self.delete_leased_replayed(replay, lease);
        }
        for key in keys {
            self.delete_range(&DeleteRangeRequest { key, ..Default::default() })?;
        }
        Ok(())
    }

    /// The newest value of one key.
    pub fn get(&self, key: &[u8]) -> Result<Option<KeyValue>, Error> {
        self.at(|at| at.get(key))
    }

    pub fn range(&mut self, req: &RangeRequest) -> Result<RangeResult, Error> {
        self.operations += 1;
        self.store.counters.ranges.add(1);
        self.at(|at| at.range(req, Count::All))
    }

    /// Runs a transaction. Everything that can fail is checked first: it is done whole, or not at all.
    pub fn txn(&mut self, req: &TxnRequest) -> Result<TxnResponse, Error> {
        let ranges = if self.contents.replay.is_some() { txn::Ranges::Skip } else { txn::Ranges::Run };
        txn::run_write(self, req, ranges)
    }

    /// Publishes the changes to readers and watchers. Gives the newest revision.
    pub fn end(self) -> i64 {
        self.revision()
    }

    /// Fails where [`put_checked`](Self::put_checked) would.
    pub(crate) fn check_put(&self, req: &PutRequest) -> Result<(), Error> {
        if req.lease != 0 && !self.leases.exists(req.lease) {
            return Err(Error::LeaseNotFound { id: req.lease });
        }
        if (req.ignore_value || req.ignore_lease) && !self.exists(&req.key) {
            return Err(Error::KeyNotFound);
        }
        Ok(())
    }

    pub(crate) fn put_checked(&mut self, req: &PutRequest) -> Result<PutResponse, Error> {
        self.operations += 1;
        let previous =
            if req.ignore_value || req.ignore_lease || req.prev_kv { self.at(|at| at.get(&req.key))? } else { None };
        let kept = previous.as_ref();
        let value = if req.ignore_value { kept.map_or(&b""[..], |kv| &kv.value) } else { &req.value };
        let lease = if req.ignore_lease { kept.map_or(0, |kv| kv.lease) } else { req.lease };
        self.put_value(&req.key, value, lease)?;
        Ok(PutResponse { header: self.header(), prev_kv: previous.filter(|_| req.prev_kv) })
    }

    fn exists(&self, key: &[u8]) -> bool {
        match &self.contents.replay {
            Some(replay) => replay.lock().get(key).is_some(),
            None => self.contents.index.read().get(key, self.revision()).is_some(),
        }
    }

    pub(crate) fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision: self.revision(), ..Default::default() })
    }

    /// Reads what the changes so far leave.
    pub(crate) fn at<T>(&self, f: impl FnOnce(&At<'_, InBatch<'_, 'b>>) -> T) -> T {
        let values = InBatch(self.batch);
        let compact_revision = || self.compact_revision();
        f(&At {
            index: &self.contents.index,
            values: &values,
            current: self.revision(),
            compact_revision: &compact_revision,
            replay: self.contents.replay.as_ref(),
        })
    }

    pub(crate) fn compact_revision(&self) -> i64 {
        self.contents.compact_revision()
    }

    fn next_revision(&self) -> Revision {
        Revision::new(self.begun_at + 1, self.count)
    }

    fn put_value(&mut self, key: &Bytes, value: &[u8], lease: i64) -> Result<(), Error> {
        let revision = self.next_revision();
        let (before, old_lease) = self.record_put(key, revision, lease)?;
        let raw = KvFields {
            key,
            create_revision: before.map_or(revision.main, |found| found.created),
            mod_revision: revision.main,
            version: before.map_or(0, |found| found.version) + 1,
            value,
            lease,
        }
        .to_bytes();
        self.batch.put_revision(revision.put_key(), raw.clone());
        self.store.counters.puts.add(1);
        self.store.counters.put_bytes.add(key.len() + value.len());
        self.note(key.clone(), TailChange { tombstone: false, raw });
        if old_lease == lease {
            return Ok(());
        }
        if old_lease != 0 {
            self.leases.detach(old_lease, key);
        }
        if lease != 0 {
            self.leases.attach(lease, key);
        }
        Ok(())
    }

    fn delete_keys(&mut self, range: KeyRange<'_>) -> Result<i64, Error> {
        let mut keys = Vec::new();
        let at = self.revision();
        self.contents.index.read().visit(range, |key, ki| {
            if ki.get(at).is_some() {
                keys.push(Bytes::copy_from_slice(key));
            }
            ControlFlow::Continue(())
        });
        let deleted = keys.len() as i64;
        for key in keys {
            self.delete_key(key)?;
        }
        Ok(deleted)
    }

    fn delete_key(&mut self, key: Bytes) -> Result<(), Error> {
        let revision = self.next_revision();
        let lease = self.record_tombstone(&key, revision)?;
        self.bury(key, revision, lease);
        Ok(())
    }

    /// Writes down that a key was deleted, which is recorded.
    fn bury(&mut self, key: Bytes, revision: Revision, lease: i64) {
        let raw = KvFields { key: &key, ..Default::default() }.to_bytes();
        self.batch.put_revision(revision.tombstone_key(), raw.clone());
        if lease != 0 {
            self.leases.detach(lease, &key);
        }
        self.note(key, TailChange { tombstone: true, raw });
    }

    /// In a replay: what was changed so far need not stay in memory.
    fn write_out(&mut self) {
        self.batch.split();
        self.store.backend.release_memory();
    }

    /// A change was made.
    fn note(&mut self, key: Bytes, change: TailChange) {
        self.count += 1;
        if self.contents.replay.is_none() {
            self.changes.push(change);
            self.keys.push(key);
        }
    }

    /// What the key was, and its lease.
    fn record_put(&self, key: &[u8], revision: Revision, lease: i64) -> Result<(Option<Found>, i64), Error> {
        if let Some(replay) = &self.contents.replay {
            let before = replay.lock().put(key, revision, lease);
            return Ok((before.map(|last| last.found), before.map_or(0, |last| last.lease)));
        }
        let before = self.contents.index.write().put(key, revision, lease != 0);
        Ok((before.map(|before| before.found), self.lease_of(&before)?))
    }

    /// The lease that the key had.
    fn record_tombstone(&self, key: &[u8], revision: Revision) -> Result<i64, Error> {
        if let Some(replay) = &self.contents.replay {
            return Ok(replay.lock().delete(key).map_or(0, |last| last.lease));
        }
        let before = self.contents.index.write().tombstone(key, revision);
        self.lease_of(&before)
    }

    /// As [`delete_keys`](Self::delete_keys), in lots between which the batch may be written out.
    fn delete_replayed(&mut self, replay: &Mutex<Replay>, range: KeyRange<'_>) -> Result<i64, Error> {
        let begin = self.count;
        replay::each_lot(replay, range, |lot| {
            for (key, last) in lot {
                replay.lock().delete_known(&key, last.lease);
                self.bury(key, self.next_revision(), last.lease);
            }
            self.write_out();
            Ok(true)
        })?;
        Ok(i64::from(self.count - begin))
    }

    fn delete_leased_replayed(&mut self, replay: &Mutex<Replay>, lease: i64) -> Result<(), Error> {
        replay::each_leased_lot(replay, lease, |lot| {
            for key in lot {
                self.delete_key(key)?;
            }
            self.write_out();
            Ok(true)
        })
    }

    /// The lease of a key before a change. The index knows whether there was one, so few values need to be read.
    fn lease_of(&self, before: &Option<Before>) -> Result<i64, Error> {
        let Some(before) = before.filter(|b| b.leased) else { return Ok(0) };
        let revision = before.found.modified;
        let lease = InBatch(self.batch).with(revision, |raw| KvFields::parse(raw).map(|kv| kv.lease)).flatten();
        lease.ok_or(Error::Missing { revision })
    }
}

impl Drop for WriteTxn<'_, '_> {
    fn drop(&mut self) {
        if self.operations > 1 {
            self.store.counters.txns.add(1);
        }
        if self.count == 0 {
            return;
        }
        let changes = std::mem::take(&mut self.changes);
        let tail = Tail { revision: self.begun_at + 1, changes, contents: self.contents.clone() };
        self.store.publish(tail, std::mem::take(&mut self.keys));
    }
}
