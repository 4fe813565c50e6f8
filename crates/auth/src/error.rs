//! Why a request is refused.

/// In the words of etcd's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("root user does not exist")]
    RootUserNotExist,
    #[error("root user does not have root role")]
    RootRoleNotExist,
    #[error("user name already exists")]
    UserAlreadyExist,
    #[error("user name is empty")]
    UserEmpty,
    #[error("user name not found")]
    UserNotFound,
    #[error("role name already exists")]
    RoleAlreadyExist,
    #[error("role name not found")]
    RoleNotFound,
    #[error("role name is empty")]
    RoleEmpty,
    #[error("permission not given")]
    PermissionNotGiven,
    #[error("authentication failed, invalid user ID or password")]
    AuthFailed,
    #[error("authentication is not enabled")]
    AuthNotEnabled,
    #[error("invalid auth token")]
    InvalidAuthToken,
    /// The password cannot be read or hashed.
    #[error("authentication failed, password was given for no password user")]
    NoPasswordUser,
    #[error("permission denied")]
    PermissionDenied,
    #[error("role is not granted to the user")]
    RoleNotGranted,
    #[error("permission is not granted to the role")]
    PermissionNotGranted,
    #[error("invalid auth management")]
    InvalidAuthMgmt,
    /// Users or roles have changed since the entry was proposed.
    #[error("revision of auth store is old")]
    AuthOldRevision,
}
