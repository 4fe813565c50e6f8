//! A store that entries are replayed into while nobody reads it: of each key it knows the newest change alone, and most of
//! that is on disk, so that neither the number of keys nor what an entry does to all of them takes memory.

use std::{cell::Cell, convert::Infallible};

use bytes::Bytes;
use parking_lot::Mutex;
use storage::{Backend, Read, Scratch};

use crate::{
    End, Error, KeyRange, OpenError, Revision,
    key_index::Found,
    range::{At, Values},
    raw_kv::KvFields,
    restore,
};

/// Keys that an entry works on at a time, and bytes of them.
const LOT_KEYS: usize = 4096;
const LOT_BYTES: usize = 1 << 20;
/// Values read before the pages of the file are let go of: each may map in 2 MB around it.
const RELEASE_EVERY: u32 = 8;

/// The keys that exist, each with its newest change.
pub(crate) struct Replay {
    keys: Scratch<LAST_BYTES>,
    /// Leases, each followed by one of its keys.
    leased: Scratch<0>,
    backend: Backend,
    values_read: Cell<u32>,
}

/// The newest change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last {
    pub found: Found,
    pub lease: i64,
}

const LAST_BYTES: usize = 8 + 4 + 8 + 8 + 8;

impl Last {
    fn encode(self) -> [u8; LAST_BYTES] {
        let mut bytes = [0; LAST_BYTES];
        let Found { modified, created, version } = self.found;
        bytes[..8].copy_from_slice(&modified.main.to_le_bytes());
        bytes[8..12].copy_from_slice(&modified.sub.to_le_bytes());
        bytes[12..20].copy_from_slice(&created.to_le_bytes());
        bytes[20..28].copy_from_slice(&version.to_le_bytes());
        bytes[28..].copy_from_slice(&self.lease.to_le_bytes());
        bytes
    }

    fn decode(bytes: [u8; LAST_BYTES]) -> Last {
        let number = |at: usize| i64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let modified = Revision::new(number(0), u32::from_le_bytes(std::array::from_fn(|i| bytes[8 + i])));
        Last { found: Found { modified, created: number(12), version: number(20) }, lease: number(28) }
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

impl Replay {
    /// Reads the keys, and which of them hang on leases, that will be asked for; gives the newest revision of the file besides.
    pub(crate) fn read(
        backend: &Backend,
        bytes_max: usize,
        wanted: &dyn Fn(&[u8]) -> bool,
        wanted_lease: &dyn Fn(i64) -> bool,
    ) -> Result<(Replay, i64), OpenError> {
        let mut replay = Replay {
            keys: backend.scratch(bytes_max / 2),
            leased: backend.scratch(bytes_max / 2),
            backend: backend.clone(),
            values_read: Cell::new(0),
        };
        let mut revision = 1;
        restore::each_change(&backend.view(), |at, kv| {
            let modified = restore::revision_of(at)?;
            revision = at.main;
            if !wanted(kv.key) {
                return Ok(());
            }
            let found = Found { modified, created: kv.create_revision, version: kv.version };
            if at.tombstone {
                replay.keys.delete(kv.key)
            } else {
                replay.keys.put(kv.key, Last { found, lease: kv.lease }.encode())
            }
            Ok(())
        })?;
        replay.keys.settle();
        replay.find_leased(wanted_lease);
        Ok((replay, revision))
    }

    fn find_leased(&mut self, wanted: &dyn Fn(i64) -> bool) {
        let mut start = Some(Vec::new());
        while let Some(from) = start {
            let (lot, next) = self.lot(KeyRange { start: &from, end: End::Open });
            for (key, last) in lot.into_iter().filter(|(_, last)| last.lease != 0 && wanted(last.lease)) {
                self.leased.put(&leased_key(last.lease, &key), []);
            }
            start = next;
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Last> {
        self.keys.get(key).map(Last::decode)
    }

    /// Records a put and tells what the key was.
    pub(crate) fn put(&mut self, key: &[u8], modified: Revision, lease: i64) -> Option<Last> {
        let before = self.get(key);
        let created = before.map_or(modified.main, |last| last.found.created);
        let version = before.map_or(0, |last| last.found.version) + 1;
        self.keys.put(key, Last { found: Found { modified, created, version }, lease }.encode());
        let old_lease = before.map_or(0, |last| last.lease);
        if old_lease != lease {
            self.detach(old_lease, key);
            self.attach(lease, key);
        }
        before
    }

    /// Records a deletion and tells what the key was.
    pub(crate) fn delete(&mut self, key: &[u8]) -> Option<Last> {
        let before = self.get(key);
        if let Some(last) = before {
            self.delete_known(key, last.lease);
        }
        before
    }

    /// As [`delete`](Self::delete), of a key that is there and hangs on this lease.
    pub(crate) fn delete_known(&mut self, key: &[u8], lease: i64) {
        self.keys.delete(key);
        self.detach(lease, key);
    }

    fn attach(&mut self, lease: i64, key: &[u8]) {
        if lease != 0 {
            self.leased.put(&leased_key(lease, key), []);
        }
    }

    fn detach(&mut self, lease: i64, key: &[u8]) {
        if lease != 0 {
            self.leased.delete(&leased_key(lease, key));
        }
    }

    /// The first keys of a lease from `from` on, and where the others begin.
    fn leased_lot(&self, lease: i64, from: &[u8]) -> (Vec<Bytes>, Option<Vec<u8>>) {
        let of_lease = leased_key(lease, b"");
        let is_of_lease = |key: &[u8]| key.starts_with(&of_lease);
        let found = self.leased.some_from(&leased_key(lease, from), is_of_lease, LOT_KEYS, LOT_BYTES);
        let keys: Vec<_> = found.into_iter().map(|(key, _)| key.slice(of_lease.len()..)).collect();
        let next = keys.last().map(|key| [key, &[0][..]].concat());
        (keys, next)
    }

    /// The first keys of a range, and where the others begin.
    pub(crate) fn lot(&self, range: KeyRange<'_>) -> (Vec<(Bytes, Last)>, Option<Vec<u8>>) {
        let found = self.keys.some_from(range.start, |key| range.contains(key), LOT_KEYS, LOT_BYTES);
        let next = found.last().filter(|_| !range.end.is_point()).map(|(key, _)| [key, &[0][..]].concat());
        (found.into_iter().map(|(key, last)| (key, Last::decode(last))).collect(), next)
    }

    /// A value was read, which maps its page in.
    fn count_value(&self) {
        self.values_read.set((self.values_read.get() + 1) % RELEASE_EVERY);
        if self.values_read.get() == 0 {
            self.backend.release_memory();
        }
    }
}

/// Calls `f` on the keys of a range, a lot at a time, between which the keys may change; `false` from `f` ends it.
pub(crate) fn each_lot<E>(
    replay: &Mutex<Replay>,
    range: KeyRange<'_>,
    mut f: impl FnMut(Vec<(Bytes, Last)>) -> Result<bool, E>,
) -> Result<(), E> {
    let (mut lot, mut next) = replay.lock().lot(range);
    while f(lot)? {
        let Some(start) = next else { break };
        (lot, next) = replay.lock().lot(KeyRange { start: &start, end: range.end });
    }
    Ok(())
}

/// Calls `f` on the keys of a lease, as [`each_lot`] does.
pub(crate) fn each_leased_lot<E>(
    replay: &Mutex<Replay>,
    lease: i64,
    mut f: impl FnMut(Vec<Bytes>) -> Result<bool, E>,
) -> Result<(), E> {
    let (mut lot, mut next) = replay.lock().leased_lot(lease, b"");
    while f(lot)? {
        let Some(start) = next else { break };
        (lot, next) = replay.lock().leased_lot(lease, &start);
    }
    Ok(())
}

/// Calls `f` on the keys of a lease, in order, until it gives `false`.
pub(crate) fn each_key_of(replay: &Mutex<Replay>, lease: i64, f: &mut dyn FnMut(&[u8]) -> bool) {
    let visited = each_leased_lot(replay, lease, |lot| Ok::<_, Infallible>(lot.iter().all(|key| f(key))));
    let Ok(()) = visited;
}

fn leased_key(lease: i64, key: &[u8]) -> Vec<u8> {
    [&lease.to_be_bytes()[..], key].concat()
}

impl<V: Values> At<'_, V> {
    /// As [`At::each`].
    pub(crate) fn each_replayed(
        &self,
        replay: &Mutex<Replay>,
        range: KeyRange<'_>,
        values: bool,
        f: &mut dyn FnMut(&KvFields<'_>) -> bool,
    ) -> Result<(), Error> {
        let mut one = |Last { found, lease }: Last| {
            if !values {
                return Ok(f(&KvFields {
                    create_revision: found.created,
                    mod_revision: found.modified.main,
                    version: found.version,
                    lease,
                    ..Default::default()
                }));
            }
            replay.lock().count_value();
            let goes_on = self.values.with(found.modified, |raw| KvFields::parse(raw).map(|kv| f(&kv))).flatten();
            goes_on.ok_or(Error::Missing { revision: found.modified })
        };
        each_lot(replay, range, |lot| {
            for (_, last) in lot {
                if !one(last)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// Calls `f` on every put of the file that has a lease.
pub fn each_leased(file: &impl Read, mut f: impl FnMut(&[u8], i64)) -> Result<(), OpenError> {
    restore::each_change(file, |at, kv| {
        if kv.lease != 0 && !at.tombstone {
            f(kv.key, kv.lease);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_was_written() {
        let found = Found { modified: Revision::new(i64::MAX - 1, 70_000), created: 5, version: 1 << 40 };
        let last = Last { found, lease: -7 };
        assert_eq!(Last::decode(last.encode()), last);
    }
}
