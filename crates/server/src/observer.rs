//! What node and storage tell, as metrics.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use membership::{gate::GATE_SINCE, registry_version};
use node::Node;
use proto::etcdserverpb::AlarmType;
use storage::CommitTimes;

use crate::{
    VERSION,
    features::Features,
    metrics::{Metrics, server::Op},
};

/// Counts for whoever scrapes.
pub(crate) struct MetricsObserver(pub Arc<Metrics>);

impl node::Observer for MetricsObserver {
    fn log_saved(&self, saved: &wal::Saved) {
        let disk = &self.0.disk;
        disk.wal_write.observe(saved.write.as_secs_f64());
        disk.wal_write_bytes.add(saved.bytes as i64);
        if let Some(took) = saved.sync {
            disk.wal_fsync.observe(took.as_secs_f64());
        }
    }

    fn proposal_failed(&self) {
        self.0.server.proposals_failed.inc();
    }

    fn leader_changed(&self, leader: u64) {
        if leader != 0 {
            self.0.server.leader_changes_seen.inc();
        }
    }

    fn lease_granted(&self, ttl: i64) {
        self.0.lease.granted.inc();
        self.0.lease.ttl.observe(ttl as f64);
    }

    fn lease_revoked(&self) {
        self.0.lease.revoked.inc();
    }

    fn lease_expired(&self) {
        self.0.lease.expired.inc();
    }

    fn lease_renewed(&self) {
        self.0.lease.renewed.inc();
    }

    fn compaction_step(&self, took: Duration) {
        self.0.mvcc.compaction_pause_ms.observe(took.as_secs_f64() * 1000.0);
    }

    fn compaction_finished(&self, took: Duration) {
        self.0.mvcc.compaction_total_ms.observe(took.as_secs_f64() * 1000.0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.mvcc.compaction_last.set(now.as_secs() as i64);
    }

    fn index_compaction_step(&self, took: Duration) {
        self.0.mvcc.index_compaction_pause_ms.observe(took.as_secs_f64() * 1000.0);
    }

    fn slow_apply(&self) {
        self.0.server.slow_apply.inc();
    }

    fn gate_changed(&self) {
        self.0.feature_gate.changes.inc();
    }

    fn applied(&self, request: &'static str, success: bool, took: Duration) {
        self.0.server.apply_duration.observe(Op::named(request), success, took.as_secs_f64());
    }
}

impl storage::Observer for MetricsObserver {
    fn committed(&self, times: &CommitTimes) {
        let disk = &self.0.disk;
        disk.backend_commit.observe(times.total.as_secs_f64());
        disk.backend_commit_spill.observe(times.spill.as_secs_f64());
        disk.backend_commit_write.observe(times.write.as_secs_f64());
    }

    fn defrag_started(&self) {
        self.0.disk.defrag_inflight.set(1);
    }

    fn defrag_ended(&self, took: Duration) {
        self.0.disk.defrag_inflight.set(0);
        self.0.disk.backend_defrag.observe(took.as_secs_f64());
    }

    fn snapshot_ended(&self, took: Duration) {
        self.0.disk.backend_snapshot.observe(took.as_secs_f64());
    }
}

/// Sets what stays, and has the rest asked for at every scrape.
pub(crate) fn attach(metrics: &Metrics, node: &Arc<Node>, features: &Features) {
    metrics.server.set_version(VERSION);
    metrics.server.set_id(node.member_id().0);
    for row in features.metric_rows() {
        metrics.server.set_feature(row.name, row.stage, row.value != 0);
        metrics.feature_gate.set_enabled(&row);
    }
    let quota = node.quota().bytes_max().map_or(-1, |max| max as i64);
    metrics.server.quota_backend_bytes.set(quota);
    // Weak: the metrics must not keep a stopped member's file open.
    let (node, features) = (Arc::downgrade(node), features.clone());
    metrics.before_render(move |metrics| {
        if let Some(node) = node.upgrade() {
            refresh(metrics, &node);
            refresh_gate(metrics, &node, &features);
        }
    });
}

/// Before there is a gate, the features of its first version are shown, all off.
fn refresh_gate(metrics: &Metrics, node: &Node, features: &Features) {
    let gate = &metrics.feature_gate;
    gate.index.set(node.gate_index() as i64);
    gate.proposals_due.set(node.is_proposal_due().into());
    let version = node.cluster_version().map_or(GATE_SINCE, |version| version.max(GATE_SINCE));
    let enabled = node.gates().enabled();
    let decided = features.registry().decided(registry_version(version), |name| enabled.has_named(name));
    decided.metric_rows().for_each(|row| gate.set_enabled(&row));
}

fn refresh(metrics: &Metrics, node: &Node) {
    let at = node.status();
    let server = &metrics.server;
    server.has_leader.set((at.leader != 0).into());
    server.is_leader.set(at.is_leader.into());
    server.proposals_committed.set(at.commit_index as i64);
    server.proposals_applied.set(at.applied_index as i64);
    server.proposals_pending.set(node.pending_proposals() as i64);
    if let Some(version) = node.cluster_version() {
        server.set_cluster_version(&version.to_string());
    }
    let alarms = node.alarms();
    for kind in [AlarmType::Nospace, AlarmType::Corrupt] {
        let raised = alarms.iter().any(|a| a.alarm() == kind);
        server.set_alarm(node.member_id().0, kind.as_str_name(), raised);
    }
    server.auth_revision.set(node.users().revision() as i64);
    refresh_store(metrics, node);
}

fn refresh_store(metrics: &Metrics, node: &Node) {
    let stats = node.store().stats();
    let (mvcc, watch) = (&metrics.mvcc, &metrics.watch);
    mvcc.keys.set(stats.keys as i64);
    mvcc.current_revision.set(stats.revision);
    mvcc.compact_revision.set(stats.compact_revision);
    mvcc.total_put_size.set(stats.put_bytes as i64);
    mvcc.db_total_size.set(node.backend().size() as i64);
    mvcc.db_total_size_in_use.set(node.backend().size_in_use() as i64);
    mvcc.db_open_read_transactions.set(node.backend().open_read_tx() as i64);
    for (counter, now) in [
        (&mvcc.put, stats.puts),
        (&mvcc.delete, stats.deletes),
        (&mvcc.range, stats.ranges),
        (&mvcc.txn, stats.txns),
        (&mvcc.compaction_keys, stats.compacted_revisions),
        (&watch.events, stats.events),
    ] {
        counter.inc_by(now.saturating_sub(counter.get()));
    }
    watch.streams.set(stats.watch_streams as i64);
    watch.watchers.set(stats.watchers as i64);
    watch.slow_watchers.set(stats.slow_watchers as i64);
    watch.pending_events.set(stats.pending_events as i64);
}
