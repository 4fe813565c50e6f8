//! The cluster version: who decides it, who may join, who must stop; and the downgrade job.
//!
//! As etcd's `server/etcdserver/version` does it. Versions are compared by major and minor number alone: there is no
//! case in etcd's rules where a patch number changes the outcome.

use std::collections::BTreeMap;

use proto::Version;

use crate::MemberId;

/// The version taken when the first leader cannot ask every member; also the lowest that peers may have.
pub const CLUSTER_VERSION_MIN: Version = Version::new(3, 0);

/// The lowest version of a cluster that this binary can be a member of: what older members have in their logs and
/// databases it cannot take over. etcd's own bound here is 3.0.
pub const JOIN_VERSION_MIN: Version = Version::new(3, 7);

/// What a member's `/version` says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MemberVersions {
    /// It says that it is one of ours. A number alone does not: etcd's own main branch says 3.8 too.
    pub is_ours: bool,
    pub server: String,
    /// `not_decided` before the first decision.
    pub cluster: String,
}

/// The answers of all members, this one's own included. `None`: the member did not answer.
pub type Answers = BTreeMap<MemberId, Option<MemberVersions>>;

/// The downgrade job, replicated. The target is as it was sent, `X.Y.0`; empty when there is no job.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Downgrade {
    pub enabled: bool,
    pub target: String,
}

/// The outcome of one look at the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionDecision {
    Keep,
    Set(Version),
    /// The downgrade job cannot be carried out; nothing changes.
    InvalidTarget(InvalidTarget),
}

/// etcd logs the reason and returns `invalid downgrade target`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    #[error("Cannot downgrade from cluster-version to downgrade-target ({from} to {target})")]
    FromCluster { from: Version, target: String },
    #[error("Cannot downgrade from minimal-server-version to downgrade-target ({from} to {target})")]
    FromServer { from: Version, target: String },
    /// Not etcd's: with members of etcd alone the downgrade would be possible.
    #[error("Cannot downgrade to {target}: Lockgate members cannot serve a cluster below {min}")]
    BelowMin { target: String, min: Version },
}

/// Why the answers of the members say nothing, or what is odd about them; for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionNote {
    #[error("failed to get version of member {0}")]
    Unreachable(MemberId),
    #[error("failed to parse server version {1:?} of member {0}")]
    Unreadable(MemberId, String),
    #[error("leader found higher-versioned member {0} ({1}; its own is {2})")]
    Higher(MemberId, Version, Version),
}

/// What the leader does about the cluster version, from `local`, the version of its own binary, and the answers.
///
/// The slowest member holds the others back; upwards any step is taken, downwards only the job's, by one minor.
pub fn decide_cluster_version(
    current: Option<Version>,
    downgrade: &Downgrade,
    local: Version,
    answers: &Answers,
) -> (VersionDecision, Vec<VersionNote>) {
    let mut notes = Vec::new();
    let lowest = lowest_server_version(local, answers, &mut notes);
    (decide(current, downgrade, lowest), notes)
}

fn decide(current: Option<Version>, downgrade: &Downgrade, lowest: Option<Version>) -> VersionDecision {
    let Some(current) = current else { return VersionDecision::Set(lowest.unwrap_or(CLUSTER_VERSION_MIN)) };
    let Some(lowest) = lowest else { return VersionDecision::Keep };
    if downgrade.enabled {
        return decide_downgrade(current, &downgrade.target, lowest);
    }
    if current < lowest && current.major == lowest.major {
        return VersionDecision::Set(lowest);
    }
    VersionDecision::Keep
}

fn decide_downgrade(current: Version, target: &str, lowest: Version) -> VersionDecision {
    let wanted = parse_release(target);
    if wanted == Some(current) {
        return VersionDecision::Keep;
    }
    let target = target.to_owned();
    match wanted {
        // The leader that decides here is a Lockgate member itself.
        Some(wanted) if wanted < JOIN_VERSION_MIN => {
            VersionDecision::InvalidTarget(InvalidTarget::BelowMin { target, min: JOIN_VERSION_MIN })
        }
        Some(wanted) if wanted == one_below(current) && wanted == one_below(lowest) => VersionDecision::Set(wanted),
        Some(wanted) if wanted == one_below(current) => {
            VersionDecision::InvalidTarget(InvalidTarget::FromServer { from: lowest, target })
        }
        _ => VersionDecision::InvalidTarget(InvalidTarget::FromCluster { from: current, target }),
    }
}

/// Whether every member already runs the target, so that the job is done.
pub fn is_downgrade_done(downgrade: &Downgrade, answers: &Answers) -> bool {
    let target = parse_release(&downgrade.target);
    let at_target = |answer: &Option<MemberVersions>| {
        answer.as_ref().is_some_and(|a| target.is_some() && parse_release(&a.server) == target)
    };
    downgrade.enabled && answers.values().all(at_target)
}

/// The one version a downgrade may go to.
pub fn one_below(version: Version) -> Version {
    Version::new(version.major, version.minor.wrapping_sub(1))
}

/// A binary older than its cluster must stop: it would not understand what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid downgrade; server version is lower than determined cluster version \
     (server {binary}, cluster {cluster})"
)]
pub struct InvalidDowngrade {
    pub binary: Version,
    pub cluster: Version,
}

/// Asked at start with the stored version, and by apply before it takes a new one.
pub fn check_not_downgraded(binary: Version, cluster: Option<Version>) -> Result<(), InvalidDowngrade> {
    match cluster {
        Some(cluster) if binary < cluster => Err(InvalidDowngrade { binary, cluster }),
        _ => Ok(()),
    }
}

/// Why the running cluster is not one this binary may join. The caller reports [`crate::BootstrapError::Incompatible`]
/// and logs this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinRefusal {
    #[error("cluster version of remote member {member} is not compatible; too low ({found}, lowest supported {min})")]
    TooLow { member: MemberId, found: Version, min: Version },
    #[error("cluster version of remote member {member} is not compatible; too high ({found}, highest supported {max})")]
    TooHigh { member: MemberId, found: Version, max: Version },
    #[error("no member of the cluster told its cluster version")]
    NobodyAnswered,
}

/// Whether `binary` may join a cluster whose members answer so; `downgrade_enabled` is what a peer says.
///
/// While a downgrade is enabled the target's binary may join before the cluster version has come down. In etcd nobody
/// else may then, and nobody afterwards; here whoever could without the downgrade still can.
pub fn check_join_versions(
    binary: Version,
    local: MemberId,
    answers: &Answers,
    downgrade_enabled: bool,
) -> Result<(), JoinRefusal> {
    let next = Version::new(binary.major, binary.minor.saturating_add(1));
    let (min, max) = (JOIN_VERSION_MIN, if downgrade_enabled { next } else { binary });
    let others = answers.iter().filter(|(id, _)| **id != local);
    let told = others.filter_map(|(id, answer)| Some((*id, parse_release(&answer.as_ref()?.cluster)?)));
    let mut anyone = false;
    for (member, found) in told {
        if found < min {
            return Err(JoinRefusal::TooLow { member, found, min });
        }
        if found > max {
            return Err(JoinRefusal::TooHigh { member, found, max });
        }
        anyone = true;
    }
    if anyone { Ok(()) } else { Err(JoinRefusal::NobodyAnswered) }
}

/// A version with all three numbers, as etcd demands of what members report; a tail behind `-` or `+` is allowed.
pub fn parse_release(text: &str) -> Option<Version> {
    let release = text.split(['-', '+']).next()?;
    (release.matches('.').count() == 2).then(|| text.parse().ok()).flatten()
}

/// The lowest version among the members; `None` unless all of them are known.
fn lowest_server_version(local: Version, answers: &Answers, notes: &mut Vec<VersionNote>) -> Option<Version> {
    let mut lowest = None;
    let mut all_known = true;
    for (id, answer) in answers {
        let Some(answer) = answer else {
            notes.push(VersionNote::Unreachable(*id));
            all_known = false;
            continue;
        };
        let Some(version) = parse_release(&answer.server) else {
            notes.push(VersionNote::Unreadable(*id, answer.server.clone()));
            all_known = false;
            continue;
        };
        if version > local {
            notes.push(VersionNote::Higher(*id, version, local));
        }
        // Whatever number a member gives that is not ours, it cannot follow beyond this.
        let version = if answer.is_ours { version } else { version.min(one_below(crate::gate::GATE_SINCE)) };
        lowest = Some(lowest.map_or(version, |lowest: Version| lowest.min(version)));
    }
    lowest.filter(|_| all_known)
}
