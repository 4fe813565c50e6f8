//! `lockgate follow`: keeps a file with the gates of a version, for programs that cannot ask.

use std::{error::Error, fs, path::PathBuf, process::ExitCode, time::Duration};

use accessor::{
    Gates, Kube, Snapshot,
    sink::{Filter, Format, render},
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

pub fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
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
    let kube = Kube::connect(command.kubeconfig.as_deref()).await?;
    let gates = Gates::builder(&command.release_version).need(&command.allow).notify().start(kube)?;
    let snapshot = gates.ready(Duration::from_secs(command.wait_seconds)).await?;
    write(&command, &snapshot)?;
    if command.once {
        return Ok(());
    }
    let mut states = gates.subscribe();
    loop {
        tokio::select! {
            changed = states.changed() => changed?,
            _ = StopSignal::wait() => return Ok(()),
        }
        let state = states.borrow_and_update().clone();
        if let Ok(state) = state {
            write(&command, &state.snapshot)?;
        }
    }
}

/// Beside the file first, then in its place; a file that says so already is left alone.
fn write(command: &Follow, snapshot: &Snapshot) -> Result<(), Box<dyn Error>> {
    let path = command.output.display();
    let old = match fs::read_to_string(&command.output) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(format!("failed to read {path}: {error}").into()),
    };
    let format = match command.format {
        Kind::Args => Format::Args,
        Kind::Json => Format::Json,
        Kind::Config => Format::Config(command.config_path.split('.').map(str::to_owned).collect()),
    };
    let names = |names: &[String]| names.iter().cloned().collect();
    let filter = Filter { allow: names(&command.allow), deny: names(&command.deny) };
    let new = render(&snapshot.row, &filter, &format, old.as_deref()).map_err(|error| format!("{path}: {error}"))?;
    if old.as_deref() == Some(&new) {
        return Ok(());
    }
    let mut beside = command.output.clone().into_os_string();
    beside.push(".new");
    let written = fs::write(&beside, &new).and_then(|()| fs::rename(&beside, &command.output));
    written.map_err(|error| format!("failed to write {path}: {error}"))?;
    tracing::info!(version = snapshot.row.version, file = %path, "wrote gates");
    Ok(())
}
