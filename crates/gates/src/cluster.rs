//! Commands that speak to a cluster: `version`, `status`, `history`.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use featureset::{
    ack::{self, Ack},
    audit::{self, Trail},
    config_map::{LABEL, NAMESPACE},
    object::{ClusterOperator, ClusterVersion, FeatureGate, find_condition},
    sync::DETERMINATION_DEGRADED,
    version::{abort, begin, check_upgradeable, complete, new_cluster_version},
};
use kubeapi::{Cause, Kube, Place};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::output::Output;

const CONFIG: &str = "/apis/config.openshift.io/v1";
const LOOK_EVERY: Duration = Duration::from_millis(300);

#[derive(clap::Args, Debug)]
pub struct Reach {
    /// How to reach the API; as kubectl would unless given.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Where registries, audit trail and leases are.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    /// How many seconds to wait, where there is something to wait for.
    #[arg(long, default_value_t = 600)]
    wait_seconds: u64,
}

impl Reach {
    /// For commands that wait for nothing.
    pub fn new(kubeconfig: Option<&Path>, namespace: &str) -> Reach {
        Reach { kubeconfig: kubeconfig.map(Path::to_owned), namespace: namespace.to_owned(), wait_seconds: 0 }
    }
}

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

#[derive(clap::Args, Debug)]
pub struct Status {
    /// Waits until everyone who acknowledges runs with the row of its version.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    reach: Reach,
}

#[derive(clap::Args, Debug)]
pub struct History {
    #[command(flatten)]
    reach: Reach,
}

/// A cluster that is spoken to.
pub struct Cluster {
    pub kube: Kube,
    reach: Reach,
}

pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
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
    pub async fn connect(reach: Reach) -> Result<Cluster> {
        Ok(Cluster { kube: Kube::connect(reach.kubeconfig.as_deref()).await?, reach })
    }

    pub async fn read<T: DeserializeOwned>(&self, plural: &'static str, name: &str) -> Result<Option<T>> {
        let object = self.kube.get(&Place::cluster(CONFIG, plural), name).await?;
        object.map(serde_json::from_value).transpose().with_context(|| format!("{plural}/{name} cannot be read"))
    }

    /// Writes the step; the version that the cluster is to run then.
    async fn move_version(&self, step: &str, version: &str, operator: &str) -> Result<String> {
        let place = Place::cluster(CONFIG, ClusterVersion::PLURAL);
        loop {
            let there: Option<ClusterVersion> = self.read(ClusterVersion::PLURAL, ClusterVersion::NAME).await?;
            let old = match there {
                Some(there) => there,
                None if step == "begin" && !version.trim().is_empty() => {
                    let id = format!("lockgate-{}", kubeapi::micro_time());
                    match self.kube.create(&place, &serde_json::to_value(new_cluster_version(&id))?).await {
                        Ok(made) => serde_json::from_value(made)?,
                        // Somebody else was faster.
                        Err(error) if error.cause() == Cause::Conflict => continue,
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
                let conditions = gate.map(|gate| gate.status.conditions).unwrap_or_default();
                let why = find_condition(&conditions, DETERMINATION_DEGRADED).filter(|condition| condition.is_true());
                let why = why.map_or("nothing is said to be wrong".to_owned(), |why| why.message.clone());
                let row = if has_row { "there is" } else { "there is no" };
                bail!(
                    "{version} has begun, but its controller has not reported it: {row} row, reported is {}; {why}",
                    reported.unwrap_or("nothing")
                );
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub async fn acks(&self) -> Result<Vec<Ack>> {
        let place = Place::namespaced("/apis/coordination.k8s.io/v1", &self.reach.namespace, "leases");
        let leases = self.kube.list(&place, Some(&format!("{LABEL}={}", ack::LABEL_VALUE))).await?;
        let now = kubeapi::now().0;
        let mut acks: Vec<Ack> = leases.iter().filter_map(|lease| Ack::of_lease(lease, kubeapi::seconds_of)).collect();
        acks.retain(|ack| ack.is_alive(now));
        acks.sort();
        Ok(acks)
    }
}

impl Status {
    pub fn run(self) -> Result<Output> {
        block_on(async move {
            let (wait, cluster) = (self.wait, Cluster::connect(self.reach).await?);
            let end = Instant::now() + Duration::from_secs(cluster.reach.wait_seconds);
            loop {
                let (output, adopted) = status(&cluster).await?;
                if !wait || adopted {
                    return Ok(output);
                }
                if Instant::now() >= end {
                    return Ok(Output {
                        good: false,
                        text: output.text + "not everyone runs with its row yet\n",
                        ..output
                    });
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
    }
}

/// What to say, and whether everyone runs with its row. A FeatureGate whose rows lag behind its spec counts as not.
async fn status(cluster: &Cluster) -> Result<(Output, bool)> {
    let gate: Option<FeatureGate> = cluster.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
    let Some(gate) = gate else { bail!("there is no FeatureGate {}", FeatureGate::NAME) };
    let set: &str = gate.spec.feature_set.as_deref().filter(|set| !set.is_empty()).unwrap_or("Default");
    let degraded = find_condition(&gate.status.conditions, DETERMINATION_DEGRADED);
    let seen = degraded.is_some_and(|condition| condition.observed_generation == gate.metadata.generation);
    let mut text = format!("set {set}{}\n", if seen { "" } else { ", which the controller has not seen yet" });
    for condition in gate.status.conditions.iter().filter(|condition| condition.is_true()) {
        text += &format!("{} ({}): {}\n", condition.kind, condition.reason, condition.message);
    }
    for row in &gate.status.feature_gates {
        text += &format!("row {}: {} on, {} off\n", row.version, row.enabled.len(), row.disabled.len());
    }
    let mut all = seen;
    let mut followers = Vec::new();
    for ack in cluster.acks().await? {
        let adopted = gate.row(&ack.version).is_some_and(|row| row.digest() == ack.digest);
        all &= adopted;
        let how = if adopted { "runs with its row" } else { "runs with an older row" };
        text += &format!("{} {} ({}): {how}\n", ack.component, ack.instance, ack.version);
        followers.push(
            json!({"component": ack.component, "instance": ack.instance, "version": ack.version, "adopted": adopted}),
        );
    }
    let json =
        json!({"featureSet": set, "observed": seen, "rows": gate.versions(), "followers": followers, "adopted": all});
    Ok((Output::good(text, json), all))
}

impl History {
    pub fn run(self) -> Result<Output> {
        block_on(async move {
            let cluster = Cluster::connect(self.reach).await?;
            let place = Place::namespaced("/api/v1", &cluster.reach.namespace, "configmaps");
            // By names, as the controller does: a label can be taken off.
            let trail = Trail::read(&cluster.kube.list(&place, None).await?)?;
            let mut text = String::new();
            for entry in &trail.entries {
                let lists = [("+", &entry.enabled), ("-", &entry.disabled)];
                let names =
                    lists.iter().flat_map(|(mark, names)| names.iter().map(move |name| format!(" {mark}{name}")));
                let kind = match entry.kind {
                    audit::Kind::Chosen => "chosen",
                    audit::Kind::Refused => "not followed, a one-way set was chosen before",
                };
                let actor = entry.actor.as_deref().map(|actor| format!(" by {actor}")).unwrap_or_default();
                text += &format!("{}  {}{}  {kind}{actor}\n", entry.time, entry.set, names.collect::<String>());
            }
            let entries: Vec<Value> = trail.entries.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
            Ok(Output::good(text, json!({"entries": entries})))
        })
    }
}
