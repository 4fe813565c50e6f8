//! Ownership is frozen like the value: claims at and below a frozen field stay as they were.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Map, Value};

use crate::{
    FieldsV1Error, Gating,
    fields_v1::{Element, FieldSet},
    list::Items,
    settled::is_settled,
    tree::Here,
};

/// Who an entry of `managedFields` is about.
type Owner<'a> = [&'a str; 4];

/// The entries of one owner, before a write and after it.
type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

impl Gating {
    /// The `managedFields` to store: `after` as the write alone would have it, with claims at and below frozen fields as
    /// they were `before`, for as long as the field is in `value`, the object to store. Borrowed if that is `after` itself.
    ///
    /// An entry that is brought back to what it was keeps its time; one that needs nothing has the time that the write
    /// gave it. To be called before entries are merged to hold their number down, since that moves claims.
    ///
    /// # Errors
    ///
    /// A `fieldsV1` that is no set of fields, where claims have to be moved.
    pub fn freeze_managed_fields<'a>(
        &self,
        before: &[Value],
        after: &'a [Value],
        value: &Value,
    ) -> Result<Cow<'a, [Value]>, FieldsV1Error> {
        if self.is_idle() {
            return Ok(Cow::Borrowed(after));
        }
        let (here, pairs) = (Here::root(self), pairs(before, after));
        let settled = |&(old, new): &Pair<'_>| is_settled(&here, fields(old), fields(new), Some(value));
        if pairs.iter().all(settled) {
            return Ok(Cow::Borrowed(after));
        }
        let mut entries = Vec::new();
        for pair in pairs {
            entries.extend(if settled(&pair) { pair.1.cloned() } else { self.freeze_entry(pair, value)? });
        }
        Ok(Cow::Owned(entries))
    }

    /// The part of a set that lies outside frozen fields: what a conflict may be raised about.
    ///
    /// # Errors
    ///
    /// A `fieldsV1` that is no set of fields.
    pub fn unfrozen(&self, fields_v1: &Value) -> Result<Value, FieldsV1Error> {
        let set = FieldSet::parse(fields_v1)?;
        Ok(freeze(&Here::root(self), None, Some(&set), None).to_json())
    }

    pub(crate) fn freeze_entry(&self, (old, new): Pair<'_>, value: &Value) -> Result<Option<Value>, FieldsV1Error> {
        let (old_set, new_set) = (claims(old)?, claims(new)?);
        let set = freeze(&Here::root(self), Some(&old_set), Some(&new_set), Some(value));
        if new.is_some() && set == new_set {
            return Ok(new.cloned());
        }
        let Some(mut entry) = new.or(old).filter(|_| !set.is_empty()).cloned() else { return Ok(None) };
        if let Some(fields) = entry.as_object_mut() {
            fields.insert("fieldsV1".to_owned(), set.to_json());
            keep_time(fields, old.filter(|_| set == old_set));
        }
        Ok(Some(entry))
    }
}

/// Those after the write in their order, then those that are gone.
fn pairs<'a>(before: &'a [Value], after: &'a [Value]) -> Vec<Pair<'a>> {
    let before: Vec<_> = before.iter().map(|entry| (owner(entry), entry)).collect();
    let after: Vec<_> = after.iter().map(|entry| (owner(entry), entry)).collect();
    let find = |entries: &[(Owner<'a>, &'a Value)], owner: &Owner<'a>| {
        entries.iter().find(|entry| entry.0 == *owner).map(|entry| entry.1)
    };
    let there = after.iter().map(|(owner, entry)| (find(&before, owner), Some(*entry)));
    let gone = before.iter().filter(|(owner, _)| find(&after, owner).is_none()).map(|(_, entry)| (Some(*entry), None));
    there.chain(gone).collect()
}

fn keep_time(fields: &mut Map<String, Value>, old: Option<&Value>) {
    if let Some(time) = old.and_then(|old| old.get("time")) {
        fields.insert("time".to_owned(), time.clone());
    }
}

/// Appliers are one owner over all versions, as in Kubernetes; others are not.
fn owner(entry: &Value) -> Owner<'_> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let operation = text("operation");
    let version = if operation == "Apply" { "" } else { text("apiVersion") };
    [text("manager"), operation, text("subresource"), version]
}

fn fields(entry: Option<&Value>) -> Option<&Value> {
    entry.and_then(|entry| entry.get("fieldsV1")).filter(|fields| !fields.is_null())
}

fn claims(entry: Option<&Value>) -> Result<FieldSet, FieldsV1Error> {
    fields(entry).map_or(Ok(FieldSet::default()), FieldSet::parse)
}

/// `after` outside frozen places, and `before` in those whose value is there.
fn freeze(here: &Here<'_>, before: Option<&FieldSet>, after: Option<&FieldSet>, value: Option<&Value>) -> FieldSet {
    let mut result = FieldSet { itself: after.is_some_and(|set| set.itself), ..FieldSet::default() };
    let elements: BTreeSet<&String> = [before, after].into_iter().flatten().flat_map(|set| set.below.keys()).collect();
    let ways = Ways::of(here, value);
    for element in elements {
        let (old, new) = (below(before, element), below(after, element));
        let (next, value) = ways.step(element);
        let set = if next.is_empty() {
            new.cloned()
        } else if next.off().is_some() {
            old.filter(|_| value.is_some()).cloned()
        } else {
            Some(freeze(&next, old, new, value))
        };
        if let Some(set) = set.filter(|set| !set.is_empty()) {
            result.below.insert(element.clone(), set);
        }
    }
    result
}

fn below<'a>(set: Option<&'a FieldSet>, element: &str) -> Option<&'a FieldSet> {
    set?.below.get(element)
}

/// Where the elements of sets lead from one place: to which gated places, and to what values.
struct Ways<'a, 'v> {
    here: &'a Here<'a>,
    value: Option<&'v Value>,
    items: Option<(Items<'a, 'v>, Here<'a>)>,
}

impl<'a, 'v> Ways<'a, 'v> {
    fn of(here: &'a Here<'a>, value: Option<&'v Value>) -> Ways<'a, 'v> {
        let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ways { here, value, items: here.items().map(|(keys, next)| (Items::of(keys, list), next)) }
    }

    fn step(&self, element: &str) -> (Here<'a>, Option<&'v Value>) {
        match (Element::parse(element), &self.items) {
            (Element::Field(name), _) => {
                (self.here.step(name), self.value.and_then(|value| value.as_object()?.get(name)))
            }
            (Element::Item(keys_of_item), Some((items, next))) => (next.clone(), items.find(&keys_of_item)),
            (Element::Item(_), None) | (Element::Other, _) => (Here::default(), None),
        }
    }
}
