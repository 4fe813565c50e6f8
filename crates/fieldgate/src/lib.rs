//! Feature gates for fields of custom resources.
//!
//! A CRD declares gates for some of its fields in `spec.customFeatureGates`. While a gate is off, its fields are frozen:
//! a create does not set them, an update neither changes nor removes them, and whoever tries is warned. What is stored
//! stays readable, and nothing is rewritten when a gate flips.
//!
//! The crate is the whole of that as pure functions over JSON values: no I/O, no clock, no logging. A server calls it
//! when a CRD is written ([`validate_crd`], [`Gating::new`], [`Gating::strip_defaults`], [`Gates::publish`]) and when an
//! object is ([`Gating::write`], [`Gating::freeze_managed_fields`], [`raises_generation`]).
//!
//! # A gate and two writes
//!
//! ```
//! use fieldgate::{Gates, Gating, Part, Write, raises_generation};
//! use serde_json::json;
//!
//! let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
//!     "image": { "type": "string" },
//!     "replicas": { "type": "integer" },
//! } } } });
//! let stanza = json!({ "featureGates": [
//!     { "name": "Replicas", "preRelease": "alpha", "fieldPaths": [".spec.replicas"] },
//! ] });
//! let gates = Gates::parse(&stanza, "spec.customFeatureGates")?;
//! let gating = Gating::new(&gates, &schema);
//!
//! // A create: alpha is off, so the field is dropped and the caller is told.
//! let create = Write { stored: None, read: None, sent: None, part: Part::Whole };
//! let written = gating.write(&create, json!({ "spec": { "image": "a", "replicas": 5 } }));
//! assert_eq!(written.value, json!({ "spec": { "image": "a" } }));
//! assert_eq!(written.warnings[0].to_string(), "spec.replicas: dropped, feature gate \"Replicas\" is disabled");
//!
//! // An update of an object that was stored while the gate was on: the value stays, the rest is taken.
//! let stored = json!({ "spec": { "image": "a", "replicas": 3 } });
//! let update = Write { stored: Some(&stored), read: Some(&stored), sent: None, part: Part::Whole };
//! let written = gating.write(&update, json!({ "spec": { "image": "b", "replicas": 5 } }));
//! assert_eq!(written.value, json!({ "spec": { "image": "b", "replicas": 3 } }));
//! assert!(raises_generation(&stored, &written.value, true));
//!
//! // Nothing but the frozen field was sent anew: nothing changes, so nothing has to be stored.
//! let written = gating.write(&update, json!({ "spec": { "image": "a", "replicas": 5 } }));
//! assert_eq!(written.value, stored);
//! # Ok::<(), fieldgate::FieldErrors>(())
//! ```
//!
//! # Bad declarations
//!
//! Errors name the field, what is wrong and what would be right, in Kubernetes' words. On an update, errors that the
//! old declaration had as well are not told again.
//!
//! ```
//! # use serde_json::json;
//! let spec = json!({
//!     "customFeatureGates": { "featureGates": [
//!         { "name": "Replicas", "preRelease": "alpha", "default": true, "fieldPaths": [".spec.replicas"] },
//!     ] },
//!     "versions": [{ "name": "v1", "storage": true, "schema": { "openAPIV3Schema": { "properties": {
//!         "spec": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
//!     } } } }],
//! });
//! let verdict = fieldgate::validate_crd(&spec, None);
//! assert_eq!(
//!     verdict.errors[0].to_string(),
//!     "spec.customFeatureGates.featureGates[0].default: Invalid value: true: \
//!      must be false or left out for alpha; to turn the gate on set enabled",
//! );
//! ```
//!
//! # In which order
//!
//! A write goes: decode, prune and default with the stripped schema → mutating admission → default again →
//! **[`Gating::write`]** → [`raises_generation`] → validation → store. All objects given to the engine are in the storage
//! version and pruned; the stored one is not defaulted. Of all but the new one [`Gating::excerpt`] will do. Validation sees only the result, so a malformed value in a
//! frozen field is dropped, not refused.
//!
//! # What it costs
//!
//! Gates are a tree of paths, walked together with the object: the cost grows with what lies under gated paths, not
//! with the rest. With 20 gates and four list items and map entries, write step and warnings together take some 5 µs
//! for an object of 10 kB, 5 % of parsing and printing it once, and little more for one of 1 MB. `cargo bench -p fieldgate`
//! measures it; `docs/field-gates.md` has the table.
#![warn(missing_docs)]

mod defaults;
mod excerpt;
mod field_error;
mod fields_v1;
mod gate;
mod generation;
mod judge;
mod list;
mod ownership;
mod path;
mod publish;
mod schema;
mod settled;
mod stanza;
mod tree;
mod validate;
mod value;
mod warning;
mod write;

pub use field_error::{Fault, FieldError, FieldErrors};
pub use fields_v1::FieldsV1Error;
pub use gate::{Gate, Gates, PreRelease};
pub use generation::raises_generation;
pub use path::{PATH_BYTES_MAX, Path, PathError, Step};
pub use schema::{Unresolved, resolve};
pub use tree::Gating;
pub use validate::{
    Declaration, GATES_MAX, NAME_BYTES_MAX, PATHS_MAX, Verdict, WARNING_BYTES_MAX, validate, validate_crd,
};
pub use warning::{Kind, Part, Warning};
pub use write::{Write, Written};
