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
    here.names().all(|name| claims.field(&here.step(name), name, value))
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
    fn field(self, next: &Here<'_>, name: &str, value: Option<&Value>) -> bool {
        self.place(next, &format!("f:{name}"), value.and_then(|value| value.as_object()?.get(name)))
    }

    fn place(self, next: &Here<'_>, element: &str, value: Option<&Value>) -> bool {
        let (old, new) = (self.old.get(element), self.new.get(element));
        match (old, new) {
            (None, None) => true,
            _ if next.off().is_some() => new == old.filter(|_| value.is_some()),
            _ => is_settled(next, old, new, value),
        }
    }

    /// The entries of a map, but for those with a name of their own.
    fn entries(self, here: &Here<'_>, value: Option<&Value>) -> bool {
        let next = here.entries();
        let mut names = self.each().filter_map(|element| element.strip_prefix("f:"));
        next.is_empty() || names.all(|name| here.has_name(name) || self.field(&next, name, value))
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
        elements.into_iter().zip(mates).all(|(element, mate)| self.place(&next, element, mate.map(|at| &items[at])))
    }

    /// The elements of both sets.
    fn each(self) -> impl Iterator<Item = &'a str> {
        let added = self.new.keys().filter(move |element| !self.old.contains_key(*element));
        self.old.keys().chain(added).map(String::as_str)
    }
}

/// Of no set there are none. `None` for what is no set.
fn elements(set: Option<&Value>) -> Option<&Map<String, Value>> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    set.map_or(Some(&*NONE), Value::as_object)
}
