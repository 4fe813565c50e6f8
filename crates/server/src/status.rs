//! The one place where errors become gRPC codes and etcd's exact texts. Clients match on both.

use mvcc::check::RequestError;
use node::{ApplyError, ProposeError, ReadError};
use tonic::{Code, Status};

/// An answer that is an error, by the name etcd's clients know it.
macro_rules! statuses {
    ($($name:ident: $code:ident $text:literal,)*) => {
        $(pub fn $name() -> Status { Status::new(Code::$code, $text) })*

        /// Every status this server makes by name, for the golden table.
        #[cfg(test)]
        pub(crate) const ALL: &[(&str, fn() -> Status)] = &[$((stringify!($name), $name),)*];
    };
}

statuses! {
    empty_key: InvalidArgument "etcdserver: key is not provided",
    key_not_found: InvalidArgument "etcdserver: key not found",
    value_provided: InvalidArgument "etcdserver: value is provided",
    lease_provided: InvalidArgument "etcdserver: lease is provided",
    too_many_ops: InvalidArgument "etcdserver: too many operations in txn request",
    duplicate_key: InvalidArgument "etcdserver: duplicate key given in txn request",
    invalid_sort_option: InvalidArgument "etcdserver: invalid sort option",
    compacted: OutOfRange "etcdserver: mvcc: required revision has been compacted",
    future_revision: OutOfRange "etcdserver: mvcc: required revision is a future revision",
    no_space: ResourceExhausted "etcdserver: mvcc: database space exceeded",
    lease_not_found: NotFound "etcdserver: requested lease not found",
    lease_exists: FailedPrecondition "etcdserver: lease already exists",
    lease_ttl_too_large: OutOfRange "etcdserver: too large lease TTL",
    request_too_large: InvalidArgument "etcdserver: request is too large",
    too_many_requests: ResourceExhausted "etcdserver: too many requests",
    timeout: Unavailable "etcdserver: request timed out",
    stopped: Unavailable "etcdserver: server stopped",
    no_leader: Unavailable "etcdserver: no leader",
    invalid_client_api_version: InvalidArgument "etcdserver: invalid client api version",
    not_leader: FailedPrecondition "etcdserver: not leader",
    bad_leader_transferee: FailedPrecondition "etcdserver: bad leader transferee",
    corrupt: DataLoss "etcdserver: corrupt cluster",
    wrong_downgrade_version_format: InvalidArgument "etcdserver: wrong downgrade target version format",
    invalid_downgrade_target_version: InvalidArgument "etcdserver: invalid downgrade target version",
    downgrade_in_process: FailedPrecondition "etcdserver: cluster has a downgrade job in progress",
    no_inflight_downgrade: FailedPrecondition "etcdserver: no inflight downgrade job",
    cluster_version_unavailable: FailedPrecondition "etcdserver: cluster version not found during downgrade",
    stream_order: Unimplemented "RangeStream does not support custom sort orders",
    stream_filter: Unimplemented "RangeStream does not support revision filters",
}

/// Something that etcd has no name for.
pub fn unknown(text: impl Into<String>) -> Status {
    Status::new(Code::Unknown, text)
}

/// As grpc-go words it.
pub fn message_too_large(found: usize, max: usize) -> Status {
    Status::new(Code::ResourceExhausted, format!("grpc: received message larger than max ({found} vs. {max})"))
}

/// What a later version will do. Named, so that nobody takes it for a failure.
pub fn unsupported(what: &str) -> Status {
    Status::new(
        Code::Unimplemented,
        format!("lockgate: {what} is not supported by this version, which runs clusters of one member"),
    )
}

pub fn from_mvcc(error: &mvcc::Error) -> Status {
    match error {
        mvcc::Error::Compacted { .. } => compacted(),
        mvcc::Error::FutureRevision { .. } => future_revision(),
        mvcc::Error::KeyNotFound => key_not_found(),
        mvcc::Error::LeaseNotFound { .. } => lease_not_found(),
        other => unknown(other.to_string()),
    }
}

pub fn from_check(error: &RequestError) -> Status {
    match error {
        RequestError::EmptyKey => empty_key(),
        RequestError::EmptyOperation => key_not_found(),
        RequestError::ValueProvided => value_provided(),
        RequestError::LeaseProvided => lease_provided(),
        RequestError::TooManyOperations => too_many_ops(),
        RequestError::DuplicateKey => duplicate_key(),
        RequestError::InvalidSortOption => invalid_sort_option(),
        RequestError::StreamOrder => stream_order(),
        RequestError::StreamFilter => stream_filter(),
    }
}

/// The answer to a call of a method that the service does not have.
pub fn unknown_method(path: &str) -> http::Response<tonic::body::Body> {
    let (service, method) = service_and_method(path);
    Status::unimplemented(format!("unknown method {method} for service {service}")).into_http()
}

/// The answer to a call of a service that is not there.
pub fn unknown_service(path: &str) -> http::Response<tonic::body::Body> {
    Status::unimplemented(format!("unknown service {}", service_and_method(path).0)).into_http()
}

fn service_and_method(path: &str) -> (&str, &str) {
    path.trim_start_matches('/').rsplit_once('/').unwrap_or((path, ""))
}

pub fn from_lease(error: lease::Error) -> Status {
    match error {
        lease::Error::NotFound => lease_not_found(),
        lease::Error::Exists => lease_exists(),
        lease::Error::TtlTooLarge => lease_ttl_too_large(),
        lease::Error::NotPrimary => not_leader(),
    }
}

pub fn from_propose(error: &ProposeError) -> Status {
    match error {
        ProposeError::TooLarge => request_too_large(),
        ProposeError::TooManyRequests => too_many_requests(),
        ProposeError::Timeout => timeout(),
        ProposeError::Stopped => stopped(),
        ProposeError::Apply(error) => from_apply(error),
    }
}

pub fn from_read(error: ReadError) -> Status {
    match error {
        ReadError::Timeout => timeout(),
        ReadError::Stopped => stopped(),
    }
}

fn from_apply(error: &ApplyError) -> Status {
    match error {
        ApplyError::Mvcc(error) => from_mvcc(error),
        ApplyError::Lease(error) => from_lease(*error),
        ApplyError::Membership(error) => unknown(error.to_string()),
        ApplyError::NoSpace => no_space(),
        ApplyError::Corrupt => corrupt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What clients match on. A change here is a change of the API.
    #[test]
    fn golden_table() {
        let table: String = ALL
            .iter()
            .map(|(name, make)| {
                let status = make();
                format!("{name}: {:?}: {}\n", status.code(), status.message())
            })
            .collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/status.txt");
        if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
            std::fs::write(path, &table).unwrap();
        }
        assert_eq!(table, std::fs::read_to_string(path).unwrap());
    }
}
