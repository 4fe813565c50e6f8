//! What a store should answer, in the plainest way: the whole contents are kept for every revision.

use std::{cmp::Reverse, collections::BTreeMap};

use bytes::Bytes;
use mvcc::{KeyRange, check};
use prost::Message;
use proto::{
    etcdserverpb::{
        Compare, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse,
        RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse, compare::TargetUnion, request_op::Request,
        response_op::Response,
    },
    mvccpb::KeyValue,
};

use super::{
    random::{LEASES, Op},
    store::request_error,
};

type State = BTreeMap<Bytes, KeyValue>;

const COMPACTED: &str = "etcdserver: mvcc: required revision has been compacted";
const FUTURE: &str = "etcdserver: mvcc: required revision is a future revision";

pub(crate) struct Model {
    /// By revision.
    pub states: Vec<State>,
    /// All changes: revision, key, and the value if it was a put.
    pub events: Vec<(i64, Bytes, Option<KeyValue>)>,
    pub compact_revision: i64,
}

impl Model {
    pub(crate) fn new() -> Self {
        Model { states: vec![State::new(); 2], events: Vec::new(), compact_revision: -1 }
    }

    pub(crate) fn revision(&self) -> i64 {
        self.states.len() as i64 - 1
    }

    pub(crate) fn state(&self) -> &State {
        self.states.last().expect("never empty")
    }

    /// `None` for what the model does not know.
    pub(crate) fn run(&mut self, op: &Op) -> Option<Result<Vec<u8>, String>> {
        Some(match op {
            Op::Range(req) => check::range(req)
                .map_err(request_error)
                .and_then(|()| self.range(req, self.state(), self.revision()))
                .map(|r| r.encode_to_vec()),
            Op::Put(req) => check::put(req).map_err(request_error).and_then(|()| {
                self.check_put(req)?;
                let mut change = Change::new(self);
                let response = change.put(req);
                change.end(self);
                Ok(response.encode_to_vec())
            }),
            Op::Delete(req) => check::delete_range(req).map_err(request_error).map(|()| {
                let mut change = Change::new(self);
                let response = change.delete(req);
                change.end(self);
                response.encode_to_vec()
            }),
            Op::Txn(req) => check::txn(req, 128).map_err(request_error).and_then(|()| {
                self.check_txn(req)?;
                let mut change = Change::new(self);
                let mut response = self.txn(req, &mut change)?;
                response.header = Some(header(change.revision()));
                change.end(self);
                Ok(response.encode_to_vec())
            }),
            Op::Compact(req) => match req.revision {
                r if r <= self.compact_revision => Err(COMPACTED.into()),
                r if r > self.revision() => Err(FUTURE.into()),
                r => {
                    self.compact_revision = r;
                    return None;
                }
            },
            Op::Hash(_) => return None,
        })
    }

    fn range(&self, req: &RangeRequest, newest: &State, current: i64) -> Result<RangeResponse, String> {
        let state = match req.revision {
            r if r > current => return Err(FUTURE.into()),
            r if r <= 0 || r == current => newest,
            r if r < self.compact_revision => return Err(COMPACTED.into()),
            r => &self.states[r as usize],
        };
        let range = KeyRange::new(&req.key, &req.range_end);
        let mut kvs: Vec<KeyValue> = state.values().filter(|kv| range.contains(&kv.key)).cloned().collect();
        let count = kvs.len() as i64;
        let mut response = RangeResponse { header: Some(header(current)), count, ..Default::default() };
        if req.count_only {
            return Ok(response);
        }
        let limit = if req.limit > 0 { req.limit as usize } else { usize::MAX };
        let filters =
            [req.min_mod_revision, req.max_mod_revision, req.min_create_revision, req.max_create_revision] != [0; 4];
        // A target without a direction sorts what the limit, and one more, left.
        if req.sort_order == 0 && !filters {
            kvs.truncate(limit.saturating_add(1));
        }
        let min = |bound: i64, n: i64| bound == 0 || n >= bound;
        let max = |bound: i64, n: i64| bound == 0 || n <= bound;
        kvs.retain(|kv| {
            min(req.min_mod_revision, kv.mod_revision)
                && max(req.max_mod_revision, kv.mod_revision)
                && min(req.min_create_revision, kv.create_revision)
                && max(req.max_create_revision, kv.create_revision)
        });
        sort(&mut kvs, req.sort_target, req.sort_order == 2);
        response.more = kvs.len() > limit;
        kvs.truncate(limit);
        for kv in kvs.iter_mut().filter(|_| req.keys_only) {
            kv.value = Bytes::new();
            kv.lease = if req.sort_target == 4 { kv.lease } else { 0 };
        }
        response.kvs = kvs;
        Ok(response)
    }

    fn check_put(&self, req: &PutRequest) -> Result<(), String> {
        if req.lease != 0 && !LEASES.contains(&req.lease) {
            return Err("etcdserver: requested lease not found".into());
        }
        if (req.ignore_value || req.ignore_lease) && !self.state().contains_key(&req.key) {
            return Err("etcdserver: key not found".into());
        }
        Ok(())
    }

    fn check_txn(&self, req: &TxnRequest) -> Result<(), String> {
        for op in self.branch(req).1 {
            match op.request.as_ref().expect("checked") {
                Request::RequestRange(r) if r.revision > self.revision() => return Err(FUTURE.into()),
                Request::RequestRange(r) if r.revision != 0 && r.revision < self.compact_revision => {
                    return Err(COMPACTED.into());
                }
                Request::RequestPut(put) => self.check_put(put)?,
                Request::RequestTxn(nested) => self.check_txn(nested)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn branch<'a>(&self, req: &'a TxnRequest) -> (bool, &'a [RequestOp]) {
        let succeeded = req.compare.iter().all(|c| self.holds(c));
        (succeeded, if succeeded { &req.success } else { &req.failure })
    }

    fn holds(&self, compare: &Compare) -> bool {
        let range = KeyRange::new(&compare.key, &compare.range_end);
        let kvs: Vec<_> = self.state().values().filter(|kv| range.contains(&kv.key)).collect();
        if kvs.is_empty() {
            return compare.target != 3 && holds_for(compare, &KeyValue::default());
        }
        kvs.into_iter().all(|kv| holds_for(compare, kv))
    }

    /// All comparisons are made on the state before.
    fn txn(&self, req: &TxnRequest, change: &mut Change) -> Result<TxnResponse, String> {
        let (succeeded, ops) = self.branch(req);
        let mut responses = Vec::new();
        for op in ops {
            let response = match op.request.as_ref().expect("checked") {
                Request::RequestRange(r) => Response::ResponseRange(self.range(r, &change.state, change.revision())?),
                Request::RequestPut(r) => Response::ResponsePut(change.put(r)),
                Request::RequestDeleteRange(r) => Response::ResponseDeleteRange(change.delete(r)),
                Request::RequestTxn(r) => Response::ResponseTxn(self.txn(r, change)?),
            };
            responses.push(ResponseOp { response: Some(response) });
        }
        Ok(TxnResponse { header: Some(ResponseHeader::default()), succeeded, responses })
    }
}

struct Change {
    state: State,
    begun_at: i64,
    events: Vec<(i64, Bytes, Option<KeyValue>)>,
}

impl Change {
    fn new(model: &Model) -> Self {
        Change { state: model.state().clone(), begun_at: model.revision(), events: Vec::new() }
    }

    fn revision(&self) -> i64 {
        self.begun_at + i64::from(!self.events.is_empty())
    }

    fn put(&mut self, req: &PutRequest) -> PutResponse {
        let old = self.state.get(&req.key).cloned();
        let kept = old.clone().unwrap_or_default();
        let next = self.begun_at + 1;
        let kv = KeyValue {
            key: req.key.clone(),
            create_revision: if old.is_some() { kept.create_revision } else { next },
            mod_revision: next,
            version: kept.version + 1,
            value: if req.ignore_value { kept.value } else { req.value.clone() },
            lease: if req.ignore_lease { kept.lease } else { req.lease },
        };
        self.state.insert(req.key.clone(), kv.clone());
        self.events.push((next, req.key.clone(), Some(kv)));
        PutResponse { header: Some(header(next)), prev_kv: old.filter(|_| req.prev_kv) }
    }

    fn delete(&mut self, req: &DeleteRangeRequest) -> DeleteRangeResponse {
        let range = KeyRange::new(&req.key, &req.range_end);
        let gone: Vec<KeyValue> = self.state.values().filter(|kv| range.contains(&kv.key)).cloned().collect();
        for kv in &gone {
            self.state.remove(&kv.key);
            self.events.push((self.begun_at + 1, kv.key.clone(), None));
        }
        let deleted = gone.len() as i64;
        let prev_kvs = if req.prev_kv { gone } else { Vec::new() };
        DeleteRangeResponse { header: Some(header(self.revision())), deleted, prev_kvs }
    }

    fn end(self, model: &mut Model) {
        if !self.events.is_empty() {
            model.states.push(self.state);
            model.events.extend(self.events);
        }
    }
}

fn header(revision: i64) -> ResponseHeader {
    ResponseHeader { revision, ..Default::default() }
}

fn sort(kvs: &mut [KeyValue], target: i32, descend: bool) {
    fn by<K: Ord>(kvs: &mut [KeyValue], descend: bool, key: impl Fn(&KeyValue) -> K) {
        if descend { kvs.sort_by_key(|kv| Reverse(key(kv))) } else { kvs.sort_by_key(key) }
    }
    match target {
        0 => by(kvs, descend, |kv| kv.key.clone()),
        1 => by(kvs, descend, |kv| kv.version),
        2 => by(kvs, descend, |kv| kv.create_revision),
        3 => by(kvs, descend, |kv| kv.mod_revision),
        _ => by(kvs, descend, |kv| kv.value.clone()),
    }
}

fn holds_for(compare: &Compare, kv: &KeyValue) -> bool {
    let union = compare.target_union.clone();
    let ordering = match (compare.target, union) {
        (0, Some(TargetUnion::Version(n))) => kv.version.cmp(&n),
        (0, _) => kv.version.cmp(&0),
        (1, Some(TargetUnion::CreateRevision(n))) => kv.create_revision.cmp(&n),
        (1, _) => kv.create_revision.cmp(&0),
        (2, Some(TargetUnion::ModRevision(n))) => kv.mod_revision.cmp(&n),
        (2, _) => kv.mod_revision.cmp(&0),
        (3, Some(TargetUnion::Value(v))) => kv.value.cmp(&v),
        (3, _) => kv.value.cmp(&Bytes::new()),
        (_, Some(TargetUnion::Lease(n))) => kv.lease.cmp(&n),
        (_, _) => kv.lease.cmp(&0),
    };
    match compare.result {
        0 => ordering.is_eq(),
        1 => ordering.is_gt(),
        2 => ordering.is_lt(),
        _ => ordering.is_ne(),
    }
}
