//! `check`: how fast a cluster is, and how much memory data takes.

mod datascale;
mod load;
mod perf;

use std::{io::IsTerminal, time::Duration};

use client::{Client, Delete, Get};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{context::Context, failure::Failure, print::println};

/// Checks properties of the cluster
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct CheckArgs {
    #[command(subcommand)]
    pub command: CheckCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum CheckCommand {
    /// Checks the performance of the cluster
    #[command(after_help = "Example: lockgatectl check perf --load=m --auto-compact --auto-defrag")]
    Perf {
        #[command(flatten)]
        options: CheckOptions,
        /// Where to write keys; must be empty
        #[arg(long, default_value = "/etcdctl-check-perf/")]
        prefix: String,
    },
    /// Checks the memory that data takes at the first endpoint
    #[command(name = "datascale", after_help = "Example: lockgatectl check datascale --load=s --auto-compact")]
    DataScale {
        #[command(flatten)]
        options: CheckOptions,
        /// Where to write keys; must be empty
        #[arg(long, default_value = "/etcdctl-check-datascale/")]
        prefix: String,
    },
}

#[derive(clap::Args)]
pub(crate) struct CheckOptions {
    /// s(mall), m(edium), l(arge) or xl(arge)
    #[arg(long, default_value = "s")]
    load: String,
    /// Compact afterwards
    #[arg(long)]
    auto_compact: bool,
    /// Defragment afterwards
    #[arg(long)]
    auto_defrag: bool,
    #[arg(hide = true)]
    args: Vec<String>,
}

pub(crate) async fn run(context: &Context, command: CheckCommand) -> Result<(), Failure> {
    match command {
        CheckCommand::Perf { options, prefix } => perf::run(context, options, prefix).await,
        CheckCommand::DataScale { options, prefix } => datascale::run(context, options, prefix).await,
    }
}

#[derive(Clone, Copy)]
enum Load {
    Small,
    Medium,
    Large,
    XLarge,
}

impl CheckOptions {
    fn load(&self) -> Result<Load, Failure> {
        match self.load.as_str() {
            "s" | "small" => Ok(Load::Small),
            "m" | "medium" => Ok(Load::Medium),
            "l" | "large" => Ok(Load::Large),
            "xl" | "xLarge" => Ok(Load::XLarge),
            other => Err(Failure::bad_feature(format!("unknown load option {other}"))),
        }
    }

    async fn clean_up(&self, client: &Client, revision: i64) -> Result<(), Failure> {
        if self.auto_compact {
            println(&format!("Compacting with revision {revision}"))?;
            client.compact(revision, true).await?;
            println(&format!("Compacted with revision {revision}"))?;
        }
        if self.auto_defrag {
            for endpoint in client.endpoints() {
                println(&format!("Defragmenting {endpoint:?}"))?;
                client.only(&endpoint)?.defragment().await?;
                println(&format!("Defragmented {endpoint:?}"))?;
            }
        }
        Ok(())
    }
}

/// As many clients with connections of their own, the last for cleaning up.
async fn clients(context: &Context, count: usize) -> Result<Vec<Client>, Failure> {
    context.style().await?;
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(context.connect(context.endpoints()).await?.with_timeout(Duration::from_secs(30)));
    }
    Ok(clients)
}

async fn refuse_if_used(client: &Client, prefix: &str, program: &str) -> Result<(), Failure> {
    if client.get(Get::prefix(prefix.to_owned()).limit(1)).await?.kvs.is_empty() {
        return Ok(());
    }
    let text = format!("prefix {prefix:?} has keys. Delete with '{program} del --prefix {prefix}' first");
    Err(Failure::invalid_input(text))
}

/// Deletes what was written; returns the revision of that.
async fn delete(client: &Client, prefix: &str) -> Result<i64, client::Error> {
    let response = client.delete(Delete::prefix(prefix.to_owned())).await?;
    Ok(response.header.map_or(0, |header| header.revision))
}

fn bar(length: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:60} {pos} of {len}, {eta} left");
    ProgressBar::new(length).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
