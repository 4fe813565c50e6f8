//! Metrics of the disk: log, database, snapshot files.

use prometheus::{Histogram, IntGauge};

use super::build::{Buckets, Builder};

pub struct Disk {
    pub wal_fsync: Histogram,
    pub wal_write: Histogram,
    pub wal_write_bytes: IntGauge,
    pub backend_commit: Histogram,
    pub backend_commit_rebalance: Histogram,
    pub backend_commit_spill: Histogram,
    pub backend_commit_write: Histogram,
    pub backend_defrag: Histogram,
    /// Sending the database to a client or member.
    pub backend_snapshot: Histogram,
    pub defrag_inflight: IntGauge,
}

impl Disk {
    pub(super) fn new(b: &mut Builder) -> Disk {
        let millis = Buckets::MILLIS;
        Disk {
            wal_fsync: b.histogram("etcd_disk_wal_fsync_duration_seconds", "Time to sync the log.", millis),
            wal_write: b.histogram("etcd_disk_wal_write_duration_seconds", "Time to write to the log.", millis),
            wal_write_bytes: b.gauge("etcd_disk_wal_write_bytes_total", "Bytes written to the log."),
            backend_commit: b.histogram(
                "etcd_disk_backend_commit_duration_seconds",
                "Time to commit the database.",
                millis,
            ),
            backend_commit_rebalance: b.histogram(
                "etcd_debugging_disk_backend_commit_rebalance_duration_seconds",
                "Share of a commit spent on joining pages.",
                millis,
            ),
            backend_commit_spill: b.histogram(
                "etcd_debugging_disk_backend_commit_spill_duration_seconds",
                "Share of a commit spent on laying out pages.",
                millis,
            ),
            backend_commit_write: b.histogram(
                "etcd_debugging_disk_backend_commit_write_duration_seconds",
                "Share of a commit spent on writing pages.",
                millis,
            ),
            backend_defrag: b.histogram(
                "etcd_disk_backend_defrag_duration_seconds",
                "Time to defragment the database.",
                Buckets { first: 0.1, count: 13 },
            ),
            backend_snapshot: b.histogram(
                "etcd_disk_backend_snapshot_duration_seconds",
                "Time to send the database as a snapshot.",
                Buckets { first: 0.01, count: 17 },
            ),
            defrag_inflight: b.gauge("etcd_disk_defrag_inflight", "1 while the database is defragmented."),
        }
    }
}

pub struct Snap {
    pub fsync: Histogram,
    pub db_fsync: Histogram,
    pub db_save_total: Histogram,
    pub save_total: Histogram,
    pub save_marshalling: Histogram,
}

impl Snap {
    pub(super) fn new(b: &mut Builder) -> Snap {
        let millis = Buckets::MILLIS;
        Snap {
            fsync: b.histogram("etcd_snap_fsync_duration_seconds", "Time to sync a snapshot file.", millis),
            db_fsync: b.histogram("etcd_snap_db_fsync_duration_seconds", "Time to sync a received database.", millis),
            db_save_total: b.histogram(
                "etcd_snap_db_save_total_duration_seconds",
                "Time to save a received database.",
                Buckets { first: 0.1, count: 10 },
            ),
            save_total: b.histogram(
                "etcd_debugging_snap_save_total_duration_seconds",
                "Time to save a snapshot file.",
                millis,
            ),
            save_marshalling: b.histogram(
                "etcd_debugging_snap_save_marshalling_duration_seconds",
                "Share of that spent on encoding.",
                millis,
            ),
        }
    }
}
