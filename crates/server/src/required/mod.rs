//! Calls that require cluster features: gRPC metadata `require-feature`, with one name or several separated by commas in
//! each value. The call happens with all of them on, or fails with FAILED_PRECONDITION naming one that is off.
//!
//! A write carries the names inside its raft entry and is judged where it is applied. A read is judged at its read index,
//! a stream when it opens and whenever the gate changes, all else after a read index, before it runs ([`Kind`]). What a
//! call requires goes with its task ([`current`]) from the layer to where that is known. The key is echoed in the
//! response headers, because a real etcd ignores it, and a client must be able to tell.

mod held;
mod kind;
mod layer;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::{HeaderName, HeaderValue};
use membership::ClusterFeature;
use node::Node;
use tonic::Status;

pub use self::{kind::Kind, layer::RequireLayer};
use crate::status;

pub const KEY: HeaderName = HeaderName::from_static("require-feature");

tokio::task_local! {
    static CURRENT: Option<Required>;
}

/// What one call requires. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Required(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    features: Vec<ClusterFeature>,
    /// How far the gate was when all was last found on, as [`node::Gates::version`] counts.
    judged_at: AtomicU64,
}

const NOT_JUDGED: u64 = u64::MAX;

impl Required {
    /// Reads the metadata. Names that this binary does not know cannot be on in a cluster that it belongs to.
    pub fn parse(values: &[HeaderValue]) -> Result<Required, Status> {
        let mut features = Vec::new();
        for value in values {
            let text = std::str::from_utf8(value.as_bytes()).map_err(|_| status::bad_requirement("no text"))?;
            for name in text.split(',').map(str::trim) {
                let feature = feature(name)?;
                if !features.contains(&feature) {
                    features.push(feature);
                }
            }
        }
        Ok(Required(Arc::new(Inner { features, judged_at: AtomicU64::new(NOT_JUDGED) })))
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.features.iter().map(|feature| feature.name())
    }

    /// Whether all is on as far as this member has applied.
    pub fn judge(&self, node: &Node) -> Result<(), Status> {
        // Before the look at the features, so that no change falls between.
        let version = node.gates().version();
        let enabled = node.gates().enabled();
        if let Some(missing) = self.0.features.iter().find(|feature| !enabled.has(**feature)) {
            return Err(refusal(node, missing.name()));
        }
        self.0.judged_at.store(version, Ordering::Relaxed);
        Ok(())
    }

    fn judged_at(&self) -> Option<u64> {
        Some(self.0.judged_at.load(Ordering::Relaxed)).filter(|at| *at != NOT_JUDGED)
    }
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

/// What the call that this task serves requires, if anything.
pub fn current() -> Option<Required> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// Judges what the call of this task requires, as far as this member has applied.
pub fn judge_current(node: &Node) -> Result<(), Status> {
    CURRENT.try_with(|current| current.as_ref().map_or(Ok(()), |required| required.judge(node))).unwrap_or(Ok(()))
}

/// Runs the server's own work inside of a call, which must be done whatever the call requires.
pub async fn lifted<T>(work: impl Future<Output = T>) -> T {
    CURRENT.scope(None, work).await
}

/// Runs `work` as part of a call that requires features.
pub fn during<T>(required: Required, work: impl Future<Output = T>) -> impl Future<Output = T> {
    CURRENT.scope(Some(required), work)
}

#[cfg(test)]
mod tests {
    use test_case::test_case;
    use tonic::Code;

    use super::*;

    fn parse(values: &[&'static [u8]]) -> Result<Vec<&'static str>, (Code, String)> {
        let values = values.iter().map(|value| HeaderValue::from_bytes(value).expect("a header value"));
        let parsed = Required::parse(&values.collect::<Vec<_>>());
        parsed.map(|required| required.names().collect()).map_err(|e| (e.code(), e.message().to_owned()))
    }

    #[test_case(&[b"AtomicIncrement"] => vec!["AtomicIncrement"]; "one")]
    #[test_case(&[b"PersistedLeaseCheckpoints, AtomicIncrement"] => vec!["PersistedLeaseCheckpoints", "AtomicIncrement"]; "separated by a comma")]
    #[test_case(&[b"AtomicIncrement", b"PersistedLeaseCheckpoints,AtomicIncrement"] => vec!["AtomicIncrement", "PersistedLeaseCheckpoints"]; "several values")]
    fn names(values: &[&'static [u8]]) -> Vec<&'static str> {
        parse(values).expect("well-formed")
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
