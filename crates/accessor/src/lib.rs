//! A client for feature sets: the gates that are on for this program's version, and the reaction to
//! their changes.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! let kube = accessor::Kube::connect(None).await?;
//! let gates = accessor::Gates::builder(&std::env::var("OPERATOR_IMAGE_VERSION")?)
//!     .need(["FastPath"])          // an error at start if the version does not know it
//!     .acknowledge("my-operator", "pod-1")
//!     .start(kube)?;               // by default the process exits when FastPath changes
//! let snapshot = gates.ready(Duration::from_secs(60)).await?;
//! if snapshot.is_enabled("FastPath") {
//!     // …
//! }
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod asked;
mod builder;
mod cache;
mod config_edit;
mod follow;
mod gates;
mod kept_file;
mod leave;
mod metric;
pub mod sink;
mod snapshot;

pub use asked::Asked;
pub use builder::{BuildError, Builder, DEV_BUILD};
pub use follow::{Change, Follower, NotReady, Observed};
pub use gates::Gates;
pub use kept_file::{KeepError, Kept, KeptFile};
pub use kubeapi::Kube;
pub use leave::{Decision, Leave};
pub use snapshot::{ManifestError, Snapshot, Source, State};
