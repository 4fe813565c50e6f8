//! A revision: which change of which request.

use storage::schema::RevisionKey;

/// `main` counts requests that changed something, `sub` the changes inside one of them.
///
/// In memory `sub` has 32 bits: a request would need four thousand million changes to need more, and the index of a
/// million keys is smaller for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    pub main: i64,
    pub sub: u32,
}

impl Revision {
    pub const fn new(main: i64, sub: u32) -> Self {
        Revision { main, sub }
    }

    /// The key of a put in bucket `key`.
    pub fn put_key(self) -> RevisionKey {
        RevisionKey::new(self.main, i64::from(self.sub))
    }

    /// The key of a deletion in bucket `key`.
    pub fn tombstone_key(self) -> RevisionKey {
        RevisionKey::tombstone(self.main, i64::from(self.sub))
    }
}

/// The smallest key of bucket `key` at or after revision `main`.
pub(crate) fn first_key(main: i64) -> storage::schema::RevisionKey {
    RevisionKey::new(main.max(0), 0)
}
