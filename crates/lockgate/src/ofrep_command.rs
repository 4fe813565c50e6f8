//! `lockgate ofrep`: gates for programs in any language.

use std::{error::Error, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use clap::Parser;
use tokio::{net::TcpListener, sync::watch};

use crate::signal::StopSignal;

/// Serves the gates of FeatureGate `cluster` over OpenFeature's remote evaluation protocol.
#[derive(Parser, Debug)]
#[command(name = "lockgate ofrep")]
struct Ofrep {
    /// The address to serve on.
    #[arg(long, default_value = "127.0.0.1:8016")]
    listen: SocketAddr,
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries are.
    #[arg(long, default_value = featureset::config_map::NAMESPACE)]
    namespace: String,
}

pub fn run(args: impl IntoIterator<Item = String>) -> ExitCode {
    let command = Ofrep::parse_from(args);
    if let Err(error) = server::logging::init_default() {
        eprintln!("lockgate ofrep: {error}");
        return ExitCode::FAILURE;
    }
    let started = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Box::<dyn Error>::from);
    let ended = started.and_then(|runtime| {
        let ended = runtime.block_on(serve(command));
        // Streams of clients do not hold up the end.
        runtime.shutdown_timeout(Duration::from_millis(200));
        ended
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lockgate ofrep: {}", crate::api_command::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

async fn serve(command: Ofrep) -> Result<(), Box<dyn Error>> {
    let kube = kubeapi::Kube::connect(command.kubeconfig.as_deref()).await?;
    let (sender, views) = watch::channel(Arc::default());
    let listener = TcpListener::bind(command.listen)
        .await
        .map_err(|error| format!("failed to listen on {}: {error}", command.listen))?;
    tracing::info!(address = %listener.local_addr()?, "serving gates over OFREP");
    tokio::select! {
        () = ofrep::follow(kube, command.namespace, sender) => {}
        served = ofrep::serve(listener, views) => served?,
        _ = StopSignal::wait() => {}
    }
    Ok(())
}
