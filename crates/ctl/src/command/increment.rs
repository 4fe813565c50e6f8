//! `increment`: adds to the number in a key.

use std::ffi::OsString;

use cli::value;
use client::Increment;

use super::{feature_gate::explain, into_bytes};
use crate::{context::Context, failure::Failure};

/// Adds to the number in a key and prints the sum
///
/// The value is a decimal number of 64 bits; a key that is not there is created, without a lease. Needs the cluster
/// feature AtomicIncrement. A key that begins with a dash is taken for a flag: write `increment -- <key> <delta>`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: lockgatectl increment seats -1 --initial=100 --min=0")]
pub(crate) struct IncrementArgs {
    /// What the delta is added to if the key is not there
    #[arg(long, default_value = "0", value_parser = value::int, value_name = "NUMBER")]
    initial: i64,
    /// Refuse a sum below this
    #[arg(long, value_parser = value::int, value_name = "NUMBER")]
    min: Option<i64>,
    /// Refuse a sum above this
    #[arg(long, value_parser = value::int, value_name = "NUMBER")]
    max: Option<i64>,
    /// The key
    // Not `key`, which is a flag of all commands.
    #[arg(value_name = "KEY")]
    counter: Option<OsString>,
    /// What to add, negative to take away (1 if left out)
    #[arg(value_name = "DELTA", allow_negative_numbers = true)]
    delta: Option<String>,
    #[arg(hide = true)]
    rest: Vec<OsString>,
}

pub(crate) async fn run(context: &Context, args: IncrementArgs) -> Result<(), Failure> {
    let increment = request(args)?;
    let (client, style) = context.open().await?;
    match client.increment(increment).await {
        Ok(response) => style.show(&response),
        Err(error) => Err(explain(&client, error, "increments").await),
    }
}

fn request(args: IncrementArgs) -> Result<Increment, Failure> {
    let (Some(key), []) = (args.counter, args.rest.as_slice()) else {
        return Err(Failure::bad_args("increment command needs one argument as key and an optional argument as delta"));
    };
    let delta = args.delta.map_or(Ok(1), |delta| value::int_radix(&delta, 10));
    let delta = delta.map_err(|error| Failure::bad_args(format!("bad delta ({error})")))?;
    let mut increment = Increment::new(into_bytes(key), delta).initial(args.initial);
    if let Some(min) = args.min {
        increment = increment.min(min);
    }
    Ok(if let Some(max) = args.max { increment.max(max) } else { increment })
}
