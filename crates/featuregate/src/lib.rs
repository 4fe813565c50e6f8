//! Feature gates.
mod feature;
mod gates;
mod registry;
mod resolve;
mod settings;
mod version;

pub use feature::{Feature, Level, Spec, Stage, alpha, beta, deprecated, ga};
pub use gates::{Gate, Gates, MetricRow};
pub use registry::{ALL_ALPHA, ALL_BETA, Registry, TableError, TableErrors};
pub use resolve::{Notice, Resolved, SetError, SetErrors};
pub use settings::{ParseError, Settings};
pub use version::{Version, VersionError, v};
