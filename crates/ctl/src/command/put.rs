//! `put`: writes a key.

use std::{ffi::OsString, io::Read};

use bytes::Bytes;
use cli::value;
use client::Put;

use super::{bytes, into_bytes};
use crate::{context::Context, failure::Failure};

/// Puts the given key into the store
///
/// Without a value, and without --ignore-value, the value is read from standard input. A value that begins with
/// a dash is taken for a flag: write `put -- <key> <value>`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lockgatectl put greeting hello --lease=32695410dcc0ca06")]
pub(crate) struct PutArgs {
    /// Lease to attach the key to, in hex
    #[arg(long, default_value = "0", value_name = "ID")]
    lease: String,
    /// Print the key and value from before
    #[arg(long)]
    prev_kv: bool,
    /// Keep the value, change only the lease
    #[arg(long)]
    ignore_value: bool,
    /// Keep the lease, change only the value
    #[arg(long)]
    ignore_lease: bool,
    /// The key and its value
    #[arg(value_name = "KEY [VALUE]")]
    args: Vec<OsString>,
}

pub(crate) async fn run(context: &Context, args: PutArgs) -> Result<(), Failure> {
    let put = request(args)?;
    let (client, style) = context.open().await?;
    style.show(&client.put(put).await?)
}

/// The request that the arguments mean; also a step of `txn`.
pub(crate) fn request(args: PutArgs) -> Result<Put, Failure> {
    let Some(key) = args.args.first() else { return Err(needs_value()) };
    let key = bytes(key);
    if args.ignore_value && args.args.len() > 1 {
        return Err(Failure::bad_args("put command needs only 1 argument when 'ignore-value' is set"));
    }
    let value = if args.ignore_value { Bytes::new() } else { value(args.args)? };
    let lease = value::int_radix(&args.lease, 16)
        .map_err(|error| Failure::bad_args(format!("bad lease ID ({error}), expecting ID in Hex")))?;
    let mut put = Put::new(key, value).lease(lease);
    if args.prev_kv {
        put = put.prev_kv();
    }
    if args.ignore_value {
        put = put.ignore_value();
    }
    Ok(if args.ignore_lease { put.ignore_lease() } else { put })
}

fn value(args: Vec<OsString>) -> Result<Bytes, Failure> {
    if let Some(value) = args.into_iter().nth(1) {
        return Ok(into_bytes(value));
    }
    let mut value = Vec::new();
    match std::io::stdin().read_to_end(&mut value) {
        Ok(1..) => Ok(value.into()),
        _ => Err(needs_value()),
    }
}

fn needs_value() -> Failure {
    Failure::bad_args("put command needs 1 argument and input from stdin or 2 arguments")
}
