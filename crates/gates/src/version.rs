//! `version`: moves a cluster from one version to another, the controller first.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use featureset::{
    arrival::Arrival,
    object::{ClusterOperator, ClusterVersion, FeatureGate},
    version::{abort, begin, check_upgradeable, complete, new_cluster_version},
};
use kubeapi::{Cause, Place};
use serde_json::json;

use crate::{
    cluster::{CONFIG, Cluster, LOOK_EVERY, Reach, block_on},
    output::Output,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Version {
    #[command(subcommand)]
    step: VersionStep,
}

#[derive(clap::Subcommand, Debug)]
enum VersionStep {
    /// Begins the way to a version; returns when the controller of that version has written its row and said so.
    Begin(To),
    /// Says that all parts of the cluster have arrived; refused while the controller of the version has not.
    Complete(Complete),
    /// Goes back to the version before; returns as begin does.
    Abort(To),
}

#[derive(clap::Args, Debug)]
struct To {
    version: String,
    /// The ClusterOperator that the controller reports as.
    #[arg(long, default_value = ClusterOperator::NAME)]
    cluster_operator: String,
    #[command(flatten)]
    reach: Reach,
}

#[derive(clap::Args, Debug)]
struct Complete {
    /// Waits until the controller of the version has written its row and said so.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    to: To,
}

impl Version {
    pub(crate) fn run(self) -> Result<Output> {
        block_on(async move {
            let (name, to, wait) = match self.step {
                VersionStep::Begin(to) => ("begin", to, true),
                VersionStep::Complete(Complete { wait, to }) => ("complete", to, wait),
                VersionStep::Abort(to) => ("abort", to, true),
            };
            let cluster = Cluster::connect(to.reach).await?;
            let wait = Duration::from_secs(if wait { cluster.reach.wait_seconds } else { 0 });
            if name == "complete" {
                cluster.until_complete(&to.version, &to.cluster_operator, wait).await?;
            }
            let version = cluster.move_version(name, &to.version, &to.cluster_operator).await?;
            if name != "complete" {
                let arrived = cluster.until_arrived(&version, &to.cluster_operator, wait).await?;
                arrived.map_err(|why| anyhow!("{version} has begun, but its controller has not arrived: {why}"))?;
            }
            let said = match name {
                "complete" => format!("{version} is completed\n"),
                _ => {
                    format!("{version} has begun: the controller has its row, now the rest of the cluster may follow\n")
                }
            };
            Ok(Output::good(said, json!({"version": version, "step": name})))
        })
    }
}

impl Cluster {
    /// Writes the step; the version that the cluster is to run then.
    async fn move_version(&self, step: &str, version: &str, operator: &str) -> Result<String> {
        let place = Place::cluster(CONFIG, ClusterVersion::PLURAL);
        loop {
            let there: Option<ClusterVersion> = self.read(ClusterVersion::PLURAL, ClusterVersion::NAME).await?;
            let old = match there {
                Some(there) => there,
                None if step == "begin" => {
                    let empty = new_cluster_version(&format!("lockgate-{}", kubeapi::micro_time()));
                    // What is refused leaves nothing behind.
                    begin(&empty, version, "")?;
                    match self.kube.create(&place, &serde_json::to_value(empty)?).await {
                        Ok(made) => serde_json::from_value(made)?,
                        // Somebody else was faster.
                        Err(error) if error.cause() == Cause::Conflict => continue,
                        Err(error) if error.cause() == Cause::NotFound => {
                            bail!("the cluster has no ClusterVersions: apply 0-crds.yaml, which render makes ({error})")
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                None => return Err(no_cluster_version()),
            };
            let now = kubeapi::now().1;
            let new = match step {
                "begin" => {
                    let operator: Option<ClusterOperator> = self.read(ClusterOperator::PLURAL, operator).await?;
                    let new = begin(&old, version, &now)?;
                    check_upgradeable(&old, operator.as_ref(), version)?;
                    new
                }
                "complete" => complete(&old, version, &now)?,
                _ => abort(&old, version, &now)?,
            };
            let desired = new.status.desired.version.clone();
            if new == old {
                return Ok(desired);
            }
            match self.kube.update_status(&place, &serde_json::to_value(&new)?).await {
                Ok(_) => return Ok(desired),
                Err(error) if error.cause() == Cause::Conflict => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// What is not under way is told before anything is waited for. There is no way round the barrier: what cannot arrive is aborted.
    async fn until_complete(&self, version: &str, operator: &str, wait: Duration) -> Result<()> {
        let there: Option<ClusterVersion> = self.read(ClusterVersion::PLURAL, ClusterVersion::NAME).await?;
        complete(&there.ok_or_else(no_cluster_version)?, version, "")?;
        let arrived = self.until_arrived(version, operator, wait).await?;
        arrived.map_err(|why| {
            anyhow!(
                "{version} cannot be completed, since its controller has not arrived: {why}\n\
                 start the controller of {version} (lockgate operator --release-version {version}) and give --wait, \
                 or go back with lockgate gates version abort {version}"
            )
        })
    }

    /// The barrier that makes the controller go first, up and down; what is missing when the time is over.
    async fn until_arrived(&self, version: &str, operator: &str, wait: Duration) -> Result<Result<(), String>> {
        let end = Instant::now() + wait;
        loop {
            let gate: Option<FeatureGate> = self.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
            let reported: Option<ClusterOperator> = self.read(ClusterOperator::PLURAL, operator).await?;
            let arrival = Arrival { version, feature_gate: gate.as_ref(), operator, reported: reported.as_ref() };
            let missing = arrival.missing();
            if missing.is_empty() {
                return Ok(Ok(()));
            }
            if Instant::now() >= end {
                return Ok(Err(format!("{}; {}", missing.join(", and "), arrival.why())));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

fn no_cluster_version() -> anyhow::Error {
    anyhow!("there is no ClusterVersion {}; begin makes one", ClusterVersion::NAME)
}
