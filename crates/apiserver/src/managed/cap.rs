//! Keeps the number of managers down: of those that updated, the oldest become one.

use std::collections::BTreeMap;

use super::managers::{Claim, Managers, Operation};

const UPDATERS_MAX: usize = 10;
const OLDEST: &str = "ancient-changes";

impl Managers {
    /// Whether there are more updaters than ten.
    pub(crate) fn is_crowded(&self) -> bool {
        let updaters = self.claims.values().filter(|claim| claim.operation == Operation::Update);
        updaters.count() > UPDATERS_MAX
    }

    /// The same fields with ten updaters at most; those of one version have one entry together.
    pub(crate) fn capped(mut self) -> Managers {
        let updaters = self.claims.values().filter(|claim| claim.operation == Operation::Update);
        let mut updaters: Vec<(i64, String)> = updaters.map(|claim| (claim.seconds(), claim.id())).collect();
        updaters.sort();
        let mut left = updaters.len();
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        for (_, id) in updaters {
            let Some(claim) = self.claims.get(&id).filter(|_| left > UPDATERS_MAX).cloned() else { continue };
            match first.get(&claim.api_version) {
                None => drop(first.insert(claim.api_version.clone(), id)),
                Some(first) => {
                    self.gather(first, &id, claim);
                    left -= 1;
                }
            }
        }
        self
    }

    /// Moves a claim, and the first one of its version if it is still there, into the common entry.
    fn gather(&mut self, first: &str, id: &str, claim: Claim) {
        let common = Claim { manager: OLDEST.to_owned(), subresource: String::new(), ..claim.clone() };
        let place = common.id();
        if !self.claims.contains_key(&place)
            && let Some(first) = self.claims.remove(first)
        {
            self.claims.insert(place.clone(), Claim { set: first.set, ..common.clone() });
        }
        self.claims.remove(id);
        let common = self.claims.entry(place).or_insert(common);
        common.set = std::mem::take(&mut common.set).union(&claim.set);
        // The newest of them.
        common.time = claim.time;
    }
}
