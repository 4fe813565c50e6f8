//! Feature sets: one object says which features are on, for each installed version, and everyone follows it.
//!
//! People edit one file, `gates.toml` ([`GatesFile`]). Each release makes its [`Registry`] from it: every gate, and for
//! every set and profile the resolved lists. The cluster chooses a set ([`Choice`]); [`resolve()`] turns a choice and a
//! version's registry into that version's [`Row`]. Controller, render, command line and tests all call [`resolve()`].
//!
//! The crate is pure: no I/O, no clock, no threads. What it reads and writes are the objects of `config.openshift.io/v1`
//! ([`object`]); what it does not know in them it keeps.
//!
//! ```
//! use featureset::{Choice, GatesFile, Registry, Set, resolve};
//!
//! let file = GatesFile::parse(r#"
//!     schema = 1
//!     version = "1.4.0"
//!
//!     [gate.FastPath]
//!     description = "Sends packets without asking the controller."
//!     owner = "network"
//!     contact = "network@example.com"
//!     enhancement = "https://example.com/enhancements/12"
//!     since = "1.4"
//!     sets = ["TechPreviewNoUpgrade", "DevPreviewNoUpgrade"]
//! "#)?;
//! let registry = Registry::of_file(&file, "1.4.0")?;
//! let row = |set| resolve(&registry, "default", &Choice::of_set(set)).map(|resolved| resolved.row);
//! assert_eq!(row(Set::Default)?.get("FastPath"), Some(false));
//! assert_eq!(row(Set::TechPreview)?.get("FastPath"), Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod ack;
pub mod arrival;
pub mod audit;
pub mod canonical;
pub mod change;
pub mod config_map;
pub mod definition;
pub mod evidence;
pub mod exception;
pub mod file;
pub mod gate;
pub mod generate;
pub mod manager;
pub mod object;
pub mod plan;
pub mod registry;
pub mod resolve;
pub mod retire;
pub mod set;
pub mod sync;
pub mod transition;
pub mod version;
pub mod yaml;

pub use file::{FileError, FileErrors, GatesFile};
pub use gate::{Gate, Stage};
pub use registry::{Registry, RegistryError};
pub use resolve::{Choice, ChoiceError, Resolved, Row, resolve};
pub use set::Set;
