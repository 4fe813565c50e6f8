//! `get`: reads keys.

use std::ffi::OsString;

use cli::value;
use client::{
    Get,
    pb::range_request::{SortOrder, SortTarget},
};

use super::{into_bytes, is_serializable};
use crate::{context::Context, failure::Failure, print::Format};

/// Gets the key or a range of keys
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lockgatectl get --prefix /jobs/ --keys-only --limit=10")]
pub(crate) struct GetArgs {
    /// Linearizable (l) or serializable (s)
    #[arg(long, default_value = "l", value_name = "l|s")]
    consistency: String,
    /// ASCEND or DESCEND
    #[arg(long, default_value = "", value_name = "ORDER", hide_default_value = true)]
    order: String,
    /// CREATE, KEY, MODIFY, VALUE or VERSION
    #[arg(long, default_value = "", value_name = "TARGET", hide_default_value = true)]
    sort_by: String,
    /// At most this many keys
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "N")]
    limit: i64,
    /// All keys that begin with the key
    #[arg(long)]
    prefix: bool,
    /// All keys that are not less than the key
    #[arg(long)]
    from_key: bool,
    /// As of this revision
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    rev: i64,
    /// Keys without values
    #[arg(long)]
    keys_only: bool,
    /// Only how many there are (with --write-out=fields)
    #[arg(long)]
    count_only: bool,
    /// Values without keys (with --write-out=simple)
    #[arg(long)]
    print_value_only: bool,
    /// Only keys created at or after this revision
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    min_create_rev: i64,
    /// Only keys created at or before this revision
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    max_create_rev: i64,
    /// Only keys changed at or after this revision
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    min_mod_rev: i64,
    /// Only keys changed at or before this revision
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
    max_mod_rev: i64,
    /// Receive the range in pieces (needs etcd 3.7)
    #[arg(long)]
    stream: bool,
    /// The key, and the end of a range
    #[arg(value_name = "KEY [RANGE_END]")]
    args: Vec<OsString>,
}

pub(crate) async fn run(context: &Context, args: GetArgs) -> Result<(), Failure> {
    let (stream, count_only, value_only) = (args.stream, args.count_only, args.print_value_only);
    let get = request(args)?;
    let (client, mut style) = context.open().await?;
    let response = if stream {
        tokio::time::timeout(context.timeout(), async { client.range_stream(get).await?.collect().await })
            .await
            .unwrap_or(Err(client::Error::Timeout { last: None }))?
    } else {
        client.get(get).await?
    };
    if count_only && style.format != Format::Fields {
        return Err(Failure::bad_args("--count-only is only for `--write-out=fields`"));
    }
    if value_only && style.format != Format::Simple {
        return Err(Failure::bad_args("print-value-only is only for `--write-out=simple`"));
    }
    style.value_only = value_only;
    style.show(&response)
}

/// The request that the arguments mean; also a step of `txn`.
pub(crate) fn request(args: GetArgs) -> Result<Get, Failure> {
    if args.args.is_empty() {
        let text = "get command needs one argument as key and an optional argument as range_end";
        return Err(Failure::bad_args(text));
    }
    if args.prefix && args.from_key {
        return Err(Failure::bad_args("`--prefix` and `--from-key` cannot be set at the same time, choose one"));
    }
    if args.keys_only && args.count_only {
        return Err(Failure::bad_args("`--keys-only` and `--count-only` cannot be set at the same time, choose one"));
    }
    let serializable = is_serializable(&args.consistency)?;
    if args.args.len() > 1 && (args.prefix || args.from_key) {
        let text = "too many arguments, only accept one argument when `--prefix` or `--from-key` is set";
        return Err(Failure::bad_args(text));
    }
    let (order, target) = (order(&args.order)?, target(&args.sort_by)?);
    ordered("Create", args.min_create_rev, args.max_create_rev)?;
    ordered("Mod", args.min_mod_rev, args.max_mod_rev)?;

    let mut words = args.args.into_iter().map(into_bytes);
    let key = words.next().unwrap_or_default();
    let mut get = match words.next() {
        Some(end) => Get::range(key, end),
        None if args.prefix => Get::prefix(key),
        None if args.from_key => Get::from_key(key),
        None => Get::key(key),
    };
    get = sorted(get, target, order).limit(args.limit).revision(args.rev.max(0));
    get = get.create_revision_min(args.min_create_rev.max(0)).create_revision_max(args.max_create_rev.max(0));
    get = get.mod_revision_min(args.min_mod_rev.max(0)).mod_revision_max(args.max_mod_rev.max(0));
    if serializable {
        get = get.serializable();
    }
    if args.keys_only {
        get = get.keys_only();
    }
    Ok(if args.count_only { get.count_only() } else { get })
}

/// The server returns keys in ascending order anyway, so asking for that would only cost it a sort.
fn sorted(get: Get, target: SortTarget, order: SortOrder) -> Get {
    match (target, order) {
        (SortTarget::Key, SortOrder::Ascend) => get,
        (target, order) => get.sort(target, order),
    }
}

fn order(name: &str) -> Result<SortOrder, Failure> {
    match name.to_uppercase().as_str() {
        "ASCEND" => Ok(SortOrder::Ascend),
        "DESCEND" => Ok(SortOrder::Descend),
        "" => Ok(SortOrder::None),
        _ => Err(Failure::bad_feature(format!("bad sort order {name}"))),
    }
}

fn target(name: &str) -> Result<SortTarget, Failure> {
    match name.to_uppercase().as_str() {
        "CREATE" => Ok(SortTarget::Create),
        "KEY" | "" => Ok(SortTarget::Key),
        "MODIFY" => Ok(SortTarget::Mod),
        "VALUE" => Ok(SortTarget::Value),
        "VERSION" => Ok(SortTarget::Version),
        _ => Err(Failure::bad_feature(format!("bad sort target {name}"))),
    }
}

fn ordered(what: &str, min: i64, max: i64) -> Result<(), Failure> {
    if max > 0 && min > max {
        return Err(Failure::bad_feature(format!("getMin{what}Rev(={min}) > getMax{what}Rev(={max})")));
    }
    Ok(())
}
