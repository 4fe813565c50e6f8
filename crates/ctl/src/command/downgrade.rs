//! `downgrade`: checks, starts and cancels a downgrade of the cluster, and says how far it is.

use client::pb::downgrade_request::DowngradeAction;

use crate::{
    context::Context,
    failure::Failure,
    print::{Downgraded, MemberDowngrade},
};

/// Downgrade related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct DowngradeArgs {
    #[command(subcommand)]
    pub command: DowngradeCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum DowngradeCommand {
    /// Checks whether the cluster can be downgraded
    #[command(after_help = "Example: lockgatectl downgrade validate 3.7")]
    Validate {
        /// Major and minor version to go back to
        #[arg(value_name = "TARGET_VERSION")]
        args: Vec<String>,
    },
    /// Starts a downgrade
    #[command(after_help = "Example: lockgatectl downgrade enable 3.7")]
    Enable {
        /// Major and minor version to go back to
        #[arg(value_name = "TARGET_VERSION")]
        args: Vec<String>,
    },
    /// Prints how each member stands to the downgrade, and what it still waits for
    #[command(after_help = "Example: lockgatectl downgrade status -w table")]
    Status {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Cancels the downgrade under way
    #[command(after_help = "Example: lockgatectl downgrade cancel")]
    Cancel {
        #[arg(hide = true)]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: DowngradeCommand) -> Result<(), Failure> {
    let (name, action, target) = match command {
        DowngradeCommand::Validate { args } => ("validate", DowngradeAction::Validate, target(args)?),
        DowngradeCommand::Enable { args } => ("enable", DowngradeAction::Enable, target(args)?),
        DowngradeCommand::Cancel { .. } => ("cancel", DowngradeAction::Cancel, String::new()),
        DowngradeCommand::Status { .. } => return status(context).await,
    };
    let (client, style) = context.open().await?;
    let response = client.downgrade(action, &target).await?;
    style.show(&Downgraded { action: name, response })
}

/// Of all members, whichever were named as endpoints.
async fn status(context: &Context) -> Result<(), Failure> {
    let style = context.style().await?;
    let mut members = Vec::new();
    for endpoint in context.member_endpoints(true).await? {
        let answer = context.connect(vec![endpoint.clone()]).await?.status().await;
        let status = answer.inspect_err(|error| eprintln!("Failed to get the status of endpoint {endpoint} ({error})"));
        members.push(MemberDowngrade { endpoint, status: status.ok() });
    }
    style.show(&members)?;
    let silent = members.iter().any(|member| member.status.is_none());
    if silent { Err(Failure::told(1)) } else { Ok(()) }
}

fn target(args: Vec<String>) -> Result<String, Failure> {
    match <[String; 1]>::try_from(args) {
        Ok([version]) if version.is_empty() => Err(Failure::bad_args("target version not provided")),
        Ok([version]) => Ok(version),
        Err(args) if args.is_empty() => Err(Failure::bad_args("TARGET_VERSION not provided")),
        Err(_) => Err(Failure::bad_args("too many arguments")),
    }
}
