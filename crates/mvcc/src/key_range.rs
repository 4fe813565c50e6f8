//! Ranges of keys, as requests write them.

/// From `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange<'a> {
    pub start: &'a [u8],
    pub end: End<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End<'a> {
    /// The start alone.
    Point,
    /// Up to, and without, this key.
    Before(&'a [u8]),
    /// To the last key.
    Open,
}

impl<'a> KeyRange<'a> {
    /// The range of fields `key` and `range_end`: an empty end means the key alone, a zero byte all keys from it on.
    pub fn new(key: &'a [u8], range_end: &'a [u8]) -> Self {
        let end = match range_end {
            [] => End::Point,
            [0] => End::Open,
            end => End::Before(end),
        };
        KeyRange { start: key, end }
    }

    pub fn point(key: &'a [u8]) -> Self {
        KeyRange { start: key, end: End::Point }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        match self.end {
            End::Point => key == self.start,
            end => key >= self.start && end.is_after(key),
        }
    }
}

impl End<'_> {
    pub fn is_point(&self) -> bool {
        *self == End::Point
    }

    /// Whether a key that is not before the start is inside.
    pub(crate) fn is_after(&self, key: &[u8]) -> bool {
        match self {
            End::Point => false,
            End::Before(end) => key < *end,
            End::Open => true,
        }
    }
}
