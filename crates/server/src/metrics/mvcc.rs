//! Metrics of the key space: operations, sizes, compaction, watches, leases.

use prometheus::{Histogram, IntCounter, IntGauge};

use super::build::{Buckets, Builder};

pub struct Mvcc {
    pub put: IntCounter,
    pub delete: IntCounter,
    pub range: IntCounter,
    pub txn: IntCounter,
    pub keys: IntGauge,
    pub current_revision: IntGauge,
    pub compact_revision: IntGauge,
    pub total_put_size: IntGauge,
    pub db_total_size: IntGauge,
    pub db_total_size_in_use: IntGauge,
    pub db_open_read_transactions: IntGauge,
    pub hash: Histogram,
    pub hash_rev: Histogram,
    /// Unix time of the last compaction.
    pub compaction_last: IntGauge,
    pub compaction_keys: IntCounter,
    pub compaction_pause_ms: Histogram,
    pub compaction_total_ms: Histogram,
    pub index_compaction_pause_ms: Histogram,
}

impl Mvcc {
    pub(super) fn new(b: &mut Builder) -> Mvcc {
        let hash = Buckets { first: 0.01, count: 15 };
        Mvcc {
            put: b.counter("etcd_mvcc_put_total", "Puts seen by this member."),
            delete: b.counter("etcd_mvcc_delete_total", "Deletes seen by this member."),
            range: b.counter("etcd_mvcc_range_total", "Ranges seen by this member."),
            txn: b.counter("etcd_mvcc_txn_total", "Transactions seen by this member."),
            keys: b.gauge("etcd_debugging_mvcc_keys_total", "Keys in the store."),
            current_revision: b.gauge("etcd_debugging_mvcc_current_revision", "Revision of the store."),
            compact_revision: b.gauge("etcd_debugging_mvcc_compact_revision", "Last compacted revision."),
            total_put_size: b.gauge("etcd_debugging_mvcc_total_put_size_in_bytes", "Bytes of all puts."),
            db_total_size: b.gauge("etcd_mvcc_db_total_size_in_bytes", "Size of the database file."),
            db_total_size_in_use: b.gauge("etcd_mvcc_db_total_size_in_use_in_bytes", "Bytes of it that hold data."),
            db_open_read_transactions: b
                .gauge("etcd_mvcc_db_open_read_transactions", "Read transactions open on the database."),
            hash: b.histogram("etcd_mvcc_hash_duration_seconds", "Time to hash the database.", hash),
            hash_rev: b.histogram("etcd_mvcc_hash_rev_duration_seconds", "Time to hash up to a revision.", hash),
            compaction_last: b.gauge("etcd_debugging_mvcc_db_compaction_last", "Unix time of the last compaction."),
            compaction_keys: b
                .counter("etcd_debugging_mvcc_db_compaction_keys_total", "Key revisions removed by compaction."),
            compaction_pause_ms: b.histogram(
                "etcd_debugging_mvcc_db_compaction_pause_duration_milliseconds",
                "Time for which a step of a compaction held the database.",
                Buckets { first: 1.0, count: 13 },
            ),
            compaction_total_ms: b.histogram(
                "etcd_debugging_mvcc_db_compaction_total_duration_milliseconds",
                "Time of a whole compaction.",
                Buckets { first: 100.0, count: 14 },
            ),
            index_compaction_pause_ms: b.histogram(
                "etcd_debugging_mvcc_index_compaction_pause_duration_milliseconds",
                "Time for which a compaction held the index.",
                Buckets { first: 0.5, count: 14 },
            ),
        }
    }
}

pub struct Watch {
    pub streams: IntGauge,
    pub watchers: IntGauge,
    pub slow_watchers: IntGauge,
    pub events: IntCounter,
    pub pending_events: IntGauge,
    pub send_loop_watch_stream: Histogram,
    pub send_loop_watch_stream_per_event: Histogram,
    pub send_loop_control_stream: Histogram,
    pub send_loop_progress: Histogram,
}

impl Watch {
    pub(super) fn new(b: &mut Builder) -> Watch {
        let millis = Buckets::MILLIS;
        Watch {
            streams: b.gauge("etcd_debugging_mvcc_watch_stream_total", "Open watch streams."),
            watchers: b.gauge("etcd_debugging_mvcc_watcher_total", "Open watches."),
            slow_watchers: b.gauge("etcd_debugging_mvcc_slow_watcher_total", "Watches that are behind."),
            events: b.counter("etcd_debugging_mvcc_events_total", "Events sent to watches."),
            pending_events: b.gauge("etcd_debugging_mvcc_pending_events_total", "Events waiting to be sent."),
            send_loop_watch_stream: b.histogram(
                "etcd_debugging_server_watch_send_loop_watch_stream_duration_seconds",
                "Time to send a watch response.",
                millis,
            ),
            send_loop_watch_stream_per_event: b.histogram(
                "etcd_debugging_server_watch_send_loop_watch_stream_duration_per_event_seconds",
                "Time to send a watch response, by event.",
                millis,
            ),
            send_loop_control_stream: b.histogram(
                "etcd_debugging_server_watch_send_loop_control_stream_duration_seconds",
                "Time to send the answer to a watch request.",
                millis,
            ),
            send_loop_progress: b.histogram(
                "etcd_debugging_server_watch_send_loop_progress_duration_seconds",
                "Time to send progress notices.",
                millis,
            ),
        }
    }
}

pub struct Lease {
    pub granted: IntCounter,
    pub revoked: IntCounter,
    pub renewed: IntCounter,
    pub expired: IntCounter,
    pub ttl: Histogram,
}

impl Lease {
    pub(super) fn new(b: &mut Builder) -> Lease {
        Lease {
            granted: b.counter("etcd_debugging_lease_granted_total", "Leases granted."),
            revoked: b.counter("etcd_debugging_lease_revoked_total", "Leases revoked."),
            renewed: b.counter("etcd_debugging_lease_renewed_total", "Renewals seen by a leader."),
            expired: b.counter("etcd_debugging_server_lease_expired_total", "Leases that ran out."),
            ttl: b.histogram(
                "etcd_debugging_lease_ttl_total",
                "TTLs of granted leases in seconds.",
                Buckets { first: 1.0, count: 24 },
            ),
        }
    }
}
