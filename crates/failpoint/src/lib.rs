//! Named points where tests make the program fail: gofail's semantics, etcd's names.
//!
//! ```
//! fn save() -> Result<(), String> {
//!     failpoint::failpoint!("beforeCommit");
//!     failpoint::failpoint!("lackOfDiskSpace", |text| return Err(text));
//!     Ok(())
//! }
//! # save().unwrap();
//! ```
//!
//! Without the cargo feature `failpoints`, `failpoint!` is nothing at all; releases are built so. With it a point
//! costs one load until it is given terms (see [`Terms`]): by the variable `GOFAIL_FAILPOINTS`
//! (`beforeCommit=sleep(100);raftBeforeSave=1*panic`), or over HTTP when `GOFAIL_HTTP` names an address, so that the tools
//! that drive a real etcd built with gofail drive this program as well.
//!
//! The names are etcd 3.7.3's, each at the place that corresponds to its place there; [`NAMES`] lists them all with
//! those that have no place here. `panic` ends the whole process with code 2, as a panic ends a Go program.
//! A sleep blocks its thread: on a thread that serves async tasks it holds up the others there too.

mod act;
mod duration;
mod http;
mod names;
mod point;
mod terms;

use std::{net::SocketAddr, sync::OnceLock};

pub use http::serve;
pub use names::{NAMES, Place, position};
pub use point::{Error, disable, enable, hit, hit_text, hit_unit, list, parse_list, status};
pub use terms::{BadTerms, Terms, Value};

/// Why the points cannot be set up as the environment asks; the program must not start then.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("fail to parse failpoint: {0}")]
    Terms(#[from] Error),
    #[error("GOFAIL_HTTP={address}: {source}")]
    Listen { address: String, source: std::io::Error },
}

/// Whether points are compiled in.
pub const ENABLED: bool = cfg!(feature = "failpoints");

static HTTP_ADDRESS: OnceLock<SocketAddr> = OnceLock::new();

/// The address that `GOFAIL_HTTP` led to, with the bound port where it asked for port 0.
pub fn http_address() -> Option<SocketAddr> {
    HTTP_ADDRESS.get().copied()
}

/// Does what `GOFAIL_FAILPOINTS` and `GOFAIL_HTTP` ask for. Does nothing unless points are compiled in.
pub fn setup_from_env() -> Result<(), SetupError> {
    if !ENABLED {
        return Ok(());
    }
    if let Ok(text) = std::env::var("GOFAIL_FAILPOINTS") {
        for (name, terms) in parse_list(&text)? {
            // As in gofail neither an unknown name nor bad terms stop the start; both are told.
            if let Err(error) = enable(name, terms) {
                println!("failpoint: {name}: {error}");
            }
        }
    }
    match std::env::var("GOFAIL_HTTP") {
        Ok(address) if !address.is_empty() => match serve(&address) {
            Ok(bound) => {
                HTTP_ADDRESS.get_or_init(|| bound);
                Ok(())
            }
            Err(source) => Err(SetupError::Listen { address, source }),
        },
        _ => Ok(()),
    }
}

/// A point: `failpoint!("name")`; with `|| body` the body runs when the point returns, with `|text| body` when it returns
/// a text. The body may `return`, `break` or `continue`. A name without a place in [`NAMES`] does not compile.
#[cfg(feature = "failpoints")]
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {{
        const AT: usize = $crate::position($name);
        let _ = $crate::hit(AT);
    }};
    ($name:literal, || $body:expr) => {{
        const AT: usize = $crate::position($name);
        if $crate::hit_unit(AT) {
            $body
        }
    }};
    ($name:literal, |$text:ident| $body:expr) => {{
        const AT: usize = $crate::position($name);
        if let Some($text) = $crate::hit_text(AT) {
            $body
        }
    }};
}

/// A point; nothing at all, because the feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($name:literal $(, $($rest:tt)*)?) => {{}};
}
