//! Counts of gRPC calls, and the tower layer that counts them from the outside, refuses what etcd's interceptors refuse
//! and logs slow calls.
//!
//! The layer never decodes a message: it follows the five-byte frame headers in both bodies, so a call costs a few
//! atomic additions.

mod body;
mod call;
mod deadline;
mod frame;
mod guard;
mod gzip;
mod layer;
mod unpack;
mod words;

use std::collections::HashMap;

use parking_lot::RwLock;
use prometheus::{Histogram, IntCounter, IntCounterVec};
use tonic::{Code, Status};

pub use self::{
    body::Counted,
    guard::{Guard, LeaderLost, needs_leader},
    layer::{GrpcLayer, GrpcService},
};
use super::build::Builder;
use super::methods::{CODES, METHODS};

/// Distinct values of `client-api-version` that get a label of their own; a client could send any.
const CLIENT_VERSIONS_MAX: usize = 32;

const HANDLING_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

pub struct Grpc {
    methods: Vec<Method>,
    by_path: HashMap<String, usize>,
    pub sent_bytes: IntCounter,
    pub received_bytes: IntCounter,
    /// By `Type` (send, receive) and `API` (watch, lease-keepalive).
    stream_failures: IntCounterVec,
    client_requests: IntCounterVec,
    /// Unary and stream counters by version.
    client_versions: RwLock<HashMap<String, [IntCounter; 2]>>,
}

/// Unary methods that return when another client lets go.
const WAIT_FOR_OTHERS: [(&str, &str); 2] = [("v3electionpb.Election", "Campaign"), ("v3lockpb.Lock", "Lock")];

struct Method {
    is_stream: bool,
    started: IntCounter,
    handled: [IntCounter; CODES.len()],
    received: IntCounter,
    sent: IntCounter,
    /// Only with `--metrics=extensive`.
    seconds: Option<Histogram>,
}

impl Method {
    fn in_flight(&self) -> u64 {
        // Read first, so that a call that ends meanwhile counts.
        let ended = self.handled.iter().map(IntCounter::get).sum();
        self.started.get().saturating_sub(ended)
    }
}

impl Grpc {
    pub(super) fn new(b: &mut Builder, extensive: bool) -> Grpc {
        let labels = &["grpc_type", "grpc_service", "grpc_method"];
        let started = b.counters("grpc_server_started_total", "Calls begun.", labels);
        let received = b.counters("grpc_server_msg_received_total", "Messages received.", labels);
        let sent = b.counters("grpc_server_msg_sent_total", "Messages sent.", labels);
        let handled = b.counters(
            "grpc_server_handled_total",
            "Calls ended, by code.",
            &["grpc_type", "grpc_service", "grpc_method", "grpc_code"],
        );
        let seconds = extensive.then(|| {
            b.histograms_at("grpc_server_handling_seconds", "Time of a whole call.", &HANDLING_BUCKETS, labels)
        });
        let method = |(service, method, kind): &(&str, &str, &str)| Method {
            is_stream: *kind != "unary",
            started: started.with_label_values(&[kind, service, method]),
            handled: CODES.map(|code| handled.with_label_values(&[kind, service, method, code])),
            received: received.with_label_values(&[kind, service, method]),
            sent: sent.with_label_values(&[kind, service, method]),
            seconds: seconds.as_ref().map(|vec| vec.with_label_values(&[kind, service, method])),
        };
        let path = |(i, (service, method, _)): (usize, &(&str, &str, &str))| (format!("/{service}/{method}"), i);
        Grpc {
            methods: METHODS.iter().map(method).collect(),
            by_path: METHODS.iter().enumerate().map(path).collect(),
            sent_bytes: b.counter("etcd_network_client_grpc_sent_bytes_total", "Bytes sent to gRPC clients."),
            received_bytes: b
                .counter("etcd_network_client_grpc_received_bytes_total", "Bytes received from gRPC clients."),
            stream_failures: b.counters(
                "etcd_network_server_stream_failures_total",
                "Broken streams with clients.",
                &["Type", "API"],
            ),
            client_requests: b.counters(
                "etcd_server_client_requests_total",
                "Requests by the API version that the client names.",
                &["type", "client_api_version"],
            ),
            client_versions: RwLock::new(HashMap::new()),
        }
    }

    /// A client's stream ended with an error. That a client left, or waited long enough, is none.
    pub fn receive_failed(&self, api: &str, status: &Status) {
        if !matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded) {
            tracing::warn!(api, error = %status, "failed to receive a request from a gRPC stream");
            self.stream_failures.with_label_values(&["receive", api]).inc();
        }
    }

    /// The unary calls that have begun and not ended. Calls that wait for other clients do not count: they may wait without
    /// end.
    pub fn in_flight(&self) -> u64 {
        let methods = METHODS.iter().zip(&self.methods);
        let counted = methods.filter(|(names, _)| names.2 == "unary" && !WAIT_FOR_OTHERS.contains(&(names.0, names.1)));
        counted.map(|(_, method)| method.in_flight()).sum()
    }

    fn count_client(&self, version: &str, is_stream: bool) {
        if let Some(counters) = self.client_versions.read().get(version) {
            return counters[usize::from(is_stream)].inc();
        }
        let mut versions = self.client_versions.write();
        let version = if versions.len() < CLIENT_VERSIONS_MAX { version } else { "other" };
        let make = || ["unary", "stream"].map(|kind| self.client_requests.with_label_values(&[kind, version]));
        versions.entry(version.to_owned()).or_insert_with(make)[usize::from(is_stream)].inc();
    }
}
