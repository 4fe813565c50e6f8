//! Counts of what the server does, under the names dashboards know.

use std::time::Instant;

use prometheus::{
    Counter, Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

/// What requests are told apart by, as in Kubernetes.
const REQUEST_LABELS: [&str; 8] =
    ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];
const SECONDS: [f64; 24] = [
    0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0,
    30.0, 45.0, 60.0,
];

#[derive(Clone)]
pub(crate) struct Metrics {
    registry: Registry,
    pub requests: IntCounterVec,
    pub seconds: HistogramVec,
    /// Requests under way that end by themselves, by whether they change something.
    pub inflight: IntGaugeVec,
    pub watches: IntGaugeVec,
    /// How many objects are stored of each resource, under its two names.
    pub objects: IntGaugeVec,
    pub stored: IntGaugeVec,
    pub terminated: IntCounterVec,
    pub gates: IntGaugeVec,
    pub suppressed: IntCounterVec,
    pub gating: Stopwatch,
}

/// One more under way, until it is dropped.
pub(crate) struct Inflight(IntGauge);

impl Inflight {
    pub(crate) fn new(gauge: IntGauge) -> Inflight {
        gauge.inc();
        Inflight(gauge)
    }
}

impl Drop for Inflight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts the time that a kind of work takes.
#[derive(Clone)]
pub(crate) struct Stopwatch(Counter);

impl Stopwatch {
    // Never inlined, so that a profile has under one name all that is counted here.
    #[inline(never)]
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.0.inc_by(began.elapsed().as_secs_f64());
        done
    }
}

impl Metrics {
    pub(crate) fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let of_request = |more: &[&'static str]| [&REQUEST_LABELS[..], more].concat();
        let requests = IntCounterVec::new(
            Opts::new("apiserver_request_total", "Requests by verb, resource and code."),
            &of_request(&["code"]),
        )?;
        let seconds = HistogramVec::new(
            HistogramOpts::new("apiserver_request_duration_seconds", "Time to answer, without watches.")
                .buckets(SECONDS.to_vec()),
            &of_request(&[]),
        )?;
        let inflight = IntGaugeVec::new(
            Opts::new("apiserver_current_inflight_requests", "Requests under way, without watches."),
            &["request_kind"],
        )?;
        let watches = IntGaugeVec::new(
            Opts::new("apiserver_longrunning_requests", "Watches under way."),
            &["verb", "group", "version", "resource", "subresource", "scope", "component"],
        )?;
        let objects = IntGaugeVec::new(
            Opts::new(
                "apiserver_resource_objects",
                "Objects that were stored when they were counted last; -1 if they could not be.",
            ),
            &["group", "resource"],
        )?;
        let stored = IntGaugeVec::new(
            Opts::new("apiserver_storage_objects", "The same as apiserver_resource_objects, by the older name."),
            &["resource"],
        )?;
        let terminated = IntCounterVec::new(
            Opts::new("apiserver_terminated_watchers_total", "Watches that ended because their client took no events."),
            &["group", "resource"],
        )?;
        let gates = IntGaugeVec::new(
            Opts::new("fieldgate_enabled", "Whether a field gate of a custom resource definition is on."),
            &["crd", "name", "stage"],
        )?;
        let suppressed = IntCounterVec::new(
            Opts::new("fieldgate_suppressed_total", "Values that were not taken because their field gate is off."),
            &["crd", "name", "op"],
        )?;
        let gating = Counter::new(
            "fieldgate_evaluation_seconds_total",
            "Time that writes have spent on field gates, without the merges of server-side apply.",
        )?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(seconds.clone()))?;
        for gauge in [&inflight, &watches, &objects, &stored] {
            registry.register(Box::new(gauge.clone()))?;
        }
        registry.register(Box::new(terminated.clone()))?;
        registry.register(Box::new(gates.clone()))?;
        registry.register(Box::new(suppressed.clone()))?;
        registry.register(Box::new(gating.clone()))?;
        registry.register(Box::new(procstat::Process::new(|name| name.starts_with("process_"))))?;
        let gating = Stopwatch(gating);
        Ok(Metrics {
            registry,
            requests,
            seconds,
            inflight,
            watches,
            objects,
            stored,
            terminated,
            gates,
            suppressed,
            gating,
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut out = Vec::new();
        // Encoding into memory fails only for a family without metrics, which then is left out.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}
