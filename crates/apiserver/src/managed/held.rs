//! Claims on fields behind gates that are off, where a webhook converts: each version has names of its own for such a field, and
//! the only way to learn them is to convert the object with it and without it.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use super::{
    compare::{Comparison, compare},
    managers::{Claim, Managers},
    node::Types,
    own::fields,
    set::Set,
    views::Views,
};

/// What gates hold back in one write. All objects are in the version of the gates, but `live`, which is in any.
pub(crate) struct Held<'a> {
    pub types: &'a Types,
    pub views: &'a dyn Views,
    /// As it was stored; none for a create.
    pub live: Option<&'a Value>,
    /// As it will be stored.
    pub kept: &'a Value,
    /// The same if no gate were off.
    pub wanted: &'a Value,
    /// `kept` without one of the held fields that it has, for each of them.
    pub without: Vec<Value>,
}

/// How one version names what is held.
struct Names {
    /// For each held field that is there.
    each: Vec<Set>,
    /// All of them, with those that are wanted and are not there.
    all: Set,
    /// Every field of the object that can have an owner.
    owned: Set,
}

impl Held<'_> {
    /// The claims after a write, with those on held fields as they were before.
    pub(crate) fn freeze(&self, before: &Managers, after: &Managers) -> Managers {
        let mut names = BTreeMap::new();
        let mut frozen = Managers::default();
        let gone = before.claims.iter().filter(|(id, _)| !after.claims.contains_key(*id));
        let pairs = after.claims.iter().map(|(id, claim)| (before.claims.get(id), Some(claim)));
        for (old, new) in pairs.chain(gone.map(|(_, claim)| (Some(claim), None))) {
            if let Some(claim) = self.freeze_claim(old, new, &mut names) {
                frozen.put(claim);
            }
        }
        frozen
    }

    fn freeze_claim(
        &self,
        old: Option<&Claim>,
        new: Option<&Claim>,
        names: &mut BTreeMap<String, Option<Names>>,
    ) -> Option<Claim> {
        let claim = new.or(old)?;
        let same_version = old.is_none_or(|old| old.api_version == claim.api_version);
        if same_version && old.zip(new).is_some_and(|(old, new)| old.set == new.set) {
            return Some(claim.clone());
        }
        for version in [Some(claim), old].into_iter().flatten().map(|claim| &claim.api_version) {
            names.entry(version.clone()).or_insert_with(|| self.names(version));
        }
        // A version that is gone, or that nothing can be learned of, has no names to hold.
        let Some(here) = names.get(&claim.api_version).and_then(Option::as_ref) else { return new.cloned() };
        let there = old.and_then(|old| names.get(&old.api_version)).and_then(Option::as_ref);
        let kept = old.zip(there).map(|(old, there)| {
            if same_version {
                here.each.iter().fold(Set::default(), |set, own| set.union(&old.set.intersection(own)))
            } else {
                moved(old, there, here)
            }
        });
        let open = new.map(|new| new.set.difference(&here.all)).unwrap_or_default();
        let set = open.union(&kept.unwrap_or_default());
        (!set.is_empty()).then(|| Claim { set, ..claim.clone() })
    }

    fn names(&self, version: &str) -> Option<Names> {
        let node = self.types.get(version)?;
        // All are asked for before any is missed, so that they can be converted together.
        let view = |object| self.views.view(object, version);
        let (kept, wanted) = (view(self.kept), view(self.wanted));
        let live = self.live.map(view);
        let without: Vec<_> = self.without.iter().map(view).collect();
        let (kept, wanted) = (kept?, wanted?);
        let live = live.map_or(Some(Cow::Owned(json!({}))), |live| live)?;
        // A field that is made of a held one and of others is whose it is by what has become of it.
        let changed = every(compare(node, &live, &kept));
        let without = without.into_iter().collect::<Option<Vec<_>>>()?;
        let names = |without: &Cow<'_, Value>| every(compare(node, without, &kept)).difference(&changed);
        let each: Vec<Set> = without.iter().map(names).collect();
        let refused = every(compare(node, &kept, &wanted)).difference(&changed);
        let all = each.iter().fold(refused, Set::union);
        Some(Names { each, all, owned: fields(node, &kept) })
    }
}

/// The held fields of a claim that was made in another version, by the names of this one.
fn moved(old: &Claim, there: &Names, here: &Names) -> Set {
    let pairs = there.each.iter().zip(&here.each);
    let own = pairs.filter(|(there, _)| !old.set.intersection(there).is_empty());
    let names = own.fold(Set::default(), |set, (_, here)| set.union(here));
    names.intersection(&here.owned)
}

fn every(found: Comparison) -> Set {
    found.removed.union(&found.modified).union(&found.added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed::Node;

    /// The first version has `host` and `port`, of which the port is held; the second has both as `address`.
    struct Joined;

    impl Views for Joined {
        fn view<'a>(&self, object: &'a Value, version: &str) -> Option<Cow<'a, Value>> {
            if version == "g/v1" {
                return Some(Cow::Borrowed(object));
            }
            let text = |key: &str| object[key].as_str().unwrap_or_default();
            Some(Cow::Owned(json!({"address": format!("{}:{}", text("host"), text("port"))})))
        }
    }

    fn types() -> Types {
        let text = json!({"type": "string"});
        let node = |fields: Value| Node::of_object(&json!({"type": "object", "properties": fields}));
        let first = node(json!({"host": text, "port": text}));
        [("g/v1".to_owned(), first), ("g/v2".to_owned(), node(json!({"address": text})))].into_iter().collect()
    }

    fn managers(version: &str, fields: Value) -> Managers {
        let entry = json!({"manager": "m", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields});
        Managers::parse(&[entry]).unwrap()
    }

    fn frozen(live: Value, kept: Value, before: &Managers, after: &Managers) -> Managers {
        let without = vec![json!({"host": kept["host"]})];
        let held =
            Held { types: &types(), views: &Joined, live: Some(&live), kept: &kept, wanted: &kept.clone(), without };
        held.freeze(before, after)
    }

    #[test]
    fn a_field_made_of_a_held_one_is_held_until_it_changes() {
        let old = json!({"host": "a", "port": "1"});
        let (before, after) = (managers("g/v2", json!({"f:address": {}})), Managers::default());
        assert_eq!(frozen(old.clone(), old.clone(), &before, &after), before);
        let gone = frozen(old, json!({"host": "b", "port": "1"}), &before, &after);
        assert_eq!(gone, Managers::default(), "somebody else has written the address");
    }

    #[test]
    fn a_claim_moves_to_the_names_of_the_version_it_is_made_in() {
        let old = json!({"host": "a", "port": "1"});
        let (before, after) = (managers("g/v1", json!({"f:port": {}})), managers("g/v2", json!({})));
        assert_eq!(frozen(old.clone(), old, &before, &after), managers("g/v2", json!({"f:address": {}})));
    }
}
