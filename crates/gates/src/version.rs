//! `version`: moves a cluster from one version to another, the controller first.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use featureset::{
    object::{ClusterOperator, ClusterVersion, FeatureGate, find_condition},
    sync::DETERMINATION_DEGRADED,
    version::{VersionError, abort, begin, check_upgradeable, complete, new_cluster_version},
};
use kubeapi::{Cause, Place};
use serde_json::json;

use crate::{
    cluster::{CONFIG, Cluster, LOOK_EVERY, NO_GATE, Reach, block_on},
    output::Output,
};

#[derive(clap::Args, Debug)]
pub struct Version {
    #[command(subcommand)]
    step: VersionStep,
}

#[derive(clap::Subcommand, Debug)]
enum VersionStep {
    /// Begins the way to a version; returns when the controller of that version has written its row and said so.
    Begin(To),
    /// Says that all parts of the cluster have arrived.
    Complete(To),
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

impl Version {
    pub fn run(self) -> Result<Output> {
        block_on(async move {
            let (name, to) = match self.step {
                VersionStep::Begin(to) => ("begin", to),
                VersionStep::Complete(to) => ("complete", to),
                VersionStep::Abort(to) => ("abort", to),
            };
            let cluster = Cluster::connect(to.reach).await?;
            let version = cluster.move_version(name, &to.version, &to.cluster_operator).await?;
            if name != "complete" {
                cluster.until_reported(&version, &to.cluster_operator).await?;
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
                None if version.trim().is_empty() => return Err(VersionError::Empty.into()),
                None if step == "begin" => {
                    let id = format!("lockgate-{}", kubeapi::micro_time());
                    match self.kube.create(&place, &serde_json::to_value(new_cluster_version(&id))?).await {
                        Ok(made) => serde_json::from_value(made)?,
                        // Somebody else was faster.
                        Err(error) if error.cause() == Cause::Conflict => continue,
                        Err(error) if error.cause() == Cause::NotFound => {
                            bail!("the cluster has no ClusterVersions: apply 0-crds.yaml, which render makes ({error})")
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                None => bail!("there is no ClusterVersion {}; begin makes one", ClusterVersion::NAME),
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

    /// The barrier that makes the controller go first, up and down.
    async fn until_reported(&self, version: &str, operator: &str) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(self.reach.wait_seconds);
        loop {
            let gate: Option<FeatureGate> = self.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
            let reporter: Option<ClusterOperator> = self.read(ClusterOperator::PLURAL, operator).await?;
            let has_row = gate.as_ref().is_some_and(|gate| gate.row(version).is_some());
            let reported = reporter.as_ref().and_then(|reporter| reporter.version("feature-gates"));
            if has_row && reported == Some(version) {
                return Ok(());
            }
            if Instant::now() >= end {
                let why = trouble(gate.as_ref());
                let row = if has_row { "there is" } else { "there is no" };
                bail!(
                    "{version} has begun, but its controller has not reported it: {row} row, reported is {}; {why}",
                    reported.unwrap_or("nothing")
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// What the controller in charge says, for a version that did not arrive.
fn trouble(gate: Option<&FeatureGate>) -> String {
    let Some(gate) = gate else { return format!("{NO_GATE}: does the controller run?") };
    let why = find_condition(&gate.status.conditions, DETERMINATION_DEGRADED).filter(|condition| condition.is_true());
    why.map_or("nothing is said to be wrong: does the controller of this version run?".to_owned(), |why| {
        why.message.clone()
    })
}
