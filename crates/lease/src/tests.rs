//! The lessor against a backend.

use std::time::Duration;

use bytes::Bytes;
use storage::Backend;

use crate::{Error, Lessor, Options, Renewal, TTL_MAX};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

struct World {
    backend: Backend,
    lessor: Lessor,
    _dir: harness::TempDir,
}

impl World {
    fn new() -> World {
        let dir = harness::tempdir();
        let backend = Backend::open(&dir.path().join("db"), storage::Options::default()).unwrap();
        let lessor = Lessor::load(&backend.view(), Options::default()).unwrap();
        World { backend, lessor, _dir: dir }
    }

    fn primary(checkpoints: bool) -> World {
        let mut world = World::new();
        world.lessor.promote(s(0), s(1), checkpoints);
        world
    }

    fn grant(&mut self, now: Duration, id: i64, ttl: i64) -> Result<i64, Error> {
        self.lessor.grant(&mut self.backend.write(), now, id, ttl)
    }

    fn reload(&mut self) {
        self.lessor = Lessor::load(&self.backend.view(), Options::default()).unwrap();
    }
}

#[test]
fn grants_are_checked_and_lengthened() {
    let mut w = World::new();
    assert_eq!(w.grant(s(0), 0, 10), Err(Error::NotFound));
    assert_eq!(w.grant(s(0), 1, TTL_MAX + 1), Err(Error::TtlTooLarge));
    assert_eq!(w.grant(s(0), 1, 1), Ok(2));
    assert_eq!(w.grant(s(0), 1, 10), Err(Error::Exists));
    assert_eq!(w.lessor.len(), 1);
}

#[test]
fn only_a_primary_lets_leases_end() {
    let mut w = World::new();
    w.grant(s(0), 7, 10).unwrap();
    assert_eq!(w.lessor.renew(s(0), 7), Err(Error::NotPrimary));
    assert!(w.lessor.take_expired(s(1000)).is_empty());
    w.lessor.promote(s(1000), s(1), false);
    assert!(w.lessor.take_expired(s(1010)).is_empty());
    assert_eq!(w.lessor.take_expired(s(1011)), [7]);
    // Not revoked: it comes up again, but not at once.
    assert!(w.lessor.take_expired(s(1012)).is_empty());
    assert_eq!(w.lessor.take_expired(s(1014)), [7]);
    w.lessor.demote();
    assert!(w.lessor.take_expired(s(5000)).is_empty());
}

#[test]
fn renewal_moves_the_end() {
    let mut w = World::primary(false);
    w.grant(s(0), 7, 10).unwrap();
    assert_eq!(w.lessor.renew(s(9), 7), Ok(Renewal::Renewed(10)));
    assert!(w.lessor.take_expired(s(18)).is_empty());
    assert_eq!(w.lessor.time_to_live(s(18), 7, false).unwrap().remaining, 1);
    assert_eq!(w.lessor.take_expired(s(19)), [7]);
    assert_eq!(w.lessor.renew(s(19), 7), Ok(Renewal::Ended));
    assert_eq!(w.lessor.renew(s(19), 8), Err(Error::NotFound));
}

#[test]
fn a_key_has_one_lease() {
    let mut w = World::primary(false);
    let key = Bytes::from_static(b"k");
    w.grant(s(0), 1, 10).unwrap();
    w.grant(s(0), 2, 20).unwrap();
    w.lessor.attach(1, &key);
    w.lessor.attach(2, &key);
    assert!(w.lessor.time_to_live(s(0), 1, true).unwrap().keys.is_empty());
    assert_eq!(w.lessor.time_to_live(s(0), 2, true).unwrap().keys, std::slice::from_ref(&key));
    // A detach from the lease it no longer has changes nothing.
    w.lessor.detach(1, b"k");
    assert_eq!(w.lessor.revoke(&mut w.backend.write(), 2), Ok(vec![key]));
    assert_eq!(w.lessor.ids(), [1]);
}

#[test]
fn leases_survive_a_restart() {
    let mut w = World::primary(false);
    w.grant(s(0), 1, 10).unwrap();
    w.grant(s(0), -2, 20).unwrap();
    w.lessor.revoke(&mut w.backend.write(), 1).unwrap();
    w.reload();
    assert_eq!(w.lessor.ids(), [-2]);
    assert_eq!(w.lessor.time_to_live(s(0), -2, false).unwrap().granted, 20);
}

#[test]
fn checkpoints_come_due_and_count_after_a_restart() {
    let mut w = World::primary(true);
    w.grant(s(0), 1, 1000).unwrap();
    w.grant(s(0), 2, 300).unwrap();
    assert!(w.lessor.take_due_checkpoints(s(299)).is_empty());
    let due = w.lessor.take_due_checkpoints(s(300));
    assert_eq!(due.iter().map(|c| (c.id, c.remaining_ttl)).collect::<Vec<_>>(), [(1, 700)]);
    w.lessor.checkpoint(&mut w.backend.write(), s(300), 1, 700, true).unwrap();
    assert_eq!(w.lessor.renew(s(301), 1), Ok(Renewal::ClearCheckpoint));
    w.reload();
    w.lessor.promote(s(0), s(0), true);
    assert_eq!(w.lessor.time_to_live(s(0), 1, false).unwrap().remaining, 700);
    w.lessor.checkpoint(&mut w.backend.write(), s(0), 1, 0, true).unwrap();
    assert_eq!(w.lessor.renew(s(1), 1), Ok(Renewal::Renewed(1000)));
}

#[test]
fn many_leases_do_not_end_together() {
    let mut w = World::new();
    for id in 1..=3000 {
        w.grant(s(0), id, 10).unwrap();
    }
    w.lessor.promote(s(0), s(0), false);
    assert_eq!(w.lessor.take_expired(s(10)).len(), 1);
    // They come at the rate that revoking can keep up with, and all of them within a few seconds.
    let mut ended = std::collections::BTreeSet::from([1]);
    for half in 21..=32 {
        ended.extend(w.lessor.take_expired(Duration::from_millis(half * 500)));
    }
    assert_eq!(ended.len(), 3000);
}

#[test]
fn another_file_brings_its_own_leases() {
    let mut w = World::primary(true);
    w.grant(s(0), 7, 10).unwrap();
    w.grant(s(0), 8, 10).unwrap();
    w.lessor.attach(7, &Bytes::from_static(b"old"));
    let mut other = World::new();
    other.grant(s(0), 8, 20).unwrap();
    other.grant(s(0), 9, 1000).unwrap();
    other.lessor.checkpoint(&mut other.backend.write(), s(0), 9, 600, true).unwrap();

    w.lessor.reload(&other.backend.view()).unwrap();
    w.lessor.attach(8, &Bytes::from_static(b"new"));
    w.lessor.attach(7, &Bytes::from_static(b"of a lease that is gone"));
    assert!(!w.lessor.is_primary());
    assert_eq!(w.lessor.ids(), [8, 9]);
    assert_eq!(w.lessor.time_to_live(s(0), 8, true).map(|t| (t.granted, t.keys.len())), Some((20, 1)));
    assert_eq!(w.lessor.renew(s(0), 8), Err(Error::NotPrimary));
    assert!(w.lessor.take_expired(s(5000)).is_empty() && w.lessor.take_due_checkpoints(s(5000)).is_empty());
    w.lessor.promote(s(0), s(0), false);
    assert_eq!(w.lessor.time_to_live(s(0), 9, false).map(|t| t.remaining), Some(600));
}
