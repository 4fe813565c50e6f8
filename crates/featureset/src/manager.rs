//! Under which names feature sets write: one for each program, as field manager and user agent, so that `managedFields` and the
//! audit trail tell who it was. The names of others, such as `kubectl-patch`, come from their tools.

/// `lockgate operator`: registries, audit trail, rows, reports, its lease; also a FeatureGate that was missing. What it applies to
/// gates of fields has a name of its own, [`crate::definition::MANAGER`], as it is given up apart from all else.
pub const CONTROLLER: &str = "lockgate-operator";
/// `lockgate gates version`, where a person keeps ClusterVersion.
pub const COMMAND: &str = "lockgate-cli";
/// Programs that follow, with the accessor: acknowledgements.
pub const FOLLOWER: &str = "lockgate-accessor";
/// `lockgate ofrep`, which only reads.
pub const OFREP: &str = "lockgate-ofrep";
