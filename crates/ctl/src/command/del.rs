//! `del`: deletes keys.

use std::{ffi::OsString, time::Duration};

use cli::quote;
use client::Delete;

use super::{bytes, into_bytes};
use crate::{context::Context, failure::Failure};

/// Removes the specified key or range of keys [key, range_end)
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lockgatectl del --prefix /jobs/done/")]
pub(crate) struct DelArgs {
    /// All keys that begin with the key
    #[arg(long)]
    prefix: bool,
    /// Print the keys and values that were deleted
    #[arg(long)]
    prev_kv: bool,
    /// All keys that are not less than the key
    #[arg(long)]
    from_key: bool,
    /// Delete a range without waiting for second thoughts
    #[arg(long)]
    range: bool,
    /// The key, and the end of a range
    #[arg(value_name = "KEY [RANGE_END]")]
    args: Vec<OsString>,
}

pub(crate) async fn run(context: &Context, args: DelArgs) -> Result<(), Failure> {
    let delete = request(args).await?;
    let (client, style) = context.open().await?;
    style.show(&client.delete(delete).await?)
}

/// The request that the arguments mean; also a step of `txn`.
pub(crate) async fn request(args: DelArgs) -> Result<Delete, Failure> {
    if args.args.is_empty() || args.args.len() > 2 {
        let text = "del command needs one argument as key and an optional argument as range_end";
        return Err(Failure::bad_args(text));
    }
    if args.prefix && args.from_key {
        return Err(Failure::bad_args("`--prefix` and `--from-key` cannot be set at the same time, choose one"));
    }
    if args.args.len() > 1 && (args.prefix || args.from_key) {
        let text = "too many arguments, only accept one argument when `--prefix` or `--from-key` is set";
        return Err(Failure::bad_args(text));
    }
    if let [key, end] = &args.args[..]
        && !args.range
    {
        warn(&bytes(key), &bytes(end)).await;
    }
    let mut words = args.args.into_iter().map(into_bytes);
    let key = words.next().unwrap_or_default();
    let delete = match words.next() {
        Some(end) => Delete::range(key, end),
        None if args.prefix => Delete::prefix(key),
        None if args.from_key => Delete::from_key(key),
        None => Delete::key(key),
    };
    Ok(if args.prev_kv { delete.prev_kv() } else { delete })
}

async fn warn(key: &[u8], end: &[u8]) {
    eprintln!(
        "Warning: Keys between {} and {} will be deleted. Please interrupt the command within next 2 seconds to cancel. \
         You can provide `--range` flag to avoid the delay.",
        quote(key),
        quote(end)
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
}
