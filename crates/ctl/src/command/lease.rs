//! `lease`: grant, revoke, look at, list and renew leases.

use futures_util::StreamExt;

use super::only;
use cli::value;

use crate::{
    context::Context,
    failure::Failure,
    print::{Format, Granted, Revoked, TimeToLive, println},
};

/// Lease related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct LeaseArgs {
    #[command(subcommand)]
    pub command: LeaseCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum LeaseCommand {
    /// Creates leases
    #[command(after_help = "Example: lockgatectl lease grant 60")]
    Grant {
        /// Time to live in seconds
        #[arg(value_name = "TTL")]
        args: Vec<String>,
    },
    /// Revokes leases
    #[command(after_help = "Example: lockgatectl lease revoke 32695410dcc0ca06")]
    Revoke {
        /// The lease in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
    /// Gets lease information
    #[command(name = "timetolive", after_help = "Example: lockgatectl lease timetolive --keys 32695410dcc0ca06")]
    TimeToLive {
        /// Also the keys attached
        #[arg(long)]
        keys: bool,
        /// The lease in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
    /// Lists all active leases
    #[command(after_help = "Example: lockgatectl lease list")]
    List {
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Keeps leases alive (renew)
    #[command(after_help = "Example: lockgatectl lease keep-alive --once 32695410dcc0ca06")]
    KeepAlive {
        /// Renew once and exit
        #[arg(long)]
        once: bool,
        /// The lease in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: LeaseCommand) -> Result<(), Failure> {
    match command {
        LeaseCommand::Grant { args } => grant(context, only(args, "lease grant command needs TTL argument")?).await,
        LeaseCommand::Revoke { args } => {
            revoke(context, id(&only(args, "lease revoke command needs 1 argument")?)?).await
        }
        LeaseCommand::TimeToLive { keys, args } => {
            let id = id(&only(args, "lease timetolive command needs lease ID as argument")?)?;
            let (client, style) = context.open().await?;
            let response = client.with_timeout(None).lease_time_to_live(id, keys).await;
            let response = response.map_err(Failure::bad_connection)?;
            style.show(&TimeToLive { response, keys })
        }
        LeaseCommand::List { .. } => {
            let (client, style) = context.open().await?;
            style.show(&client.with_timeout(None).leases().await.map_err(Failure::bad_connection)?)
        }
        LeaseCommand::KeepAlive { once, args } => {
            keep_alive(context, once, id(&only(args, "lease keep-alive command needs lease ID as argument")?)?).await
        }
    }
}

async fn grant(context: &Context, ttl: String) -> Result<(), Failure> {
    let ttl = value::int_radix(&ttl, 10).map_err(|error| Failure::bad_args(format!("bad TTL ({error})")))?;
    let (client, style) = context.open().await?;
    let response = client.lease_grant(ttl, 0).await;
    let response = response.map_err(|error| Failure::from(error).while_doing("failed to grant lease"))?;
    style.show(&Granted(response))
}

async fn revoke(context: &Context, id: i64) -> Result<(), Failure> {
    let (client, style) = context.open().await?;
    let response = client.lease_revoke(id).await;
    let response = response.map_err(|error| Failure::from(error).while_doing("failed to revoke lease"))?;
    style.show(&Revoked { id, response })
}

async fn keep_alive(context: &Context, once: bool, id: i64) -> Result<(), Failure> {
    let (client, style) = context.open().await?;
    if once {
        let response = client.with_timeout(None).lease_keep_alive_once(id).await;
        return style.show(&response.map_err(Failure::bad_connection)?);
    }
    let mut renewals = client.lease_keep_alive(id);
    while let Some(Ok(renewal)) = renewals.next().await {
        style.show(&renewal)?;
    }
    if style.format == Format::Simple {
        println(&format!("lease {id:016x} expired or revoked."))?;
    }
    Ok(())
}

fn id(text: &str) -> Result<i64, Failure> {
    value::int_radix(text, 16)
        .map_err(|error| Failure::bad_args(format!("bad lease ID arg ({error}), expecting ID in Hex")))
}
