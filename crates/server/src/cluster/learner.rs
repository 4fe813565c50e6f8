//! A learner that differs from the cluster's features, after it was let in.

use super::Part;

impl Part {
    /// Logs where this member, while it is a learner, would have other features than the cluster has: once for each
    /// set of differences. It goes on all the same, and cannot be promoted.
    pub(crate) async fn watch_learner_features(self) {
        let mut changed = self.node.gates().subscribe();
        let mut told = Vec::new();
        loop {
            let cluster = self.node.cluster();
            let differences = if cluster.is_local_learner() {
                membership::gate::learner_differences(&cluster, &self.node.own_features())
            } else {
                Vec::new()
            };
            if !differences.is_empty() && differences != told {
                let features = describe(&differences);
                tracing::warn!(%features, "this learner's cluster features differ, so it cannot be promoted");
            }
            told = differences;
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Each feature with both values, and the flag that would make them one.
pub(crate) fn describe(differences: &[(String, bool, bool)]) -> String {
    let each = differences.iter().map(|(name, cluster, own)| format!("{name} is {cluster} there and {own} here"));
    let flags = differences.iter().map(|(name, cluster, _)| format!("{name}={cluster}"));
    let (each, flags): (Vec<_>, Vec<_>) = (each.collect(), flags.collect());
    format!("{}; start with --cluster-feature-gates={}", each.join(", "), flags.join(","))
}
