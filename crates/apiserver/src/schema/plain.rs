//! Whether a stored text is what a read would print anyway: nothing to fill in, to take out or to write in another way. Then it need
//! not become a tree and be printed again; most objects of a store are so, as they were filled, pruned and printed when written.
//!
//! Invariant: for a text that is plain, `prune`, `fill` and printing give back the same bytes. Whatever is in doubt is not plain.

mod text;

use std::ops::Range;

use self::text::Text;
use super::Schema;
use crate::form::{self, METADATA};

/// Reading as a tree refuses what is nested deeper than 128 levels; it is left to that to say so.
const DEPTH_MAX: usize = 100;
const RESOURCE_VERSION: &[u8] = b"resourceVersion";

/// Where the text of an object differs from what is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seams {
    /// The value of `apiVersion`, with its quotes.
    pub api_version: Range<usize>,
    /// The members `apiVersion` and `kind`, if there is one, each with the comma after it: `metadata` follows them.
    pub types: [Range<usize>; 2],
    /// Where `metadata.resourceVersion` belongs.
    pub resource_version: Gap,
    pub end: usize,
}

/// A place between the members of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub at: usize,
    pub after_another: bool,
    pub before_another: bool,
}

/// Looks at the text of a whole object. `prunes` is false for kinds that keep fields nobody knows.
pub(crate) fn plain(schema: &Schema, text: &[u8], prunes: bool) -> Option<Seams> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii_end();
    let mut look =
        Look { text: Text::new(text.as_bytes()), api_version: None, kind: None, gap: None, has_generation: false };
    look.value(Some(schema), Place::Root, prunes, 0)?;
    let end = look.text.ended()?;
    let api_version = look.api_version?;
    let after = api_version.with_comma().end;
    let kind = look.kind.map_or(after..after, |kind| kind.with_comma());
    let types = [api_version.with_comma(), kind];
    Some(Seams { api_version: api_version.value, types, resource_version: look.gap?, end })
}

/// Where a value stands, if that changes what is kept of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// The metadata of the object, or of one embedded in it.
    Metadata {
        own: bool,
    },
    /// A map or list of metadata that holds texts.
    Texts,
    /// A list of metadata that holds objects with these fields, and one of those.
    Items(&'static [&'static str]),
    Item(&'static [&'static str]),
    Inner,
}

struct Look<'a> {
    text: Text<'a>,
    api_version: Option<Member>,
    kind: Option<Member>,
    gap: Option<Gap>,
    has_generation: bool,
}

/// A member of the object itself.
struct Member {
    key_at: usize,
    value: Range<usize>,
}

impl Member {
    fn with_comma(&self) -> Range<usize> {
        self.key_at..self.value.end + 1
    }
}

impl Look<'_> {
    /// `schema` is none where anything goes.
    fn value(&mut self, schema: Option<&Schema>, place: Place, prunes: bool, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.text.peek()? {
            b'{' => self.object(schema, place, prunes, depth),
            b'[' => self.list(schema, place, prunes, depth),
            _ => self.text.scalar(),
        }
    }

    fn list(&mut self, schema: Option<&Schema>, place: Place, prunes: bool, depth: usize) -> Option<()> {
        let items = schema.and_then(|schema| schema.items.as_deref());
        self.text.take(b'[')?;
        if self.text.skip(b']') {
            return Some(());
        }
        loop {
            self.value(items, self.item(place)?, prunes && items.is_some(), depth + 1)?;
            if !self.text.skip(b',') {
                return self.text.take(b']');
            }
        }
    }

    fn object(&mut self, schema: Option<&Schema>, place: Place, prunes: bool, depth: usize) -> Option<()> {
        let mut named = schema.into_iter().flat_map(|schema| &schema.properties).peekable();
        let mut members = self.text.members()?;
        while let Some(key) = self.text.key(&mut members)? {
            // Both are in the order of their names, so that one pass over each is enough.
            while let Some((_, absent)) = named.next_if(|(name, _)| name.as_bytes() < &key[..]) {
                is_let_out(absent)?;
            }
            let property = named.next_if(|(name, _)| name.as_bytes() == &key[..]).map(|(_, property)| property);
            let inner = property.or(schema.and_then(|schema| schema.additional.as_deref()));
            if inner.is_some_and(|inner| !inner.nullable) && self.text.peek()? == b'n' {
                return None;
            }
            let (inner_place, inner_prunes) = self.member(schema, inner, place, prunes, &key)?;
            if place == (Place::Metadata { own: true }) {
                self.note_gap(&key, members.key_at, members.count > 1)?;
            }
            let begin = self.text.at();
            self.value(inner, inner_place, inner_prunes, depth + 1)?;
            let member = || Member { key_at: members.key_at, value: begin..self.text.at() };
            match &key[..] {
                b"apiVersion" if place == Place::Root => self.api_version = Some(member()),
                b"kind" if place == Place::Root => self.kind = Some(member()),
                _ => {}
            }
        }
        // One that nobody has counted yet is shown as the first.
        if place == (Place::Metadata { own: true }) && prunes && !self.has_generation {
            return None;
        }
        if place == (Place::Metadata { own: true }) && self.gap.is_none() {
            let at = self.text.at() - 1;
            self.gap = Some(Gap { at, after_another: members.count > 0, before_another: false });
        }
        named.try_for_each(|(_, absent)| is_let_out(absent))
    }

    /// How a member of a map is to be looked at; none if it would be taken out.
    fn member(
        &self,
        schema: Option<&Schema>,
        inner: Option<&Schema>,
        place: Place,
        prunes: bool,
        key: &[u8],
    ) -> Option<(Place, bool)> {
        if place == Place::Root && key == b"metadata" && self.text.peek()? != b'{' {
            return None;
        }
        match place {
            Place::Root if key == b"metadata" => return Some((Place::Metadata { own: true }, prunes)),
            Place::Metadata { .. } if prunes => return Some((self.of_metadata(key)?, false)),
            Place::Metadata { .. } => return Some((Place::Inner, false)),
            Place::Texts => return (self.text.peek()? == b'"').then_some((Place::Inner, false)),
            Place::Item(known) => {
                return known.iter().any(|name| name.as_bytes() == key).then_some((Place::Inner, false));
            }
            _ => {}
        }
        let whole = place == Place::Root || schema.is_some_and(|schema| schema.embedded);
        match key {
            b"metadata" if whole => return Some((Place::Metadata { own: false }, prunes)),
            b"apiVersion" | b"kind" if whole && prunes => {
                return (self.text.peek()? == b'"').then_some((Place::Inner, false));
            }
            b"apiVersion" | b"kind" if whole => return Some((Place::Inner, false)),
            _ => {}
        }
        let kept = inner.is_some() || !prunes || schema.is_some_and(|schema| schema.preserve_unknown);
        kept.then_some((Place::Inner, prunes && inner.is_some()))
    }

    /// How a field of metadata is to be looked at; none if it would be taken out, as it is unknown, of another type or empty.
    fn of_metadata(&self, key: &[u8]) -> Option<Place> {
        let name = METADATA.iter().find(|name| name.as_bytes() == key)?;
        let (starts, number) = (|start: &str| self.text.rest().starts_with(start.as_bytes()), || self.text.word_at());
        match *name {
            "labels" | "annotations" => starts("{\"").then_some(Place::Texts),
            "finalizers" => starts("[\"").then_some(Place::Texts),
            "generation" => number().parse::<i64>().is_ok_and(|number| number != 0).then_some(Place::Inner),
            "deletionGracePeriodSeconds" => number().parse::<i64>().ok().map(|_| Place::Inner),
            "creationTimestamp" | "deletionTimestamp" => {
                let time = self.text.word_at().strip_prefix('"')?.strip_suffix('"')?;
                form::is_time(time).then_some(Place::Inner)
            }
            list => match form::of_item(list) {
                Some(known) => starts("[{").then_some(Place::Items(known)),
                None => (starts("\"") && !starts("\"\"")).then_some(Place::Inner),
            },
        }
    }

    /// How an item of a list is to be looked at.
    fn item(&self, list: Place) -> Option<Place> {
        let wanted = |first: u8, place: Place| (self.text.peek()? == first).then_some(place);
        match list {
            Place::Texts => wanted(b'"', Place::Inner),
            Place::Items(known) => wanted(b'{', Place::Item(known)),
            _ => Some(Place::Inner),
        }
    }

    /// Finds the place of `resourceVersion` in the order of names. What has one already is not as we write it.
    fn note_gap(&mut self, key: &[u8], at: usize, after_another: bool) -> Option<()> {
        self.has_generation |= key == b"generation";
        if key == RESOURCE_VERSION {
            return None;
        }
        if self.gap.is_none() && key > RESOURCE_VERSION {
            self.gap = Some(Gap { at, after_another, before_another: true });
        }
        Some(())
    }
}

/// Whether a property may be missing: one with a default would be filled in.
fn is_let_out(absent: &Schema) -> Option<()> {
    absent.default.is_none().then_some(())
}
