//! `endpoint featuregate`: which cluster features are on, who proposes what, and how that came about.

use std::time::Duration;

use client::{Client, membershippb::FeatureGateChange, pb::FeatureGateStatusResponse};

use super::is_serializable;
use crate::{
    context::Context,
    failure::Failure,
    print::{EndpointGate, EndpointGates, Format, GateChanges, Style},
};

/// The exit code of an error here: 1 means that the feature is off.
const FAILED: u8 = 2;

/// The pause before a history that broke off is asked for again.
const REOPEN: Duration = Duration::from_millis(200);

/// Prints which cluster features are on, and what holds the others off
///
/// With a NAME it prints true or false and exits with 0 if the feature is on at every endpoint asked, with 1 if it is
/// off. An error, such as an unknown name or no connection, exits with 2 or more, never with 1.
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl endpoint featuregate\n         \
                  lockgatectl endpoint featuregate AtomicIncrement && lockgatectl increment visits")]
pub(crate) struct FeatureGateArgs {
    /// Linearizable (l) or serializable (s)
    #[arg(long, default_value = "l", value_name = "l|s")]
    consistency: String,
    /// One feature, to be answered with true or false
    #[arg(value_name = "NAME")]
    feature: Option<String>,
    #[arg(hide = true)]
    rest: Vec<String>,
    #[command(subcommand)]
    command: Option<FeatureGateCommand>,
}

#[derive(clap::Subcommand)]
enum FeatureGateCommand {
    /// Prints the changes of the cluster's feature gate, oldest first
    ///
    /// The members keep the last 1000 changes.
    #[command(after_help = "Example: lockgatectl endpoint featuregate history --follow")]
    History {
        /// Changes at this log index and later (0 means all that are kept)
        #[arg(long, default_value = "0", value_parser = cli::value::uint, value_name = "INDEX")]
        from: u64,
        /// Go on with the changes to come
        #[arg(long)]
        follow: bool,
        #[arg(hide = true)]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, cluster: bool, args: FeatureGateArgs) -> Result<(), Failure> {
    let answer = match args.command {
        None => status(context, cluster, &args).await,
        Some(FeatureGateCommand::History { from, follow, .. }) => {
            history(context, cluster, from, follow).await.map(|()| true)
        }
    };
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::told(1)),
        Err(failure) => Err(no_answer(failure)),
    }
}

/// An error that must not be taken for the answer "off".
pub(crate) fn no_answer(failure: Failure) -> Failure {
    if failure.code == 1 { failure.with_code(FAILED) } else { failure }
}

/// Whether the answer is yes: it is no only if a feature was named that is off somewhere.
async fn status(context: &Context, cluster: bool, args: &FeatureGateArgs) -> Result<bool, Failure> {
    let serializable = is_serializable(&args.consistency)?;
    if !args.rest.is_empty() {
        return Err(Failure::bad_args("endpoint featuregate command takes one feature name at most"));
    }
    let style = context.style().await?;
    let (mut gates, mut failed) = (Vec::new(), false);
    let endpoints = context.member_endpoints(cluster).await?;
    let asked_several = endpoints.len() > 1;
    for endpoint in endpoints {
        let client = context.connect(vec![endpoint.clone()]).await?;
        match ask(&client, args.feature.as_ref(), serializable).await {
            Ok(response) => gates.push(EndpointGate { endpoint, response }),
            Err(failure) => {
                failure.tell_cause();
                eprintln!("Failed to get the feature gate of endpoint {endpoint} ({})", failure.text());
                failed = true;
            }
        }
    }
    let is_on = gates.iter().flat_map(|gate| &gate.response.features).all(|feature| feature.enabled);
    // Where nobody has answered there is nothing to show.
    if !gates.is_empty() {
        style.show(&EndpointGates { gates, asked_several, asked_one_feature: args.feature.is_some() })?;
    }
    if failed { Err(Failure::told(FAILED)) } else { Ok(is_on || args.feature.is_none()) }
}

async fn ask(client: &Client, name: Option<&String>, serializable: bool) -> Result<FeatureGateStatusResponse, Failure> {
    let answer = if serializable {
        client.feature_gate_status_serializable(name).await
    } else {
        client.feature_gate_status(name).await
    };
    match answer {
        Ok(response) => Ok(response),
        Err(error) => Err(explain(client, error, "cluster features").await),
    }
}

/// What an error means; a server that does not know a call is named, with its version, instead of the call.
pub(crate) async fn explain(client: &Client, error: client::Error, what: &str) -> Failure {
    if !error.is_unimplemented() {
        return error.into();
    }
    let version = client.status().await.map_or_else(|_| String::new(), |status| format!(" {}", status.version));
    Failure::error(format!("this server has no {what}: it is etcd{version}, and they came with lockgate 3.8"))
}

async fn history(context: &Context, cluster: bool, from: u64, follow: bool) -> Result<(), Failure> {
    let style = context.style().await?;
    if follow && style.format == Format::Table {
        return Err(Failure::bad_feature("table not supported as output format with --follow, which has no end"));
    }
    let client = context.connect(context.member_endpoints(cluster).await?).await?;
    let mut shown = GateChanges { from, ..Default::default() };
    loop {
        let read = read(&client, &mut shown, follow.then_some(style)).await;
        match read {
            Ok(()) if !follow => return show(style, &shown),
            Err(ReadError::Call(error)) if !(follow && error.is_unavailable()) => {
                return Err(explain(&client, error, "cluster features").await);
            }
            Err(ReadError::Print(failure)) => return Err(failure),
            // A server that stops or is gone is no end of the history: another one, or the same, goes on with it.
            Ok(()) | Err(ReadError::Call(_)) => tokio::time::sleep(REOPEN).await,
        }
    }
}

enum ReadError {
    Call(client::Error),
    Print(Failure),
}

/// Reads one stream to its end. With a style every answer is shown at once, else all are kept.
async fn read(client: &Client, shown: &mut GateChanges, style: Option<Style>) -> Result<(), ReadError> {
    let mut stream = client.feature_gate_history(shown.from, style.is_some()).await.map_err(ReadError::Call)?;
    while let Some(changes) = stream.next().await.map_err(ReadError::Call)? {
        shown.from = changes.last().map_or(shown.from, |change| change.index + 1);
        learn_names(client, shown, &changes).await;
        shown.changes.extend(changes);
        if let Some(style) = style {
            show(style, shown).map_err(ReadError::Print)?;
            shown.changes.clear();
        }
    }
    Ok(())
}

/// JSON is a line for each change, so none for none.
fn show(style: Style, shown: &GateChanges) -> Result<(), Failure> {
    if style.format == Format::Json && shown.changes.is_empty() { Ok(()) } else { style.show(shown) }
}

/// Members that have left have no name any more; their ids are shown.
async fn learn_names(client: &Client, shown: &mut GateChanges, changes: &[FeatureGateChange]) {
    let is_new = |change: &FeatureGateChange| change.member_id != 0 && !shown.names.contains_key(&change.member_id);
    if !changes.iter().any(is_new) {
        return;
    }
    if let Ok(list) = client.member_list(false).await {
        let named = list.members.into_iter().filter(|member| !member.name.is_empty());
        shown.names.extend(named.map(|member| (member.id, member.name)));
    }
}
