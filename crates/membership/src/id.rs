//! Ids as etcd computes and prints them.

use std::fmt;

use sha1::{Digest, Sha1};

/// A member's id: printed in lower-case hex without padding, as etcd does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemberId(pub u64);

/// A cluster's id, printed likewise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClusterId(pub u64);

impl MemberId {
    /// The id of a member with these peer URLs. `added` is set for members added at run time: the Unix time in
    /// seconds, so that a member added again after its removal is another member.
    pub fn compute(peer_urls: &[String], token: &str, added: Option<u64>) -> MemberId {
        let mut urls: Vec<_> = peer_urls.iter().map(String::as_str).collect();
        urls.sort_unstable();
        let mut hash = Sha1::new();
        for url in urls {
            hash.update(url.as_bytes());
        }
        hash.update(token.as_bytes());
        if let Some(seconds) = added {
            hash.update(seconds.to_string().as_bytes());
        }
        MemberId(first_8_bytes(hash))
    }
}

impl ClusterId {
    /// The id of a new cluster of these members.
    pub fn compute(members: impl IntoIterator<Item = MemberId>) -> ClusterId {
        let mut ids: Vec<_> = members.into_iter().collect();
        ids.sort_unstable();
        let mut hash = Sha1::new();
        for id in ids {
            hash.update(id.0.to_be_bytes());
        }
        ClusterId(first_8_bytes(hash))
    }
}

fn first_8_bytes(hash: Sha1) -> u64 {
    let digest = hash.finalize();
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(bytes)
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The ids that real etcd prints for its defaults.
    #[test]
    fn ids_are_etcds() {
        let id = MemberId::compute(&["http://localhost:2380".into()], "etcd-cluster", None);
        assert_eq!(id.to_string(), "8e9e05c52164694d");
        assert_eq!(ClusterId::compute([id]).to_string(), "cdf818194e3a8c32");
    }
}
