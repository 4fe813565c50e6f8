//! What the controller tells about itself: counts of its steps, and the gates as they were when it last looked.
//!
//! Names are those that dashboards know, where there are such: `cluster_feature_set` and `cluster_operator_conditions` of
//! OpenShift, `leader_election_master_status` of Kubernetes.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use featureset::{
    Registry as Gates, Set,
    object::{ClusterOperator, Condition, FeatureGate},
};
use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
    core::Collector,
};
use tokio::sync::watch;

use crate::leader::NAME;

/// Of each version, or why it cannot be read.
type Registries = BTreeMap<String, Result<Gates, String>>;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All was as it should be.
    Nothing,
    Wrote,
    Failed,
}

/// Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    steps: IntCounterVec,
    seconds: Histogram,
    leads: IntGauge,
    set: IntGaugeVec,
    rows: IntGauge,
    enabled: IntGaugeVec,
    conditions: IntGaugeVec,
    operator: IntGaugeVec,
    /// Why the controller is not ready; `None` if it is.
    unready: Arc<watch::Sender<Option<String>>>,
}

impl Metrics {
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let gauges =
            |name: &str, help: &str, labels: &[&str]| keep(&registry, IntGaugeVec::new(Opts::new(name, help), labels)?);
        let steps = Opts::new("lockgate_gates_sync_total", "Steps of the controller: nothing to do, wrote, or failed.");
        let buckets = vec![0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
        let seconds = HistogramOpts::new("lockgate_gates_sync_duration_seconds", "Time that a step took.");
        let leads = gauges("leader_election_master_status", "1 while this process holds the lease.", &["name"])?;
        Ok(Metrics {
            steps: keep(&registry, IntCounterVec::new(steps, &["result"])?)?,
            seconds: keep(&registry, Histogram::with_opts(seconds.buckets(buckets))?)?,
            leads: leads.with_label_values(&[NAME]),
            set: gauges(
                "cluster_feature_set",
                "The set that rows are made from: 1 if it allows upgrades, else 0.",
                &["name"],
            )?,
            rows: keep(&registry, IntGauge::new("lockgate_gates_rows", "Versions that have a row.")?)?,
            enabled: gauges(
                "feature_enabled",
                "1 if the gate is on in the row of the version, 0 if it is off.",
                &["name", "stage", "version"],
            )?,
            conditions: gauges(
                "lockgate_gates_condition",
                "1 if the condition of FeatureGate cluster holds, else 0.",
                &["condition", "reason"],
            )?,
            operator: gauges(
                "cluster_operator_conditions",
                "1 if the condition of the ClusterOperator holds, else 0.",
                &["name", "condition", "reason"],
            )?,
            unready: Arc::new(watch::channel(Some("the API was not asked yet".to_owned())).0),
            registry,
        })
    }

    pub fn text(&self) -> String {
        let mut out = Vec::new();
        // Encoding into memory fails only for a family without metrics, which then is left out.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Why the controller is not ready.
    pub fn unready(&self) -> Option<String> {
        self.unready.borrow().clone()
    }

    pub(crate) fn step(&self, ended: Ended, took: Duration) {
        let result = match ended {
            Ended::Nothing => "nothing",
            Ended::Wrote => "wrote",
            Ended::Failed => "failed",
        };
        self.steps.with_label_values(&[result]).inc();
        self.seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn ready(&self) {
        self.unready.send_replace(None);
    }

    pub(crate) fn not_ready(&self, why: &str) {
        self.unready.send_replace(Some(why.to_owned()));
    }

    /// Whoever does not lead does not look, and has nothing to tell of what it does not see.
    pub(crate) fn leads(&self, leads: bool) {
        self.leads.set(leads.into());
        if !leads {
            self.forget();
        }
    }

    /// What was seen in the last look.
    pub(crate) fn show(
        &self,
        object: Option<&FeatureGate>,
        operator: Option<&ClusterOperator>,
        registries: &Registries,
    ) {
        // The lease may have been lost since the look began.
        if self.leads.get() == 0 {
            return;
        }
        self.forget();
        if let Some(object) = object {
            self.show_rows(object, registries);
            for condition in &object.status.conditions {
                self.conditions.with_label_values(&[&condition.kind, &condition.reason]).set(holds(condition));
            }
        }
        if let Some(operator) = operator {
            for condition in &operator.status.conditions {
                let labels = [operator.metadata.name.as_str(), &condition.kind, &condition.reason];
                self.operator.with_label_values(&labels).set(holds(condition));
            }
        }
    }

    fn forget(&self) {
        self.rows.set(0);
        for gauges in [&self.set, &self.enabled, &self.conditions, &self.operator] {
            gauges.reset();
        }
    }

    fn show_rows(&self, object: &FeatureGate, registries: &Registries) {
        let name = &object.set_in_force();
        let upgrades = name.parse::<Set>().is_ok_and(Set::allows_upgrades);
        self.set.with_label_values(&[name]).set(upgrades.into());
        self.rows.set(object.status.feature_gates.len() as i64);
        for row in object.status.feature_gates.iter().map(|row| row.to_row()) {
            let known = registries.get(&row.version).and_then(|registry| registry.as_ref().ok());
            for gate in row.enabled.iter().chain(&row.disabled) {
                let info = known.and_then(|registry| registry.gates.get(gate));
                let stage = info.map_or("", |info| info.stage.as_str());
                let labels = [gate.as_str(), stage, &row.version];
                self.enabled.with_label_values(&labels).set(row.enabled.contains(gate).into());
            }
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

fn holds(condition: &Condition) -> i64 {
    condition.is_true().into()
}

fn keep<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(set: &str) -> FeatureGate {
        let row = json!({"version": "1.4.0", "enabled": [{"name": "A"}], "disabled": [{"name": "B"}]});
        let condition = json!({"type": "RowsStale", "status": "True", "reason": "RegistryMissing"});
        let status = json!({"featureGates": [row], "conditions": [condition]});
        serde_json::from_value(json!({"spec": {"featureSet": set}, "status": status})).unwrap()
    }

    fn lines(metrics: &Metrics, name: &str) -> Vec<String> {
        let of_it = |line: &&str| line.starts_with(name);
        metrics.text().lines().filter(of_it).map(str::to_owned).collect()
    }

    #[test]
    fn the_last_look_gives_rows_set_and_conditions() {
        let metrics = Metrics::new().unwrap();
        metrics.leads(true);
        metrics.show(Some(&object("")), None, &BTreeMap::new());
        assert_eq!(lines(&metrics, "cluster_feature_set"), [r#"cluster_feature_set{name=""} 1"#]);
        metrics.show(Some(&object("TechPreviewNoUpgrade")), None, &BTreeMap::new());
        assert_eq!(
            lines(&metrics, "cluster_feature_set"),
            [r#"cluster_feature_set{name="TechPreviewNoUpgrade"} 0"#],
            "the previous set is removed"
        );
        assert_eq!(
            lines(&metrics, "feature_enabled"),
            [
                r#"feature_enabled{name="A",stage="",version="1.4.0"} 1"#,
                r#"feature_enabled{name="B",stage="",version="1.4.0"} 0"#
            ]
        );
        assert_eq!(
            lines(&metrics, "lockgate_gates_condition"),
            [r#"lockgate_gates_condition{condition="RowsStale",reason="RegistryMissing"} 1"#]
        );
        assert_eq!(
            lines(&metrics, "leader_election"),
            [r#"leader_election_master_status{name="lockgate-gates-controller"} 1"#]
        );
    }

    #[test]
    fn a_follower_reports_no_gates() {
        let metrics = Metrics::new().unwrap();
        metrics.leads(true);
        metrics.show(Some(&object("")), None, &BTreeMap::new());
        metrics.leads(false);
        assert_eq!(lines(&metrics, "feature_enabled"), [""; 0]);
        metrics.show(Some(&object("")), None, &BTreeMap::new());
        assert_eq!(lines(&metrics, "feature_enabled"), [""; 0], "a late look is ignored");
        assert_eq!(
            lines(&metrics, "leader_election"),
            [r#"leader_election_master_status{name="lockgate-gates-controller"} 0"#]
        );
    }
}
