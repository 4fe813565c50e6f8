//! `auth`: whether the cluster asks for users.

use client::{Client, Kind};

use crate::{context::Context, failure::Failure, print::println};

/// Enable or disable authentication
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub command: AuthCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum AuthCommand {
    /// Enables authentication
    #[command(
        after_help = "Needs a user root; gives it the role root if it has none.\n\nExample: lockgatectl auth enable"
    )]
    Enable {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Disables authentication
    #[command(after_help = "Example: lockgatectl --user=root auth disable")]
    Disable {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Returns authentication status
    #[command(after_help = "Example: lockgatectl auth status")]
    Status {
        #[arg(hide = true)]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: AuthCommand) -> Result<(), Failure> {
    let (name, args) = match &command {
        AuthCommand::Enable { args } => ("enable", args),
        AuthCommand::Disable { args } => ("disable", args),
        AuthCommand::Status { args } => ("status", args),
    };
    if !args.is_empty() {
        return Err(Failure::bad_args(format!("auth {name} command does not accept any arguments")));
    }
    let (client, style) = context.open().await?;
    match command {
        AuthCommand::Enable { .. } => {
            enable(&client).await?;
            println("Authentication Enabled")
        }
        AuthCommand::Disable { .. } => {
            client.auth_disable().await?;
            println("Authentication Disabled")
        }
        AuthCommand::Status { .. } => style.show(&client.auth_status().await?),
    }
}

/// A user root without the role root gets it first.
async fn enable(client: &Client) -> Result<(), client::Error> {
    match client.auth_enable().await {
        Err(error) if error.kind() == Some(Kind::RootRoleNotExist) => {
            client.role_add("root").await?;
            client.user_grant_role("root", "root").await?;
            client.auth_enable().await.map(drop)
        }
        enabled => enabled.map(drop),
    }
}
