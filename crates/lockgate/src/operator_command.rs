//! `lockgate operator`: the controller of feature sets.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use featureset::GatesFile;
use operator::Options;
use server::ports_file::{Ports, PortsFile, reachable_url};
use tokio::net::TcpListener;

use crate::signal::StopSignal;

/// Keeps the rows of FeatureGate `cluster`: which gates are on, for every installed version.
#[derive(Parser, Debug)]
#[command(name = "lockgate operator")]
struct Operator {
    /// The gates of this release.
    #[arg(long, default_value = "gates.toml")]
    gates: PathBuf,
    /// The version of this release, as ClusterVersion has it.
    #[arg(long, env = "OPERATOR_IMAGE_VERSION", default_value = "")]
    release_version: String,
    /// Needed where gates.toml has several.
    #[arg(long)]
    profile: Option<String>,
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries, audit trail and leases are.
    #[arg(long, default_value = featureset::config_map::NAMESPACE)]
    namespace: String,
    /// The ClusterOperator to report as.
    #[arg(long, default_value = featureset::object::ClusterOperator::NAME)]
    cluster_operator: String,
    /// Serves /metrics, /healthz and /readyz on this address; on none unless given. With port 0 the system chooses the port.
    #[arg(long)]
    metrics_listen: Option<SocketAddr>,
    /// A file that gets the URL of the metrics as JSON, once they can be reached.
    #[arg(long, requires = "metrics_listen")]
    ports_file: Option<PathBuf>,
    /// How many seconds the lease is held without renewal.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(3..=3600))]
    lease_seconds: u64,
    /// How many days the registry of a version is kept that nobody needs any more.
    #[arg(long, default_value_t = operator::KEEP_REGISTRIES.as_secs() / DAY, value_parser = clap::value_parser!(u64).range(..=36500))]
    keep_registries_days: u64,
}

const DAY: u64 = 24 * 3600;

pub(crate) fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let command = Operator::parse_from(args);
    if let Err(error) = server::logging::init_default() {
        eprintln!("lockgate operator: {error}");
        return ExitCode::FAILURE;
    }
    match start(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockgate operator: {}", crate::api_command::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn start(command: Operator) -> Result<(), Box<dyn std::error::Error>> {
    let path = command.gates.display();
    let text = std::fs::read_to_string(&command.gates).map_err(|error| format!("failed to read {path}: {error}"))?;
    let file = GatesFile::parse(&text).map_err(|errors| format!("{path} has errors: {errors}"))?;
    let mut options = Options::new(&file, &command.release_version, command.profile.as_deref())?;
    options.kubeconfig = command.kubeconfig;
    options.namespace = command.namespace;
    options.operator_name = command.cluster_operator;
    // On other machines processes have the same numbers.
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "localhost".to_owned());
    options.identity = format!("{host}_{}_{}", options.identity, started());
    options.timing.lease = Duration::from_secs(command.lease_seconds);
    options.timing.give_up = options.timing.lease * 2 / 3;
    options.timing.retry = options.timing.lease / 7;
    options.keep_registries = Duration::from_secs(command.keep_registries_days * DAY);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_beside_metrics(options, command.metrics_listen, command.ports_file))?;
    runtime.shutdown_timeout(Duration::from_millis(200));
    Ok(())
}

async fn run_beside_metrics(
    options: Options,
    listen: Option<SocketAddr>,
    ports_file: Option<PathBuf>,
) -> Result<(), Box<dyn std::error::Error>> {
    let metrics = options.metrics.clone();
    let stop = async {
        StopSignal::wait().await;
    };
    let Some(listen) = listen else { return Ok(operator::run(options, stop).await?) };
    let mut ports_file = PortsFile::prepare(ports_file.as_deref())?;
    // An address that is taken is told at once, and not by a graph without points.
    let listener = TcpListener::bind(listen).await.map_err(|error| format!("failed to listen on {listen}: {error}"))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "serving metrics");
    ports_file.publish(&Ports::default().with("metrics", vec![reachable_url("http", address)]))?;
    tokio::select! {
        ended = operator::run(options, stop) => Ok(ended?),
        served = operator::serve::serve(listener, metrics) => Ok(served?),
    }
}

/// A process that starts again under the same number is another holder.
fn started() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map(|since| since.as_millis()).unwrap_or_default()
}
