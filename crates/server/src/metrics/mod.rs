//! etcd's metrics: names, types, labels and buckets that dashboards and alerts know, behind typed handles.
//!
//! `Metrics` is made once and shared. Handles are plain atomics; what has labels is resolved ahead of the hot path.

mod build;
pub mod disk;
pub mod feature_gate;
pub mod grpc;
mod methods;
pub mod mvcc;
pub mod network;
pub mod server;

use std::sync::Arc;

use parking_lot::RwLock;
use prometheus::{Encoder, IntCounter, IntGauge, Registry, TextEncoder};

use build::Builder;
pub use build::Descriptor;

type Refresh = Box<dyn Fn(&Metrics) + Send + Sync>;

/// Every metric of the server.
pub struct Metrics {
    pub server: server::Server,
    pub health: server::Health,
    pub disk: disk::Disk,
    pub snap: disk::Snap,
    pub mvcc: mvcc::Mvcc,
    pub watch: mvcc::Watch,
    pub lease: mvcc::Lease,
    pub network: network::Network,
    pub grpc: Arc<grpc::Grpc>,
    pub feature_gate: feature_gate::FeatureGate,
    pub scrape: Scrape,
    registry: Registry,
    descriptors: Vec<Descriptor>,
    refresh: RwLock<Vec<Refresh>>,
}

/// What the process uses, with etcd's `os_fd_*`.
fn process(b: &mut Builder) {
    let process = procstat::Process::new(|_| true);
    let kind = |counter| if counter { "counter" } else { "gauge" };
    let descriptor = |(name, counter)| Descriptor { name, kind: kind(counter), labels: Vec::new() };
    let descriptors = process.names().map(descriptor).collect();
    b.collector(process, descriptors);
}

/// Scrapes of `/metrics` itself.
pub struct Scrape {
    pub in_flight: IntGauge,
    pub ok: IntCounter,
    /// Kept at 0: rendering cannot fail half-way, but dashboards of Go programs know these codes.
    pub internal_error: IntCounter,
    pub unavailable: IntCounter,
}

impl Metrics {
    /// `extensive` adds the latency histograms of gRPC methods.
    pub fn new(extensive: bool) -> Metrics {
        let mut builder = Builder::new();
        let b = &mut builder;
        let server = server::Server::new(b);
        let health = server::Health::new(b);
        let disk = disk::Disk::new(b);
        let snap = disk::Snap::new(b);
        let mvcc = mvcc::Mvcc::new(b);
        let watch = mvcc::Watch::new(b);
        let lease = mvcc::Lease::new(b);
        let network = network::Network::new(b);
        let grpc = Arc::new(grpc::Grpc::new(b, extensive));
        let feature_gate = feature_gate::FeatureGate::new(b);
        let scrape = Scrape::new(b);
        process(b);
        let (registry, descriptors) = builder.finish();
        let refresh = RwLock::new(Vec::new());
        Metrics {
            server,
            health,
            disk,
            snap,
            mvcc,
            watch,
            lease,
            network,
            grpc,
            feature_gate,
            scrape,
            registry,
            descriptors,
            refresh,
        }
    }

    /// Runs `refresh` before every render, for gauges that are cheaper to ask for than to keep.
    pub fn before_render(&self, refresh: impl Fn(&Metrics) + Send + Sync + 'static) {
        self.refresh.write().push(Box::new(refresh));
    }

    /// Everything in Prometheus' text format.
    pub fn render(&self) -> String {
        for refresh in self.refresh.read().iter() {
            refresh(self);
        }
        let mut text = Vec::with_capacity(256 * 1024);
        match TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            Ok(()) => String::from_utf8_lossy(&text).into_owned(),
            Err(err) => {
                tracing::error!(error = %err, "failed to write metrics");
                String::new()
            }
        }
    }

    /// What is registered, also what shows only after its first use.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }
}

impl Scrape {
    fn new(b: &mut Builder) -> Scrape {
        let codes = b.counters("promhttp_metric_handler_requests_total", "Scrapes by HTTP status.", &["code"]);
        Scrape {
            in_flight: b.gauge("promhttp_metric_handler_requests_in_flight", "Scrapes being answered now."),
            ok: codes.with_label_values(&["200"]),
            internal_error: codes.with_label_values(&["500"]),
            unavailable: codes.with_label_values(&["503"]),
        }
    }
}

#[cfg(test)]
mod tests;
