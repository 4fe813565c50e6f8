//! Who watches the traffic: the owner of the metrics.

use std::time::Duration;

use membership::MemberId;

/// Told of everything that etcd has a metric for; the names are in the comments. All methods do nothing by default.
pub trait Observer: Send + Sync + 'static {
    /// `etcd_network_peer_sent_bytes_total{To}`
    fn sent_bytes(&self, _to: MemberId, _bytes: u64) {}
    /// `etcd_network_peer_received_bytes_total{From}`
    fn received_bytes(&self, _from: MemberId, _bytes: u64) {}
    /// `etcd_network_peer_sent_failures_total{To}`
    fn send_failed(&self, _to: MemberId) {}
    /// `etcd_network_peer_received_failures_total{From}`; the sender may be an address.
    fn receive_failed(&self, _from: &str) {}
    /// `etcd_network_peer_round_trip_time_seconds{To}`
    fn round_trip(&self, _to: MemberId, _time: Duration) {}
    /// `etcd_network_active_peers{Local,Remote}` goes up by one.
    fn activated(&self, _local: MemberId, _remote: MemberId) {}
    /// `etcd_network_active_peers` goes down by one, `etcd_network_disconnected_peers_total{Local,Remote}` up.
    fn deactivated(&self, _local: MemberId, _remote: MemberId) {}
    /// `etcd_network_snapshot_send_inflights_total{To}` goes up by one.
    fn snapshot_send_started(&self, _to: MemberId) {}
    /// Inflights go down by one; `etcd_network_snapshot_send_success` and `_total_duration_seconds`, or, if `took` is
    /// `None`, `etcd_network_snapshot_send_failures`.
    fn snapshot_send_ended(&self, _to: MemberId, _took: Option<Duration>) {}
    /// `etcd_network_snapshot_receive_inflights_total{From}` goes up by one.
    fn snapshot_receive_started(&self, _from: MemberId) {}
    /// Inflights go down by one; `etcd_network_snapshot_receive_success` and `_total_duration_seconds`, or, if `took`
    /// is `None`, `etcd_network_snapshot_receive_failures`.
    fn snapshot_receive_ended(&self, _from: MemberId, _took: Option<Duration>) {}
    /// `etcd_network_snapshot_receive_failures{From="UNKNOWN_SNAPSHOT_SENDER"}`: refused before it was known whose it
    /// is.
    fn snapshot_refused(&self) {}
}

/// Nobody.
pub struct NoObserver;

impl Observer for NoObserver {}
