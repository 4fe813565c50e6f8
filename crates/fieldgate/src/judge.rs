//! Which warnings a write earns: what the caller would have read just before against what it sent.

use std::{collections::BTreeMap, ptr};

use serde_json::{Map, Value};

use crate::{
    Gating, Kind, Part, Warning, Write, list,
    schema::ListKeys,
    tree::{Here, Mark},
    value::same,
};

impl Gating {
    /// The warnings of [`Gating::write`], in the order of their paths, each once. `new` is the object before the write
    /// step.
    pub fn warnings(&self, write: &Write<'_>, new: &Value) -> Vec<Warning> {
        let mut judge = Judge { part: &write.part, found: BTreeMap::new() };
        if !self.is_idle() {
            let sent = Some(write.sent.unwrap_or(new));
            judge.walk(&Here::root(self), Place { read: write.read, sent, stored: write.stored, new: Some(new) });
        }
        let warning = |((_, kind), mark): ((usize, Kind), &Mark)| Warning {
            path: mark.path.clone(),
            gate: mark.gate.clone(),
            kind,
        };
        let mut warnings: Vec<Warning> = judge.found.into_iter().map(warning).collect();
        warnings.sort();
        warnings
    }
}

struct Judge<'a> {
    part: &'a Part,
    /// By the number of the mark, which is quicker to compare than its path.
    found: BTreeMap<(usize, Kind), &'a Mark>,
}

/// One place in four objects. `read` and `sent` say whether the caller wanted a change, the others what came of it.
#[derive(Clone, Copy)]
struct Place<'a> {
    read: Option<&'a Value>,
    sent: Option<&'a Value>,
    stored: Option<&'a Value>,
    /// After mutating admission: whether a frozen value stays depends on its parent there.
    new: Option<&'a Value>,
}

impl<'a> Place<'a> {
    fn step(self, name: &str) -> Place<'a> {
        let step = |value: Option<&'a Value>| value?.as_object()?.get(name);
        let sent = step(self.sent);
        let new = if self.is_as_sent() { sent } else { step(self.new) };
        Place { read: step(self.read), sent, stored: step(self.stored), new }
    }

    /// Mostly a caller sends back what it read; then nobody asks what came of it.
    fn is_as_read(self, name: &str) -> bool {
        let step = |value: Option<&'a Value>| value?.as_object()?.get(name);
        match (step(self.read), step(self.sent)) {
            (Some(read), Some(sent)) => same(read, sent),
            (read, sent) => read.is_none() && sent.is_none(),
        }
    }

    /// Mostly admission changes nothing; then there is one object to look into less.
    fn is_as_sent(self) -> bool {
        self.sent.zip(self.new).is_some_and(|(sent, new)| ptr::eq(sent, new))
    }
}

impl<'a> Judge<'a> {
    fn walk(&mut self, here: &Here<'a>, place: Place<'_>) {
        if place.read.is_none() && place.sent.is_none() {
            return;
        }
        for field in here.fields() {
            self.field(&field.place, place, field.name);
        }
        self.entries(here, place);
        self.items(here, place);
    }

    fn field(&mut self, next: &Here<'a>, parent: Place<'_>, name: &str) {
        let off = next.off();
        if off.is_some() && parent.is_as_read(name) {
            return;
        }
        let place = parent.step(name);
        if let Some(mark) = off {
            let parent_stays = parent.new.is_some_and(Value::is_object);
            if let Some(kind) = not_taken(place, parent_stays) {
                self.warn(mark, kind);
            }
            return;
        }
        for (mark, text) in next.deprecated() {
            if is_used(next, place) {
                self.warn(mark, Kind::Deprecated(text.map(str::to_owned)));
            }
        }
        self.walk(next, place);
    }

    fn entries(&mut self, here: &Here<'a>, place: Place<'_>) {
        let next = here.entries();
        if next.is_empty() {
            return;
        }
        let sent = keys(place.sent);
        let gone = keys(place.read).filter(|key| place.step(key).sent.is_none());
        for key in sent.chain(gone).filter(|key| !here.has_name(key)) {
            self.walk(&next, place.step(key));
        }
    }

    fn items(&mut self, here: &Here<'a>, place: Place<'_>) {
        let Some((keys, next)) = here.items() else { return };
        let (read, sent) = (items(place.read), items(place.sent));
        let pairs = list::pair(keys, sent, read);
        let outcome = Outcome::of(keys, sent, place);
        for (i, item) in sent.iter().enumerate() {
            self.walk(&next, outcome.place(i, pairs[i].map(|mate| &read[mate]), Some(item)));
        }
        // Items that the caller left out; mutating admission may have put them back.
        let gone = list::unpaired(&pairs, read.len());
        if !gone.is_empty() {
            let outcome = Outcome::of(keys, read, place);
            gone.into_iter().for_each(|i| self.walk(&next, outcome.place(i, Some(&read[i]), None)));
        }
    }

    fn warn(&mut self, mark: &'a Mark, kind: Kind) {
        if self.part.holds(&mark.path) {
            self.found.insert((mark.number, kind), mark);
        }
    }
}

/// The items of a list that are stored and that are there after admission, for each item of another list.
struct Outcome<'a> {
    stored: Vec<Option<&'a Value>>,
    new: Vec<Option<&'a Value>>,
}

impl<'a> Outcome<'a> {
    fn of(keys: &ListKeys, list: &[Value], place: Place<'a>) -> Outcome<'a> {
        let mates = |others: &'a [Value]| list::pair(keys, list, others).into_iter().map(|mate| Some(&others[mate?]));
        Outcome { stored: mates(items(place.stored)).collect(), new: mates(items(place.new)).collect() }
    }

    fn place(&self, index: usize, read: Option<&'a Value>, sent: Option<&'a Value>) -> Place<'a> {
        Place { read, sent, stored: self.stored[index], new: self.new[index] }
    }
}

fn not_taken(place: Place<'_>, parent_stays: bool) -> Option<Kind> {
    match (place.read, place.sent) {
        (None, None) => None,
        (Some(read), Some(sent)) if same(read, sent) => None,
        (_, Some(_)) if place.stored.is_none() => Some(Kind::Dropped),
        // Read but not stored: a default, which is there again the next time.
        (_, None) if place.stored.is_none() => None,
        _ if !parent_stays => Some(Kind::RemovedWithParent),
        (_, Some(_)) => Some(Kind::NotUpdated),
        (_, None) => Some(Kind::NotRemoved),
    }
}

/// Used is present in a create and changed by an update; a removal is no use.
fn is_used(here: &Here<'_>, place: Place<'_>) -> bool {
    let Some(sent) = place.sent else { return false };
    place.read.is_none_or(|read| !same_but_frozen(here, read, sent))
}

/// Whether both mean the same apart from frozen fields in them, whose values are not taken.
fn same_but_frozen(here: &Here<'_>, a: &Value, b: &Value) -> bool {
    match (a, b) {
        (a, b) if here.is_empty() => same(a, b),
        (Value::Object(a), Value::Object(b)) => same_objects_but_frozen(here, a, b),
        // Keys are never frozen, so the same items in another order differ.
        (Value::Array(a), Value::Array(b)) => {
            let next = here.items().map(|(_, next)| next).unwrap_or_default();
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_but_frozen(&next, a, b))
        }
        (a, b) => same(a, b),
    }
}

fn same_objects_but_frozen(here: &Here<'_>, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let added = b.keys().filter(|key| !a.contains_key(*key));
    a.keys().chain(added).all(|key| {
        let next = here.step(key);
        let both = || Some(same_but_frozen(&next, a.get(key)?, b.get(key)?));
        next.off().is_some() || both().unwrap_or(false)
    })
}

fn keys(value: Option<&Value>) -> impl Iterator<Item = &String> {
    value.and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
