//! `member`: lists and changes the members of the cluster.

use cli::{quote, value};
use client::pb::MemberAddResponse;

use super::{is_serializable, only};
use crate::{
    context::Context,
    failure::Failure,
    print::{Format, Promoted, Removed, Updated, print},
};

mod features_off;
mod peer_url;

/// Membership related commands
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct MemberArgs {
    #[command(subcommand)]
    pub command: MemberCommand,
}

#[derive(clap::Subcommand)]
pub(crate) enum MemberCommand {
    /// Adds a member into the cluster
    #[command(after_help = "Example: lockgatectl member add m4 --peer-urls=http://10.0.0.4:2380 --learner")]
    Add {
        /// Addresses of the new member for other members, separated by commas
        #[arg(long, default_value = "", hide_default_value = true, value_name = "URLS")]
        peer_urls: String,
        /// Join without a vote
        #[arg(long)]
        learner: bool,
        /// The new member's name
        #[arg(value_name = "NAME")]
        args: Vec<String>,
    },
    /// Removes a member from the cluster
    #[command(after_help = "Example: lockgatectl member remove 8e9e05c52164694d")]
    Remove {
        /// The member in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
    /// Updates a member in the cluster
    #[command(after_help = "Example: lockgatectl member update 8e9e05c52164694d --peer-urls=http://10.0.0.4:2380")]
    Update {
        /// New addresses of the member for other members, separated by commas
        #[arg(long, default_value = "", hide_default_value = true, value_name = "URLS")]
        peer_urls: String,
        /// The member in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
    /// Lists all members in the cluster
    #[command(after_help = "Example: lockgatectl member list -w table")]
    List {
        /// Linearizable (l) or serializable (s)
        #[arg(long, default_value = "l", value_name = "l|s")]
        consistency: String,
        #[arg(hide = true)]
        args: Vec<String>,
    },
    /// Promotes a non-voting member in the cluster
    #[command(after_help = "Example: lockgatectl member promote 8e9e05c52164694d")]
    Promote {
        /// The member in hex
        #[arg(value_name = "ID")]
        args: Vec<String>,
    },
}

pub(crate) async fn run(context: &Context, command: MemberCommand) -> Result<(), Failure> {
    match command {
        MemberCommand::Add { peer_urls, learner, args } => add(context, peer_urls, learner, args).await,
        MemberCommand::Remove { args } => {
            let id = id(args)?;
            let (client, style) = context.open().await?;
            style.show(&Removed { id, response: client.member_remove(id).await? })
        }
        MemberCommand::Update { peer_urls, args } => {
            let (id, urls) = (id(args)?, urls(&peer_urls)?);
            let (client, style) = context.open().await?;
            peer_url::check(&urls)?;
            style.show(&Updated { id, response: client.member_update(id, urls).await? })
        }
        MemberCommand::List { consistency, .. } => {
            let serializable = is_serializable(&consistency)?;
            let (client, style) = context.open().await?;
            style.show(&client.member_list(!serializable).await?)
        }
        MemberCommand::Promote { args } => {
            let id = id(args)?;
            let (client, style) = context.open().await?;
            style.show(&Promoted { id, response: client.member_promote(id).await? })
        }
    }
}

async fn add(context: &Context, peer_urls: String, learner: bool, args: Vec<String>) -> Result<(), Failure> {
    let Some(name) = args.first() else { return Err(Failure::bad_args("member name not provided")) };
    if args.len() > 1 {
        let urls = args.iter().filter(|arg| arg.to_lowercase().starts_with("http"));
        let hints: String = urls.map(|url| format!(", did you mean --peer-urls={url}")).collect();
        return Err(Failure::bad_args(format!("too many arguments{hints}")));
    }
    let urls = urls(&peer_urls)?;
    let (client, style) = context.open().await?;
    peer_url::check(&urls)?;
    let response = client.member_add(urls, learner).await?;
    style.show(&response)?;
    if style.format == Format::Simple {
        print(settings(&response, name, &peer_urls).as_bytes())?;
    }
    if !learner {
        features_off::tell(&client, name, &response).await;
    }
    Ok(())
}

/// The environment to start the new member with.
fn settings(response: &MemberAddResponse, name: &str, peer_urls: &str) -> String {
    let new = response.member.as_ref().map_or(0, |member| member.id);
    let mut cluster = Vec::new();
    for member in &response.members {
        let name = if member.id == new { name } else { &member.name };
        cluster.extend(member.peer_ur_ls.iter().map(|url| format!("{name}={url}")));
    }
    format!(
        "\nETCD_NAME={}\nETCD_INITIAL_CLUSTER={}\nETCD_INITIAL_ADVERTISE_PEER_URLS={}\nETCD_INITIAL_CLUSTER_STATE=\"existing\"\n",
        quote(name.as_bytes()),
        quote(cluster.join(",").as_bytes()),
        quote(peer_urls.as_bytes()),
    )
}

fn urls(peer_urls: &str) -> Result<Vec<String>, Failure> {
    if peer_urls.is_empty() {
        return Err(Failure::bad_args("member peer urls not provided"));
    }
    Ok(peer_urls.split(',').map(str::to_owned).collect())
}

fn id(args: Vec<String>) -> Result<u64, Failure> {
    let text = only(args, "member ID is not provided")?;
    value::uint_radix(&text, 16)
        .map_err(|error| Failure::bad_args(format!("bad member ID arg ({error}), expecting ID in Hex")))
}
