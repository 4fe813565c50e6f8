//! The headers by which members introduce themselves, and what is refused because of them. Pure.

use http::{HeaderMap, HeaderName, HeaderValue};
use membership::{ClusterId, MemberId, gate::GATE_SINCE};
use proto::Version;

pub const SERVER_FROM: HeaderName = HeaderName::from_static("x-server-from");
pub const SERVER_VERSION: HeaderName = HeaderName::from_static("x-server-version");
pub const MIN_CLUSTER_VERSION: HeaderName = HeaderName::from_static("x-min-cluster-version");
pub const CLUSTER_ID: HeaderName = HeaderName::from_static("x-etcd-cluster-id");
pub const PEER_URLS: HeaderName = HeaderName::from_static("x-peerurls");
pub const RAFT_TO: HeaderName = HeaderName::from_static("x-raft-to");
/// Tells members of ours from real etcd's, which ignore it.
pub const LOCKGATE_VERSION: HeaderName = HeaderName::from_static("x-lockgate-version");

/// What a member that sends no version is: the last release that sent none.
const UNSAID_VERSION: Version = Version::new(2, 0);
/// The first release with today's streams.
const FIRST_WITH_STREAMS: Version = Version::new(2, 1);

/// Who this member is, in the form of headers.
#[derive(Clone, Debug)]
pub struct Identity {
    pub local: MemberId,
    pub cluster: ClusterId,
    /// Of this binary, such as 3.8.0.
    pub server_version: String,
    /// The oldest cluster version that this binary works with.
    pub min_cluster_version: String,
    /// Under which others reach this member.
    pub peer_urls: Vec<String>,
    /// Ours alone.
    pub lockgate_version: String,
}

/// Why a request is refused with 412. The texts are etcd's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    #[error("incompatible version")]
    Version,
    #[error("cluster ID mismatch")]
    ClusterId,
    /// Not etcd's: its members take it for an error they do not know, and print it.
    #[error("the cluster is at version 3.8 or higher, which only lockgate members can follow; this member is not one")]
    NotOurs,
}

impl Identity {
    /// The headers of a request to a peer.
    pub fn request_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        insert(&mut headers, SERVER_FROM, &self.local.to_string());
        insert(&mut headers, SERVER_VERSION, &self.server_version);
        insert(&mut headers, MIN_CLUSTER_VERSION, &self.min_cluster_version);
        insert(&mut headers, CLUSTER_ID, &self.cluster.to_string());
        insert(&mut headers, LOCKGATE_VERSION, &self.lockgate_version);
        if !self.peer_urls.is_empty() {
            insert(&mut headers, PEER_URLS, &self.peer_urls.join(","));
        }
        headers
    }

    /// Whether a request with these headers comes from a member that this one can work with.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Incompatible> {
        let remote = version(headers, &SERVER_VERSION).ok_or(Incompatible::Version)?;
        let remote_min = version(headers, &MIN_CLUSTER_VERSION).ok_or(Incompatible::Version)?;
        let own = self.server_version.parse().map_err(|_| Incompatible::Version)?;
        let own_min = self.min_cluster_version.parse().map_err(|_| Incompatible::Version)?;
        if remote < own_min || remote_min > own {
            return Err(Incompatible::Version);
        }
        if text(headers, &CLUSTER_ID) != self.cluster.to_string() {
            return Err(Incompatible::ClusterId);
        }
        Ok(())
    }
}

/// Whether who sent these headers says that it is one of ours, and new enough to have a feature gate.
pub fn is_ours(headers: &HeaderMap) -> bool {
    text(headers, &LOCKGATE_VERSION).parse().is_ok_and(|version: Version| version >= GATE_SINCE)
}

/// The version in a header. `None` if it is there and is none.
fn version(headers: &HeaderMap, name: &HeaderName) -> Option<Version> {
    match text(headers, name) {
        "" => Some(UNSAID_VERSION),
        text => text.parse().ok(),
    }
}

/// Whether the member that answered a dial with these headers has the streams.
pub fn supports_streams(headers: &HeaderMap) -> bool {
    version(headers, &SERVER_VERSION).is_some_and(|v| v >= FIRST_WITH_STREAMS)
}

/// The sender of a request and where it says it can be reached.
pub fn sender(headers: &HeaderMap) -> Option<(MemberId, Vec<String>)> {
    let id = parse_id(text(headers, &SERVER_FROM))?;
    let urls = peer_urls(headers);
    (!urls.is_empty()).then_some((MemberId(id), urls))
}

pub fn peer_urls(headers: &HeaderMap) -> Vec<String> {
    text(headers, &PEER_URLS).split(',').filter(|url| !url.is_empty()).map(String::from).collect()
}

/// An id as etcd prints it: hex.
pub fn parse_id(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// A header's text; empty if it is not there or is not text.
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Sets a header. A value that cannot stand in one is left out, and the other side refuses what lacks it.
pub fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn identity() -> Identity {
        Identity {
            local: MemberId(0xa1),
            cluster: ClusterId(0xc1),
            server_version: "3.8.0".into(),
            min_cluster_version: "3.0.0".into(),
            peer_urls: vec!["http://a:1".into(), "http://a:2".into()],
            lockgate_version: "3.8.0".into(),
        }
    }

    #[test_case("3.7.3", "3.0.0", "c1" => Ok(()))]
    #[test_case("3.9.0", "3.8.0", "c1" => Ok(()))]
    #[test_case("3.8.0-alpha.0", "3.0.0", "c1" => Ok(()))]
    #[test_case("2.3.8", "2.1.0", "c1" => Err(Incompatible::Version) ; "remote too old")]
    #[test_case("3.9.0", "3.9.0", "c1" => Err(Incompatible::Version) ; "local too old")]
    #[test_case("", "", "c1" => Err(Incompatible::Version) ; "no version is 2.0")]
    #[test_case("new", "3.0.0", "c1" => Err(Incompatible::Version))]
    #[test_case("3.7.3", "3.0.0", "c2" => Err(Incompatible::ClusterId))]
    #[test_case("3.7.3", "3.0.0", "" => Err(Incompatible::ClusterId) ; "no cluster id")]
    #[test_case("2.3.8", "2.1.0", "c2" => Err(Incompatible::Version) ; "the version is looked at first")]
    fn checks(server: &str, min: &str, cluster: &str) -> Result<(), Incompatible> {
        let mut headers = HeaderMap::new();
        for (name, value) in [(SERVER_VERSION, server), (MIN_CLUSTER_VERSION, min), (CLUSTER_ID, cluster)] {
            if !value.is_empty() {
                insert(&mut headers, name, value);
            }
        }
        identity().check(&headers)
    }

    #[test]
    fn own_headers_pass_and_name_the_sender() {
        let headers = identity().request_headers();
        assert_eq!(identity().check(&headers), Ok(()));
        assert_eq!(sender(&headers), Some((MemberId(0xa1), vec!["http://a:1".into(), "http://a:2".into()])));
        assert!(is_ours(&headers) && !is_ours(&HeaderMap::new()));
        assert!(supports_streams(&headers));
        assert!(!supports_streams(&HeaderMap::new()));
        assert_eq!(sender(&HeaderMap::new()), None);
    }

    #[test_case("8e9e05c52164694d" => Some(0x8e9e05c52164694d))]
    #[test_case("" => None)]
    #[test_case("+1" => None)]
    #[test_case("10000000000000000" => None ; "too long")]
    fn ids(text: &str) -> Option<u64> {
        parse_id(text)
    }
}
