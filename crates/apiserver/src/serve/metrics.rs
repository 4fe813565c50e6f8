//! Counts of what the server does, under the names dashboards know.

use std::time::Instant;

use prometheus::{
    Counter, Encoder, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    pub requests: IntCounterVec,
    pub seconds: HistogramVec,
    pub watches: IntGauge,
    pub terminated: IntCounterVec,
    pub gates: IntGaugeVec,
    pub suppressed: IntCounterVec,
    pub gating: Stopwatch,
}

/// Counts the time that a kind of work takes.
#[derive(Clone)]
pub struct Stopwatch(Counter);

impl Stopwatch {
    // Never inlined, so that a profile has under one name all that is counted here.
    #[inline(never)]
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.0.inc_by(began.elapsed().as_secs_f64());
        done
    }
}

impl Metrics {
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let requests = IntCounterVec::new(
            Opts::new("apiserver_request_total", "Requests by verb, resource and code."),
            &["verb", "group", "resource", "code"],
        )?;
        let buckets = vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
        let seconds = HistogramVec::new(
            HistogramOpts::new("apiserver_request_duration_seconds", "Time to answer, without watches.")
                .buckets(buckets),
            &["verb", "group", "resource"],
        )?;
        let watches = IntGauge::new("apiserver_longrunning_requests", "Watches under way.")?;
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
        registry.register(Box::new(watches.clone()))?;
        registry.register(Box::new(terminated.clone()))?;
        registry.register(Box::new(gates.clone()))?;
        registry.register(Box::new(suppressed.clone()))?;
        registry.register(Box::new(gating.clone()))?;
        let gating = Stopwatch(gating);
        Ok(Metrics { registry, requests, seconds, watches, terminated, gates, suppressed, gating })
    }

    pub fn text(&self) -> String {
        let mut out = Vec::new();
        // Encoding into memory fails only for a family without metrics, which then is left out.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}
