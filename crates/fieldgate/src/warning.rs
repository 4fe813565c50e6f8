//! What callers are told: texts for HTTP `Warning: 299` headers.

use std::fmt;

use crate::Path;

/// One warning. It prints as the text of the header.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// The gated path as the CRD has it, in normal form; all list items share one.
    pub path: Path,
    pub gate: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A value was sent for a field that had none, and is not there.
    Dropped,
    /// Another value was sent than the field has, and it has kept its own.
    NotUpdated,
    /// The field was left out, and is still there.
    NotRemoved,
    /// The field could not be removed alone, but is gone with what it was in.
    RemovedWithParent,
    /// A deprecated field was used; the author's text if there is one.
    Deprecated(Option<String>),
}

impl Kind {
    /// Whether a value was not taken because its gate is off: what the metric of suppressed writes counts.
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

/// The part of an object that a write is about; what lies elsewhere is not the caller's doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    Whole,
    /// Such as `.status` for a status write, or the replicas path for a scale write.
    Only(Path),
    /// Such as `.status` for a write of the main resource when status is a subresource.
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
