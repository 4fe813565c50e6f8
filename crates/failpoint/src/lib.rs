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
#![warn(missing_docs)]

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

/// Why [`setup_from_env`] failed. The program must not start then.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// `GOFAIL_FAILPOINTS` is not a list of `NAME=TERMS` pairs separated by semicolons. An unknown
    /// name or invalid terms are only printed, as in gofail.
    #[error("fail to parse failpoint: {0}")]
    Terms(#[from] Error),
    /// The HTTP server cannot listen at the address in `GOFAIL_HTTP`.
    #[error("GOFAIL_HTTP={address}: {source}")]
    Listen {
        /// The value of `GOFAIL_HTTP`.
        address: String,
        /// The error from binding the socket or starting the server's thread.
        source: std::io::Error,
    },
}

/// Whether the cargo feature `failpoints` is on. Without it `failpoint!` expands to nothing.
pub const ENABLED: bool = cfg!(feature = "failpoints");

static HTTP_ADDRESS: OnceLock<SocketAddr> = OnceLock::new();

/// The address of the HTTP server, with the actual port if `GOFAIL_HTTP` requested port 0. `None`
/// before [`setup_from_env`] has started the server.
pub fn http_address() -> Option<SocketAddr> {
    HTTP_ADDRESS.get().copied()
}

/// Applies `GOFAIL_FAILPOINTS` and starts the HTTP server if `GOFAIL_HTTP` is set. Does nothing if
/// [`ENABLED`] is false.
pub fn setup_from_env() -> Result<(), SetupError> {
    if !ENABLED {
        return Ok(());
    }
    if let Ok(text) = std::env::var("GOFAIL_FAILPOINTS") {
        for (name, terms) in parse_list(&text)? {
            // As in gofail, an unknown name or invalid terms are printed and do not stop the start.
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

/// Marks a point: `failpoint!("name")`. With `|| body` the body runs when a `return` term without a
/// value acts, with `|text| body` when one with a text acts. The body may `return`, `break` or
/// `continue`. A name that [`NAMES`] does not mark as [`Place::Here`] does not compile.
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

/// Marks a point. Expands to nothing, because the cargo feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[macro_export]
macro_rules! failpoint {
    ($name:literal $(, $($rest:tt)*)?) => {{}};
}
