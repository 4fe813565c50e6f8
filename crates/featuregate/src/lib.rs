//! Feature gates with versions, stages and life-cycle checks.
//!
//! A *feature* is a named switch, registered once, in a table, as server-level (each server decides for itself) or
//! cluster-level (the cluster agrees on one value). A row says what the feature is from which version on: its stage,
//! its default, and whether it is locked to that default. Everything else is made from the table: parsing of the
//! `--feature-gates` flag with Kubernetes' rules and texts, values at a version, help, docs, metrics, and a check that
//! holds each release to what the one before it promised.
//!
//! The crate is pure: no I/O, no clock, no logging, no global state. What should be logged is returned.
//!
//! # A table and its values
//!
//! ```
//! use featuregate::{Feature, Level, Registry, alpha, beta, v};
//!
//! static FEATURES: &[Feature] = &[
//!     Feature {
//!         name: "FastList",
//!         level: Level::Server,
//!         owner: "storage",
//!         writes: "",
//!         reason: "Lists from memory, so that a list does not wait for the disk.",
//!         specs: &[alpha(v(3, 7)), beta(v(3, 8))],
//!     },
//!     Feature {
//!         name: "WideKeys",
//!         level: Level::Cluster,
//!         owner: "storage",
//!         writes: "keys of more than 64 KiB",
//!         reason: "Takes longer keys, which members that do not know them could not read.",
//!         specs: &[alpha(v(3, 8))],
//!     },
//! ];
//!
//! let registry = Registry::new(FEATURES)?;
//! let resolved = registry.parse(Level::Server, v(3, 8), "FastList=false")?;
//! assert!(!resolved.gates.enabled("FastList"));
//!
//! // At 3.7 the feature was alpha, so it is off unless asked for.
//! let resolved = registry.parse(Level::Server, v(3, 7), "")?;
//! assert!(!resolved.gates.enabled("FastList"));
//! let resolved = registry.parse(Level::Server, v(3, 7), "AllAlpha=true")?;
//! assert!(resolved.gates.enabled("FastList"));
//!
//! // Errors are data with the well-known texts; `hint` adds what would be right.
//! let errors = registry.parse(Level::Server, v(3, 8), "fastlist=true").unwrap_err();
//! assert_eq!(errors.to_string(), "unrecognized feature gate: fastlist");
//! assert!(errors.0[0].hint().unwrap().starts_with("did you mean FastList?"));
//! let errors = registry.parse(Level::Server, v(3, 8), "WideKeys=true").unwrap_err();
//! assert!(errors.to_string().ends_with("use --cluster-feature-gates"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cluster-level features
//!
//! A server's flag is only its proposal. [`Registry::check_start`] judges it once, [`Registry::proposal`] gives the
//! values to propose at a cluster version, and [`Registry::decided`] turns what the cluster agreed on into [`Gates`],
//! with features locked at that version at their default whatever was agreed.
//!
//! ```
//! # use featuregate::*;
//! # static FEATURES: &[Feature] = &[Feature {
//! #     name: "WideKeys", level: Level::Cluster, owner: "o", writes: "", reason: "r",
//! #     specs: &[alpha(v(3, 8)), beta(v(3, 9)), ga(v(3, 10)).locked()],
//! # }];
//! # let registry = Registry::new(FEATURES)?;
//! let flag: Settings = "WideKeys=false".parse()?;
//! registry.check_start(&flag, v(3, 10), Some(v(3, 9)))?;
//! assert!(!registry.proposal(v(3, 9), &flag).gates.enabled("WideKeys"));
//!
//! // The cluster reaches 3.10, where the feature is locked: the lock wins, and a notice says so.
//! let proposal = registry.proposal(v(3, 10), &flag);
//! assert!(proposal.gates.enabled("WideKeys"));
//! assert!(matches!(proposal.notices[..], [Notice::Locked { name: "WideKeys", .. }]));
//! assert!(registry.decided(v(3, 10), |_| false).enabled("WideKeys"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The life of a feature
//!
//! Keep the [`Release`] record of each release in the tree and compare the table with the latest one in CI.
//!
//! ```
//! use featuregate::{Release, check_lifecycle, describe_change};
//!
//! let old: Release = "release 3.8.0\nfeature FastList server\n  3.7 alpha off\n  3.8 beta on\n".parse()?;
//! let new: Release = "release 3.9.0\nretired FastList\n".parse()?;
//! let violations = check_lifecycle(&old, &new);
//! assert_eq!(violations.len(), 1);
//! assert!(violations[0].remedy.contains("`3.9 deprecated on locked`"));
//! assert!(describe_change(&old, &new)[0].starts_with("FastList: removed"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod change;
mod docs;
mod feature;
mod gates;
mod lifecycle;
mod registry;
mod release;
mod resolve;
mod settings;
mod version;

pub use change::describe_change;
pub use feature::{Feature, Level, Spec, Stage, alpha, beta, deprecated, ga};
pub use gates::{Gate, Gates, MetricRow};
pub use lifecycle::{Rule, Violation, check_lifecycle};
pub use registry::{ALL_ALPHA, ALL_BETA, Registry, TableError, TableErrors};
pub use release::{RecordError, Release, Row};
pub use resolve::{Notice, Resolved, SetError, SetErrors};
pub use settings::{ParseError, Settings};
pub use version::{Version, VersionError, v};
