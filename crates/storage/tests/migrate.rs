//! Files on their way between versions: whatever is in them, up and down again leaves what was there before.

use crate::common;

use common::{all, open, put_unit};
use proto::membershippb::{FeatureGateChange, FeatureGateProposalRecord, FeatureGateRecord};
use storage::{
    Backend, Bucket,
    schema::{
        Version, cluster, gate, meta,
        migrate::{count, execute},
        plan::plan_migration,
        table::ROWS,
        version::{Found, detect},
    },
};

fn v(minor: u16) -> Version {
    Version::new(3, minor)
}

fn migrate(backend: &Backend, from: u16, to: u16) -> usize {
    let mut batch = backend.write();
    let removed = execute(&mut batch, &plan_migration(v(from), v(to)).expect("a plan")).expect("carried out");
    cluster::put_version(&mut batch, v(to));
    batch.commit().expect("commit");
    removed
}

/// Everything in the file but what says its version.
fn contents(backend: &Backend) -> Vec<(Bucket, Vec<u8>, Vec<u8>)> {
    let view = backend.view();
    let mut found = Vec::new();
    for bucket in Bucket::ALL {
        found.extend(all(&view, bucket).into_iter().map(|(key, value)| (bucket, key, value)));
    }
    found.retain(|(_, key, _)| key != meta::STORAGE_VERSION && key != cluster::CLUSTER_VERSION);
    found
}

fn filled(dir: &std::path::Path) -> Backend {
    let backend = open(dir);
    for n in 1..=20 {
        put_unit(&backend, n);
    }
    let mut batch = backend.write();
    batch.set_consistent(20, 3);
    cluster::put_version(&mut batch, v(5));
    batch.commit().expect("commit");
    backend
}

#[test]
fn every_way_up_and_down_leaves_what_was_there() {
    for low in 5..=8 {
        for high in low..=8 {
            let dir = harness::tempdir();
            let backend = filled(dir.path());
            migrate(&backend, 5, low);
            assert_eq!(detect(&backend.view()), Ok(Found::At(v(low))));
            let before = contents(&backend);
            migrate(&backend, low, high);
            assert_eq!(detect(&backend.view()), Ok(Found::At(v(high))), "{low} to {high}");
            migrate(&backend, high, low);
            assert_eq!(detect(&backend.view()), Ok(Found::At(v(low))), "{high} to {low}");
            assert_eq!(contents(&backend), before, "{low} to {high} and back");
        }
    }
}

#[test]
fn what_3_8_brought_goes_with_it_and_nothing_else() {
    let dir = harness::tempdir();
    let backend = filled(dir.path());
    let before = contents(&backend);
    migrate(&backend, 5, 8);
    let mut batch = backend.write();
    gate::put_gate(&mut batch, &FeatureGateRecord { enabled: vec!["A".into()], ..Default::default() });
    for n in 1..=5 {
        gate::put_proposal(&mut batch, n << 40, &FeatureGateProposalRecord::default());
        gate::put_change(&mut batch, &FeatureGateChange { index: n, ..Default::default() });
    }
    // Behind the prefixes, and nobody's.
    batch.put(Bucket::Cluster, &b"featureGates"[..], &b"x"[..]);
    batch.commit().expect("commit");
    let newer: usize = ROWS.iter().filter(|row| row.since == v(8)).map(|row| count(&backend.view(), row)).sum();
    assert_eq!(newer, 11);
    assert_eq!(migrate(&backend, 8, 7), 11);
    let mut after = contents(&backend);
    after.retain(|(_, key, _)| key != b"featureGates");
    assert_eq!(after, before);
    assert!(ROWS.iter().filter(|row| row.since == v(8)).all(|row| count(&backend.view(), row) == 0));
}
