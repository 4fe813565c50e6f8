//! Before the first start of a member: does it found a cluster, or join one that runs? The peers are asked.

use std::{collections::BTreeMap, net::ToSocketAddrs, sync::Arc, time::Duration};

use futures_util::future::join_all;
use membership::{
    Answers, BootstrapError, Founding, InitialCluster, MemberVersions, RunningCluster, check_join_versions,
    check_not_bootstrapped, plan_join, plan_new_cluster, remote_peer_urls,
};
use node::{DataDir, Identity};
use peer::{Control, ControlError};

use crate::{
    BINARY_VERSION,
    config::{ClusterState, Config, ConfigError},
};

/// As etcd: how long one member may take to list the members.
const MEMBERS_TIMEOUT: Duration = Duration::from_secs(10);
/// A founder asks whether it has been here before; peers that are not up yet must not hold it up for long.
const BOOTSTRAPPED_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    #[error("cannot fetch cluster info from peer urls: {0}")]
    Peers(ControlError),
}

/// Who the member becomes; `None` if its data dir says so already: then the `initial-*` flags are not read.
pub(crate) async fn identity(
    config: &Config,
    data_dir: &DataDir,
    control: &Arc<Control>,
) -> Result<Option<Identity>, BeginError> {
    if wal::Wal::exists(&data_dir.wal()) {
        // Only a first start that was cut off still needs it.
        return Ok(founding(config).ok().map(Identity::Founder));
    }
    let identity = match config.initial_cluster_state {
        ClusterState::New => Identity::Founder(found(config, control).await?),
        ClusterState::Existing => Identity::Joiner(join(config, control).await?),
    };
    Ok(Some(identity))
}

fn founding(config: &Config) -> Result<Founding, BeginError> {
    let initial = config.verify_bootstrap()?;
    let members = as_text(&initial.members);
    let advertised: Vec<_> = config.advertise_peer_urls.iter().map(ToString::to_string).collect();
    Ok(plan_new_cluster(&config.name, &members, &advertised, &initial.token, &mut resolve)?)
}

async fn found(config: &Config, control: &Control) -> Result<Founding, BeginError> {
    let founding = founding(config)?;
    let initial = config.verify_bootstrap()?;
    let urls = remote_peer_urls(&config.name, &as_text(&initial.members));
    let asked = urls.iter().map(|url| control.fetch_members(std::slice::from_ref(url), BOOTSTRAPPED_TIMEOUT));
    if let Some(cluster) = join_all(asked).await.into_iter().find_map(Result::ok) {
        let running = RunningCluster { id: cluster.id, members: cluster.members };
        check_not_bootstrapped(founding.local, Some(&running))?;
    }
    Ok(founding)
}

async fn join(config: &Config, control: &Control) -> Result<Founding, BeginError> {
    let initial = as_text(&config.verify_bootstrap()?.members);
    let urls = remote_peer_urls(&config.name, &initial);
    if urls.is_empty() {
        return Err(BootstrapError::NoAnswer.into());
    }
    let cluster = control.fetch_members(&urls, MEMBERS_TIMEOUT).await.map_err(BeginError::Peers)?;
    let running = RunningCluster { id: cluster.id, members: cluster.members };
    let founding = plan_join(&config.name, &initial, &running, config.max_learners, &mut resolve)?;
    check_versions(config, control, &founding).await?;
    Ok(founding)
}

/// This binary must be able to work at the cluster's version.
async fn check_versions(config: &Config, control: &Control, founding: &Founding) -> Result<(), BeginError> {
    let timeout = Duration::from_secs(5) + 2 * config.election_timeout;
    let mut answers = Answers::new();
    let mut urls = Vec::new();
    for member in founding.members.values().filter(|member| member.id != founding.local) {
        let versions = control.fetch_version(&member.peer_urls, timeout).await.ok();
        let says =
            |v: peer::Versions| MemberVersions { is_ours: v.lockgate.is_some(), server: v.server, cluster: v.cluster };
        answers.insert(member.id, versions.map(says));
        urls.extend(member.peer_urls.iter().cloned());
    }
    let downgrade = control.downgrade_enabled(&urls, timeout).await.unwrap_or(false);
    check_join_versions(BINARY_VERSION, founding.local, &answers, downgrade).map_err(|why| {
        tracing::error!(%why, "cannot join the running cluster");
        BeginError::from(BootstrapError::Incompatible)
    })
}

fn as_text(members: &BTreeMap<String, Vec<crate::config::Url>>) -> InitialCluster {
    members.iter().map(|(name, urls)| (name.clone(), urls.iter().map(ToString::to_string).collect())).collect()
}

/// The first address of a host and port, as etcd compares URLs.
fn resolve(host: &str) -> Result<String, String> {
    match host.to_socket_addrs() {
        Ok(mut addresses) => match addresses.next() {
            Some(address) => Ok(address.to_string()),
            None => Err(format!("{host} has no address")),
        },
        Err(error) => Err(error.to_string()),
    }
}
