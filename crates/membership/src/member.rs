//! One member, and the members of a new cluster.

use std::{collections::BTreeMap, fmt};

use crate::{BootstrapError, MemberId};

/// A member. How it is written down is the schema's business.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Member {
    pub id: MemberId,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
    /// Empty until the member has started and published itself.
    pub name: String,
    pub client_urls: Vec<String>,
}

impl Member {
    /// Whether the member has ever run and told its name.
    pub fn is_started(&self) -> bool {
        !self.name.is_empty()
    }
}

impl fmt::Display for Member {
    /// As etcd's messages show a member.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Member { id, peer_urls, is_learner, name, client_urls } = self;
        let (peer_urls, client_urls) = (peer_urls.join(" "), client_urls.join(" "));
        write!(f, "&{{ID:{id} RaftAttributes:{{PeerURLs:[{peer_urls}] IsLearner:{is_learner}}} ")?;
        write!(f, "Attributes:{{Name:{name} ClientURLs:[{client_urls}]}}}}")
    }
}

/// The members of a new cluster from `--initial-cluster`, by id.
pub fn members_of_new_cluster(
    initial: &BTreeMap<String, Vec<String>>,
    token: &str,
) -> Result<BTreeMap<MemberId, Member>, BootstrapError> {
    let mut seen = std::collections::BTreeSet::new();
    let mut members = BTreeMap::new();
    for (name, urls) in initial {
        if urls.is_empty() {
            return Err(BootstrapError::NoPeerUrl(name.clone()));
        }
        if let Some(url) = urls.iter().find(|url| !seen.insert((*url).clone())) {
            return Err(BootstrapError::DuplicateUrl(url.clone()));
        }
        let mut peer_urls = urls.clone();
        peer_urls.sort_unstable();
        let id = MemberId::compute(&peer_urls, token, None);
        if id.0 == 0 {
            return Err(BootstrapError::ZeroId);
        }
        let member = Member { id, peer_urls, name: name.clone(), ..Member::default() };
        if members.insert(id, member).is_some() {
            return Err(BootstrapError::SameId(id));
        }
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_cluster_has_a_url_for_each_member() {
        let initial = |pairs: &[(&str, &[&str])]| {
            pairs.iter().map(|(n, u)| (n.to_string(), u.iter().map(|u| u.to_string()).collect())).collect()
        };
        let none = initial(&[("a", &[])]);
        assert_eq!(members_of_new_cluster(&none, "t"), Err(BootstrapError::NoPeerUrl("a".into())));
        let twice = initial(&[("a", &["http://h:1"]), ("b", &["http://h:1"])]);
        assert_eq!(members_of_new_cluster(&twice, "t"), Err(BootstrapError::DuplicateUrl("http://h:1".into())));
    }
}
