//! What the transport tells, as metrics.

use std::{sync::Arc, time::Duration};

use membership::MemberId;
use prometheus::IntCounterVec;

use crate::metrics::Metrics;

pub(crate) struct PeerObserver(pub Arc<Metrics>);

fn count(counters: &IntCounterVec, id: MemberId, by: u64) {
    counters.with_label_values(&[id.to_string()]).inc_by(by);
}

impl peer::Observer for PeerObserver {
    fn sent_bytes(&self, to: MemberId, bytes: u64) {
        count(&self.0.network.peer_sent_bytes, to, bytes);
    }

    fn received_bytes(&self, from: MemberId, bytes: u64) {
        count(&self.0.network.peer_received_bytes, from, bytes);
    }

    fn send_failed(&self, to: MemberId) {
        count(&self.0.network.peer_sent_failures, to, 1);
    }

    fn receive_failed(&self, from: &str) {
        self.0.network.peer_received_failures.with_label_values(&[from]).inc();
    }

    fn round_trip(&self, to: MemberId, time: Duration) {
        self.0.network.peer_round_trip_time.with_label_values(&[to.to_string()]).observe(time.as_secs_f64());
    }

    fn activated(&self, local: MemberId, remote: MemberId) {
        self.0.network.set_active(local.0, remote.0, true);
    }

    fn deactivated(&self, local: MemberId, remote: MemberId) {
        self.0.network.set_active(local.0, remote.0, false);
    }

    fn snapshot_send_started(&self, to: MemberId) {
        self.0.network.snapshot_send_inflights.with_label_values(&[to.to_string()]).inc();
    }

    fn snapshot_send_ended(&self, to: MemberId, took: Option<Duration>) {
        let (network, to) = (&self.0.network, [to.to_string()]);
        network.snapshot_send_inflights.with_label_values(&to).dec();
        match took {
            Some(took) => {
                network.snapshot_send_success.with_label_values(&to).inc();
                network.snapshot_send_duration.with_label_values(&to).observe(took.as_secs_f64());
            }
            None => network.snapshot_send_failures.with_label_values(&to).inc(),
        }
    }

    fn snapshot_receive_started(&self, from: MemberId) {
        self.0.network.snapshot_receive_inflights.with_label_values(&[from.to_string()]).inc();
    }

    fn snapshot_receive_ended(&self, from: MemberId, took: Option<Duration>) {
        let (network, from) = (&self.0.network, [from.to_string()]);
        network.snapshot_receive_inflights.with_label_values(&from).dec();
        match took {
            Some(took) => {
                network.snapshot_receive_success.with_label_values(&from).inc();
                network.snapshot_receive_duration.with_label_values(&from).observe(took.as_secs_f64());
            }
            None => network.snapshot_receive_failures.with_label_values(&from).inc(),
        }
    }

    fn snapshot_refused(&self) {
        self.0.network.snapshot_receive_failures.with_label_values(&["UNKNOWN_SNAPSHOT_SENDER"]).inc();
    }
}
