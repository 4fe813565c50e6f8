//! `alarm`: lists and disarms alarms.

use client::pb::AlarmResponse;

use crate::{context::Context, failure::Failure};

/// Alarm related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct AlarmArgs {
    #[command(subcommand)]
    pub command: AlarmCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum AlarmCommand {
    /// Disarms all alarms
    #[command(after_help = "Example: lockgatectl alarm disarm")]
    Disarm {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Lists all alarms
    #[command(after_help = "Example: lockgatectl alarm list")]
    List {
        #[arg(hide = true)]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: AlarmCommand) -> Result<(), Failure> {
    let (name, args) = match &command {
        AlarmCommand::Disarm { args } => ("disarm", args),
        AlarmCommand::List { args } => ("list", args),
    };
    if !args.is_empty() {
        return Err(Failure::bad_args(format!("alarm {name} command accepts no arguments")));
    }
    let (client, style) = context.open().await?;
    let response = match command {
        AlarmCommand::List { .. } => client.alarms().await?,
        AlarmCommand::Disarm { .. } => AlarmResponse { alarms: client.disarm_all().await?, ..Default::default() },
    };
    style.show(&response)
}
