//! Claims that are as they must be: most writes move none that is frozen, and then their sets need not be built at all.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::{fields_v1::Element, list, tree::Here};

/// Whether `new` has the claims of `old` at and below all frozen fields that are in `value`, and none at those that are not. May
/// say no where that is so, of sets that are written in another way; never yes where it is not.
pub(crate) fn is_settled(here: &Here<'_>, old: Option<&Value>, new: Option<&Value>, value: Option<&Value>) -> bool {
    let (Some(old), Some(new)) = (elements(old), elements(new)) else { return false };
    if old.is_empty() && new.is_empty() {
        return true;
    }
    let claims = Claims { old, new };
    here.fields().all(|field| claims.place(&field.place, field.element, || below(value, field.name)))
        && claims.entries(here, value)
        && claims.items(here, value)
}

/// Two sets below one place.
#[derive(Clone, Copy)]
struct Claims<'a> {
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
}

impl<'a> Claims<'a> {
    /// `value` is looked for only where somebody claims it.
    fn place<'v>(self, next: &Here<'_>, element: &str, value: impl FnOnce() -> Option<&'v Value>) -> bool {
        let (old, new) = (self.old.get(element), self.new.get(element));
        match (old, new) {
            (None, None) => true,
            _ if next.off().is_some() => new == old.filter(|_| value().is_some()),
            _ => is_settled(next, old, new, value()),
        }
    }

    /// The entries of a map, but for those with a name of their own.
    fn entries(self, here: &Here<'_>, value: Option<&Value>) -> bool {
        let next = here.entries();
        let mut keys = self.each().filter_map(|element| Some((element, element.strip_prefix("f:")?)));
        next.is_empty()
            || keys.all(|(element, key)| here.has_name(key) || self.place(&next, element, || below(value, key)))
    }

    fn items(self, here: &Here<'_>, value: Option<&Value>) -> bool {
        let Some((keys, next)) = here.items() else { return true };
        let keyed = self.each().filter_map(|element| match Element::parse(element) {
            Element::Item(item) => Some((element, item)),
            Element::Field(_) | Element::Other => None,
        });
        let (elements, named): (Vec<&str>, Vec<Value>) = keyed.unzip();
        let items = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let mates = list::pair(keys, &named, items);
        elements.into_iter().zip(mates).all(|(element, mate)| self.place(&next, element, || mate.map(|at| &items[at])))
    }

    /// The elements of both sets.
    fn each(self) -> impl Iterator<Item = &'a str> {
        let added = self.new.keys().filter(move |element| !self.old.contains_key(*element));
        self.old.keys().chain(added).map(String::as_str)
    }
}

fn below<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value?.as_object()?.get(name)
}

/// Of no set there are none. `None` for what is no set.
fn elements(set: Option<&Value>) -> Option<&Map<String, Value>> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    set.map_or(Some(&*NONE), Value::as_object)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*, sample::select};
    use serde_json::json;

    use super::*;
    use crate::{Gates, Gating};

    fn gating() -> Gating {
        let paths = [".a", ".b.c", ".m[*].a", ".m['x'].b", ".l[*].c"];
        let gates = json!({ "featureGates": [{ "name": "G", "preRelease": "alpha", "fieldPaths": paths }] });
        let map = json!({ "additionalProperties": { "type": "object" } });
        let list = json!({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": { "type": "object" } });
        Gating::new(&Gates::parse(&gates, "gates").unwrap(), &json!({ "properties": { "m": map, "l": list } }))
    }

    /// Sets that meet gated paths, in all the ways they can be written, and some that are no sets.
    fn set() -> impl Strategy<Value = Value> {
        let elements = vec![
            ".",
            "f:a",
            "f:b",
            "f:c",
            "f:m",
            "f:l",
            "f:x",
            "k:{\"n\":1}",
            "k:{\"n\":1.0}",
            "k:{\"n\":2}",
            "k:",
            "v:1",
            "i:0",
        ];
        let leaf = prop_oneof![20 => Just(json!({})), 1 => Just(json!(1))];
        leaf.prop_recursive(3, 24, 5, move |inner| {
            let set = btree_map(select(elements.clone()), inner, 0..5);
            set.prop_map(|set| set.into_iter().map(|(element, set)| (element.to_owned(), set)).collect())
        })
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(1)), Just(json!([])), Just(json!([{ "n": 1, "c": 1 }, { "n": 2 }]))];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let fields = btree_map(select(vec!["a", "b", "c", "m", "l", "x"]), inner, 0..5);
            fields.prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// The short way says that nothing is to be done only where the long one does nothing.
        #[test]
        fn what_is_settled_is_left_alone(
            old in prop::option::of(set()),
            new in prop::option::of(set()),
            same: bool,
            value in value(),
        ) {
            let gating = gating();
            let entry = |fields: &Value| json!({ "manager": "m", "fieldsV1": fields });
            let new = if same { old.clone() } else { new };
            let [before, after] = [&old, &new].map(|set| set.as_ref().map(entry));
            let settled = is_settled(&Here::root(&gating), old.as_ref(), new.as_ref(), Some(&value));
            // What is no set is refused by the long way, which leaves it as it is.
            if let (true, Ok(entry)) = (settled, gating.freeze_entry((before.as_ref(), after.as_ref()), &value)) {
                prop_assert_eq!(entry, after);
            }
        }
    }
}
