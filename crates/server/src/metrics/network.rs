//! Metrics of connections to other members. Ids in labels are hexadecimal.

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec};

use super::build::{Buckets, Builder};
use super::server::hex;

pub struct Network {
    active_peers: IntGaugeVec,
    disconnected_peers: IntCounterVec,
    known_peers: IntGaugeVec,
    /// By `To`.
    pub peer_sent_bytes: IntCounterVec,
    /// By `From`.
    pub peer_received_bytes: IntCounterVec,
    pub peer_sent_failures: IntCounterVec,
    pub peer_received_failures: IntCounterVec,
    pub peer_round_trip_time: HistogramVec,
    pub snapshot_send_success: IntCounterVec,
    pub snapshot_send_failures: IntCounterVec,
    pub snapshot_send_inflights: IntGaugeVec,
    pub snapshot_send_duration: HistogramVec,
    pub snapshot_receive_success: IntCounterVec,
    pub snapshot_receive_failures: IntCounterVec,
    pub snapshot_receive_inflights: IntGaugeVec,
    pub snapshot_receive_duration: HistogramVec,
}

impl Network {
    pub(super) fn new(b: &mut Builder) -> Network {
        let slow = Buckets { first: 0.1, count: 10 };
        let (pair, to, from) = (&["Local", "Remote"], &["To"], &["From"]);
        Network {
            active_peers: b.gauges("etcd_network_active_peers", "1 while a connection to the member works.", pair),
            disconnected_peers: b.counters("etcd_network_disconnected_peers_total", "Connections lost.", pair),
            known_peers: b.gauges("etcd_network_known_peers", "1 for every member of the cluster.", pair),
            peer_sent_bytes: b.counters("etcd_network_peer_sent_bytes_total", "Bytes sent to a member.", to),
            peer_received_bytes: b.counters(
                "etcd_network_peer_received_bytes_total",
                "Bytes received from a member.",
                from,
            ),
            peer_sent_failures: b.counters("etcd_network_peer_sent_failures_total", "Messages not sent.", to),
            peer_received_failures: b.counters(
                "etcd_network_peer_received_failures_total",
                "Messages not received.",
                from,
            ),
            peer_round_trip_time: b.histograms(
                "etcd_network_peer_round_trip_time_seconds",
                "Round trip time to a member.",
                Buckets { first: 0.0001, count: 16 },
                to,
            ),
            snapshot_send_success: b.counters("etcd_network_snapshot_send_success", "Snapshots sent.", to),
            snapshot_send_failures: b.counters("etcd_network_snapshot_send_failures", "Snapshots not sent.", to),
            snapshot_send_inflights: b.gauges(
                "etcd_network_snapshot_send_inflights_total",
                "Snapshots being sent.",
                to,
            ),
            snapshot_send_duration: b.histograms(
                "etcd_network_snapshot_send_total_duration_seconds",
                "Time to send a snapshot.",
                slow,
                to,
            ),
            snapshot_receive_success: b.counters("etcd_network_snapshot_receive_success", "Snapshots received.", from),
            snapshot_receive_failures: b.counters(
                "etcd_network_snapshot_receive_failures",
                "Snapshots not received.",
                from,
            ),
            snapshot_receive_inflights: b.gauges(
                "etcd_network_snapshot_receive_inflights_total",
                "Snapshots being received.",
                from,
            ),
            snapshot_receive_duration: b.histograms(
                "etcd_network_snapshot_receive_total_duration_seconds",
                "Time to receive a snapshot.",
                slow,
                from,
            ),
        }
    }

    /// Every member, this one included, is a known peer.
    pub fn set_known_peers(&self, local: u64, members: impl Iterator<Item = u64>) {
        self.known_peers.reset();
        for member in members {
            self.known_peers.with_label_values(&[hex(local).as_str(), hex(member).as_str()]).set(1);
        }
    }

    pub fn set_active(&self, local: u64, remote: u64, active: bool) {
        let labels = [hex(local), hex(remote)];
        self.active_peers.with_label_values(&labels).set(active.into());
        if !active {
            self.disconnected_peers.with_label_values(&labels).inc();
        }
    }
}
