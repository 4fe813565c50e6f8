//! `snapshot save`: a member's database as a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use client::Client;
use indicatif::{ProgressBar, ProgressStyle};

use super::only;
use crate::{context::Context, failure::Failure, print::println};

/// Saves snapshots of a member's database
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    pub command: SnapshotCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Stores a member's database to a given file
    #[command(after_help = "Example: lockgatectl snapshot save backup.db")]
    Save {
        /// The file to write
        #[arg(value_name = "FILENAME")]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: SnapshotCommand) -> Result<(), Failure> {
    let SnapshotCommand::Save { args } = command;
    let path = only(args, "snapshot save expects one argument <filename>")?;
    let (client, _) = context.open().await?;
    let endpoints = context.endpoints();
    if endpoints.len() != 1 {
        let text = format!("snapshot must be requested to one selected node, not multiple [{}]", endpoints.join(" "));
        return Err(Failure::interrupted(text));
    }
    let save = save(&client, Path::new(&path));
    let version = match context.timeout_if_given() {
        Some(timeout) => tokio::time::timeout(timeout, save)
            .await
            .unwrap_or_else(|_| Err(Failure::interrupted("context deadline exceeded")))?,
        None => save.await?,
    };
    println(&format!("Snapshot saved at {path}"))?;
    if version.is_empty() { Ok(()) } else { println(&format!("Server version {version}")) }
}

/// Removes the unfinished file, however the work ends.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

async fn save(client: &Client, path: &Path) -> Result<String, Failure> {
    let part = PathBuf::from(format!("{}.part", path.display()));
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
    let mut file = file.map_err(|error| {
        let reason = describe(&error);
        Failure::interrupted(format!("could not open {0} (open {0}: {reason})", part.display()))
    })?;
    let part = Part(part);
    let version = receive(client, &mut file).await?;
    let failed = |what: &str, error: io::Error| Failure::interrupted(format!("could not {what}: {error}"));
    file.sync_all().map_err(|error| failed("fsync snapshot", error))?;
    fs::rename(&part.0, path).map_err(|error| {
        let (from, to, reason) = (part.0.display(), path.display(), describe(&error));
        Failure::interrupted(format!("could not rename {from} to {to} (rename {from} {to}: {reason})"))
    })?;
    Ok(version)
}

async fn receive(client: &Client, file: &mut File) -> Result<String, Failure> {
    // etcdctl does not look into errors of this stream.
    let interrupted = |error: client::Error| {
        crate::failure::tell_cause(crate::failure::cause(&error).as_deref());
        Failure::interrupted(error.grpc_text())
    };
    let mut snapshot = client.snapshot().await.map_err(interrupted)?;
    let bar = bar(snapshot.remaining_bytes());
    while let Some(piece) = snapshot.next().await.map_err(|error| match error {
        client::Error::Snapshot(reason) => Failure::interrupted(reason),
        error => Failure::interrupted(format!("could not write snapshot: {error}")),
    })? {
        file.write_all(&piece)
            .map_err(|error| Failure::interrupted(format!("could not write snapshot: {}", describe(&error))))?;
        bar.inc(piece.len() as u64);
    }
    bar.finish_and_clear();
    Ok(snapshot.version().to_owned())
}

/// Only a person watching sees it.
fn bar(bytes: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {decimal_bytes} of {decimal_total_bytes}, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The system's words without the number, in lower case, as Go has them.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
