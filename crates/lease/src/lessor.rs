//! The lessor: all leases, their keys, and when they end.
#![expect(clippy::disallowed_types, reason = "`items` is looked up by key, never iterated")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use bytes::Bytes;
use proto::{etcdserverpb::LeaseCheckpoint, leasepb};
use storage::{Batch, Read, schema};

use crate::{TTL_MAX, deadline::Deadlines};

/// Leases that may end in one call of [`Lessor::take_expired`]; with a call every 500 ms it is etcd's 1,000 a second.
const EXPIRE_BATCH_MAX: usize = 500;
/// Leases that are let go in one second after a change of primary, so that they do not all end at once.
const PROMOTE_ENDS_PER_SECOND: u32 = 750;
const PROMOTE_SPREAD_MIN: usize = 1000;
const CHECKPOINT_BATCH_MAX: usize = 500;
/// An ended lease whose revocation did not come is offered again after this long.
const EXPIRED_RETRY: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("requested lease not found")]
    NotFound,
    #[error("lease already exists")]
    Exists,
    #[error("too large lease TTL")]
    TtlTooLarge,
    #[error("not the primary lessor")]
    NotPrimary,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Shorter leases are lengthened to this, so that they outlive an election.
    pub ttl_min: i64,
    /// Remaining TTLs of longer leases are checkpointed this often, if the owner asks for it.
    pub checkpoint_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options { ttl_min: 2, checkpoint_interval: Duration::from_secs(300) }
    }
}

/// What a renewal needs.
#[derive(Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Renewed for this many seconds.
    Renewed(i64),
    /// The lease has a checkpoint, which must be cleared through the log before it can be renewed.
    ClearCheckpoint,
    /// The lease has ended and waits to be revoked.
    Ended,
}

#[derive(Debug, PartialEq, Eq)]
pub struct TimeToLive {
    /// Whole seconds left; may be negative while an ended lease waits to be revoked.
    pub remaining: i64,
    pub granted: i64,
    /// In order.
    pub keys: Vec<Bytes>,
}

struct Lease {
    ttl: i64,
    /// From the last checkpoint; 0 if there is none.
    remaining_ttl: i64,
    /// `None` lasts for ever: on members that are not primary.
    ends: Option<Duration>,
    keys: BTreeSet<Bytes>,
}

impl Lease {
    fn refresh(&mut self, now: Duration, extend: Duration) -> Duration {
        let ttl = if self.remaining_ttl > 0 { self.remaining_ttl } else { self.ttl };
        let ends = now + extend + Duration::from_secs(ttl.max(0) as u64);
        self.ends = Some(ends);
        ends
    }
}

/// All leases of a member.
pub struct Lessor {
    options: Options,
    leases: BTreeMap<i64, Lease>,
    /// The lease of each key. Looked up by key only.
    items: HashMap<Bytes, i64>,
    primary: bool,
    ends: Deadlines,
    checkpoints: Option<Deadlines>,
}

impl Lessor {
    /// Loads the leases of the file. Keys are linked by [`Lessor::attach`] as the key index is rebuilt.
    pub fn load(read: &impl Read, options: Options) -> Result<Lessor, schema::DecodeError> {
        let mut leases = BTreeMap::new();
        for record in schema::lease::all(read)? {
            let lease = Lease {
                ttl: record.ttl.max(options.ttl_min),
                remaining_ttl: record.remaining_ttl,
                ends: None,
                keys: BTreeSet::new(),
            };
            leases.insert(record.id, lease);
        }
        let ends = Deadlines::default();
        Ok(Lessor { options, leases, items: HashMap::new(), primary: false, ends, checkpoints: None })
    }

    /// Forgets all and loads the leases of another file, which came from the leader: as in [`load`](Self::load), this
    /// member is not primary afterwards, and keys are linked as the key index is rebuilt. On failure nothing changes.
    pub fn reload(&mut self, read: &impl Read) -> Result<(), schema::DecodeError> {
        *self = Lessor::load(read, self.options.clone())?;
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.leases.len()
    }

    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    pub fn is_primary(&self) -> bool {
        self.primary
    }

    pub fn exists(&self, id: i64) -> bool {
        self.leases.contains_key(&id)
    }

    /// Applies a grant. Returns the TTL, which may be longer than asked for.
    pub fn grant(&mut self, batch: &mut Batch<'_>, now: Duration, id: i64, ttl: i64) -> Result<i64, Error> {
        if id == 0 {
            return Err(Error::NotFound);
        }
        if ttl > TTL_MAX {
            return Err(Error::TtlTooLarge);
        }
        if self.leases.contains_key(&id) {
            return Err(Error::Exists);
        }
        let ttl = ttl.max(self.options.ttl_min);
        let mut lease = Lease { ttl, remaining_ttl: 0, ends: None, keys: BTreeSet::new() };
        if self.primary {
            let ends = lease.refresh(now, Duration::ZERO);
            self.ends.push(ends, id);
            self.schedule_checkpoint(now, id, ttl);
        }
        self.leases.insert(id, lease);
        schema::lease::put(batch, &leasepb::Lease { id, ttl, remaining_ttl: 0 });
        Ok(ttl)
    }

    /// Applies a revocation: forgets the lease and returns its keys, in order, for the caller to delete in the same
    /// batch.
    pub fn revoke(&mut self, batch: &mut Batch<'_>, id: i64) -> Result<Vec<Bytes>, Error> {
        let lease = self.leases.remove(&id).ok_or(Error::NotFound)?;
        for key in &lease.keys {
            self.items.remove(key);
        }
        schema::lease::delete(batch, id);
        Ok(lease.keys.into_iter().collect())
    }

    /// Applies a checkpoint. `persist` is false below cluster version 3.6, as in etcd.
    pub fn checkpoint(
        &mut self,
        batch: &mut Batch<'_>,
        now: Duration,
        id: i64,
        remaining_ttl: i64,
        persist: bool,
    ) -> Result<(), Error> {
        let lease = self.leases.get_mut(&id).ok_or(Error::NotFound)?;
        lease.remaining_ttl = remaining_ttl;
        let ttl = lease.ttl;
        if persist {
            schema::lease::put(batch, &leasepb::Lease { id, ttl, remaining_ttl });
        }
        if self.primary {
            self.schedule_checkpoint(now, id, if remaining_ttl > 0 { remaining_ttl } else { ttl });
        }
        Ok(())
    }

    /// Links a key to a lease and unlinks it from any other. A lease that does not exist is ignored: its key is
    /// deleted by the revocation that removed it.
    pub fn attach(&mut self, id: i64, key: &Bytes) {
        if !self.leases.contains_key(&id) {
            return;
        }
        if let Some(old) = self.items.insert(key.clone(), id)
            && old != id
            && let Some(lease) = self.leases.get_mut(&old)
        {
            lease.keys.remove(key);
        }
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.keys.insert(key.clone());
        }
    }

    /// Unlinks a key from a lease, if it is linked to that one.
    pub fn detach(&mut self, id: i64, key: &[u8]) {
        if let Some(lease) = self.leases.get_mut(&id) {
            lease.keys.remove(key);
        }
        if self.items.get(key) == Some(&id) {
            self.items.remove(key);
        }
    }

    /// Renews a lease on the primary.
    pub fn renew(&mut self, now: Duration, id: i64) -> Result<Renewal, Error> {
        if !self.primary {
            return Err(Error::NotPrimary);
        }
        let lease = self.leases.get_mut(&id).ok_or(Error::NotFound)?;
        if lease.ends.is_some_and(|ends| ends <= now) {
            return Ok(Renewal::Ended);
        }
        if lease.remaining_ttl > 0 && self.checkpoints.is_some() {
            return Ok(Renewal::ClearCheckpoint);
        }
        // The queue keeps the old, earlier time: see `Deadlines`.
        lease.refresh(now, Duration::ZERO);
        Ok(Renewal::Renewed(lease.ttl))
    }

    pub fn time_to_live(&self, now: Duration, id: i64, keys: bool) -> Option<TimeToLive> {
        let lease = self.leases.get(&id)?;
        Some(TimeToLive {
            remaining: remaining(lease, now),
            granted: lease.ttl,
            keys: if keys { lease.keys.iter().cloned().collect() } else { Vec::new() },
        })
    }

    /// The keys that hang on a lease, in order; none if there is no such lease.
    pub fn keys(&self, id: i64) -> Vec<Bytes> {
        self.leases.get(&id).map_or_else(Vec::new, |lease| lease.keys.iter().cloned().collect())
    }

    /// All lease ids, those that end first in front.
    pub fn ids(&self) -> Vec<i64> {
        let mut ids: Vec<_> =
            self.leases.iter().map(|(id, lease)| (lease.ends.unwrap_or(Duration::MAX), *id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// Becomes primary: every lease starts anew from its TTL (or its checkpoint), plus `extend`. With `checkpoints`,
    /// remaining TTLs come due for [`Lessor::take_due_checkpoints`].
    pub fn promote(&mut self, now: Duration, extend: Duration, checkpoints: bool) {
        self.primary = true;
        self.ends.clear();
        self.checkpoints = checkpoints.then(Deadlines::default);
        let mut order: Vec<_> = self.leases.iter_mut().map(|(id, l)| (l.refresh(now, extend), *id)).collect();
        order.sort_unstable();
        if order.len() >= PROMOTE_SPREAD_MIN {
            self.spread(&mut order);
        }
        for (ends, id) in order {
            self.ends.push(ends, id);
            self.schedule_checkpoint(now, id, (ends - now).as_secs() as i64);
        }
    }

    /// Begins or ends the making of checkpoints on the primary, without touching when leases end.
    pub fn set_checkpoints(&mut self, now: Duration, checkpoints: bool) {
        if !self.primary || self.checkpoints.is_some() == checkpoints {
            return;
        }
        self.checkpoints = checkpoints.then(Deadlines::default);
        let left: Vec<_> = self.leases.iter().map(|(id, lease)| (*id, remaining(lease, now))).collect();
        for (id, ttl) in left {
            self.schedule_checkpoint(now, id, ttl);
        }
    }

    /// Stops being primary: leases last for ever here.
    pub fn demote(&mut self) {
        self.primary = false;
        self.ends.clear();
        self.checkpoints = None;
        for lease in self.leases.values_mut() {
            lease.ends = None;
        }
    }

    /// The leases that have ended, for the primary to revoke through the log. One that is not revoked comes up
    /// again a little later.
    pub fn take_expired(&mut self, now: Duration) -> Vec<i64> {
        if !self.primary {
            return Vec::new();
        }
        let leases = &self.leases;
        let due = self.ends.take(now, EXPIRE_BATCH_MAX, |id| leases.get(&id).and_then(|lease| lease.ends));
        for id in &due {
            self.ends.push(now + EXPIRED_RETRY, *id);
        }
        due
    }

    /// Checkpoints that are due, for the primary to send through the log.
    pub fn take_due_checkpoints(&mut self, now: Duration) -> Vec<LeaseCheckpoint> {
        let leases = &self.leases;
        let Some(queue) = &mut self.checkpoints else { return Vec::new() };
        let due = queue.take(now, CHECKPOINT_BATCH_MAX, |id| leases.contains_key(&id).then_some(Duration::ZERO));
        due.into_iter()
            .filter_map(|id| {
                let left = remaining(leases.get(&id)?, now);
                (left > 0).then_some(LeaseCheckpoint { id, remaining_ttl: left })
            })
            .collect()
    }

    fn schedule_checkpoint(&mut self, now: Duration, id: i64, ttl: i64) {
        let interval = self.options.checkpoint_interval;
        if let Some(queue) = &mut self.checkpoints
            && ttl > interval.as_secs() as i64
        {
            queue.push(now + interval, id);
        }
    }

    /// Delays leases that would end together, so that revoking them leaves room for other work.
    fn spread(&mut self, order: &mut [(Duration, i64)]) {
        let gap = Duration::from_secs(1) / PROMOTE_ENDS_PER_SECOND;
        let mut earliest = Duration::ZERO;
        for (ends, id) in order {
            *ends = (*ends).max(earliest);
            earliest = *ends + gap;
            if let Some(lease) = self.leases.get_mut(id) {
                lease.ends = Some(*ends);
            }
        }
    }
}

/// Whole seconds left. A lease that lasts for ever here answers as etcd does: the largest duration it can hold.
fn remaining(lease: &Lease, now: Duration) -> i64 {
    match lease.ends {
        None => i64::MAX / 1_000_000_000,
        Some(ends) if ends >= now => (ends - now).as_secs() as i64,
        Some(ends) => -((now - ends).as_secs() as i64),
    }
}
