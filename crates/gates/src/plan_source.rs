//! What a plan is made with: files, or a cluster as it is.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, bail};
use featureset::{
    Registry, Row,
    audit::Trail,
    config_map::{LABEL, of_config_map, registry_of},
    definition,
    object::{ClusterOperator, ClusterVersion, FeatureGate, UpdateState},
    plan::Known,
    sync,
    yaml::objects,
};
use kubeapi::Place;
use serde_json::Value;

use crate::{
    cluster::{CONFIG, Cluster, Reach, block_on},
    disk::{self, Source},
    plan::Files,
    render::read_manifest,
};

pub(crate) fn of_files(files: &Files, gates: &Path) -> Result<Known> {
    let registries = if files.registry.is_empty() {
        let source = Source::read(gates)?;
        vec![Registry::of_file(&source.file, &source.file.version)?]
    } else {
        disk::registries(&files.registry)?
    };
    let definitions = definitions(&files.crd)?;
    let desired = desired(files, &registries, !definitions.is_empty())?;
    let now = files.manifest.as_deref().map(read_manifest).transpose()?.map(|object| object.spec);
    Ok(Known { spec: now.unwrap_or_default(), registries, desired, definitions, ..Known::default() })
}

/// The one version there is, or the one that is named.
fn desired(files: &Files, registries: &[Registry], matters: bool) -> Result<Option<String>> {
    let versions = || registries.iter().map(|registry| registry.version.as_str()).collect::<Vec<_>>().join(", ");
    match (&files.desired_version, registries) {
        (Some(version), all) if all.iter().any(|registry| registry.version == *version) => Ok(Some(version.clone())),
        (Some(version), _) => bail!("there is no registry of version {version}; there are {}", versions()),
        (None, [only]) => Ok(Some(only.version.clone())),
        (None, _) if matters => bail!("choose the version that fields follow with --desired-version: {}", versions()),
        (None, _) => Ok(None),
    }
}

/// Definitions in files or folders, alone, in lists or in documents; other objects may stand beside them.
fn definitions(paths: &[std::path::PathBuf]) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for given in paths {
        let before = all.len();
        for path in disk::files(given)? {
            let objects = objects(&disk::read(&path)?).with_context(|| path.display().to_string())?;
            all.extend(objects.into_iter().filter(|object| object["kind"] == definition::KIND));
        }
        if all.len() == before {
            bail!("{} has no {}", given.display(), definition::KIND);
        }
    }
    Ok(all)
}

pub(crate) fn of_cluster(kubeconfig: Option<&Path>, namespace: &str) -> Result<Known> {
    block_on(async {
        let cluster = Cluster::connect(Reach::new(kubeconfig, namespace)).await?;
        let gate: Option<FeatureGate> = cluster.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
        let Some(gate) = gate else { bail!("there is no FeatureGate {}", FeatureGate::NAME) };
        let version: Option<ClusterVersion> = cluster.read(ClusterVersion::PLURAL, ClusterVersion::NAME).await?;
        let records = cluster.kube.list(&Place::namespaced("/api/v1", namespace, "configmaps"), None).await?;
        let (registries, missing) = registries(&records, &versions(&gate, version.as_ref()));
        let trail = Trail::read(&records).context("the audit trail cannot be read, so nothing can be planned")?;
        Ok(Known {
            recorded: trail.one_way(),
            registries,
            missing,
            acks: cluster.acks().await?,
            desired: version.as_ref().and_then(|version| version.latest()).map(str::to_owned),
            under_way: version.as_ref().and_then(under_way),
            definitions: followers(&cluster).await?,
            spec: gate.spec,
        })
    })
}

/// What a cluster runs with.
pub(crate) struct Running {
    /// Of the versions that parts of the cluster run with now or may run with.
    pub registries: Vec<Registry>,
    /// Why some cannot be read.
    pub unreadable: Vec<String>,
    /// Those of these versions.
    pub rows: Vec<Row>,
    /// Definitions that are annotated to follow.
    pub definitions: Vec<Value>,
}

/// Versions are those of the history since the last one that was completed, of all who acknowledge, and of all operators that say
/// theirs: whoever lags behind, or went first without a word in the history, says so there.
pub(crate) fn running(kubeconfig: Option<&Path>, namespace: &str) -> Result<Running> {
    block_on(async {
        let cluster = Cluster::connect(Reach::new(kubeconfig, namespace)).await?;
        let version: Option<ClusterVersion> = cluster.read(ClusterVersion::PLURAL, ClusterVersion::NAME).await?;
        let Some(version) = version else { bail!("there is no ClusterVersion {}", ClusterVersion::NAME) };
        let mut versions: Vec<String> = version.running().into_iter().map(str::to_owned).collect();
        versions.extend(cluster.acks().await?.into_iter().map(|ack| ack.version));
        versions.extend(reported(&cluster).await?);
        versions.sort();
        versions.dedup();
        let records = cluster.kube.list(&Place::namespaced("/api/v1", namespace, "configmaps"), Some(LABEL)).await?;
        let (registries, unreadable) = registries(&records, &versions);
        let gate: Option<FeatureGate> = cluster.read(FeatureGate::PLURAL, FeatureGate::NAME).await?;
        let rows = versions.iter().filter_map(|version| gate.as_ref()?.row(version)).collect();
        Ok(Running { registries, unreadable, rows, definitions: followers(&cluster).await? })
    })
}

/// The versions that operators say they are at. Other versions of theirs are of what they run, and no releases of the cluster.
async fn reported(cluster: &Cluster) -> Result<Vec<String>> {
    let all = cluster.kube.list(&Place::cluster(CONFIG, ClusterOperator::PLURAL), None).await?;
    let all: Vec<ClusterOperator> = all.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let versions = all.iter().filter_map(|operator| operator.version(sync::OPERATOR));
    Ok(versions.filter(|version| !version.is_empty()).map(str::to_owned).collect())
}

/// Those that have a row, or are to have one.
fn versions(gate: &FeatureGate, version: Option<&ClusterVersion>) -> Vec<String> {
    let mut all: Vec<&str> = version.and_then(|version| version.latest()).into_iter().collect();
    all.extend(version.iter().flat_map(|version| version.versions()));
    all.extend(gate.versions());
    let mut seen = BTreeSet::new();
    all.into_iter().filter(|version| seen.insert(*version)).map(str::to_owned).collect()
}

/// Registries of these versions, and why some cannot be used.
fn registries(records: &[Value], versions: &[String]) -> (Vec<Registry>, Vec<String>) {
    let of = |object| registry_of(object).map(|version| (version, of_config_map(object)));
    let mut there: BTreeMap<&str, _> = records.iter().filter_map(of).collect();
    let (mut registries, mut missing) = (Vec::new(), Vec::new());
    for version in versions {
        match there.remove(version.as_str()) {
            Some(Ok(registry)) => registries.push(registry),
            Some(Err(error)) => missing.push(format!("{version}: {error}")),
            None => missing.push(format!("{version}: it left no registry in the cluster")),
        }
    }
    (registries, missing)
}

fn under_way(version: &ClusterVersion) -> Option<String> {
    let newest = version.status.history.first().filter(|newest| newest.state == UpdateState::Partial);
    newest.map(|newest| newest.version.clone())
}

/// Definitions that are annotated, whole.
async fn followers(cluster: &Cluster) -> Result<Vec<Value>> {
    let place = Place::cluster("/apis/apiextensions.k8s.io/v1", definition::PLURAL);
    let mut all = Vec::new();
    for metadata in cluster.kube.list(&place.clone().metadata_only(), None).await? {
        if definition::follow(&metadata) != definition::Follow::No {
            all.extend(cluster.kube.get(&place, definition::name_of(&metadata)).await?);
        }
    }
    Ok(all)
}
