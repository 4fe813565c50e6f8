//! The one place where errors become gRPC codes and etcd's exact texts. Clients match on both.

use membership::{ChangeError, NotYet, ReconfigureError};
use mvcc::check::RequestError;
use node::{ApplyError, MoveError, ProposeError, ReadError};
use peer::ControlError;
use tonic::{Code, Status};

use crate::cluster::{LeaderError, ReconfigureFailure};

/// An answer that is an error, by the name etcd's clients know it.
macro_rules! statuses {
    ($($name:ident: $code:ident $text:literal,)*) => {
        $(pub(crate) fn $name() -> Status { Status::new(Code::$code, $text) })*

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
    timeout_leader_transfer: Unknown "etcdserver: request timed out, leader transfer took too long",
    unhealthy: Unavailable "etcdserver: unhealthy cluster",
    not_enough_started: FailedPrecondition "etcdserver: re-configuration failed due to not enough started members",
    learner_not_ready: FailedPrecondition "etcdserver: can only promote a learner member which is in sync with leader",
    member_exist: FailedPrecondition "etcdserver: member ID already exist",
    peer_url_exist: FailedPrecondition "etcdserver: Peer URLs already exists",
    member_not_found: NotFound "etcdserver: member not found",
    member_not_learner: FailedPrecondition "etcdserver: can only promote a learner member",
    too_many_learners: FailedPrecondition "etcdserver: too many learner members in cluster",
    member_bad_urls: InvalidArgument "etcdserver: given member URLs are invalid",
    not_supported_for_learner: FailedPrecondition "etcdserver: rpc not supported for learner",
    bad_leader_transferee: FailedPrecondition "etcdserver: bad leader transferee",
    corrupt: DataLoss "etcdserver: corrupt cluster",
    root_user_not_exist: FailedPrecondition "etcdserver: root user does not exist",
    root_role_not_exist: FailedPrecondition "etcdserver: root user does not have root role",
    user_already_exist: FailedPrecondition "etcdserver: user name already exists",
    user_empty: InvalidArgument "etcdserver: user name is empty",
    user_not_found: FailedPrecondition "etcdserver: user name not found",
    role_already_exist: FailedPrecondition "etcdserver: role name already exists",
    role_not_found: FailedPrecondition "etcdserver: role name not found",
    role_empty: InvalidArgument "etcdserver: role name is empty",
    permission_not_given: InvalidArgument "etcdserver: permission not given",
    auth_failed: InvalidArgument "etcdserver: authentication failed, invalid user ID or password",
    auth_not_enabled: FailedPrecondition "etcdserver: authentication is not enabled",
    invalid_auth_token: Unauthenticated "etcdserver: invalid auth token",
    password_too_long: Unknown "bcrypt: password length exceeds 72 bytes",
    no_password_user: Unknown "auth: authentication failed, password was given for no password user",
    permission_denied: PermissionDenied "etcdserver: permission denied",
    role_not_granted: FailedPrecondition "etcdserver: role is not granted to the user",
    permission_not_granted: FailedPrecondition "etcdserver: permission is not granted to the role",
    invalid_auth_mgmt: InvalidArgument "etcdserver: invalid auth management",
    auth_old_revision: InvalidArgument "etcdserver: revision of auth store is old",
    wrong_downgrade_version_format: InvalidArgument "etcdserver: wrong downgrade target version format",
    invalid_downgrade_target_version: InvalidArgument "etcdserver: invalid downgrade target version",
    downgrade_in_process: FailedPrecondition "etcdserver: cluster has a downgrade job in progress",
    no_inflight_downgrade: FailedPrecondition "etcdserver: no inflight downgrade job",
    cluster_version_unavailable: FailedPrecondition "etcdserver: cluster version not found during downgrade",
    stream_order: Unimplemented "RangeStream does not support custom sort orders",
    session_expired: Unknown "mutex: session is expired",
    election_no_leader: Unknown "election: no leader",
    election_not_leader: Unknown "election: not leader",
    missing_leader_key: Unknown "\"leader\" field must be provided",
    stream_filter: Unimplemented "RangeStream does not support revision filters",
}

/// Something that etcd has no name for.
pub(crate) fn unknown(text: impl Into<String>) -> Status {
    Status::new(Code::Unknown, text)
}

/// As grpc-go words it.
pub(crate) fn message_too_large(found: usize, max: usize) -> Status {
    Status::new(Code::ResourceExhausted, format!("grpc: received message larger than max ({found} vs. {max})"))
}

pub(crate) fn from_mvcc(error: &mvcc::Error) -> Status {
    match error {
        mvcc::Error::Compacted { .. } => compacted(),
        mvcc::Error::FutureRevision { .. } => future_revision(),
        mvcc::Error::KeyNotFound => key_not_found(),
        mvcc::Error::LeaseNotFound { .. } => lease_not_found(),
        other => unknown(other.to_string()),
    }
}

pub(crate) fn from_check(error: &RequestError) -> Status {
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
pub(crate) fn unknown_method(path: &str) -> http::Response<tonic::body::Body> {
    let (service, method) = service_and_method(path);
    Status::unimplemented(format!("unknown method {method} for service {service}")).into_http()
}

/// The answer to a call of a service that is not there.
pub(crate) fn unknown_service(path: &str) -> http::Response<tonic::body::Body> {
    Status::unimplemented(format!("unknown service {}", service_and_method(path).0)).into_http()
}

fn service_and_method(path: &str) -> (&str, &str) {
    path.trim_start_matches('/').rsplit_once('/').unwrap_or((path, ""))
}

pub(crate) fn from_lease(error: lease::Error) -> Status {
    match error {
        lease::Error::NotFound => lease_not_found(),
        lease::Error::Exists => lease_exists(),
        lease::Error::TtlTooLarge => lease_ttl_too_large(),
        lease::Error::NotPrimary => not_leader(),
    }
}

pub(crate) fn from_propose(error: &ProposeError) -> Status {
    match error {
        ProposeError::TooLarge => request_too_large(),
        ProposeError::TooManyRequests => too_many_requests(),
        ProposeError::Timeout => timeout(),
        ProposeError::Stopped => stopped(),
        ProposeError::NotLeader => not_leader(),
        ProposeError::NotYet(error) => not_yet(error),
        ProposeError::Apply(error) => from_apply(error),
    }
}

pub(crate) fn from_read(error: ReadError) -> Status {
    match error {
        ReadError::Timeout => timeout(),
        ReadError::Stopped => stopped(),
    }
}

/// What a cluster at this version cannot hold in its log.
fn not_yet(error: &NotYet) -> Status {
    Status::new(Code::FailedPrecondition, format!("lockgate: {error}"))
}

fn from_change(error: ChangeError) -> Status {
    match error {
        ChangeError::IdRemoved | ChangeError::IdNotFound => member_not_found(),
        ChangeError::IdExists => member_exist(),
        ChangeError::PeerUrlExists => peer_url_exist(),
        ChangeError::NotLearner => member_not_learner(),
        ChangeError::TooManyLearners => too_many_learners(),
        ChangeError::LearnerFeatures => Status::new(Code::FailedPrecondition, error.to_string()),
    }
}

pub(crate) fn from_reconfigure(error: &ReconfigureFailure) -> Status {
    match error {
        ReconfigureFailure::Propose(error) => from_propose(error),
        ReconfigureFailure::Check(error) => match error {
            ReconfigureError::NotEnoughStarted => not_enough_started(),
            ReconfigureError::Unhealthy => unhealthy(),
            ReconfigureError::LearnerNotReady => learner_not_ready(),
            ReconfigureError::NotLeader => not_leader(),
            ReconfigureError::LearnerFeatures(_) => Status::new(Code::FailedPrecondition, error.to_string()),
            ReconfigureError::Change(error) => from_change(*error),
        },
    }
}

pub(crate) fn from_leader(error: &LeaderError) -> Status {
    match error {
        LeaderError::NoLeader => no_leader(),
        LeaderError::Timeout => timeout(),
        LeaderError::Here(error) => from_propose(error),
        LeaderError::Reconfigure(error) => from_reconfigure(error),
        LeaderError::There(error) => match error {
            ControlError::LeaseNotFound => lease_not_found(),
            ControlError::MemberNotFound => member_not_found(),
            ControlError::NotLearner => member_not_learner(),
            ControlError::LearnerNotReady => learner_not_ready(),
            ControlError::LearnerFeatures(text) => Status::new(Code::FailedPrecondition, text),
            other => unknown(other.to_string()),
        },
    }
}

pub(crate) fn from_move(error: MoveError) -> Status {
    match error {
        MoveError::NotLeader => not_leader(),
        MoveError::BadTransferee => bad_leader_transferee(),
        MoveError::Timeout => timeout_leader_transfer(),
        MoveError::Unhealthy => unhealthy(),
        MoveError::Stopped => stopped(),
    }
}

fn from_apply(error: &ApplyError) -> Status {
    match error {
        ApplyError::Mvcc(error) => from_mvcc(error),
        ApplyError::Lease(error) => from_lease(*error),
        ApplyError::Auth(error) => from_auth(*error),
        ApplyError::Membership(error) => from_change(*error),
        ApplyError::NoSpace => no_space(),
        ApplyError::Corrupt => corrupt(),
        ApplyError::NotYet(error) => not_yet(error),
        ApplyError::FeatureOff(feature) => feature_off(feature),
        ApplyError::Increment(error) => from_increment(error),
    }
}

pub(crate) fn from_auth(error: auth::Error) -> Status {
    match error {
        auth::Error::AuthFailed => auth_failed(),
        auth::Error::AuthNotEnabled => auth_not_enabled(),
        auth::Error::InvalidAuthToken => invalid_auth_token(),
        auth::Error::RootUserNotExist => root_user_not_exist(),
        auth::Error::RootRoleNotExist => root_role_not_exist(),
        auth::Error::UserAlreadyExist => user_already_exist(),
        auth::Error::UserEmpty => user_empty(),
        auth::Error::UserNotFound => user_not_found(),
        auth::Error::RoleAlreadyExist => role_already_exist(),
        auth::Error::RoleNotFound => role_not_found(),
        auth::Error::RoleEmpty => role_empty(),
        auth::Error::PermissionNotGiven => permission_not_given(),
        auth::Error::NoPasswordUser => no_password_user(),
        auth::Error::PermissionDenied => permission_denied(),
        auth::Error::RoleNotGranted => role_not_granted(),
        auth::Error::PermissionNotGranted => permission_not_granted(),
        auth::Error::InvalidAuthMgmt => invalid_auth_mgmt(),
        auth::Error::AuthOldRevision => auth_old_revision(),
    }
}

/// Marks statuses about features, which keep their code where others lose it.
#[derive(Debug, thiserror::Error)]
#[error("a required cluster feature is off")]
struct FeatureRefusal;

pub(crate) fn is_feature_refusal(status: &Status) -> bool {
    std::error::Error::source(status).is_some_and(|source| source.is::<FeatureRefusal>())
}

fn feature_refusal(text: String) -> Status {
    let mut status = Status::new(Code::FailedPrecondition, text);
    status.set_source(std::sync::Arc::new(FeatureRefusal));
    status
}

/// A feature that a request needs is off where it was judged.
pub(crate) fn feature_off(feature: &str) -> Status {
    feature_refusal(format!("lockgate: cluster feature {feature} is off; `lockgatectl endpoint featuregate` says why"))
}

/// A call that requires what nobody knows must not happen.
pub(crate) fn required_unknown(name: &str) -> Status {
    let known = membership::features::FEATURES.iter().filter(|row| row.level == featuregate::Level::Cluster);
    let known: Vec<_> = known.map(|row| row.name).collect();
    feature_refusal(format!(
        "lockgate: the required feature {name:?} is no cluster feature that this member knows; these are {}",
        known.join(", ")
    ))
}

/// Metadata that names no features.
pub(crate) fn bad_requirement(found: &str) -> Status {
    let text = format!(
        "lockgate: metadata require-feature holds {found:?}, which is no name of a feature; \
         send names such as AtomicIncrement, one in each value or separated by commas"
    );
    Status::new(Code::InvalidArgument, text)
}

/// A feature cannot be on at this cluster version.
pub(crate) fn feature_needs_version(feature: &str, version: Option<proto::Version>) -> Status {
    let at = version.map_or("not decided".to_owned(), |v| v.to_string());
    let since = membership::gate::GATE_SINCE;
    feature_refusal(format!(
        "lockgate: cluster feature {feature} is off: it needs cluster version {since}, and the cluster's is {at}"
    ))
}

pub(crate) fn unknown_feature(name: &str, version: &str, known: &[String]) -> Status {
    let text = format!(
        "lockgate: {name:?} is no cluster feature at cluster version {version}; the features are {}",
        known.join(", ")
    );
    Status::new(Code::InvalidArgument, text)
}

pub(crate) fn storage_on_its_way(storage: proto::Version, cluster: proto::Version) -> Status {
    let text =
        format!("lockgate: the database is on its way from version {storage} to {cluster}; try again in a moment");
    Status::new(Code::Unavailable, text)
}

pub(crate) fn history_gone(from: u64, oldest: u64) -> Status {
    let text = format!("lockgate: the history of the feature gate begins at index {oldest}; {from} is no longer known");
    Status::new(Code::OutOfRange, text)
}

fn from_increment(error: &node::IncrementError) -> Status {
    let code = match error {
        node::IncrementError::NotANumber(_) => Code::FailedPrecondition,
        _ => Code::OutOfRange,
    };
    Status::new(code, format!("lockgate: {error}"))
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
