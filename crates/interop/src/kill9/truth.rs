//! What must be in the store, and how what is found there is held against it.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use super::{
    found::{Found, Row},
    scope::Scope,
    writer::{Outcome, WORKERS, Write, value_of},
};

#[derive(Default)]
pub(super) struct Truth {
    pub revision: u64,
    /// Key → revision; none is written twice, and the value follows from the key.
    pub keys: BTreeMap<String, u64>,
    /// Of each worker, value and revision.
    pub counters: Vec<(u64, u64)>,
}

impl Truth {
    /// Adds what came of a round, after the restart has decided about writes that were under way. How many of these were
    /// kept.
    pub(super) fn settle(&mut self, found: &Found, outcomes: Vec<Outcome>) -> Result<u64> {
        let mut kept = 0;
        self.counters.resize(WORKERS as usize, (0, 0));
        let mut revisions = Vec::new();
        for outcome in outcomes {
            let pending = outcome.pending.into_iter().filter_map(|write| decide(found, write).transpose());
            let pending: Vec<(Write, u64)> = pending.collect::<Result<_>>()?;
            kept += pending.len() as u64;
            for (write, revision) in outcome.done.into_iter().chain(pending) {
                revisions.push(revision);
                if let Some((worker, value)) = write.counter {
                    self.counters[usize::try_from(worker)?] = (value, revision);
                }
                self.keys.extend(write.keys.into_iter().map(|key| (key, revision)));
            }
        }
        revisions.sort_unstable();
        let expected: Vec<u64> = (self.revision + 1..).take(revisions.len()).collect();
        ensure!(
            revisions == expected,
            "after revision {} writes should have {} to {}, but they have {revisions:?}",
            self.revision,
            self.revision + 1,
            self.revision + revisions.len() as u64
        );
        self.revision += revisions.len() as u64;
        Ok(kept)
    }

    /// Every key of the scope in all its fields; of the whole store its revision, number of keys and counters.
    pub(super) fn compare(&self, scope: &Scope, found: &Found) -> Result<()> {
        ensure!(found.revision == self.revision, "the store is at {} instead of {}", found.revision, self.revision);
        let mut wanted = 0;
        for (key, revision) in scope.of(&self.keys) {
            let Some(row) = found.keys.get(key) else { bail!("{key}, written at {revision}, is lost") };
            check_row(key, *revision, row)?;
            wanted += 1;
        }
        if wanted != found.keys.len()
            && let Some(key) = found.keys.keys().find(|key| !self.keys.contains_key(*key))
        {
            bail!("{key} is there and was never written");
        }
        ensure!(found.total == self.keys.len() as u64, "{} keys instead of {}", found.total, self.keys.len());
        for (worker, (found, wanted)) in found.counters.iter().zip(&self.counters).enumerate() {
            ensure!(found == wanted, "counter {worker} is {found:?} instead of {wanted:?}");
        }
        Ok(())
    }
}

fn check_row(key: &str, revision: u64, row: &Row) -> Result<()> {
    ensure!(row.value == value_of(key), "{key} has the value {:?}", row.value);
    let stamps = (row.version, row.created, row.modified);
    ensure!(stamps == (1, revision, revision), "{key} has {stamps:?} instead of version 1 at {revision}");
    Ok(())
}

/// A write under way when the server died, with its revision if it is there, whole; an error if a part of it is.
fn decide(found: &Found, write: Write) -> Result<Option<(Write, u64)>> {
    let there: Vec<_> = write.keys.iter().filter_map(|key| found.keys.get(key)).collect();
    let Some(first) = there.first() else { return Ok(None) };
    let revision = first.modified;
    let whole = there.len() == write.keys.len() && there.iter().all(|row| row.modified == revision);
    ensure!(whole, "{write:?} is there in part");
    Ok(Some((write, revision)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, version: u64, revision: u64) -> (String, Row) {
        (key.to_owned(), Row { value: value_of(key), version, created: revision, modified: revision })
    }

    fn found<const N: usize>(revision: u64, rows: [(String, Row); N]) -> Found {
        Found { revision, keys: rows.into(), total: 2, counters: vec![(1, 3)] }
    }

    /// Keys `k/a` at revision 2 and `k/b` at 3, the latter with counter 0.
    fn truth() -> Truth {
        let keys = [("k/a", 2), ("k/b", 3)].map(|(key, revision)| (key.to_owned(), revision));
        Truth { revision: 3, keys: keys.into(), counters: vec![(1, 3)] }
    }

    fn complaint(found: &Found) -> String {
        truth().compare(&Scope::All, found).expect_err("it must not pass").to_string()
    }

    #[test]
    fn what_was_written_once_passes() {
        let found = found(3, [row("k/a", 1, 2), row("k/b", 1, 3)]);
        truth().compare(&Scope::All, &found).expect("it is as it was written");
    }

    #[test]
    fn reports_lost_duplicate_and_unknown_writes() {
        assert_eq!(complaint(&found(3, [row("k/b", 1, 3)])), "k/a, written at 2, is lost");
        let doubled = found(3, [row("k/a", 2, 2), row("k/b", 1, 3)]);
        assert_eq!(complaint(&doubled), "k/a has (2, 2, 2) instead of version 1 at 2");
        let strange = found(3, [row("k/a", 1, 2), row("k/b", 1, 3), row("k/c", 1, 3)]);
        assert_eq!(complaint(&strange), "k/c is there and was never written");
        let again = found(4, [row("k/a", 1, 2), row("k/b", 1, 3)]);
        assert_eq!(complaint(&again), "the store is at 4 instead of 3");
        let counter = Found { counters: vec![(2, 3)], ..found(3, [row("k/a", 1, 2), row("k/b", 1, 3)]) };
        assert_eq!(complaint(&counter), "counter 0 is (2, 3) instead of (1, 3)");
    }

    #[test]
    fn a_key_outside_of_what_was_read_is_missed_by_number() {
        let nothing = Found { total: 1, ..found(3, []) };
        let complaint = truth().compare(&Scope::Round(7), &nothing).expect_err("one of two is lost").to_string();
        assert_eq!(complaint, "1 keys instead of 2");
    }

    #[test]
    fn a_write_under_way_is_whole_or_not_there() {
        let pair = Write { keys: vec!["x/a".to_owned(), "x/b".to_owned()], counter: Some((0, 2)) };
        let decide = |found: Found| decide(&found, pair.clone()).map(|kept| kept.map(|(_, revision)| revision));
        assert_eq!(decide(found(4, [])).expect("it is not there"), None);
        assert_eq!(decide(found(4, [row("x/a", 1, 4), row("x/b", 1, 4)])).expect("it is whole"), Some(4));
        assert!(decide(found(4, [row("x/a", 1, 4)])).is_err());
        assert!(decide(found(5, [row("x/a", 1, 4), row("x/b", 1, 5)])).is_err());
    }
}
