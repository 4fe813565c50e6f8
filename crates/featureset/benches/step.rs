//! One step of the controller with 100 versions of 200 gates: the decision alone, and reading the registries, each of which
//! a controller reads once.

use std::{collections::BTreeMap, hint::black_box};

use criterion::{Criterion, criterion_group, criterion_main};
use featureset::{
    Registry,
    audit::Trail,
    config_map::{of_config_map, version_of},
    object::ClusterOperator,
    sync::{World, sync},
};
use featuretest::{
    Cluster,
    cluster::{KEEP_SECONDS, NAMESPACE, registry, seconds_of},
};
use serde_json::{Value, json};

type Registries = BTreeMap<String, Result<Registry, String>>;

/// A cluster in a preview set, in which nothing is left to write.
fn settled() -> (Cluster, Registry) {
    let gates: Vec<String> = (0..200).map(|i| format!("GateWithAnOrdinaryName{i:03}:TechPreviewNoUpgrade")).collect();
    let gates: Vec<&str> = gates.iter().map(String::as_str).collect();
    let versions: Vec<String> = (0..100).map(|i| format!("1.{i}.0")).collect();
    let mut cluster = Cluster::default();
    let own = registry(&versions[0], &gates);
    versions[1..].iter().for_each(|version| cluster.put_registry(&registry(version, &gates)));
    cluster.history("1.0.0", &versions.iter().map(String::as_str).collect::<Vec<_>>());
    cluster.settle(&own);
    cluster.choose(json!({"featureSet": "TechPreviewNoUpgrade"}));
    cluster.settle(&own);
    (cluster, own)
}

fn read(cluster: &Cluster) -> Registries {
    let one = |object| {
        (version_of(object).unwrap_or_default().to_owned(), of_config_map(object).map_err(|error| error.to_string()))
    };
    cluster.registries.iter().map(one).collect()
}

fn decide(cluster: &Cluster, own: &Registry, registries: &Registries, set: &str, trail: &[Value]) -> usize {
    let mut gate = cluster.feature_gate.clone();
    if let Some(gate) = &mut gate {
        gate.spec.feature_set = Some(set.to_owned());
    }
    let world = World {
        own,
        profile: "default",
        namespace: NAMESPACE,
        operator_name: ClusterOperator::NAME,
        feature_gate: gate.as_ref(),
        refused: None,
        cluster_version: cluster.cluster_version.as_ref(),
        cluster_version_unreadable: None,
        cluster_operator: cluster.cluster_operator.as_ref(),
        registries,
        registry_objects: &cluster.registries,
        keep_registries_seconds: KEEP_SECONDS,
        definitions: &cluster.definitions.look(),
        audit: &Trail::read(trail),
        acks: &cluster.acks,
        now: (0, "2026-01-01T00:00:00Z"),
        seconds_of,
    };
    sync(&world).len()
}

fn step(criterion: &mut Criterion) {
    let (cluster, own) = settled();
    let registries = read(&cluster);
    let (preview, trail) = ("TechPreviewNoUpgrade", cluster.audit.as_slice());
    assert_eq!(decide(&cluster, &own, &registries, preview, trail), 0, "at rest nothing is written");
    let bytes = serde_json::to_string(&cluster.feature_gate).map_or(0, |text| text.len());
    println!("FeatureGate with 100 rows of 200 gates: {bytes} bytes");
    let mut group = criterion.benchmark_group("100 versions of 200 gates");
    group.sample_size(20);
    group.bench_function("a step at rest", |bench| {
        bench.iter(|| decide(black_box(&cluster), &own, &registries, preview, trail))
    });
    group.bench_function("a step that refuses another set", |bench| {
        bench.iter(|| decide(black_box(&cluster), &own, &registries, "OKD", trail))
    });
    // Without a record of the preview set there is a way back, so all rows change.
    group.bench_function("a step that changes all rows", |bench| {
        bench.iter(|| decide(black_box(&cluster), &own, &registries, "", &[]))
    });
    group.bench_function("reading the registries", |bench| bench.iter(|| read(black_box(&cluster)).len()));
    group.finish();
}

criterion_group!(benches, step);
criterion_main!(benches);
