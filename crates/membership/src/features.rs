//! Lockgate's table of features: one row each, by name. Help, metrics and docs are made from it.
//!
//! The server-level rows are etcd 3.7's, under its names, stages and defaults, so that its flags and dashboards work.
//! `testdata/features` holds the records of past releases, never edited afterwards, and `unreleased.txt`, the record of
//! the table as it will be released; tests hold the table to all of them. `cargo xtask features` tells what a change means.

use featuregate::{Feature, Level, Registry, Release, TableErrors, Version, alpha, beta, v};

/// The version this binary is, and resolves server-level features at.
pub const VERSION: Version = v(3, 8);

pub static FEATURES: &[Feature] = &[
    Feature {
        name: "AtomicIncrement",
        level: Level::Cluster,
        owner: "mvcc",
        writes: "entries of type increment; the values they leave are plain text",
        reason: "Adds to the number in a key with one request, without a loop of reads and compares.",
        specs: &[alpha(v(3, 8))],
    },
    Feature {
        name: "CompactHashCheck",
        level: Level::Server,
        owner: "server",
        writes: "",
        reason: "The leader regularly compares the hashes its followers took at compactions, to find corruption early.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "FastLeaseKeepAlive",
        level: Level::Server,
        owner: "lease",
        writes: "",
        reason: "Renews a lease without waiting for the applied index, so that keep-alives stay fast under load.",
        specs: &[beta(v(3, 7))],
    },
    Feature {
        name: "InitialCorruptCheck",
        level: Level::Server,
        owner: "server",
        writes: "",
        reason: "Compares data with the other members at start, before any client or peer is served.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "LeaseCheckpoint",
        level: Level::Server,
        owner: "lease",
        writes: "remaining TTLs in lease records",
        reason: "Sends remaining lease TTLs to followers, so that a new leader does not start them anew.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "LeaseCheckpointPersist",
        level: Level::Server,
        owner: "lease",
        writes: "",
        reason: "Accepted for old configurations; checkpoints are kept on disk whatever it says.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "PersistedLeaseCheckpoints",
        level: Level::Cluster,
        owner: "lease",
        writes: "remaining TTLs in lease records",
        reason: "Every leader writes remaining lease TTLs to the log, so that no change of leader starts them anew.",
        specs: &[alpha(v(3, 8))],
    },
    Feature {
        name: "PriorityRequest",
        level: Level::Server,
        owner: "server",
        writes: "",
        reason: "Lets requests that relieve the server, such as lease revocations, through while it is overloaded.",
        specs: &[alpha(v(3, 7))],
    },
    #[cfg(feature = "samples")]
    samples::LOCKED_LATER,
    #[cfg(feature = "samples")]
    samples::LOCKED_OFF,
    #[cfg(feature = "samples")]
    samples::LOCKED_ON,
    Feature {
        name: "SetMemberLocalAddr",
        level: Level::Server,
        owner: "server",
        writes: "",
        reason: "Calls peers from the first address in initial-advertise-peer-urls, for hosts with several.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "StopGRPCServiceOnDefrag",
        level: Level::Server,
        owner: "server",
        writes: "",
        reason: "Reports not-serving to health checks while defragmenting, so that clients go elsewhere meanwhile.",
        specs: &[alpha(v(3, 6))],
    },
    Feature {
        name: "TxnModeWriteWithSharedBuffer",
        level: Level::Server,
        owner: "mvcc",
        writes: "",
        reason: "Lets the read-only checks of a write transaction share the read buffer instead of copying it.",
        specs: &[beta(v(3, 5))],
    },
];

/// Locked features, of which the table has none yet, for tests with real processes.
#[cfg(feature = "samples")]
mod samples {
    use super::*;
    use featuregate::{Spec, deprecated, ga};

    pub const LOCKED_LATER: Feature = sample("SampleLockedLater", &[alpha(v(3, 7)), ga(v(3, 8)).locked()]);
    pub const LOCKED_OFF: Feature = sample("SampleLockedOff", &[deprecated(v(3, 8)).locked()]);
    pub const LOCKED_ON: Feature = sample("SampleLockedOn", &[ga(v(3, 8)).locked()]);

    const fn sample(name: &'static str, specs: &'static [Spec]) -> Feature {
        Feature { name, level: Level::Cluster, owner: "tests", writes: "", reason: "A sample for tests.", specs }
    }
}

/// Names that were features once and may never be again.
pub static RETIRED: &[&str] = &[];

/// Whether this binary has a cluster-level feature of this name, at any version.
pub fn is_cluster_feature(name: &str) -> bool {
    FEATURES.iter().any(|feature| feature.name == name && feature.level == Level::Cluster)
}

/// The table, checked. An error is a mistake in the table above, and the tests show it first.
pub fn registry() -> Result<Registry, TableErrors> {
    Registry::new(FEATURES)
}

/// The record of the table, as it would be released now.
pub fn release() -> Result<Release, TableErrors> {
    let patch = env!("CARGO_PKG_VERSION_PATCH").parse().unwrap_or_default();
    Ok(Release::of(VERSION, patch, &registry()?, RETIRED.iter().copied()))
}

// What past releases promised is held against it in tests/features.rs.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order() {
        assert!(FEATURES.is_sorted_by_key(|feature| feature.name), "keep the rows sorted by name");
    }

    #[test]
    fn is_of_this_version() {
        let version = format!("{VERSION}.{}", release().expect("the table has no fault").patch);
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }

    // What `etcd --help` of 3.7.3 prints below --feature-gates. Stages may move on later; then this list ends.
    #[test]
    fn offers_what_etcd_offers() {
        let want = [
            "AllAlpha=true|false (ALPHA - default=false)",
            "AllBeta=true|false (BETA - default=false)",
            "CompactHashCheck=true|false (ALPHA - default=false)",
            "FastLeaseKeepAlive=true|false (BETA - default=true)",
            "InitialCorruptCheck=true|false (ALPHA - default=false)",
            "LeaseCheckpoint=true|false (ALPHA - default=false)",
            "LeaseCheckpointPersist=true|false (ALPHA - default=false)",
            "PriorityRequest=true|false (ALPHA - default=false)",
            "SetMemberLocalAddr=true|false (ALPHA - default=false)",
            "StopGRPCServiceOnDefrag=true|false (ALPHA - default=false)",
            "TxnModeWriteWithSharedBuffer=true|false (BETA - default=true)",
        ];
        assert_eq!(registry().expect("the table has no fault").help(Level::Server, VERSION), want);
    }
}
