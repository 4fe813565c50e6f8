//! `compaction`: forgets history.

use super::only;
use cli::value;

use crate::{context::Context, failure::Failure, print::println};

/// Compacts the event history
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl compaction --physical 1234")]
pub(crate) struct CompactionArgs {
    /// Wait until the space is free again
    #[arg(long)]
    physical: bool,
    /// Everything overwritten or deleted at or before this revision is forgotten
    #[arg(value_name = "REVISION")]
    args: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: CompactionArgs) -> Result<(), Failure> {
    let revision = only(args.args, "compaction command needs 1 argument")?;
    let revision = value::int_radix(&revision, 10).map_err(Failure::error)?;
    let (client, _) = context.open().await?;
    client.compact(revision, args.physical).await?;
    println(&format!("compacted revision {revision}"))
}
