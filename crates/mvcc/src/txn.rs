//! Transactions: compare, check, then carry out one of two lists of operations.

use proto::etcdserverpb::{
    Compare, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RangeResponse, RequestOp,
    ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
    compare::{CompareResult, CompareTarget, TargetUnion},
    request_op::Request,
    response_op::Response,
};

use crate::{
    Error, KeyRange, WriteTxn,
    range::{At, Count, Values},
    raw_kv::KvFields,
    stats::Counters,
    values::Published,
};

/// Whether a range inside a transaction is read, or only checked: in a replay nobody waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranges {
    Run,
    Skip,
}

/// Whether a transaction has nothing but ranges and so need not go through the log.
pub fn is_read_only(req: &TxnRequest) -> bool {
    let is_range = |op: &RequestOp| matches!(op.request, Some(Request::RequestRange(_)));
    req.success.iter().chain(&req.failure).all(is_range)
}

/// Whether a transaction may be answered by any member alone.
pub fn is_serializable(req: &TxnRequest) -> bool {
    let serializable = |op: &RequestOp| matches!(&op.request, Some(Request::RequestRange(r)) if r.serializable);
    req.success.iter().chain(&req.failure).all(serializable)
}

pub(crate) fn run_read(at: &At<'_, Published>, counters: &Counters, req: &TxnRequest) -> Result<TxnResponse, Error> {
    let path = take_path(at, req)?;
    let mut target = ReadTarget { at, counters };
    check(&target, req, &mut path.iter())?;
    execute(&mut target, req, &mut path.iter(), Ranges::Run, true)
}

pub(crate) fn run_write(txn: &mut WriteTxn<'_, '_>, req: &TxnRequest, ranges: Ranges) -> Result<TxnResponse, Error> {
    let path = txn.at(|at| take_path(at, req))?;
    check(txn, req, &mut path.iter())?;
    execute(txn, req, &mut path.iter(), ranges, true)
}

/// What operations of a transaction work on.
trait Target {
    fn revision(&self) -> i64;
    fn compact_revision(&self) -> i64;
    fn check_put(&self, req: &PutRequest) -> Result<(), Error>;
    fn range(&mut self, req: &RangeRequest) -> Result<RangeResponse, Error>;
    fn put(&mut self, req: &PutRequest) -> Result<PutResponse, Error>;
    fn delete_range(&mut self, req: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Error>;
}

impl Target for WriteTxn<'_, '_> {
    fn revision(&self) -> i64 {
        self.revision()
    }
    fn compact_revision(&self) -> i64 {
        self.compact_revision()
    }
    fn check_put(&self, req: &PutRequest) -> Result<(), Error> {
        self.check_put(req)
    }
    fn range(&mut self, req: &RangeRequest) -> Result<RangeResponse, Error> {
        Ok(self.range(req)?.into_response())
    }
    fn put(&mut self, req: &PutRequest) -> Result<PutResponse, Error> {
        self.put_checked(req)
    }
    fn delete_range(&mut self, req: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        self.delete_range(req)
    }
}

struct ReadTarget<'a, 'b> {
    at: &'a At<'b, Published>,
    counters: &'a Counters,
}

impl Target for ReadTarget<'_, '_> {
    fn revision(&self) -> i64 {
        self.at.current
    }
    fn compact_revision(&self) -> i64 {
        (self.at.compact_revision)()
    }
    fn check_put(&self, _req: &PutRequest) -> Result<(), Error> {
        Err(Error::NotReadOnly)
    }
    fn range(&mut self, req: &RangeRequest) -> Result<RangeResponse, Error> {
        self.counters.ranges.add(1);
        Ok(self.at.range(req, Count::All)?.into_response())
    }
    fn put(&mut self, _req: &PutRequest) -> Result<PutResponse, Error> {
        Err(Error::NotReadOnly)
    }
    fn delete_range(&mut self, _req: &DeleteRangeRequest) -> Result<DeleteRangeResponse, Error> {
        Err(Error::NotReadOnly)
    }
}

/// Which list each transaction takes, nested ones in the order they are met. All comparisons see the state before
/// the first change.
fn take_path<V: Values>(at: &At<'_, V>, req: &TxnRequest) -> Result<Vec<bool>, Error> {
    let mut path = Vec::new();
    extend_path(at, req, &mut path)?;
    Ok(path)
}

fn extend_path<V: Values>(at: &At<'_, V>, req: &TxnRequest, path: &mut Vec<bool>) -> Result<(), Error> {
    let succeeded = holds_all(at, &req.compare)?;
    path.push(succeeded);
    for op in operations(req, succeeded) {
        if let Some(Request::RequestTxn(nested)) = &op.request {
            extend_path(at, nested, path)?;
        }
    }
    Ok(())
}

fn operations(req: &TxnRequest, succeeded: bool) -> &[RequestOp] {
    if succeeded { &req.success } else { &req.failure }
}

fn holds_all<V: Values>(at: &At<'_, V>, compares: &[Compare]) -> Result<bool, Error> {
    for compare in compares {
        if !holds(at, compare)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether every key of the compare's range is as it says. A key that does not exist is compared as zeros, but its
/// value equals no value, not even the empty one.
fn holds<V: Values>(at: &At<'_, V>, compare: &Compare) -> Result<bool, Error> {
    let target = CompareTarget::try_from(compare.target).ok();
    let needs_value = matches!(target, Some(CompareTarget::Value | CompareTarget::Lease));
    let (mut any, mut all) = (false, true);
    at.each(KeyRange::new(&compare.key, &compare.range_end), needs_value, &mut |kv| {
        any = true;
        all = holds_for(compare, target, kv);
        all
    })?;
    if any {
        return Ok(all);
    }
    Ok(target != Some(CompareTarget::Value) && holds_for(compare, target, &KvFields::default()))
}

fn holds_for(compare: &Compare, target: Option<CompareTarget>, kv: &KvFields<'_>) -> bool {
    let union = compare.target_union.as_ref();
    let ordering = match target {
        Some(CompareTarget::Value) => kv.value.cmp(match union {
            Some(TargetUnion::Value(value)) => value,
            _ => b"",
        }),
        Some(CompareTarget::Create) => kv.create_revision.cmp(match union {
            Some(TargetUnion::CreateRevision(revision)) => revision,
            _ => &0,
        }),
        Some(CompareTarget::Mod) => kv.mod_revision.cmp(match union {
            Some(TargetUnion::ModRevision(revision)) => revision,
            _ => &0,
        }),
        Some(CompareTarget::Version) => kv.version.cmp(match union {
            Some(TargetUnion::Version(version)) => version,
            _ => &0,
        }),
        Some(CompareTarget::Lease) => kv.lease.cmp(match union {
            Some(TargetUnion::Lease(lease)) => lease,
            _ => &0,
        }),
        None => std::cmp::Ordering::Equal,
    };
    match CompareResult::try_from(compare.result) {
        Ok(CompareResult::Equal) => ordering.is_eq(),
        Ok(CompareResult::NotEqual) => ordering.is_ne(),
        Ok(CompareResult::Greater) => ordering.is_gt(),
        Ok(CompareResult::Less) => ordering.is_lt(),
        Err(_) => true,
    }
}

/// Finds what would fail, before anything is changed.
fn check<T: Target>(target: &T, req: &TxnRequest, path: &mut std::slice::Iter<'_, bool>) -> Result<(), Error> {
    let succeeded = path.next().copied().unwrap_or_default();
    for op in operations(req, succeeded) {
        match &op.request {
            Some(Request::RequestRange(range)) => check_range(target, range.revision)?,
            Some(Request::RequestPut(put)) => target.check_put(put)?,
            Some(Request::RequestTxn(nested)) => check(target, nested, path)?,
            Some(Request::RequestDeleteRange(_)) | None => {}
        }
    }
    Ok(())
}

fn check_range<T: Target>(target: &T, requested: i64) -> Result<(), Error> {
    let (current, compact_revision) = (target.revision(), target.compact_revision());
    match requested {
        0 => Ok(()),
        r if r > current => Err(Error::FutureRevision { requested, current }),
        r if r < compact_revision => Err(Error::Compacted { requested, compact_revision }),
        _ => Ok(()),
    }
}

fn execute<T: Target>(
    target: &mut T,
    req: &TxnRequest,
    path: &mut std::slice::Iter<'_, bool>,
    ranges: Ranges,
    outermost: bool,
) -> Result<TxnResponse, Error> {
    let succeeded = path.next().copied().unwrap_or_default();
    let ops = operations(req, succeeded);
    let mut responses = Vec::with_capacity(ops.len());
    for op in ops {
        let response = match &op.request {
            Some(Request::RequestRange(_)) if ranges == Ranges::Skip => {
                let header = Some(header(target.revision()));
                Some(Response::ResponseRange(RangeResponse { header, ..Default::default() }))
            }
            Some(Request::RequestRange(range)) => Some(Response::ResponseRange(target.range(range)?)),
            Some(Request::RequestPut(put)) => Some(Response::ResponsePut(target.put(put)?)),
            Some(Request::RequestDeleteRange(delete)) => {
                Some(Response::ResponseDeleteRange(target.delete_range(delete)?))
            }
            Some(Request::RequestTxn(nested)) => {
                Some(Response::ResponseTxn(execute(target, nested, path, ranges, false)?))
            }
            None => None,
        };
        responses.push(ResponseOp { response });
    }
    // Only the outermost header tells a revision, as in etcd.
    let header = if outermost { header(target.revision()) } else { ResponseHeader::default() };
    Ok(TxnResponse { header: Some(header), succeeded, responses })
}

fn header(revision: i64) -> ResponseHeader {
    ResponseHeader { revision, ..Default::default() }
}
