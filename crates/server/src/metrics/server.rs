//! Metrics of the member itself: leadership, proposals, requests, versions, health checks.

use std::sync::OnceLock;

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::build::{Buckets, Builder};

pub struct Server {
    pub has_leader: IntGauge,
    pub is_leader: IntGauge,
    pub is_learner: IntGauge,
    pub leader_changes_seen: IntCounter,
    /// By `Reason`.
    pub learner_promote_failures: IntCounterVec,
    pub learner_promote_successes: IntCounter,
    pub heartbeat_send_failures: IntCounter,
    pub snapshot_apply_in_progress: IntGauge,
    pub proposals_committed: IntGauge,
    pub proposals_applied: IntGauge,
    pub proposals_pending: IntGauge,
    pub proposals_failed: IntCounter,
    /// From proposing to the answer.
    pub request_duration: ByOp,
    pub apply_duration: ByOp,
    range_duration: [Histogram; 2],
    pub slow_apply: IntCounter,
    pub slow_read_indexes: IntCounter,
    pub read_indexes_failed: IntCounter,
    pub quota_backend_bytes: IntGauge,
    pub auth_revision: IntGauge,
    version: IntGaugeVec,
    cluster_version: IntGaugeVec,
    id: IntGaugeVec,
    feature_enabled: IntGaugeVec,
    alarms: IntGaugeVec,
}

impl Server {
    pub(super) fn new(b: &mut Builder) -> Server {
        let tenths = Buckets { first: 0.0001, count: 20 };
        let ranges =
            b.histograms("etcd_server_range_duration_seconds", "Time to read a range of keys.", tenths, &["success"]);
        let version = b.gauges("etcd_server_version", "1 for the version that runs.", &["server_version"]);
        version.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Server {
            has_leader: b.gauge("etcd_server_has_leader", "1 if this member knows a leader."),
            is_leader: b.gauge("etcd_server_is_leader", "1 if this member is the leader."),
            is_learner: b.gauge("etcd_server_is_learner", "1 if this member is a learner."),
            leader_changes_seen: b.counter("etcd_server_leader_changes_seen_total", "Changes of the leader."),
            learner_promote_failures: b.counters(
                "etcd_server_learner_promote_failures",
                "Promotions of learners that this leader refused.",
                &["Reason"],
            ),
            learner_promote_successes: b
                .counter("etcd_server_learner_promote_successes", "Promotions of learners by this leader."),
            heartbeat_send_failures: b
                .counter("etcd_server_heartbeat_send_failures_total", "Heartbeats that a leader sent too late."),
            snapshot_apply_in_progress: b
                .gauge("etcd_server_snapshot_apply_in_progress_total", "1 while a received snapshot is applied."),
            proposals_committed: b.gauge("etcd_server_proposals_committed_total", "Highest committed index."),
            proposals_applied: b.gauge("etcd_server_proposals_applied_total", "Highest applied index."),
            proposals_pending: b.gauge("etcd_server_proposals_pending", "Proposals that wait for their commit."),
            proposals_failed: b.counter("etcd_server_proposals_failed_total", "Proposals that failed."),
            request_duration: ByOp::new(
                b.histograms(
                    "etcd_server_request_duration_seconds",
                    "Time from a request to its answer.",
                    Buckets::MILLIS,
                    &["type", "success"],
                ),
                |op, success| vec![op, success],
            ),
            apply_duration: ByOp::new(
                b.histograms(
                    "etcd_server_apply_duration_seconds",
                    "Time to apply an entry.",
                    tenths,
                    &["version", "op", "success"],
                ),
                |op, success| vec!["v3", op, success],
            ),
            range_duration: ["false", "true"].map(|success| ranges.with_label_values(&[success])),
            slow_apply: b.counter("etcd_server_slow_apply_total", "Requests that took long to apply."),
            slow_read_indexes: b.counter("etcd_server_slow_read_indexes_total", "Read indexes that came late."),
            read_indexes_failed: b.counter("etcd_server_read_indexes_failed_total", "Read indexes that failed."),
            quota_backend_bytes: b.gauge("etcd_server_quota_backend_bytes", "Size at which NOSPACE is raised."),
            auth_revision: b.gauge("etcd_debugging_auth_revision", "Revision of the auth store."),
            version,
            cluster_version: b.gauges("etcd_cluster_version", "1 for the cluster's version.", &["cluster_version"]),
            id: b.gauges("etcd_server_id", "1 for this member's id in hexadecimal.", &["server_id"]),
            feature_enabled: b.gauges(
                "etcd_server_feature_enabled",
                "1 if the feature is on, 0 if it is off.",
                &["name", "stage"],
            ),
            alarms: b.gauges(
                "etcd_debugging_server_alarms",
                "1 while the alarm is raised for the member.",
                &["server_id", "alarm_type"],
            ),
        }
    }

    pub fn observe_range(&self, success: bool, seconds: f64) {
        self.range_duration[usize::from(success)].observe(seconds);
    }

    /// `version` as etcd shows it, such as `3.8`.
    pub fn set_cluster_version(&self, version: &str) {
        self.cluster_version.reset();
        self.cluster_version.with_label_values(&[version]).set(1);
    }

    pub fn set_id(&self, member: u64) {
        self.id.reset();
        self.id.with_label_values(&[hex(member).as_str()]).set(1);
    }

    /// `stage` is `ALPHA`, `BETA`, or empty for a finished feature.
    pub fn set_feature(&self, name: &str, stage: &str, enabled: bool) {
        self.feature_enabled.with_label_values(&[name, stage]).set(enabled.into());
    }

    /// `kind` is `NOSPACE` or `CORRUPT`.
    pub fn set_alarm(&self, member: u64, kind: &str, raised: bool) {
        self.alarms.with_label_values(&[hex(member).as_str(), kind]).set(raised.into());
    }

    /// The version gauge, should a build report another version than the crate's.
    pub fn set_version(&self, version: &str) {
        self.version.reset();
        self.version.with_label_values(&[version]).set(1);
    }
}

pub(super) fn hex(id: u64) -> String {
    format!("{id:x}")
}

/// Operations as the labels `op` and `type` name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Op {
    Range,
    RangeStream,
    Put,
    DeleteRange,
    Txn,
    ReadonlyTxn,
    Compaction,
    LeaseGrant,
    LeaseRevoke,
    LeaseCheckpoint,
    Alarm,
    ClusterVersionSet,
    ClusterMemberAttrSet,
    DowngradeInfoSet,
    DowngradeVersionTest,
    Authenticate,
    AuthEnable,
    AuthDisable,
    AuthStatus,
    AuthUserAdd,
    AuthUserDelete,
    AuthUserChangePassword,
    AuthUserGrantRole,
    AuthUserGet,
    AuthUserRevokeRole,
    AuthUserList,
    AuthRoleAdd,
    AuthRoleGrantPermission,
    AuthRoleGet,
    AuthRoleRevokePermission,
    AuthRoleDelete,
    AuthRoleList,
    Increment,
    Unknown,
}

const OPS: usize = Op::Unknown as usize + 1;

impl Op {
    /// The operation that `node::request_name` names.
    pub fn named(name: &str) -> Op {
        match name {
            "Put" => Op::Put,
            "Txn" => Op::Txn,
            "DeleteRange" => Op::DeleteRange,
            "Compaction" => Op::Compaction,
            "LeaseGrant" => Op::LeaseGrant,
            "LeaseRevoke" => Op::LeaseRevoke,
            "LeaseCheckpoint" => Op::LeaseCheckpoint,
            "Alarm" => Op::Alarm,
            "Increment" => Op::Increment,
            "Range" => Op::Range,
            "ClusterVersionSet" => Op::ClusterVersionSet,
            "ClusterMemberAttrSet" => Op::ClusterMemberAttrSet,
            "DowngradeInfoSet" => Op::DowngradeInfoSet,
            "DowngradeVersionTest" => Op::DowngradeVersionTest,
            "Authenticate" => Op::Authenticate,
            "AuthEnable" => Op::AuthEnable,
            "AuthDisable" => Op::AuthDisable,
            "AuthStatus" => Op::AuthStatus,
            "AuthUserAdd" => Op::AuthUserAdd,
            "AuthUserDelete" => Op::AuthUserDelete,
            "AuthUserChangePassword" => Op::AuthUserChangePassword,
            "AuthUserGrantRole" => Op::AuthUserGrantRole,
            "AuthUserGet" => Op::AuthUserGet,
            "AuthUserRevokeRole" => Op::AuthUserRevokeRole,
            "AuthUserList" => Op::AuthUserList,
            "AuthRoleAdd" => Op::AuthRoleAdd,
            "AuthRoleGrantPermission" => Op::AuthRoleGrantPermission,
            "AuthRoleGet" => Op::AuthRoleGet,
            "AuthRoleRevokePermission" => Op::AuthRoleRevokePermission,
            "AuthRoleDelete" => Op::AuthRoleDelete,
            "AuthRoleList" => Op::AuthRoleList,
            _ => Op::Unknown,
        }
    }

    /// The label; the variants carry etcd's names, all but the last.
    fn label(self) -> String {
        match self {
            Op::Unknown => "unknown".to_owned(),
            op => format!("{op:?}"),
        }
    }
}

/// Histograms by operation and success; each appears with its first use, as etcd's do.
pub struct ByOp {
    vec: HistogramVec,
    labels: for<'a> fn(&'a str, &'a str) -> Vec<&'a str>,
    children: [[OnceLock<Histogram>; 2]; OPS],
}

impl ByOp {
    fn new(vec: HistogramVec, labels: for<'a> fn(&'a str, &'a str) -> Vec<&'a str>) -> ByOp {
        ByOp { vec, labels, children: [const { [const { OnceLock::new() }; 2] }; OPS] }
    }

    pub fn observe(&self, op: Op, success: bool, seconds: f64) {
        let child = &self.children[op as usize][usize::from(success)];
        let histogram = child.get_or_init(|| {
            let success = if success { "true" } else { "false" };
            self.vec.with_label_values(&(self.labels)(&op.label(), success))
        });
        histogram.observe(seconds);
    }
}

/// Outcomes of the health endpoints.
pub struct Health {
    pub success: IntCounter,
    pub failures: IntCounter,
    result: IntGaugeVec,
    results: IntCounterVec,
}

impl Health {
    pub(super) fn new(b: &mut Builder) -> Health {
        Health {
            success: b.counter("etcd_server_health_success", "Good answers of /health."),
            failures: b.counter("etcd_server_health_failures", "Bad answers of /health."),
            result: b.gauges("etcd_server_healthcheck", "1 if the check last went well.", &["type", "name"]),
            results: b.counters(
                "etcd_server_healthchecks_total",
                "Health checks by outcome.",
                &["type", "name", "status"],
            ),
        }
    }

    /// `kind` is `livez` or `readyz`.
    pub fn record(&self, kind: &str, name: &str, success: bool) {
        let status = if success { "success" } else { "error" };
        self.result.with_label_values(&[kind, name]).set(success.into());
        self.results.with_label_values(&[kind, name, status]).inc();
    }
}
