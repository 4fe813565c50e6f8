//! `lockgate follow`: keeps a file with the gates of a version, for programs that cannot ask.

use std::{
    error::Error,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use accessor::{
    Gates, KeepError, Kept, KeptFile, Kube, Snapshot,
    sink::{Filter, Format},
};
use clap::{Parser, ValueEnum};

use crate::signal::StopSignal;

/// Writes the gates of a version to a file, and again whenever they change.
#[derive(Parser, Debug)]
#[command(name = "lockgate follow")]
struct Follow {
    /// The version whose row counts; 0.0.1-snapshot is the cluster's newest.
    #[arg(long, env = "OPERATOR_IMAGE_VERSION", default_value = "")]
    release_version: String,
    /// The file to keep.
    #[arg(long)]
    output: PathBuf,
    /// args: one line --feature-gates=A=true,…; config: a list in a config file; json: the row.
    #[arg(long, value_enum, default_value_t = Kind::Json)]
    format: Kind,
    /// Where in the config file the list is, such as apiServerArguments.feature-gates.
    #[arg(long, default_value = "featureGates")]
    config_path: String,
    /// Only these gates. One that the version does not know is an error.
    #[arg(long, value_delimiter = ',')]
    allow: Vec<String>,
    /// Never these gates.
    #[arg(long, value_delimiter = ',')]
    deny: Vec<String>,
    /// How many seconds between two looks at the file, which is put right if somebody else changed or removed it; 0 is never.
    #[arg(long, default_value_t = 5)]
    check_seconds: u64,
    /// Writes once and ends.
    #[arg(long)]
    once: bool,
    /// How many seconds to wait for the first answer.
    #[arg(long, default_value_t = 60)]
    wait_seconds: u64,
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Args,
    Config,
    Json,
}

pub(crate) fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let command = Follow::parse_from(args);
    if let Err(error) = server::logging::init_default() {
        eprintln!("lockgate follow: {error}");
        return ExitCode::FAILURE;
    }
    let started = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Box::<dyn Error>::from);
    match started.and_then(|runtime| runtime.block_on(follow(command))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockgate follow: {}", crate::api_command::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn follow(command: Follow) -> Result<(), Box<dyn Error>> {
    let mut file = command.file()?;
    let kube = Kube::connect(command.kubeconfig.as_deref()).await?;
    let gates = Gates::builder(&command.release_version).need(&command.allow).notify().start(kube)?;
    let mut snapshot = gates.ready(Duration::from_secs(command.wait_seconds)).await?;
    let mut told = Told::default();
    told.tell(&command.output, &snapshot, file.keep(&snapshot.row))?;
    if command.once {
        return Ok(());
    }
    let mut states = gates.subscribe();
    // One for all the time: a signal between two would be lost.
    let mut stop = std::pin::pin!(StopSignal::wait());
    loop {
        tokio::select! {
            changed = states.changed() => changed?,
            () = next_check(command.check_seconds) => {}
            _ = &mut stop => return Ok(()),
        }
        if let Ok(state) = &*states.borrow_and_update() {
            snapshot = state.snapshot.clone();
        }
        // Somebody may be in the middle of writing it, or the disk be full: it is tried again.
        let _ = told.tell(&command.output, &snapshot, file.keep(&snapshot.row));
    }
}

async fn next_check(seconds: u64) {
    match seconds {
        0 => std::future::pending().await,
        seconds => tokio::time::sleep(Duration::from_secs(seconds)).await,
    }
}

impl Follow {
    fn file(&self) -> Result<KeptFile, String> {
        let path: Vec<String> = self.config_path.split('.').map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(format!("--config-path {:?} has an empty key; write keys with dots between", self.config_path));
        }
        let format = match self.format {
            Kind::Args => Format::Args,
            Kind::Json => Format::Json,
            Kind::Config => Format::Config(path),
        };
        let names = |names: &[String]| names.iter().cloned().collect();
        let filter = Filter { allow: names(&self.allow), deny: names(&self.deny) };
        Ok(KeptFile::new(&self.output, filter, format))
    }
}

/// What the log has of the file: each thing once, also if it goes on.
#[derive(Default)]
struct Told {
    trouble: Option<String>,
    /// Looks in a row that found the work of somebody else.
    restored: u32,
}

impl Told {
    fn tell(&mut self, path: &Path, snapshot: &Snapshot, kept: Result<Kept, KeepError>) -> Result<(), KeepError> {
        let (version, file) = (&snapshot.row.version, path.display());
        let trouble = kept.as_ref().err().map(|error| crate::api_command::chain(error));
        if let Some(error) = trouble.as_ref().filter(|_| trouble != self.trouble) {
            tracing::error!(version, error, "the file cannot be kept");
        }
        if trouble.is_none() && self.trouble.is_some() {
            tracing::info!(version, %file, "the file can be kept again");
        }
        self.trouble = trouble;
        self.restored = if kept.as_ref().is_ok_and(|kept| is_restored(*kept)) { self.restored + 1 } else { 0 };
        match kept? {
            Kept::Right => {}
            Kept::Written => tracing::info!(version, %file, "wrote gates"),
            // Who fights about it is not allowed to fill the log.
            _ if !self.restored.is_power_of_two() => {}
            Kept::RestoredRemoved => {
                tracing::warn!(version, %file, times = self.restored, "the file was removed; wrote it again");
            }
            Kept::RestoredChanged => {
                tracing::warn!(version, %file, times = self.restored, "somebody changed gates in the file; put them right");
            }
        }
        Ok(())
    }
}

fn is_restored(kept: Kept) -> bool {
    matches!(kept, Kept::RestoredRemoved | Kept::RestoredChanged)
}
