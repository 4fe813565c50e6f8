//! What a call can fail with: etcd's own errors, told apart by their exact text, and what happens on the way there.

use std::{error::Error as StdError, fmt};

use tonic::{Code, ConnectError, Status, TimeoutExpired};

/// The result of the operations of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// ```
/// use client::{Error, Kind};
/// let error = Error::from_kind(Kind::LeaseNotFound);
/// assert_eq!(error.kind(), Some(Kind::LeaseNotFound));
/// assert_eq!(error.to_string(), "etcdserver: requested lease not found");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server responded with an error. If etcd defines the text it prints alone, else with its
    /// gRPC code.
    #[error("{}", EtcdText { code: *code, message })]
    Etcd {
        /// The gRPC code of the response.
        code: Code,
        /// The text of the response; [`Error::kind`] recognises those that etcd defines.
        message: String,
    },
    /// The time limit of the call has passed.
    #[error("context deadline exceeded")]
    Timeout {
        /// The error of the latest failed attempt. `None` if no attempt had failed yet.
        #[source]
        last: Option<Box<Error>>,
    },
    /// The connection failed.
    #[error("connection to {endpoint} failed: {message}")]
    Transport {
        /// The endpoint, or for an error within a stream the kind of the stream.
        endpoint: String,
        /// The innermost cause, such as `connection refused`.
        message: String,
        /// False only if the request certainly never left this machine, so that the call can be
        /// repeated safely.
        sent: bool,
    },
    /// The client was given an empty list of endpoints.
    #[error("etcdclient: no available endpoints")]
    NoEndpoints,
    /// The call requires features ([`crate::Client::require_feature`]), and the server does not
    /// support cluster features: it would ignore the requirement. The call was not sent.
    #[error(
        "{endpoint} does not answer FeatureGateStatus, so it would ignore that the call requires features; \
         use endpoints of a lockgate cluster, or leave require_feature out"
    )]
    FeaturesUnknown {
        /// The endpoint of that server.
        endpoint: String,
    },
    /// The call succeeded, but the response does not confirm that a required feature was on.
    #[error("{endpoint} did not echo the required feature {name}; the call may have been done without it")]
    NotEchoed {
        /// The endpoint of the server.
        endpoint: String,
        /// The first required feature that the response does not mention.
        name: String,
    },
    /// A required feature has an invalid name. The call was not sent.
    #[error("{name:?} is no name of a feature; a name such as AtomicIncrement is letters, digits and underscores")]
    BadFeature {
        /// The name as given.
        name: String,
    },
    /// The token given to [`crate::ConnectOptions::token`] contains characters that an HTTP header
    /// cannot carry.
    #[error("the token cannot be sent: it must be visible ASCII")]
    BadToken,
    /// An endpoint is not `host:port` or `http://host:port`.
    #[error("endpoint {endpoint:?} cannot be used: {reason}")]
    BadEndpoint {
        /// The endpoint as given.
        endpoint: String,
        /// The reason, with a hint how to write it.
        reason: String,
    },
    /// No keep-alive was answered for the time to live of a lease, so it must be assumed to have
    /// expired.
    #[error("lease {id:016x} was not renewed within its time to live and is taken for lost")]
    LeaseLost {
        /// The id of the lease.
        id: i64,
    },
    /// A snapshot stream has no checksum or the wrong one: its data must not be used. Holds the
    /// details.
    #[error("snapshot stream is damaged: {0}")]
    Snapshot(String),
    /// The stream of [`crate::Client::range_stream`] ended without a piece.
    #[error("range stream ended without a response")]
    EmptyStream,
    /// The background task of a watch or a keep-alive has ended, because its runtime is shutting
    /// down.
    #[error("the client is closed")]
    Closed,
}

macro_rules! kinds {
    ($($name:ident $code:ident $text:literal)*) => {
        /// The errors that etcd defines, recognised by their exact text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $(
                #[doc = concat!("The error `etcdserver: ", $text, "`, with the code [`Code::", stringify!($code), "`].")]
                $name,
            )*
        }

        const KINDS: &[(Kind, Code, &str)] = &[$((Kind::$name, Code::$code, concat!("etcdserver: ", $text)),)*];
    };
}

kinds! {
    EmptyKey InvalidArgument "key is not provided"
    KeyNotFound InvalidArgument "key not found"
    ValueProvided InvalidArgument "value is provided"
    LeaseProvided InvalidArgument "lease is provided"
    TooManyOps InvalidArgument "too many operations in txn request"
    DuplicateKey InvalidArgument "duplicate key given in txn request"
    InvalidSortOption InvalidArgument "invalid sort option"
    Compacted OutOfRange "mvcc: required revision has been compacted"
    FutureRevision OutOfRange "mvcc: required revision is a future revision"
    NoSpace ResourceExhausted "mvcc: database space exceeded"
    LeaseNotFound NotFound "requested lease not found"
    LeaseExists FailedPrecondition "lease already exists"
    LeaseTtlTooLarge OutOfRange "too large lease TTL"
    MemberExists FailedPrecondition "member ID already exist"
    PeerUrlExists FailedPrecondition "Peer URLs already exists"
    MemberNotEnoughStarted FailedPrecondition "re-configuration failed due to not enough started members"
    MemberBadUrls InvalidArgument "given member URLs are invalid"
    MemberNotFound NotFound "member not found"
    MemberNotLearner FailedPrecondition "can only promote a learner member"
    LearnerNotReady FailedPrecondition "can only promote a learner member which is in sync with leader"
    TooManyLearners FailedPrecondition "too many learner members in cluster"
    ClusterIdMismatch FailedPrecondition "cluster ID mismatch"
    RequestTooLarge InvalidArgument "request is too large"
    TooManyRequests ResourceExhausted "too many requests"
    RootUserNotExist FailedPrecondition "root user does not exist"
    RootRoleNotExist FailedPrecondition "root user does not have root role"
    UserExists FailedPrecondition "user name already exists"
    UserEmpty InvalidArgument "user name is empty"
    UserNotFound FailedPrecondition "user name not found"
    RoleExists FailedPrecondition "role name already exists"
    RoleNotFound FailedPrecondition "role name not found"
    RoleEmpty InvalidArgument "role name is empty"
    AuthFailed InvalidArgument "authentication failed, invalid user ID or password"
    PermissionDenied PermissionDenied "permission denied"
    RoleNotGranted FailedPrecondition "role is not granted to the user"
    PermissionNotGranted FailedPrecondition "permission is not granted to the role"
    AuthNotEnabled FailedPrecondition "authentication is not enabled"
    InvalidAuthToken Unauthenticated "invalid auth token"
    InvalidAuthManagement InvalidArgument "invalid auth management"
    AuthOldRevision InvalidArgument "revision of auth store is old"
    NoLeader Unavailable "no leader"
    NotLeader FailedPrecondition "not leader"
    LeaderChanged Unavailable "leader changed"
    NotCapable FailedPrecondition "not capable"
    Stopped Unavailable "server stopped"
    RequestTimedOut Unavailable "request timed out"
    TimedOutLeaderFail Unavailable "request timed out, possibly due to previous leader failure"
    TimedOutConnectionLost Unavailable "request timed out, possibly due to connection lost"
    Unhealthy Unavailable "unhealthy cluster"
    Corrupt DataLoss "corrupt cluster"
    NotSupportedForLearner FailedPrecondition "rpc not supported for learner"
    BadLeaderTransferee FailedPrecondition "bad leader transferee"
    ClusterVersionUnavailable FailedPrecondition "cluster version not found during downgrade"
    WrongDowngradeVersionFormat InvalidArgument "wrong downgrade target version format"
    InvalidDowngradeTargetVersion InvalidArgument "invalid downgrade target version"
    DowngradeInProcess FailedPrecondition "cluster has a downgrade job in progress"
    NoInflightDowngrade FailedPrecondition "no inflight downgrade job"
}

impl Kind {
    /// The gRPC code that etcd sends with the error.
    pub fn code(self) -> Code {
        self.row().1
    }

    /// The exact text of the error, which identifies it.
    pub fn message(self) -> &'static str {
        self.row().2
    }

    fn row(self) -> &'static (Kind, Code, &'static str) {
        &KINDS[self as usize]
    }

    pub(crate) fn of(message: &str) -> Option<Kind> {
        KINDS.iter().find(|row| row.2 == message).map(|row| row.0)
    }
}

impl Error {
    /// Returns the error as a server would send it, for tests and for servers.
    pub fn from_kind(kind: Kind) -> Error {
        Error::Etcd { code: kind.code(), message: kind.message().to_owned() }
    }

    /// Which of etcd's errors this is. `None` for errors of the client and for texts that etcd does
    /// not define.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Error::Etcd { message, .. } => Kind::of(message),
            _ => None,
        }
    }

    /// The text with the gRPC code in front, as gRPC prints it, for errors from the server. Other
    /// errors print as usual.
    pub fn grpc_text(&self) -> String {
        match self {
            Error::Etcd { code, message } => format!("rpc error: code = {} desc = {message}", code_name(*code)),
            other => other.to_string(),
        }
    }

    /// Whether a later attempt may succeed without any change: no leader, or a broken connection.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Error::Etcd { code, .. } => *code == Code::Unavailable,
            Error::Transport { .. } => true,
            _ => false,
        }
    }

    /// True if the server does not take the token: it does not know it any more, users have changed since, or there was none
    /// because none was asked for before.
    pub(crate) fn is_about_token(&self) -> bool {
        matches!(self.kind(), Some(Kind::InvalidAuthToken | Kind::AuthOldRevision | Kind::UserEmpty))
    }

    /// True if a long-lived stream should not be opened again after this.
    pub(crate) fn halts_stream(&self) -> bool {
        match self {
            Error::Etcd { code, .. } => !matches!(code, Code::Unavailable | Code::Internal),
            Error::Transport { .. } | Error::Timeout { .. } => false,
            _ => true,
        }
    }

    pub(crate) fn from_status(status: Status, endpoint: &str) -> Error {
        let transport = |sent| Error::Transport { endpoint: endpoint.to_owned(), message: describe(&status), sent };
        // The transport leaves its own error as the source; a status off the wire has none.
        if status.source().is_some() {
            if in_chain::<TimeoutExpired>(&status) {
                return Error::Timeout { last: None };
            }
            return transport(!in_chain::<ConnectError>(&status));
        }
        if status.message().starts_with("Service was not ready") {
            return transport(false);
        }
        match status.code() {
            Code::DeadlineExceeded => Error::Timeout { last: None },
            Code::Cancelled if status.message() == "Timeout expired" => Error::Timeout { last: None },
            code => match too_large(status.message()) {
                Some(message) => Error::Etcd { code: Code::ResourceExhausted, message },
                None => Error::Etcd { code, message: status.message().to_owned() },
            },
        }
    }
}

/// gRPC clients name both sizes when an answer is larger than they take; tonic words it in its own way.
fn too_large(message: &str) -> Option<String> {
    let sizes = message.strip_prefix("Error, decoded message length too large: found ")?.strip_suffix(" bytes")?;
    let (found, limit) = sizes.split_once(" bytes, the limit is: ")?;
    Some(format!("grpc: received message larger than max ({found} vs. {limit})"))
}

fn in_chain<T: StdError + 'static>(error: &dyn StdError) -> bool {
    let mut next = error.source();
    while let Some(error) = next {
        if error.is::<T>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The innermost cause says most: "connection refused" rather than "transport error".
pub(crate) fn innermost(error: &dyn StdError) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

fn describe(status: &Status) -> String {
    status.source().map_or_else(|| status.message().to_owned(), innermost)
}

struct EtcdText<'a> {
    code: Code,
    message: &'a str,
}

impl fmt::Display for EtcdText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Kind::of(self.message) {
            Some(_) => f.write_str(self.message),
            None => write!(f, "rpc error: code = {} desc = {}", code_name(self.code), self.message),
        }
    }
}

/// gRPC's own spelling of a code, as users know it from other clients.
fn code_name(code: Code) -> String {
    match code {
        Code::Cancelled => "Canceled".to_owned(),
        Code::Ok => "OK".to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_matched_by_exact_text() {
        for (kind, code, message) in KINDS {
            let error = Error::from_status(Status::new(*code, *message), "a:1");
            assert_eq!(error.kind(), Some(*kind));
            assert_eq!(error.to_string(), *message);
        }
        let near = Error::from_status(Status::not_found("etcdserver: requested lease not found!"), "a:1");
        assert_eq!(near.kind(), None);
        assert_eq!(near.to_string(), "rpc error: code = NotFound desc = etcdserver: requested lease not found!");
    }

    #[test]
    fn a_large_answer_is_named_as_other_clients_do() {
        let text = "Error, decoded message length too large: found 1000 bytes, the limit is: 10 bytes";
        let error = Error::from_status(Status::out_of_range(text), "a:1");
        assert_eq!(
            error.to_string(),
            "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (1000 vs. 10)"
        );
    }
}
