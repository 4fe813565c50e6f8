//! The controller of feature sets: reads objects, lets `featureset::sync` decide, writes what it says.
//!
//! Nothing is decided here. Every step looks at the API afresh, so what happened in between, and how often, does not
//! matter; watches only say when to look. Controllers of all versions share one lease, and only its holder writes; the one
//! exception is the own registry, which nobody else writes and everybody needs.

mod controller;
mod election;
mod field_gates;
mod leader;
mod look;
pub mod metrics;
mod records;
mod refused;
pub mod serve;

use std::{path::PathBuf, time::Duration};

use featureset::{GatesFile, Registry, RegistryError};
use metrics::Metrics;

pub use controller::run;
pub use election::{Election, Step};

/// Time enough to notice that a history was lost, and to restore it.
pub const KEEP_REGISTRIES: Duration = Duration::from_secs(30 * 24 * 3600);

#[derive(Clone, Debug)]
pub struct Options {
    pub kubeconfig: Option<PathBuf>,
    /// What this controller brings.
    pub registry: Registry,
    pub profile: String,
    pub namespace: String,
    /// What it tells about itself.
    pub metrics: Metrics,
    pub operator_name: String,
    /// Tells this process from all others that may hold the lease.
    pub identity: String,
    pub timing: Timing,
    /// How long the registry of a version is kept that nobody needs any more.
    pub keep_registries: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a lease is held after it was renewed last.
    pub lease: Duration,
    /// A holder that could not renew for so long stops, well before anyone else may begin.
    pub give_up: Duration,
    pub retry: Duration,
    /// A look without a reason.
    pub resync: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        let seconds = Duration::from_secs;
        Timing { lease: seconds(15), give_up: seconds(10), retry: seconds(2), resync: seconds(60) }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("the version of this controller is not known: give --release-version or set OPERATOR_IMAGE_VERSION")]
    Version(#[source] RegistryError),
    #[error("unknown profile {name:?}; known are {known}")]
    Profile { name: String, known: String },
    #[error("choose one of the profiles {0} with --profile")]
    NoProfile(String),
    #[error("metrics cannot be set up")]
    Metrics(#[from] prometheus::Error),
}

impl Options {
    /// Fails on what would fail later: an empty version, a profile that the file does not have.
    pub fn new(file: &GatesFile, version: &str, profile: Option<&str>) -> Result<Options, OptionsError> {
        let registry = Registry::of_file(file, version).map_err(OptionsError::Version)?;
        let known = || file.profiles.join(", ");
        let profile = match (profile, file.profiles.as_slice()) {
            (Some(name), profiles) if profiles.iter().any(|profile| profile == name) => name.to_owned(),
            (Some(name), _) => return Err(OptionsError::Profile { name: name.to_owned(), known: known() }),
            (None, [only]) => only.clone(),
            (None, _) => return Err(OptionsError::NoProfile(known())),
        };
        Ok(Options {
            kubeconfig: None,
            metrics: Metrics::new()?,
            registry,
            profile,
            namespace: featureset::config_map::NAMESPACE.to_owned(),
            operator_name: featureset::object::ClusterOperator::NAME.to_owned(),
            identity: format!("{}-{}", std::process::id(), version),
            timing: Timing::default(),
            keep_registries: KEEP_REGISTRIES,
        })
    }
}
