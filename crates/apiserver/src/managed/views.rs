//! The same object in the versions by whose names managers know its fields.

use std::borrow::Cow;

use serde_json::Value;

pub(crate) trait Views {
    /// The object in this version; none if it cannot be had, so that nothing can be said of it there.
    fn view<'a>(&self, object: &'a Value, version: &str) -> Option<Cow<'a, Value>>;
}

/// For kinds whose versions differ in nothing but what their schemas say.
#[cfg(test)]
pub(super) struct Alike;

#[cfg(test)]
impl Views for Alike {
    fn view<'a>(&self, object: &'a Value, _version: &str) -> Option<Cow<'a, Value>> {
        Some(Cow::Borrowed(object))
    }
}
