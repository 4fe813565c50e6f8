//! The JSON of control requests, as Go's encoder writes it.

use membership::{Member, MemberId};
use serde::{Deserialize, Serialize};

use crate::member::HashKv;

/// A member as `/members` lists it.
#[derive(Debug, Serialize, Deserialize)]
pub struct MemberJson {
    id: u64,
    #[serde(rename = "peerURLs", default)]
    peer_urls: Option<Vec<String>>,
    #[serde(rename = "isLearner", default, skip_serializing_if = "std::ops::Not::not")]
    is_learner: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(rename = "clientURLs", default, skip_serializing_if = "no_urls")]
    client_urls: Option<Vec<String>>,
}

fn no_urls(urls: &Option<Vec<String>>) -> bool {
    urls.as_ref().is_none_or(Vec::is_empty)
}

pub(crate) fn member_list(members: &[Member]) -> Vec<MemberJson> {
    let json = |m: &Member| MemberJson {
        id: m.id.0,
        peer_urls: Some(m.peer_urls.clone()),
        is_learner: m.is_learner,
        name: m.name.clone(),
        client_urls: Some(m.client_urls.clone()),
    };
    members.iter().map(json).collect()
}

impl From<MemberJson> for Member {
    fn from(json: MemberJson) -> Member {
        Member {
            id: MemberId(json.id),
            peer_urls: json.peer_urls.unwrap_or_default(),
            is_learner: json.is_learner,
            name: json.name,
            client_urls: json.client_urls.unwrap_or_default(),
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HashKvRequest {
    #[serde(default, skip_serializing_if = "is_zero")]
    pub revision: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HashKvJson {
    header: Header,
    #[serde(skip_serializing_if = "is_zero")]
    hash: u32,
    #[serde(skip_serializing_if = "is_zero")]
    compact_revision: i64,
    #[serde(skip_serializing_if = "is_zero")]
    hash_revision: i64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Header {
    #[serde(default, skip_serializing_if = "is_zero")]
    revision: i64,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl From<HashKv> for HashKvJson {
    fn from(h: HashKv) -> HashKvJson {
        let header = Header { revision: h.revision };
        HashKvJson { header, hash: h.hash, compact_revision: h.compact_revision, hash_revision: h.hash_revision }
    }
}

impl From<HashKvJson> for HashKv {
    fn from(j: HashKvJson) -> HashKv {
        let revision = j.header.revision;
        HashKv { revision, hash: j.hash, compact_revision: j.compact_revision, hash_revision: j.hash_revision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_as_etcd_does() {
        let learner = Member {
            id: MemberId(u64::MAX),
            peer_urls: vec!["http://a:1".into()],
            is_learner: true,
            ..Default::default()
        };
        let started = Member {
            id: MemberId(7),
            peer_urls: vec!["http://b:1".into()],
            name: "b".into(),
            client_urls: vec!["http://b:2".into()],
            ..Default::default()
        };
        let text = serde_json::to_string(&member_list(&[learner.clone(), started.clone()])).unwrap();
        let expected = concat!(
            r#"[{"id":18446744073709551615,"peerURLs":["http://a:1"],"isLearner":true},"#,
            r#"{"id":7,"peerURLs":["http://b:1"],"name":"b","clientURLs":["http://b:2"]}]"#
        );
        assert_eq!(text, expected);
        let read: Vec<MemberJson> = serde_json::from_str(&text).unwrap();
        assert_eq!(read.into_iter().map(Member::from).collect::<Vec<_>>(), [learner, started]);
        let null: MemberJson = serde_json::from_str(r#"{"id":1,"peerURLs":null}"#).unwrap();
        assert!(Member::from(null).peer_urls.is_empty());
    }

    #[test]
    fn hashes_are_written_as_etcd_does() {
        let hash = HashKv { revision: 9, hash: 4_000_000_000, compact_revision: 0, hash_revision: 8 };
        let text = serde_json::to_string(&HashKvJson::from(hash)).unwrap();
        assert_eq!(text, r#"{"header":{"revision":9},"hash":4000000000,"hash_revision":8}"#);
        assert_eq!(HashKv::from(serde_json::from_str::<HashKvJson>(&text).unwrap()), hash);
        assert_eq!(serde_json::to_string(&HashKvRequest::default()).unwrap(), "{}");
    }
}
