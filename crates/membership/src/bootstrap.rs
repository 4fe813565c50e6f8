//! Decisions at the first start of a member: found a new cluster or join one that runs.
//!
//! What peers answer comes in as data; the caller does the asking.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{
    Change, ChangeError, ClusterId, Member, MemberId,
    cluster::check_learners,
    members_of_new_cluster,
    url::{Resolve, check_urls_equal},
};

/// `--initial-cluster`: names to peer URLs.
pub type InitialCluster = BTreeMap<String, Vec<String>>;

/// Why a member without data does not start. Where etcd has such an error the text is etcd's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    #[error("couldn't find local name {0:?} in the initial cluster configuration")]
    NameMissing(String),
    #[error("--initial-cluster gives {0:?} no peer URL")]
    NoPeerUrl(String),
    #[error("--initial-cluster uses {0} twice; every member needs peer URLs of its own")]
    DuplicateUrl(String),
    #[error("initial cluster {0} has duplicate url")]
    DuplicateUrlIn(String),
    #[error("initial cluster unset and no discovery endpoints found")]
    Unset,
    #[error("discovery URL should not be set when joining existing initial cluster")]
    DiscoveryWhenJoining,
    #[error("--initial-cluster has {missing} but missing from --initial-advertise-peer-urls={advertised} ({why})")]
    NotAdvertised { missing: String, advertised: String, why: String },
    #[error("--initial-advertise-peer-urls has {missing} but missing from --initial-cluster={cluster}")]
    NotInCluster { missing: String, cluster: String },
    #[error("failed to resolve {advertised} to match --initial-cluster={cluster} ({why})")]
    Unresolved { advertised: String, cluster: String, why: String },
    #[error("member exists with identical ID {0}")]
    SameId(MemberId),
    #[error("cannot use 0 as member id")]
    ZeroId,
    #[error("member {0} has already been bootstrapped")]
    AlreadyBootstrapped(MemberId),
    #[error("cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs")]
    NoAnswer,
    #[error("cannot fetch cluster info from peer urls: failed to get raft cluster member(s) from the given URLs")]
    EmptyAnswer,
    #[error("error validating peerURLs {existing}: member count is unequal")]
    MemberCount { existing: String },
    #[error(
        "error validating peerURLs {existing}: PeerURLs: no match found for existing member ({id}, [{urls}]), \
         last resolver error ({why})"
    )]
    NoMatch { existing: String, id: MemberId, urls: String, why: String },
    #[error("incompatible with current running cluster")]
    Incompatible,
    #[error(transparent)]
    Change(#[from] ChangeError),
}

/// A cluster as a peer's `/members` describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCluster {
    /// From the header `X-Etcd-Cluster-ID`.
    pub id: ClusterId,
    pub members: Vec<Member>,
}

impl fmt::Display for RunningCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<_> = self.members.iter().map(Member::to_string).collect();
        write!(f, "{{ClusterID:{} Members:[{}] RemovedMemberIDs:[]}}", self.id, members.join(" "))
    }
}

/// Who this member is in the cluster it starts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Founding {
    pub cluster_id: ClusterId,
    pub local: MemberId,
    pub members: BTreeMap<MemberId, Member>,
}

/// A new cluster: `--initial-cluster` must name this member with exactly the URLs it advertises.
pub fn plan_new_cluster(
    name: &str,
    initial: &InitialCluster,
    advertised: &[String],
    token: &str,
    resolve: Resolve<'_>,
) -> Result<Founding, BootstrapError> {
    let listed = initial.get(name).ok_or_else(|| BootstrapError::NameMissing(name.to_owned()))?;
    check_advertised(name, listed, advertised, resolve)?;
    check_duplicates(initial)?;
    found(name, initial, token)
}

/// The URLs to ask for `/members`, in the order to ask them: all but this member's own.
pub fn remote_peer_urls(name: &str, initial: &InitialCluster) -> Vec<String> {
    let others = initial.iter().filter(|(other, _)| *other != name);
    let mut urls: Vec<_> = others.flat_map(|(_, urls)| urls.iter().cloned()).collect();
    urls.sort_unstable();
    urls
}

/// Refuses to found a cluster that runs already with this member in it: its data was lost, and with it its vote.
/// `running` is the first answer of a peer, if any answered.
pub fn check_not_bootstrapped(local: MemberId, running: Option<&RunningCluster>) -> Result<(), BootstrapError> {
    let known = running.and_then(|cluster| cluster.members.iter().find(|m| m.id == local));
    match known {
        Some(member) if !member.client_urls.is_empty() => Err(BootstrapError::AlreadyBootstrapped(local)),
        _ => Ok(()),
    }
}

/// The checks of a join that need no answer from peers.
pub fn check_join_flags(name: &str, initial: &InitialCluster, discovery: bool) -> Result<(), BootstrapError> {
    if !initial.contains_key(name) {
        return Err(BootstrapError::NameMissing(name.to_owned()));
    }
    check_duplicates(initial)?;
    if discovery { Err(BootstrapError::DiscoveryWhenJoining) } else { Ok(()) }
}

/// Joining: the members of `--initial-cluster` are those of the running cluster, matched by URLs; ids and cluster id
/// are taken over from it. Versions are judged apart, by [`crate::check_join_versions`].
pub fn plan_join(
    name: &str,
    initial: &InitialCluster,
    running: &RunningCluster,
    learners_max: usize,
    resolve: Resolve<'_>,
) -> Result<Founding, BootstrapError> {
    check_join_flags(name, initial, false)?;
    if running.members.is_empty() {
        return Err(BootstrapError::EmptyAnswer);
    }
    if running.members.len() != initial.len() {
        return Err(BootstrapError::MemberCount { existing: running.to_string() });
    }
    let mut members = BTreeMap::new();
    let mut ordered: Vec<_> = running.members.iter().collect();
    ordered.sort_by_key(|m| m.id);
    for existing in ordered {
        let (name, urls) = find_match(existing, initial, resolve).map_err(|why| BootstrapError::NoMatch {
            existing: running.to_string(),
            id: existing.id,
            urls: existing.peer_urls.join(" "),
            why,
        })?;
        // As etcd does, the list given here names the members; the rest comes with the log or a snapshot.
        let mut peer_urls = urls.clone();
        peer_urls.sort_unstable();
        let member = Member { peer_urls, name: name.clone(), ..existing.clone() };
        members.insert(existing.id, member);
    }
    let local = members.values().find(|m| m.name == name).map(|m| m.id);
    let local = local.ok_or_else(|| BootstrapError::NameMissing(name.to_owned()))?;
    check_learners(learners_max, running.members.iter().filter(|m| m.is_learner).count())?;
    Ok(Founding { cluster_id: running.id, local, members })
}

/// `--force-new-cluster`: the changes that leave this member alone, to be appended as committed entries. This member
/// comes first, because raft may never be without voters.
pub fn plan_force_new_cluster(ids: &BTreeSet<MemberId>, local: MemberId) -> Vec<Change> {
    let itself = (!ids.contains(&local)).then(|| {
        let member = Member { id: local, peer_urls: vec!["http://localhost:2380".into()], ..Member::default() };
        Change::Add { member, as_learner: false }
    });
    itself.into_iter().chain(ids.iter().filter(|id| **id != local).map(|id| Change::Remove(*id))).collect()
}

fn found(name: &str, initial: &InitialCluster, token: &str) -> Result<Founding, BootstrapError> {
    let members = members_of_new_cluster(initial, token)?;
    let local = members.values().find(|m| m.name == name).map(|m| m.id);
    let local = local.ok_or_else(|| BootstrapError::NameMissing(name.to_owned()))?;
    Ok(Founding { cluster_id: ClusterId::compute(members.keys().copied()), local, members })
}

fn find_match<'a>(
    existing: &Member,
    initial: &'a InitialCluster,
    resolve: Resolve<'_>,
) -> Result<(&'a String, &'a Vec<String>), String> {
    let mut last = String::new();
    for (name, urls) in initial {
        match check_urls_equal(&existing.peer_urls, urls, resolve) {
            Ok(()) => return Ok((name, urls)),
            Err(why) => last = why,
        }
    }
    Err(last)
}

fn check_advertised(
    name: &str,
    listed: &[String],
    advertised: &[String],
    resolve: Resolve<'_>,
) -> Result<(), BootstrapError> {
    let sorted = |urls: &[String]| {
        let mut urls = urls.to_vec();
        urls.sort_unstable();
        urls
    };
    let (listed, advertised) = (sorted(listed), sorted(advertised));
    let Err(why) = check_urls_equal(&advertised, &listed, resolve) else { return Ok(()) };
    let named = |urls: &[String]| urls.iter().map(|url| format!("{name}={url}")).collect::<Vec<_>>().join(",");
    let without =
        |urls: &[String], others: &[String]| urls.iter().filter(|u| !others.contains(u)).cloned().collect::<Vec<_>>();
    let missing = without(&listed, &advertised);
    if !missing.is_empty() {
        let (missing, advertised) = (named(&missing), advertised.join(","));
        return Err(BootstrapError::NotAdvertised { missing, advertised, why });
    }
    let missing = without(&advertised, &listed);
    if !missing.is_empty() {
        return Err(BootstrapError::NotInCluster { missing: missing.join(","), cluster: named(&advertised) });
    }
    Err(BootstrapError::Unresolved { advertised: advertised.join(","), cluster: named(&advertised), why })
}

fn check_duplicates(initial: &InitialCluster) -> Result<(), BootstrapError> {
    if initial.is_empty() {
        return Err(BootstrapError::Unset);
    }
    let mut seen = BTreeSet::new();
    if initial.values().flatten().all(|url| seen.insert(url)) {
        return Ok(());
    }
    let mut pairs: Vec<_> =
        initial.iter().flat_map(|(name, urls)| urls.iter().map(move |url| format!("{name}={url}"))).collect();
    pairs.sort_unstable();
    Err(BootstrapError::DuplicateUrlIn(pairs.join(",")))
}
