//! Requests of the v2 API in logs of etcd 3.5 and 3.6: recognised, and turned into the requests of today that do the same.
//!
//! A normal entry of such a log is an `InternalRaftRequest`, or a bare v2 `Request`, or an `InternalRaftRequest` with a
//! v2 `Request` in field 2. etcd 3.6 takes two of them, as 3.5 members publish themselves and the cluster version so,
//! and panics at any other; 3.7 and newer know none.

use bytes::Bytes;
use prost::Message;

use crate::{
    MinVersion,
    etcdserverpb::{InternalRaftRequest, Request, RequestHeader},
    membershippb::{Attributes, ClusterMemberAttrSetRequest, ClusterVersionSetRequest},
    min_version,
    wire::{self, Value},
};

/// A v2 request found in a log entry.
#[derive(Clone, Debug, PartialEq)]
pub struct V2Request(Request);

/// What a v2 request does, as far as etcd 3.6 still applies it.
#[derive(Clone, Debug, PartialEq)]
pub enum V2Change {
    /// A member tells its name and client URLs, or the cluster version is set.
    Today(Box<InternalRaftRequest>),
    /// No etcd since 3.6 applies it: what it asks for.
    Unsupported(String),
}

/// Every method that a v2 request in a log can have.
const METHODS: &[&str] = &["GET", "QGET", "HEAD", "PUT", "POST", "DELETE", "SYNC"];

#[derive(serde::Deserialize)]
struct MemberAttributes {
    #[serde(default)]
    name: String,
    #[serde(rename = "clientURLs", default)]
    client_urls: Option<Vec<String>>,
}

impl V2Request {
    /// The v2 request in the data of a normal entry, if that is what it is.
    pub fn recognise(data: &Bytes) -> Option<V2Request> {
        Self::bare(data).or_else(|| Self::wrapped(data))
    }

    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Method and path, for messages.
    pub fn describe(&self) -> String {
        format!("{} {:?}", self.0.method(), self.0.path())
    }

    /// The request of today that changes the same.
    pub fn change(&self) -> V2Change {
        let unsupported = || V2Change::Unsupported(self.describe());
        if self.0.method() != "PUT" {
            return unsupported();
        }
        let mut request = InternalRaftRequest {
            header: Some(RequestHeader { id: self.id(), ..Default::default() }),
            ..Default::default()
        };
        if self.0.path() == "/0/version" {
            request.cluster_version_set =
                Some(ClusterVersionSetRequest { ver: self.0.val().to_owned(), feature_gates: None });
        } else if let Some(set) = self.attributes() {
            request.cluster_member_attr_set = Some(set);
        } else {
            return unsupported();
        }
        V2Change::Today(Box::new(request))
    }

    fn attributes(&self) -> Option<ClusterMemberAttrSetRequest> {
        let id = self.0.path().strip_prefix("/0/members/")?.strip_suffix("/attributes")?;
        let is_id = (1..=16).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit());
        let member_id = is_id.then(|| u64::from_str_radix(id, 16).ok()).flatten()?;
        let told: MemberAttributes = serde_json::from_str(self.0.val()).ok()?;
        let attributes = Attributes {
            name: told.name,
            client_urls: told.client_urls.unwrap_or_default(),
            proposed_feature_gates: None,
        };
        Some(ClusterMemberAttrSetRequest { member_id, member_attributes: Some(attributes) })
    }

    fn bare(data: &[u8]) -> Option<V2Request> {
        // A request of today has a header, which v2 does not know, and no text in the place of the method.
        if !matches!(min_version::<Request>(data), Ok(MinVersion::Known(_))) {
            return None;
        }
        let request = Request::decode(data).ok()?;
        METHODS.contains(&request.method()).then_some(V2Request(request))
    }

    fn wrapped(mut data: &[u8]) -> Option<V2Request> {
        while let Some((number, value)) = wire::next_field(&mut data).ok()? {
            if let (2, Value::Bytes(inner)) = (number, value) {
                return Self::bare(inner);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::etcdserverpb::PutRequest;

    fn v2(method: &str, path: &str, val: &str) -> Request {
        Request {
            id: Some(7),
            method: Some(method.into()),
            path: Some(path.into()),
            val: Some(val.into()),
            // As gogoproto writes them: zeros are there.
            dir: Some(false),
            prev_value: Some(String::new()),
            time: Some(0),
            ..Default::default()
        }
    }

    fn recognised(request: &Request) -> V2Request {
        let bare: Bytes = request.encode_to_vec().into();
        let found = V2Request::recognise(&bare).expect("a bare request");
        let mut wrapped = vec![8, 7, 18, u8::try_from(bare.len()).expect("a short request")];
        wrapped.extend_from_slice(&bare);
        assert_eq!(V2Request::recognise(&wrapped.into()), Some(found.clone()));
        found
    }

    #[test]
    fn attributes_and_version_become_requests_of_today() {
        let V2Change::Today(request) = recognised(&v2("PUT", "/0/version", "3.5.0")).change() else { panic!() };
        assert_eq!(request.cluster_version_set.expect("a version").ver, "3.5.0");
        assert_eq!(request.header.expect("a header").id, 7);
        let json = r#"{"name":"a","clientURLs":["http://x:1"]}"#;
        let V2Change::Today(request) = recognised(&v2("PUT", "/0/members/8e9e05c52164694d/attributes", json)).change()
        else {
            panic!()
        };
        let set = request.cluster_member_attr_set.expect("attributes");
        assert_eq!(set.member_id, 0x8e9e_05c5_2164_694d);
        let attributes = set.member_attributes.expect("attributes");
        assert_eq!((attributes.name.as_str(), attributes.client_urls), ("a", vec!["http://x:1".to_owned()]));
    }

    #[test_case("PUT", "/1/k"; "a key of a user")]
    #[test_case("DELETE", "/0/version"; "another method")]
    #[test_case("PUT", "/0/members/xyz/attributes"; "no id")]
    #[test_case("PUT", "/0/members/1/raftAttributes"; "other attributes")]
    #[test_case("SYNC", ""; "expiry of keys")]
    fn anything_else_is_named(method: &str, path: &str) {
        let change = recognised(&v2(method, path, "{}")).change();
        assert_eq!(change, V2Change::Unsupported(format!("{method} {path:?}")));
    }

    #[test]
    fn requests_of_today_are_not_taken_for_it() {
        let put = PutRequest { key: "PUT".into(), value: "/0/version".into(), ..Default::default() };
        let header = Some(RequestHeader { id: 5, ..Default::default() });
        for request in [
            InternalRaftRequest { header: header.clone(), put: Some(put.clone()), ..Default::default() },
            InternalRaftRequest { id: 5, put: Some(put), ..Default::default() },
            InternalRaftRequest { header, ..Default::default() },
        ] {
            assert_eq!(V2Request::recognise(&request.encode_to_vec().into()), None);
        }
        assert_eq!(V2Request::recognise(&Bytes::new()), None);
        assert_eq!(V2Request::recognise(&Bytes::from_static(b"\x12\x03PUTx")), None);
    }
}
