//! Calls that require cluster features: gRPC metadata `require-feature`, with one name or several separated by commas in
//! each value. The call happens with all of them on, or fails with FAILED_PRECONDITION naming one that is off.
//!
//! A write carries the names inside its raft entry and is judged where it is applied. A read is judged at its read index,
//! a stream when it opens and whenever the gate changes, all else after a read index, before it runs ([`Kind`]). What a
//! call requires goes with its task ([`call`]) from the layer to where that is known. The key is echoed in the
//! response headers, because a real etcd ignores it, and a client must be able to tell.

mod held;
mod kind;
mod layer;

use std::cell::RefCell;

use http::{HeaderMap, HeaderName, HeaderValue};
use membership::{ClusterFeature, ClusterFeatures};
use node::Node;
use tonic::Status;

pub(crate) use self::{
    kind::Kind,
    layer::{RequireLayer, RequireService},
};
use crate::{call, status};

pub(crate) const KEY: HeaderName = HeaderName::from_static("require-feature");

/// What one call requires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Required {
    pub(crate) features: ClusterFeatures,
    /// How far the gate was when all was last found on, as [`node::Gates::version`] counts.
    pub(crate) judged_at: Option<u64>,
}

thread_local! {
    /// What was read last. Clients say the same in every call, and reading it again costs more than the rest.
    static READ_LAST: RefCell<Option<(HeaderValue, ClusterFeatures)>> = const { RefCell::new(None) };
}

impl Required {
    /// Reads the metadata. Names that this binary does not know cannot be on in a cluster that it belongs to.
    pub(crate) fn parse(values: &Values) -> Result<Required, Status> {
        let features = match values {
            Values { first, more } if more.is_empty() => READ_LAST.with_borrow_mut(|last| read_again(last, first))?,
            values => read(values.iter())?,
        };
        Ok(Required { features, judged_at: None })
    }

    pub(crate) fn features(self) -> ClusterFeatures {
        self.features
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        self.features.iter().map(ClusterFeature::name)
    }

    /// Whether all is on as far as this member has applied.
    pub(crate) fn judge(&mut self, node: &Node) -> Result<(), Status> {
        // Before the look at the features, so that no change falls between.
        let version = node.gates().version();
        if let Some(missing) = self.features.off(node.gates().enabled()).first() {
            return Err(refusal(node, missing.name()));
        }
        self.judged_at = Some(version);
        Ok(())
    }
}

/// The values of the key in one call; as a rule there is one.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    first: HeaderValue,
    more: Vec<HeaderValue>,
}

impl Values {
    pub(crate) fn of(headers: &HeaderMap) -> Option<Values> {
        let mut values = headers.get_all(KEY).iter();
        let first = values.next()?.clone();
        Some(Values { first, more: values.cloned().collect() })
    }

    fn iter(&self) -> impl Iterator<Item = &HeaderValue> {
        std::iter::once(&self.first).chain(&self.more)
    }
}

fn read_again(
    last: &mut Option<(HeaderValue, ClusterFeatures)>,
    value: &HeaderValue,
) -> Result<ClusterFeatures, Status> {
    if let Some((before, features)) = last
        && before == value
    {
        return Ok(*features);
    }
    let features = read(std::iter::once(value))?;
    // A copy, since the value is a part of the buffer that it came in.
    *last = HeaderValue::from_bytes(value.as_bytes()).ok().map(|value| (value, features));
    Ok(features)
}

fn read<'a>(values: impl Iterator<Item = &'a HeaderValue>) -> Result<ClusterFeatures, Status> {
    let mut features = ClusterFeatures::default();
    for value in values {
        let text = std::str::from_utf8(value.as_bytes()).map_err(|_| status::bad_requirement("no text"))?;
        for name in text.split(',').map(str::trim) {
            features.insert(feature(name)?);
        }
    }
    Ok(features)
}

fn feature(name: &str) -> Result<ClusterFeature, Status> {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(legal) {
        return Err(status::bad_requirement(name));
    }
    ClusterFeature::find(name).ok_or_else(|| status::required_unknown(name))
}

fn refusal(node: &Node, feature: &str) -> Status {
    match node.cluster_version() {
        Some(version) if version >= membership::gate::GATE_SINCE => status::feature_off(feature),
        version => status::feature_needs_version(feature, version),
    }
}

/// Judges what the call of this task requires, as far as this member has applied.
pub(crate) fn judge_current(node: &Node) -> Result<(), Status> {
    call::with_required(|required| required.judge(node)).unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;
    use tonic::Code;

    use super::*;

    fn parse(values: &[&'static [u8]]) -> Result<Vec<&'static str>, (Code, String)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(KEY, HeaderValue::from_bytes(value).expect("a header value"));
        }
        let parsed = Required::parse(&Values::of(&headers).expect("values"));
        parsed.map(|required| required.names().collect()).map_err(|e| (e.code(), e.message().to_owned()))
    }

    #[test_case(&[b"AtomicIncrement"] => vec!["AtomicIncrement"]; "one")]
    #[test_case(&[b"PersistedLeaseCheckpoints, AtomicIncrement"] => vec!["AtomicIncrement", "PersistedLeaseCheckpoints"]; "separated by a comma")]
    #[test_case(&[b"AtomicIncrement", b"PersistedLeaseCheckpoints,AtomicIncrement"] => vec!["AtomicIncrement", "PersistedLeaseCheckpoints"]; "several values")]
    fn names(values: &[&'static [u8]]) -> Vec<&'static str> {
        parse(values).expect("well-formed")
    }

    /// What was read before is read no more, and changes nothing that comes after.
    #[test]
    fn the_same_and_others_in_turn() {
        for _ in 0..2 {
            assert_eq!(names(&[b"AtomicIncrement"]), ["AtomicIncrement"]);
            assert_eq!(names(&[b"AtomicIncrement"]), ["AtomicIncrement"]);
            assert!(parse(&[b"AtomicIncrement,"]).is_err());
            assert_eq!(names(&[b"PersistedLeaseCheckpoints"]), ["PersistedLeaseCheckpoints"]);
            assert!(parse(&[b"NoSuchFeature"]).is_err());
            assert!(parse(&[b"NoSuchFeature"]).is_err());
        }
    }

    #[test_case(&[b""]; "empty")]
    #[test_case(&[b"AtomicIncrement,"]; "an empty name at the end")]
    #[test_case(&[b"AtomicIncrement", b""]; "an empty value among others")]
    #[test_case(&[b"AtomicIncrement=true"]; "a flag")]
    #[test_case(&[b"Atomic Increment"]; "a space")]
    #[test_case(&[b"\xff"]; "no text")]
    fn malformed(values: &[&'static [u8]]) {
        let (code, text) = parse(values).expect_err("malformed");
        assert_eq!(code, Code::InvalidArgument);
        assert!(text.contains("require-feature") && text.contains("AtomicIncrement"), "{text}");
    }

    // A server feature is a member's own affair; nothing about it is agreed.
    #[test_case(b"NoSuchFeature"; "a name that nobody knows")]
    #[test_case(b"LeaseCheckpoint"; "a server feature")]
    fn unknown(value: &'static [u8]) {
        let (code, text) = parse(&[value]).expect_err("unknown");
        assert_eq!(code, Code::FailedPrecondition);
        assert!(text.contains(std::str::from_utf8(value).expect("text")), "{text}");
    }
}
