//! What callers are told: texts for HTTP `Warning: 299` headers.

use std::fmt;

use crate::Path;

/// A warning about a gated field of a write. It prints as the text of an HTTP `Warning: 299`
/// header.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// Path of the gated field as the CRD declares it, in normal form. It has no list index, so all
    /// items of a list share the path.
    pub path: Path,
    /// Name of the gate.
    pub gate: String,
    /// The effect on the write.
    pub kind: Kind,
}

/// The effect of a gate on one field of a write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The gate is off: the caller sent a value for a field without one, and the value was dropped.
    Dropped,
    /// The gate is off: the caller sent another value than the stored one, which was kept.
    NotUpdated,
    /// The gate is off: the caller omitted the field, whose stored value was kept.
    NotRemoved,
    /// The gate is off: the field was removed, because the caller removed a value that contains it.
    RemovedWithParent,
    /// The gate is on and deprecated: the caller used the field. Holds
    /// [`crate::Gate::field_deprecation_warning`].
    Deprecated(Option<String>),
}

impl Kind {
    /// Whether the gate is off, so that a value of the caller was not stored. A metric of
    /// suppressed writes counts these.
    pub fn is_suppression(&self) -> bool {
        !matches!(self, Kind::Deprecated(_))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, gate) = (self.path.field(), &self.gate);
        let what = match &self.kind {
            Kind::Deprecated(Some(text)) => return f.write_str(text),
            Kind::Deprecated(None) => return write!(f, "{field}: deprecated field (feature gate \"{gate}\")"),
            Kind::Dropped => "dropped",
            Kind::NotUpdated => "not updated",
            Kind::NotRemoved => "not removed",
            Kind::RemovedWithParent => "removed with its parent",
        };
        write!(f, "{field}: {what}, feature gate \"{gate}\" is disabled")
    }
}

/// The part of an object that a request writes. Differences elsewhere are not the caller's and
/// cause no warnings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Part {
    /// The whole object.
    #[default]
    Whole,
    /// One field: `.status` for a status write, the replicas path for a scale write.
    Only(Path),
    /// All fields except one: not `.status`, for a write of the main resource when status is a
    /// subresource.
    AllBut(Path),
}

impl Part {
    pub(crate) fn holds(&self, gated: &Path) -> bool {
        match self {
            Part::Whole => true,
            Part::Only(part) => part.covers(gated) || gated.covers(part),
            Part::AllBut(part) => !part.covers(gated),
        }
    }
}
