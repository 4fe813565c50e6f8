//! One look at everything, and one write.

use featureset::{
    ack::{self, Ack},
    audit::{AuditError, Trail},
    config_map::LABEL,
    definition,
    object::{ClusterOperator, ClusterVersion, FeatureGate},
    sync::{Definitions, World, Write, sync},
};
use kubeapi::{ApiError, Kube, Place};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Options, field_gates::FieldGates, records::Records, refused::Refusals};

pub(crate) const CONFIG: &str = "/apis/config.openshift.io/v1";
const CORE: &str = "/api/v1";
const COORDINATION: &str = "/apis/coordination.k8s.io/v1";
const EXTENSIONS: &str = "/apis/apiextensions.k8s.io/v1";

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("{kind} {name} cannot be read")]
    Object { kind: &'static str, name: String, source: serde_json::Error },
}

pub(crate) struct Places {
    pub feature_gates: Place,
    pub cluster_versions: Place,
    pub cluster_operators: Place,
    pub config_maps: Place,
    pub leases: Place,
    pub definitions: Place,
}

impl Places {
    pub(crate) fn new(namespace: &str) -> Places {
        Places {
            feature_gates: Place::cluster(CONFIG, FeatureGate::PLURAL),
            cluster_versions: Place::cluster(CONFIG, ClusterVersion::PLURAL),
            cluster_operators: Place::cluster(CONFIG, ClusterOperator::PLURAL),
            config_maps: Place::namespaced(CORE, namespace, "configmaps"),
            leases: Place::namespaced(COORDINATION, namespace, "leases"),
            definitions: Place::cluster(EXTENSIONS, definition::PLURAL),
        }
    }
}

/// What is kept from step to step. None of it is needed: who starts anew finds it all out again.
#[derive(Default)]
pub(crate) struct Kept {
    pub records: Records,
    pub field_gates: FieldGates,
    pub refusals: Refusals,
}

/// Everything as it is now, but for the records, which are kept.
pub(crate) struct Look {
    feature_gate: Option<FeatureGate>,
    cluster_version: Option<ClusterVersion>,
    /// Why it is not known, though there is one.
    cluster_version_unreadable: Option<String>,
    cluster_operator: Option<ClusterOperator>,
    definitions: Definitions,
    audit: Result<Trail, AuditError>,
    acks: Vec<Ack>,
}

impl Look {
    /// The choice is read before the audit trail: whatever was recorded for it is seen.
    pub(crate) async fn take(
        kube: &Kube,
        places: &Places,
        options: &Options,
        kept: &mut Kept,
    ) -> Result<Look, LookError> {
        let feature_gate = kube.get(&places.feature_gates, FeatureGate::NAME).await?;
        let feature_gate = feature_gate.map(|it| with_status(it, FeatureGate::KIND, FeatureGate::NAME)).transpose()?;
        let (cluster_version, cluster_version_unreadable) =
            told(read(kube, &places.cluster_versions, ClusterVersion::KIND, ClusterVersion::NAME).await)?;
        let name = &options.operator_name;
        let cluster_operator = kube.get(&places.cluster_operators, name).await?;
        let cluster_operator = cluster_operator.map(|it| with_status(it, ClusterOperator::KIND, name)).transpose()?;
        kept.records.refresh(kube, &places.config_maps, &options.registry.version).await?;
        let leases = kube.list(&places.leases, Some(&format!("{LABEL}={}", ack::LABEL_VALUE))).await?;
        Ok(Look {
            feature_gate,
            cluster_version,
            cluster_version_unreadable,
            cluster_operator,
            definitions: kept.field_gates.look(kube, &places.definitions).await,
            audit: kept.records.trail(),
            acks: leases.iter().filter_map(|lease| Ack::of_lease(lease, kubeapi::seconds_of)).collect(),
        })
    }

    pub(crate) fn decide(&self, options: &Options, kept: &Kept) -> Vec<Write> {
        let (seconds, text) = kubeapi::now();
        options.metrics.show(self.feature_gate.as_ref(), self.cluster_operator.as_ref(), kept.records.registries());
        sync(&World {
            own: &options.registry,
            profile: &options.profile,
            namespace: &options.namespace,
            operator_name: &options.operator_name,
            feature_gate: self.feature_gate.as_ref(),
            refused: kept.refusals.of(self.feature_gate.as_ref()),
            cluster_version: self.cluster_version.as_ref(),
            cluster_version_unreadable: self.cluster_version_unreadable.as_deref(),
            cluster_operator: self.cluster_operator.as_ref(),
            registries: kept.records.registries(),
            registry_objects: kept.records.metadata(),
            keep_registries_seconds: options.keep_registries.as_secs() as i64,
            definitions: &self.definitions,
            audit: &self.audit,
            acks: &self.acks,
            now: (seconds, &text),
            seconds_of: kubeapi::seconds_of,
        })
    }
}

/// A status that is none, by whatever hand, is written anew: it is the controller's. The rest must be readable.
fn with_status<T: DeserializeOwned>(mut object: Value, kind: &'static str, name: &str) -> Result<T, LookError> {
    serde_json::from_value(object.clone()).or_else(|error| {
        tracing::warn!(%error, kind, name, "the status cannot be read; it is made anew");
        drop(object.as_object_mut().map(|fields| fields.remove("status")));
        serde_json::from_value(object).map_err(|source| LookError::Object { kind, name: name.to_owned(), source })
    })
}

/// What is there and cannot be read is for a condition, which all see; that nobody answers is not.
fn told<T>(read: Result<Option<T>, LookError>) -> Result<(Option<T>, Option<String>), LookError> {
    match read {
        Ok(object) => Ok((object, None)),
        Err(LookError::Object { source, .. }) => Ok((None, Some(source.to_string()))),
        Err(error) => Err(error),
    }
}

async fn read<T: DeserializeOwned>(
    kube: &Kube,
    place: &Place,
    kind: &'static str,
    name: &str,
) -> Result<Option<T>, LookError> {
    let object = kube.get(place, name).await?;
    object.map(serde_json::from_value).transpose().map_err(|source| LookError::Object {
        kind,
        name: name.to_owned(),
        source,
    })
}

/// Carries out one write; what it is about, for the log.
pub(crate) async fn write(
    kube: &Kube,
    places: &Places,
    field_gates: &mut FieldGates,
    write: &Write,
) -> Result<&'static str, ApiError> {
    let value = |object: Result<Value, serde_json::Error>| object.unwrap_or_default();
    match write {
        Write::CreateRegistry(object) => {
            kube.create(&places.config_maps, object).await?;
            Ok("registry of this version")
        }
        Write::CreateFeatureGate(object) => {
            kube.create(&places.feature_gates, &value(serde_json::to_value(object))).await?;
            Ok("FeatureGate cluster")
        }
        Write::Audit(object) => {
            let is_there = object["metadata"]["resourceVersion"].is_string();
            if is_there {
                kube.update(&places.config_maps, object).await?
            } else {
                kube.create(&places.config_maps, object).await?
            };
            Ok("audit trail")
        }
        Write::FeatureGateStatus(object) => {
            kube.update_status(&places.feature_gates, &value(serde_json::to_value(object))).await?;
            Ok("rows and conditions")
        }
        Write::RestoreSpec(object) => {
            kube.update(&places.feature_gates, &value(serde_json::to_value(object))).await?;
            tracing::warn!(
                "the spec of FeatureGate cluster stood in the way of its rows; it is the choice on record again"
            );
            Ok("spec of FeatureGate cluster")
        }
        Write::ReplaceFeatureGate { old, new } => {
            let (uid, version) = (old.uid.as_deref(), old.resource_version.as_deref());
            let (uid, version) = (uid.unwrap_or_default(), version.unwrap_or_default());
            kube.delete(&places.feature_gates, FeatureGate::NAME, uid, version).await?;
            tracing::warn!(
                "FeatureGate cluster had a spec that nobody could change any more; it was deleted, to be made anew"
            );
            kube.create(&places.feature_gates, &value(serde_json::to_value(new))).await?;
            Ok("FeatureGate cluster, with the choice on record")
        }
        Write::CreateClusterOperator(object) => {
            kube.create(&places.cluster_operators, &value(serde_json::to_value(object))).await?;
            Ok("ClusterOperator")
        }
        Write::ClusterOperatorStatus(object) => {
            kube.update_status(&places.cluster_operators, &value(serde_json::to_value(object))).await?;
            Ok("report of this operator")
        }
        Write::MarkRegistry(marked) => {
            let name = marked["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(mut object) = kube.get(&places.config_maps, name).await? {
                // With the version that was looked at: what has moved on since is not written.
                object["metadata"] = marked["metadata"].clone();
                kube.update(&places.config_maps, &object).await?;
            }
            Ok("mark of a registry that nobody needs, or needs again")
        }
        Write::DeleteRegistry { name, uid, resource_version } => {
            kube.delete(&places.config_maps, name, uid, resource_version).await?;
            tracing::info!(name, "removed a registry that nobody has needed for long");
            Ok("removal of a registry")
        }
        Write::ForgetAck(ack) => forget(kube, &places.leases, ack).await,
        Write::FieldGates(fields) => field_gates.apply(kube, &places.definitions, fields).await,
    }
}

/// Of the very object that says so: whoever came back meanwhile has renewed it.
async fn forget(kube: &Kube, place: &Place, ack: &Ack) -> Result<&'static str, ApiError> {
    if let Some(lease) = kube.get(place, &ack.name()).await?
        && Ack::of_lease(&lease, kubeapi::seconds_of).as_ref() == Some(ack)
    {
        let text = |key: &str| lease["metadata"][key].as_str().unwrap_or_default();
        kube.delete(place, &ack.name(), text("uid"), text("resourceVersion")).await?;
        tracing::info!(component = ack.component, instance = ack.instance, "removed an acknowledgement of long ago");
    }
    Ok("removal of an acknowledgement")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_invalid_status_is_replaced_and_an_invalid_spec_is_reported() {
        let broken =
            json!({"metadata": {"name": "cluster"}, "spec": {"featureSet": "OKD"}, "status": {"featureGates": "x"}});
        let read: FeatureGate = with_status(broken, FeatureGate::KIND, "cluster").unwrap();
        assert_eq!((read.spec.feature_set.as_deref(), read.status.feature_gates.len()), (Some("OKD"), 0));
        assert!(with_status::<FeatureGate>(json!([1]), FeatureGate::KIND, "cluster").is_err());
        // An invalid spec keeps the rows and is reported by a condition.
        let broken = json!({"spec": {"featureSet": 3}, "status": {"featureGates": [{"version": "1.4.0"}]}});
        let read: FeatureGate = with_status(broken, FeatureGate::KIND, "cluster").unwrap();
        assert!(read.spec.unreadable.is_some() && read.status.feature_gates.len() == 1);
    }

    #[test]
    fn an_unreadable_object_is_reported_and_a_missing_answer_is_an_error() {
        let source = serde_json::from_str::<String>("3").unwrap_err();
        let unreadable = LookError::Object { kind: ClusterVersion::KIND, name: "version".to_owned(), source };
        let (object, why) = told::<ClusterVersion>(Err(unreadable)).unwrap();
        assert!(object.is_none() && why.unwrap().contains("expected a string"));
        let silent = ApiError::TooLate { attempted: "GET".to_owned(), seconds: 1 };
        assert!(told::<ClusterVersion>(Err(silent.into())).is_err());
    }
}
