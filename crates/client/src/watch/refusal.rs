//! Why a server has ended a watch, which it tells in words.

use proto::etcdserverpb::WatchResponse;
use tonic::Code;

use crate::{Error, Kind};

/// What stands behind a response that cancels.
pub(super) fn error(response: &WatchResponse) -> Error {
    if response.compact_revision != 0 {
        return Error::from_kind(Kind::Compacted);
    }
    match response.cancel_reason.as_str() {
        "" => Error::from_kind(Kind::FutureRevision),
        // Errors of users come as gRPC prints them, with their code.
        reason => kind(reason).map_or_else(|| other(reason), Error::from_kind),
    }
}

fn kind(reason: &str) -> Option<Kind> {
    let (_, message) = reason.strip_prefix("rpc error: code = ")?.split_once(" desc = ")?;
    Kind::of(message)
}

fn other(reason: &str) -> Error {
    Error::Etcd { code: Code::FailedPrecondition, message: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_recognised() {
        let of = |reason: &str| error(&WatchResponse { cancel_reason: reason.to_owned(), ..Default::default() });
        let denied = of("rpc error: code = PermissionDenied desc = etcdserver: permission denied");
        assert_eq!(denied.kind(), Some(Kind::PermissionDenied));
        assert_eq!(of("").kind(), Some(Kind::FutureRevision));
        let strange = of("rpc error: code = Unknown desc = a new one");
        assert!(matches!(strange, Error::Etcd { code: Code::FailedPrecondition, .. }), "{strange:?}");
    }
}
