//! How much of the history a check reads: reading all of it after each of 100 rounds would take longer than the rounds.

use std::{collections::BTreeMap, ops::Bound};

use super::writer::{WORKERS, prefix};

pub(super) enum Scope {
    All,
    /// The keys that one round may have written.
    Round(u64),
}

impl Scope {
    /// Key ranges: first key, and the key after the last.
    pub(super) fn ranges(&self) -> Vec<(String, String)> {
        match self {
            Scope::All => vec![("k/".to_owned(), "k0".to_owned())],
            Scope::Round(round) => (0..WORKERS).map(|worker| under(&prefix(worker, *round))).collect(),
        }
    }

    pub(super) fn of<'a, V>(&self, keys: &'a BTreeMap<String, V>) -> impl Iterator<Item = (&'a String, &'a V)> {
        self.ranges().into_iter().flat_map(|(from, to)| keys.range((Bound::Included(from), Bound::Excluded(to))))
    }
}

/// The range of keys below a prefix that ends with a slash.
fn under(prefix: &str) -> (String, String) {
    (prefix.to_owned(), format!("{}0", prefix.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_keys_of_all_workers_and_no_others() {
        let names = ["k/0/0001/00000", "k/0/0002/00000", "k/5/0002/00001/a", "k/5/0003/00000"];
        let keys: BTreeMap<String, ()> = names.map(|name| (name.to_owned(), ())).into();
        let round: Vec<&String> = Scope::Round(2).of(&keys).map(|(key, ())| key).collect();
        assert_eq!(round, ["k/0/0002/00000", "k/5/0002/00001/a"]);
        assert_eq!(Scope::All.of(&keys).count(), 4);
    }
}
