//! A change of the configuration, read from a log entry and written to one.

use bytes::Bytes;
use proto::raftpb::{ConfChange, ConfChangeType};
use serde::{Deserialize, Serialize};

use crate::{Member, MemberId};

/// What a configuration change asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// In an old log the entry's own type and the member's flag may disagree; raft follows the type, the record the
    /// flag, and the limit of learners holds where both say learner, all as in etcd. [`Change::decode_proposed`]
    /// refuses such a change.
    Add {
        member: Member,
        as_learner: bool,
    },
    Promote(MemberId),
    Remove(MemberId),
    /// Only the peer URLs are taken.
    Update {
        id: MemberId,
        peer_urls: Vec<String>,
    },
}

/// A change that no member can apply; etcd panics on each of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadChange {
    #[error("configuration change of unknown type {0}; the right ones are 0 to 3")]
    UnknownType(i32),
    #[error("the configuration change for member {id} holds no member that can be read: {why}")]
    Context { id: MemberId, why: String },
    #[error("the configuration change is for member {id} but holds member {found}; both must be the same")]
    OtherMember { id: MemberId, found: MemberId },
    #[error("the configuration change names no member: its id is 0")]
    NoMember,
    #[error(
        "the configuration change for member {id} is of type {kind:?}, but its context {context}: \
         raft and the records of members would differ from then on"
    )]
    Contradiction { id: MemberId, kind: ConfChangeType, context: &'static str },
}

impl Change {
    pub fn id(&self) -> MemberId {
        match self {
            Change::Add { member, .. } => member.id,
            Change::Promote(id) | Change::Remove(id) | Change::Update { id, .. } => *id,
        }
    }

    pub fn decode(change: &ConfChange) -> Result<Change, BadChange> {
        let number = change.r#type.unwrap_or_default();
        let kind = ConfChangeType::try_from(number).map_err(|_| BadChange::UnknownType(number))?;
        let id = MemberId(change.node_id());
        if kind == ConfChangeType::ConfChangeRemoveNode {
            return Ok(Change::Remove(id));
        }
        let context = Context::decode(id, change.context.as_deref().unwrap_or_default())?;
        Ok(match kind {
            ConfChangeType::ConfChangeUpdateNode => {
                Change::Update { id, peer_urls: context.peer_urls.unwrap_or_default() }
            }
            _ if context.is_promote => Change::Promote(id),
            _ => Change::Add {
                member: context.into_member(),
                as_learner: kind == ConfChangeType::ConfChangeAddLearnerNode,
            },
        })
    }

    /// Decodes a change that is about to be logged. Raft follows the type of the change, and the records of members
    /// follow its context, so a change in which they disagree would stop each member that applies it, at every replay.
    pub fn decode_proposed(change: &ConfChange) -> Result<Change, BadChange> {
        let decoded = Change::decode(change)?;
        let (id, kind) = (decoded.id(), change.r#type());
        let contradicts = |context| Err(BadChange::Contradiction { id, kind, context });
        match &decoded {
            _ if id.0 == 0 => Err(BadChange::NoMember),
            Change::Add { member, as_learner: false } if member.is_learner => contradicts("adds a learner"),
            Change::Add { member, as_learner: true } if !member.is_learner => contradicts("adds a voter"),
            Change::Promote(_) if kind != ConfChangeType::ConfChangeAddNode => contradicts("promotes a learner"),
            _ => Ok(decoded),
        }
    }

    /// The change as a log entry carries it, with etcd's bytes.
    pub fn encode(&self, request_id: u64) -> ConfChange {
        let (kind, context) = match self {
            Change::Add { member, as_learner: false } => (ConfChangeType::ConfChangeAddNode, Some(json(member))),
            Change::Add { member, as_learner: true } => (ConfChangeType::ConfChangeAddLearnerNode, Some(json(member))),
            Change::Promote(id) => {
                let text = format!(r#"{{"id":{},"peerURLs":null,"isPromote":true}}"#, id.0);
                (ConfChangeType::ConfChangeAddNode, Some(Bytes::from(text)))
            }
            Change::Remove(_) => (ConfChangeType::ConfChangeRemoveNode, None),
            Change::Update { id, peer_urls } => {
                let member = Member { id: *id, peer_urls: peer_urls.clone(), ..Member::default() };
                (ConfChangeType::ConfChangeUpdateNode, Some(json(&member)))
            }
        };
        ConfChange { id: Some(request_id), r#type: Some(kind as i32), node_id: Some(self.id().0), context }
    }
}

/// A member in etcd's JSON, with the flag that tells a promotion from an addition.
#[derive(Default, Serialize, Deserialize)]
struct Context {
    id: u64,
    #[serde(rename = "peerURLs", default)]
    peer_urls: Option<Vec<String>>,
    #[serde(rename = "isLearner", default, skip_serializing_if = "std::ops::Not::not")]
    is_learner: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "clientURLs", default, skip_serializing_if = "Option::is_none")]
    client_urls: Option<Vec<String>>,
    #[serde(rename = "isPromote", default, skip_serializing)]
    is_promote: bool,
}

impl Context {
    fn decode(id: MemberId, json: &[u8]) -> Result<Context, BadChange> {
        let context: Context =
            serde_json::from_slice(json).map_err(|e| BadChange::Context { id, why: e.to_string() })?;
        match MemberId(context.id) {
            found if found == id => Ok(context),
            found => Err(BadChange::OtherMember { id, found }),
        }
    }

    fn into_member(self) -> Member {
        Member {
            id: MemberId(self.id),
            peer_urls: self.peer_urls.unwrap_or_default(),
            is_learner: self.is_learner,
            name: self.name.unwrap_or_default(),
            client_urls: self.client_urls.unwrap_or_default(),
        }
    }
}

/// As Go writes it: `<`, `>`, `&` and the two line separators of JavaScript are escaped.
fn json(member: &Member) -> Bytes {
    let context = Context {
        id: member.id.0,
        peer_urls: Some(member.peer_urls.clone()),
        is_learner: member.is_learner,
        name: Some(member.name.clone()).filter(|name| !name.is_empty()),
        client_urls: Some(member.client_urls.clone()).filter(|urls| !urls.is_empty()),
        is_promote: false,
    };
    let text = serde_json::to_string(&context).unwrap_or_default();
    let escaped = text
        .replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    Bytes::from(escaped)
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use proto::raftpb::Entry;
    use test_case::test_case;

    use super::*;

    fn member() -> Member {
        Member { id: MemberId(u64::MAX), peer_urls: vec!["http://a:1".into()], is_learner: true, ..Member::default() }
    }

    #[test_case(Change::Add { member: member(), as_learner: true }, 3, r#"{"id":18446744073709551615,"peerURLs":["http://a:1"],"isLearner":true}"#; "add a learner")]
    #[test_case(Change::Promote(MemberId(7)), 0, r#"{"id":7,"peerURLs":null,"isPromote":true}"#; "promote")]
    #[test_case(Change::Remove(MemberId(7)), 1, ""; "remove")]
    #[test_case(Change::Update { id: MemberId(7), peer_urls: vec!["http://a:1/?x&y".into()] }, 2, r#"{"id":7,"peerURLs":["http://a:1/?x\u0026y"]}"#; "update")]
    fn comes_back_from_its_entry(change: Change, kind: i32, context: &str) {
        let entry = change.encode(5);
        assert_eq!((entry.id(), entry.r#type.unwrap_or(-1)), (5, kind));
        assert_eq!(entry.context.as_deref().unwrap_or_default(), context.as_bytes());
        assert_eq!(Change::decode(&entry), Ok(change));
    }

    #[test_case(9, 1, "{}" => BadChange::UnknownType(9); "type")]
    #[test_case(0, 1, r#"{"id":2}"# => BadChange::OtherMember { id: MemberId(1), found: MemberId(2) }; "other member")]
    fn refuses(kind: i32, id: u64, context: &'static str) -> BadChange {
        let context = Some(Bytes::from_static(context.as_bytes()));
        let change = ConfChange { id: Some(1), r#type: Some(kind), node_id: Some(id), context };
        Change::decode(&change).expect_err("a bad change")
    }

    #[test_case(0, r#"{"id":1,"peerURLs":[]}"# => None; "a voter")]
    #[test_case(3, r#"{"id":1,"peerURLs":[],"isLearner":true}"# => None; "a learner")]
    #[test_case(0, r#"{"id":1,"peerURLs":null,"isPromote":true}"# => None; "a promotion")]
    #[test_case(2, r#"{"id":1,"peerURLs":[],"isLearner":true}"# => None; "an update takes the URLs alone")]
    #[test_case(1, "" => None; "a removal has no context")]
    #[test_case(0, r#"{"id":1,"peerURLs":[],"isLearner":true}"# => Some("adds a learner"); "a learner as a voter")]
    #[test_case(3, r#"{"id":1,"peerURLs":[]}"# => Some("adds a voter"); "a voter as a learner")]
    #[test_case(3, r#"{"id":1,"peerURLs":[],"isPromote":true}"# => Some("promotes a learner"); "promotion as a learner")]
    fn contradiction(kind: i32, context: &'static str) -> Option<&'static str> {
        let context = Some(Bytes::from_static(context.as_bytes()));
        let change = ConfChange { id: Some(1), r#type: Some(kind), node_id: Some(1), context };
        let entry = Entry { r#type: Some(1), data: Some(change.encode_to_vec().into()), ..Default::default() };
        let refused = crate::may_log(&entry, None).err();
        assert!(Change::decode(&change).is_ok(), "an old log may hold it");
        match Change::decode_proposed(&change) {
            Err(BadChange::Contradiction { context, .. }) => {
                assert!(refused.is_some());
                Some(context)
            }
            other => {
                assert!(other.is_ok() && refused.is_none(), "{other:?}");
                None
            }
        }
    }

    #[test]
    fn no_member_has_the_id_0() {
        let context = Some(Bytes::from_static(b"{\"id\":0}"));
        let change = ConfChange { r#type: Some(0), context, ..Default::default() };
        assert_eq!(Change::decode_proposed(&change), Err(BadChange::NoMember));
    }

    #[test]
    fn refuses_what_is_not_json() {
        let change = ConfChange { id: Some(1), r#type: Some(0), node_id: Some(1), context: None };
        assert!(matches!(Change::decode(&change), Err(BadChange::Context { .. })));
    }
}
