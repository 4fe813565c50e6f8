//! The commands, one file each.

pub mod alarm;
pub mod auth;
pub mod check;
pub mod compaction;
pub mod completion;
pub mod defrag;
pub mod del;
pub mod downgrade;
pub mod endpoint;
pub mod feature_gate;
pub mod get;
pub mod increment;
pub mod lease;
pub mod member;
pub mod move_leader;
pub mod put;
pub mod role;
pub mod snapshot;
pub mod txn;
pub mod user;
pub mod watch;

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use bytes::Bytes;

use crate::failure::Failure;

/// Keys and values are bytes, whatever the locale says.
fn bytes(arg: &OsStr) -> Bytes {
    Bytes::copy_from_slice(arg.as_bytes())
}

fn into_bytes(arg: OsString) -> Bytes {
    arg.into_vec().into()
}

/// A flag `--consistency` of `l` or `s`.
fn is_serializable(consistency: &str) -> Result<bool, Failure> {
    match consistency {
        "l" => Ok(false),
        "s" => Ok(true),
        other => Err(Failure::bad_feature(format!("unknown consistency flag {other:?}"))),
    }
}

/// The one argument a command takes, or its complaint.
fn only(args: Vec<String>, complaint: &str) -> Result<String, Failure> {
    match <[String; 1]>::try_from(args) {
        Ok([arg]) => Ok(arg),
        Err(_) => Err(Failure::bad_args(complaint)),
    }
}

fn two(args: Vec<String>, complaint: &str) -> Result<[String; 2], Failure> {
    args.try_into().map_err(|_| Failure::bad_args(complaint))
}
