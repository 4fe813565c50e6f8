//! The question that code asks: is a feature on? One bit for each, so that asking costs nothing.

use featuregate::Level;
use proto::Version;

use crate::{Cluster, features::FEATURES};

/// A cluster-level feature of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterFeature(usize);

/// Adds to the number in a key.
pub const ATOMIC_INCREMENT: ClusterFeature = ClusterFeature::named("AtomicIncrement");
/// Every leader sends checkpoints of leases.
pub const PERSISTED_LEASE_CHECKPOINTS: ClusterFeature = ClusterFeature::named("PersistedLeaseCheckpoints");

impl ClusterFeature {
    /// A name that is not in the table, or not a cluster feature's, does not compile.
    const fn named(name: &str) -> ClusterFeature {
        let mut at = 0;
        while at < FEATURES.len() {
            if is_same(FEATURES[at].name, name) {
                assert!(matches!(FEATURES[at].level, Level::Cluster) && at < 64);
                return ClusterFeature(at);
            }
            at += 1;
        }
        panic!("no such feature")
    }

    pub fn find(name: &str) -> Option<ClusterFeature> {
        FEATURES.iter().position(|row| row.name == name && row.level == Level::Cluster).map(ClusterFeature)
    }

    pub fn name(self) -> &'static str {
        FEATURES[self.0].name
    }
}

/// Several cluster features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterFeatures(u64);

impl ClusterFeatures {
    pub fn insert(&mut self, feature: ClusterFeature) {
        self.0 |= 1 << feature.0;
    }

    /// In the order of the table.
    pub fn iter(self) -> impl Iterator<Item = ClusterFeature> {
        let mut left = self;
        std::iter::from_fn(move || {
            let first = left.first()?;
            left.0 &= left.0 - 1;
            Some(first)
        })
    }

    /// Those that are off.
    pub fn off(self, enabled: Enabled) -> ClusterFeatures {
        ClusterFeatures(self.0 & !enabled.0)
    }

    pub fn first(self) -> Option<ClusterFeature> {
        (self.0 != 0).then(|| ClusterFeature(self.0.trailing_zeros() as usize))
    }
}

/// Which cluster features are on, as of one log index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enabled(u64);

impl Enabled {
    /// Locked features stand outside the gate: their default holds, also while it is empty.
    pub fn of(cluster: &Cluster) -> Enabled {
        let Some(version) = cluster.version().filter(|_| cluster.has_gate()).map(registry_version) else {
            return Enabled::default();
        };
        let is_on = |feature: &featuregate::Feature| match feature.spec_at(version) {
            None => false,
            Some(spec) if spec.locked => spec.default,
            Some(_) => cluster.gate().enabled.contains(feature.name),
        };
        let rows = FEATURES.iter().enumerate().filter(|(_, feature)| feature.level == Level::Cluster);
        Enabled(rows.filter(|(_, feature)| is_on(feature)).fold(0, |bits, (at, _)| bits | 1 << at))
    }

    #[inline]
    pub fn has(self, feature: ClusterFeature) -> bool {
        self.0 >> feature.0 & 1 == 1
    }

    /// False, too, for a name that is no cluster feature's.
    pub fn has_named(self, name: impl AsRef<[u8]>) -> bool {
        FEATURES.iter().position(|f| f.name.as_bytes() == name.as_ref()).is_some_and(|at| self.0 >> at & 1 == 1)
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    pub fn from_bits(bits: u64) -> Enabled {
        Enabled(bits)
    }
}

/// The same version, as the registry of features counts it.
pub fn registry_version(version: Version) -> featuregate::Version {
    featuregate::v(version.major, version.minor)
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
