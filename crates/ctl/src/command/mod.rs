//! The commands, one file each.

pub(crate) mod alarm;
pub(crate) mod auth;
pub(crate) mod check;
pub(crate) mod compaction;
pub(crate) mod completion;
pub(crate) mod defrag;
pub(crate) mod del;
pub(crate) mod downgrade;
pub(crate) mod endpoint;
pub(crate) mod feature_gate;
pub(crate) mod get;
pub(crate) mod increment;
pub(crate) mod lease;
pub(crate) mod member;
pub(crate) mod move_leader;
pub(crate) mod put;
pub(crate) mod role;
pub(crate) mod snapshot;
pub(crate) mod txn;
pub(crate) mod user;
pub(crate) mod watch;

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
