//! `move-leader`: hands leadership to another member.

use super::only;
use cli::value;

use crate::{context::Context, failure::Failure, print::LeaderMoved};

/// Transfers leadership to another cluster member
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl move-leader 8e9e05c52164694d")]
pub(crate) struct MoveLeaderArgs {
    /// The new leader in hex
    #[arg(value_name = "MEMBER_ID")]
    args: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: MoveLeaderArgs) -> Result<(), Failure> {
    let to = only(args.args, "move-leader command needs 1 argument")?;
    let to = value::uint_radix(&to, 16).map_err(Failure::bad_args)?;
    let style = context.style().await?;
    // Only the leader can hand over.
    for endpoint in context.endpoints() {
        let client = context.connect(vec![endpoint]).await?;
        let status = client.status().await?;
        if status.header.is_some_and(|header| header.member_id == status.leader) {
            let response = client.move_leader(to).await?;
            return style.show(&LeaderMoved { from: status.leader, to, response });
        }
    }
    Err(Failure::bad_args(format!("no leader endpoint given at [{}]", context.endpoints().join(" "))))
}
