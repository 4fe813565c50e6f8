//! `snapshot restore`: a new data dir from a snapshot file.
//!
//! Everything is made in a temporary directory and takes its name in the last step, so that a restore which fails or is
//! cut off leaves nothing that a server would start on.

mod database;
mod first_log;
mod source;
mod target;

use std::{path::PathBuf, time::Duration};

use cli::value;
use membership::{ClusterId, Member, MemberId, members_of_new_cluster};
use serde_json::{Value, json};

use crate::{failure::Failure, log, peer_url};

/// Makes a new data dir from a snapshot
#[derive(clap::Args)]
#[command(after_help = "Example: lockgateutl snapshot restore backup.db --data-dir default.etcd")]
pub(crate) struct RestoreArgs {
    /// The snapshot
    #[arg(value_name = "FILE")]
    args: Vec<PathBuf>,
    /// The data dir to make; NAME.etcd if not given
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where the log goes, if not into the data dir
    #[arg(long, value_name = "DIR")]
    wal_dir: Option<PathBuf>,
    /// Names and peer URLs of all members of the new cluster
    #[arg(long, default_value = "default=http://localhost:2380", value_name = "NAME=URL,…")]
    initial_cluster: String,
    /// Goes into the ids of cluster and members; the same for all members
    #[arg(long, default_value = "etcd-cluster", value_name = "TOKEN")]
    initial_cluster_token: String,
    /// Peer URLs of this member
    #[arg(long, default_value = "http://localhost:2380", value_name = "URL,…")]
    initial_advertise_peer_urls: String,
    /// Name of this member
    #[arg(long, default_value = "default")]
    name: String,
    /// Takes a file without a hash, such as one copied out of a data dir, or with a wrong one
    #[arg(long)]
    skip_hash_check: bool,
    /// Address space to set aside for the database while restoring; 0 for the default
    #[arg(long, default_value = "10737418240", value_parser = value::uint, value_name = "BYTES")]
    initial_memory_map_size: u64,
    /// Raises the newest revision by so much, for clients that must never see it go back
    #[arg(long, default_value = "0", value_parser = value::uint, value_name = "N")]
    bump_revision: u64,
    /// Marks everything up to the raised revision as compacted (goes with --bump-revision)
    #[arg(long)]
    mark_compacted: bool,
}

/// A restore that makes sense.
struct Plan {
    snapshot: PathBuf,
    data_dir: PathBuf,
    wal_dir: Option<PathBuf>,
    skip_hash_check: bool,
    map_bytes: Option<u64>,
    bump_revision: u64,
    cluster: NewCluster,
    lock_timeout: Option<Duration>,
}

/// The cluster that begins with the restored data.
struct NewCluster {
    id: ClusterId,
    local: MemberId,
    /// In the order of their ids, which is that of the first log entries.
    members: Vec<Member>,
}

pub(crate) fn run(args: RestoreArgs, lock_timeout: Option<Duration>) -> Result<(), Failure> {
    let [snapshot] = &args.args[..] else {
        return Err(Failure::bad_args("snapshot restore requires exactly one argument"));
    };
    if (args.bump_revision > 0) != args.mark_compacted {
        return Err(Failure::bad_args("--mark-compacted required if --revision-bump > 0"));
    }
    let snapshot = snapshot.clone();
    Ok(restore(&plan(args, snapshot, lock_timeout)?)?)
}

fn plan(args: RestoreArgs, snapshot: PathBuf, lock_timeout: Option<Duration>) -> anyhow::Result<Plan> {
    let advertised = peer_url::parse_list(&args.initial_advertise_peer_urls)?;
    let cluster = peer_url::parse_cluster(&args.initial_cluster)?;
    peer_url::check(&cluster, &args.name, &advertised)?;
    let members: Vec<_> = members_of_new_cluster(&cluster, &args.initial_cluster_token)?.into_values().collect();
    let id = ClusterId::compute(members.iter().map(|member| member.id));
    let local = members.iter().find(|member| member.name == args.name).map(|member| member.id).unwrap_or_default();
    let not_empty = |dir: &PathBuf| !dir.as_os_str().is_empty();
    Ok(Plan {
        snapshot,
        data_dir: args.data_dir.filter(not_empty).unwrap_or_else(|| format!("{}.etcd", args.name).into()),
        wal_dir: args.wal_dir.filter(not_empty),
        skip_hash_check: args.skip_hash_check,
        map_bytes: Some(args.initial_memory_map_size).filter(|bytes| *bytes > 0),
        bump_revision: args.bump_revision,
        cluster: NewCluster { id, local, members },
        lock_timeout,
    })
}

fn restore(plan: &Plan) -> anyhow::Result<()> {
    target::check_free(plan)?;
    log::info("restoring snapshot", &log_fields(plan));
    let source = source::Source::open(plan)?;
    let target = target::Target::begin(plan)?;
    source.copy_to(&target.dir.db(), plan)?;
    database::check(&target.dir.db(), &plan.snapshot)?;
    database::adapt(&target.dir.db(), plan)?;
    first_log::write(&target.dir, &plan.cluster)?;
    target.finish(plan)?;
    log::info("restored snapshot", &log_fields(plan));
    Ok(())
}

fn log_fields(plan: &Plan) -> [(&'static str, Value); 5] {
    let dir = node::DataDir::new(&plan.data_dir, plan.wal_dir.clone());
    [
        ("path", json!(plan.snapshot)),
        ("wal-dir", json!(dir.wal())),
        ("data-dir", json!(plan.data_dir)),
        ("snap-dir", json!(dir.snap())),
        ("cluster-id", json!(plan.cluster.id.to_string())),
    ]
}
