//! What apply pays for asking the gate: `cargo bench -p node`. [docs/feature-gates.md](../../../docs/feature-gates.md) has figures.

use std::{
    collections::{BTreeMap, BTreeSet},
    hint::black_box,
};

use criterion::{Criterion, criterion_group, criterion_main};
use membership::{ATOMIC_INCREMENT, Cluster, ClusterId, MemberId};
use node::Gates;

fn gates() -> Gates {
    Gates::new(&Cluster::new(ClusterId(1), MemberId(1), BTreeMap::new(), BTreeSet::new(), None))
}

fn checks(c: &mut Criterion) {
    let gates = gates();
    let mut group = c.benchmark_group("gate");
    group.bench_function("check", |b| b.iter(|| black_box(&gates).has(black_box(ATOMIC_INCREMENT))));
    // What a required feature is: a name, as the entry carries it.
    group.bench_function("check by name", |b| {
        b.iter(|| black_box(&gates).enabled().has_named(black_box("AtomicIncrement")));
    });
    group.bench_function("nothing", |b| b.iter(|| black_box(true)));
    group.finish();
}

criterion_group!(benches, checks);
criterion_main!(benches);
