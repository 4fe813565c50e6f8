//! Makes and registers metrics, and keeps the list of what was registered.

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Name, type and labels of one metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    pub name: &'static str,
    pub kind: &'static str,
    /// Sorted.
    pub labels: Vec<&'static str>,
}

pub(super) struct Builder {
    registry: Registry,
    descriptors: Vec<Descriptor>,
}

impl Builder {
    pub(super) fn new() -> Builder {
        Builder { registry: Registry::new(), descriptors: Vec::new() }
    }

    pub(super) fn finish(self) -> (Registry, Vec<Descriptor>) {
        (self.registry, self.descriptors)
    }

    pub(super) fn counter(&mut self, name: &'static str, help: &'static str) -> IntCounter {
        self.add(name, "counter", &[], IntCounter::new(name, help))
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str) -> IntGauge {
        self.add(name, "gauge", &[], IntGauge::new(name, help))
    }

    pub(super) fn histogram(&mut self, name: &'static str, help: &'static str, buckets: Buckets) -> Histogram {
        let opts = HistogramOpts::new(name, help).buckets(buckets.bounds());
        self.add(name, "histogram", &[], Histogram::with_opts(opts))
    }

    pub(super) fn counters(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[&'static str],
    ) -> IntCounterVec {
        self.add(name, "counter", labels, IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauges(&mut self, name: &'static str, help: &'static str, labels: &[&'static str]) -> IntGaugeVec {
        self.add(name, "gauge", labels, IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn histograms(
        &mut self,
        name: &'static str,
        help: &'static str,
        buckets: Buckets,
        labels: &[&'static str],
    ) -> HistogramVec {
        self.histograms_at(name, help, &buckets.bounds(), labels)
    }

    pub(super) fn histograms_at(
        &mut self,
        name: &'static str,
        help: &'static str,
        bounds: &[f64],
        labels: &[&'static str],
    ) -> HistogramVec {
        let opts = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        self.add(name, "histogram", labels, HistogramVec::new(opts, labels))
    }

    pub(super) fn collector(&mut self, collector: impl Collector + 'static, descriptors: Vec<Descriptor>) {
        self.register(Box::new(collector));
        self.descriptors.extend(descriptors);
    }

    /// Names are constants, so a mistake in one shows in the first test that makes `Metrics`.
    fn add<C: Collector + Clone + 'static>(
        &mut self,
        name: &'static str,
        kind: &'static str,
        labels: &[&'static str],
        collector: prometheus::Result<C>,
    ) -> C {
        let collector = collector.unwrap_or_else(|err| panic!("metric {name}: {err}"));
        self.register(Box::new(collector.clone()));
        let mut labels = labels.to_vec();
        labels.sort_unstable();
        self.descriptors.push(Descriptor { name, kind, labels });
        collector
    }

    fn register(&mut self, collector: Box<dyn Collector>) {
        if let Err(err) = self.registry.register(collector) {
            panic!("a metric is registered twice: {err}");
        }
    }
}

/// Bounds of a histogram, each twice the one before.
#[derive(Clone, Copy)]
pub(super) struct Buckets {
    pub first: f64,
    pub count: usize,
}

impl Buckets {
    /// 1 ms to 8 s, which most of etcd's histograms have.
    pub(super) const MILLIS: Buckets = Buckets { first: 0.001, count: 14 };

    fn bounds(self) -> Vec<f64> {
        (0..self.count).map(|i| self.first * (1u64 << i) as f64).collect()
    }
}
