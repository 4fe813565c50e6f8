//! `defrag`: gives free space in database files back.

use std::time::Instant;

use crate::{context::Context, failure::Failure, print::println, text};

/// Defragments the storage of the members with given endpoints
#[derive(clap::Args)]
#[command(after_help = "Example: lockgatectl defrag --cluster")]
pub(crate) struct DefragArgs {
    /// All members, found through the member list
    #[arg(long)]
    cluster: bool,
    #[arg(hide = true)]
    args: Vec<String>,
}

pub(crate) async fn run(context: &Context, args: DefragArgs) -> Result<(), Failure> {
    context.style().await?;
    let mut failed = false;
    for endpoint in context.member_endpoints(args.cluster).await? {
        let client = context.connect(vec![endpoint.clone()]).await?;
        let start = Instant::now();
        let result = client.defragment().await;
        let took = text::duration(start.elapsed());
        match result {
            Ok(_) => println(&format!("Finished defragmenting etcd member[{endpoint}]. took {took}"))?,
            Err(error) => {
                crate::failure::tell_cause(crate::failure::cause(&error).as_deref());
                eprintln!("Failed to defragment etcd member[{endpoint}]. took {took}. ({error})");
                failed = true;
            }
        }
    }
    if failed { Err(Failure::told(1)) } else { Ok(()) }
}
