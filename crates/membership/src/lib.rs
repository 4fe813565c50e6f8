//! Members, cluster version and ids: pure state and decisions.
//!
//! Nothing here does I/O or reads a clock. [`Cluster`] is replicated state: it changes by apply alone, and the
//! caller writes to the file what a change returns. Everything else is a question with an answer:
//! - may this change be proposed ([`Cluster::may_add`] and its kin), may it be applied ([`Cluster::validate`]);
//! - how does a member start ([`plan_new_cluster`], [`plan_join`], [`plan_reconciliation`]);
//! - what is the cluster version ([`decide_cluster_version`]), and who fits it ([`check_join_versions`]);
//! - may this entry be written to the log ([`may_log`]), and by a leader that lags behind it ([`VersionsAhead`]);
//! - which cluster features are on ([`gate`]).

/// What a rule of the gate protocol says; with the feature `mutants`, what stands behind it if that rule is broken.
#[cfg(not(feature = "mutants"))]
macro_rules! rule {
    ($rule:ident, $kept:expr, $broken:expr) => {
        $kept
    };
}
#[cfg(feature = "mutants")]
macro_rules! rule {
    ($rule:ident, $kept:expr, $broken:expr) => {
        if crate::mutant::is_broken(crate::mutant::Rule::$rule) { $broken } else { $kept }
    };
}

mod bootstrap;
mod change;
mod cluster;
mod enabled;
pub mod features;
pub mod gate;
mod harm;
mod id;
mod loggable;
mod member;
#[cfg(feature = "mutants")]
pub mod mutant;
mod reconcile;
mod reconfigure;
mod url;
mod version;
mod versions_ahead;

pub use bootstrap::{
    BootstrapError, Founding, InitialCluster, RunningCluster, check_join_flags, check_not_bootstrapped,
    plan_force_new_cluster, plan_join, plan_new_cluster, remote_peer_urls,
};
pub use change::{BadChange, Change};
pub use cluster::{ChangeError, Changed, Cluster, LEARNERS_MAX};
pub use enabled::{
    ATOMIC_INCREMENT, ClusterFeature, ClusterFeatures, Enabled, PERSISTED_LEASE_CHECKPOINTS, registry_version,
};
pub use harm::{Harm, harm_of_request, harms_etcd};
pub use id::{ClusterId, MemberId};
pub use loggable::{LOG_VERSION_MIN, NotYet, Reason, may_log, may_log_data, may_log_request};
pub use member::{Member, members_of_new_cluster};
pub use reconcile::{Finding, ReconcileError, Reconciliation, Role, conf_state_of, plan_reconciliation};
pub use reconfigure::{HEALTH_INTERVAL, Links, ReconfigureError, check_learner_ready, longest_connected, quorum};
pub use url::{Resolve, check_urls_equal};
pub use version::{
    Answers, CLUSTER_VERSION_MIN, Downgrade, InvalidDowngrade, InvalidTarget, JOIN_VERSION_MIN, JoinRefusal,
    MemberVersions, VersionDecision, VersionNote, check_join_versions, check_not_downgraded, decide_cluster_version,
    is_downgrade_done, one_below, parse_release,
};
pub use versions_ahead::VersionsAhead;
