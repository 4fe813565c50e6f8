//! What the API refused of the FeatureGate, remembered for as long as the object is the one it was refused of.

use featureset::{
    object::{FeatureGate, Meta},
    sync::{Part, Refused, Write},
};
use kubeapi::{ApiError, Cause};

#[derive(Default)]
pub(crate) struct Refusals {
    last: Option<(Place, Refused)>,
}

/// Which object, and which state of it.
type Place = (Option<String>, Option<String>);

impl Refusals {
    /// True if that is news, from which the next step can decide something else.
    pub(crate) fn learn(&mut self, write: &Write, error: &ApiError) -> bool {
        let (part, object) = match write {
            Write::FeatureGateStatus(object) => (Part::Status, object),
            Write::RestoreSpec(object) => (Part::Spec, object),
            _ => return false,
        };
        let of = place(&object.metadata);
        let known = self.last.as_ref().is_some_and(|(before, refused)| *before == of && refused.part == part);
        if error.cause() != Cause::Invalid || known {
            return false;
        }
        tracing::warn!(%error, "the API does not take what belongs into FeatureGate cluster; it is put right first");
        self.last = Some((of, Refused { part, why: error.to_string() }));
        true
    }

    /// There is no step after the last one. If that fails all begins anew, as somebody may have changed the definition meanwhile.
    pub(crate) fn forget_after(&mut self, write: &Write) {
        if matches!(write, Write::ReplaceFeatureGate { .. }) {
            self.last = None;
        }
    }

    pub(crate) fn of(&self, object: Option<&FeatureGate>) -> Option<&Refused> {
        let now = place(&object?.metadata);
        self.last.as_ref().filter(|(before, _)| *before == now).map(|(_, refused)| refused)
    }
}

fn place(metadata: &Meta) -> Place {
    (metadata.uid.clone(), metadata.resource_version.clone())
}
