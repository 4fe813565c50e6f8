//! `endpoint`: how the members behind the endpoints are.

use std::time::Instant;

use cli::value;
use client::pb::AlarmType;
use client::{Client, Kind};
use futures_util::future::join_all;

use super::feature_gate::{self, FeatureGateArgs};
use crate::{
    context::Context,
    failure::{self, Failure},
    print::{EndpointHash, EndpointHealth, EndpointStatus},
    text,
};

/// Endpoint related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct EndpointArgs {
    /// All members, found through the member list
    #[arg(long, global = true)]
    pub cluster: bool,
    #[command(subcommand)]
    pub command: EndpointCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum EndpointCommand {
    /// Checks the healthiness of endpoints
    #[command(after_help = "Example: lockgatectl endpoint health --cluster")]
    Health {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Prints the status of endpoints
    #[command(after_help = "Example: lockgatectl endpoint status -w table")]
    Status {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Prints the hash of the keys and their history at each endpoint
    #[command(name = "hashkv", after_help = "Example: lockgatectl endpoint hashkv --cluster --rev=1234")]
    HashKv {
        /// Up to this revision (0 means the latest)
        #[arg(long, default_value = "0", value_parser = value::int, value_name = "REVISION")]
        rev: i64,
        #[arg(hide = true)]
        args: Vec<String>,
    },
    #[command(name = "featuregate")]
    FeatureGate(FeatureGateArgs),
}

pub(crate) async fn run(context: &Context, cluster: bool, command: EndpointCommand) -> Result<(), Failure> {
    match command {
        EndpointCommand::Health { .. } => health(context, cluster).await,
        EndpointCommand::Status { .. } => status(context, cluster).await,
        EndpointCommand::HashKv { rev, .. } => hash_kv(context, cluster, rev).await,
        EndpointCommand::FeatureGate(args) => feature_gate::run(context, cluster, args).await,
    }
}

async fn health(context: &Context, cluster: bool) -> Result<(), Failure> {
    let style = context.style().await?;
    let mut clients = Vec::new();
    for endpoint in context.member_endpoints(cluster).await? {
        clients.push((context.client(vec![endpoint.clone()]).await?, endpoint));
    }
    let checks = join_all(clients.into_iter().map(|(client, endpoint)| check(context, client, endpoint))).await;
    let failed = checks.iter().any(|health| !health.error.is_empty());
    style.show(&checks)?;
    if failed { Err(Failure::error("unhealthy cluster")) } else { Ok(()) }
}

/// A read goes through consensus, so whoever answers one is well; alarms are asked for on top.
async fn check(context: &Context, client: Client, endpoint: String) -> EndpointHealth {
    if let Err(error) = context.log_in(&client).await {
        failure::tell_cause(failure::cause(&error).as_deref());
        return EndpointHealth { endpoint, healthy: false, took: String::new(), error: error.to_string() };
    }
    let start = Instant::now();
    let answer = client.get("health").await;
    let took = text::duration(start.elapsed());
    let error = match answer {
        Err(error) if error.kind() != Some(Kind::PermissionDenied) => {
            failure::tell_cause(failure::cause(&error).as_deref());
            error.to_string()
        }
        _ => alarms(&client).await,
    };
    EndpointHealth { endpoint, healthy: error.is_empty(), took, error }
}

async fn alarms(client: &Client) -> String {
    let Ok(response) = client.alarms().await else { return "Unable to fetch the alarm list".to_owned() };
    if response.alarms.is_empty() {
        return String::new();
    }
    let names = response.alarms.iter().map(|alarm| match alarm.alarm() {
        AlarmType::Nospace => "NOSPACE ",
        AlarmType::Corrupt => "CORRUPT ",
        _ => "UNKNOWN ",
    });
    format!("Active Alarm(s): {}", names.collect::<String>())
}

async fn status(context: &Context, cluster: bool) -> Result<(), Failure> {
    let style = context.style().await?;
    let (mut answers, mut failed) = (Vec::new(), false);
    for endpoint in context.member_endpoints(cluster).await? {
        match context.connect(vec![endpoint.clone()]).await?.status().await {
            Ok(response) => answers.push(EndpointStatus { endpoint, response }),
            Err(error) => {
                failure::tell_cause(failure::cause(&error).as_deref());
                eprintln!("Failed to get the status of endpoint {endpoint} ({error})");
                failed = true;
            }
        }
    }
    style.show(&answers)?;
    if failed { Err(Failure::told(1)) } else { Ok(()) }
}

async fn hash_kv(context: &Context, cluster: bool, revision: i64) -> Result<(), Failure> {
    let style = context.style().await?;
    let (mut answers, mut last) = (Vec::new(), None);
    for endpoint in context.member_endpoints(cluster).await? {
        match context.connect(vec![endpoint.clone()]).await?.hash_kv(revision).await {
            Ok(response) => answers.push(EndpointHash { endpoint, response }),
            Err(error) => {
                eprintln!("Failed to get the hash of endpoint {endpoint} ({error})");
                last = Some(error);
            }
        }
    }
    style.show(&answers)?;
    last.map_or(Ok(()), |error| Err(error.into()))
}
