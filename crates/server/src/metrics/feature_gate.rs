//! Metrics of the cluster feature gate. etcd has none of these.
//!
//! etcd's own `etcd_server_feature_enabled{name,stage}` stays as dashboards know it, with the server-level features alone:
//! one more label would change what they sum and join over. So that one query shows all features, both levels are in
//! `lockgate_feature_enabled`, told apart by `scope`.

use prometheus::{IntCounter, IntGauge, IntGaugeVec};

use super::build::Builder;

pub struct FeatureGate {
    enabled: IntGaugeVec,
    pub changes: IntCounter,
    pub index: IntGauge,
    pub proposals_due: IntGauge,
}

/// As labels have them; a finished feature's is empty.
const STAGES: [&str; 4] = ["ALPHA", "BETA", "", "DEPRECATED"];

impl FeatureGate {
    pub(super) fn new(b: &mut Builder) -> FeatureGate {
        FeatureGate {
            enabled: b.gauges(
                "lockgate_feature_enabled",
                "1 if the feature is on, 0 if it is off; scope is server or cluster.",
                &["name", "stage", "scope"],
            ),
            changes: b.counter(
                "lockgate_feature_gate_changes_total",
                "Changes of the cluster feature gate that this member has applied since its start.",
            ),
            index: b.gauge("lockgate_feature_gate_index", "The entry that last turned a cluster feature on or off."),
            proposals_due: b.gauge(
                "lockgate_feature_gate_proposals_due",
                "1 while this member's proposal for the cluster features is not stored.",
            ),
        }
    }

    #[cfg(test)]
    pub(super) fn enabled_vec(&self) -> &IntGaugeVec {
        &self.enabled
    }

    pub fn set_enabled(&self, row: &featuregate::MetricRow) {
        // The stage follows the cluster version; a feature has one at a time.
        for stage in STAGES.into_iter().filter(|stage| *stage != row.stage) {
            let _ = self.enabled.remove_label_values(&[row.name, stage, row.scope]);
        }
        self.enabled.with_label_values(&[row.name, row.stage, row.scope]).set(row.value.into());
    }
}
