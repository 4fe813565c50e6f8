//! Users, roles and permissions, and whether the cluster asks for them.

use proto::{
    authpb::{Permission as PermissionMessage, UserAddOptions, permission::Type},
    etcdserverpb::{
        AuthDisableRequest, AuthDisableResponse, AuthEnableRequest, AuthEnableResponse, AuthRoleAddRequest,
        AuthRoleAddResponse, AuthRoleDeleteRequest, AuthRoleDeleteResponse, AuthRoleGetRequest, AuthRoleGetResponse,
        AuthRoleGrantPermissionRequest, AuthRoleGrantPermissionResponse, AuthRoleListRequest, AuthRoleListResponse,
        AuthRoleRevokePermissionRequest, AuthRoleRevokePermissionResponse, AuthStatusRequest, AuthStatusResponse,
        AuthUserAddRequest, AuthUserAddResponse, AuthUserChangePasswordRequest, AuthUserChangePasswordResponse,
        AuthUserDeleteRequest, AuthUserDeleteResponse, AuthUserGetRequest, AuthUserGetResponse,
        AuthUserGrantRoleRequest, AuthUserGrantRoleResponse, AuthUserListRequest, AuthUserListResponse,
        AuthUserRevokeRoleRequest, AuthUserRevokeRoleResponse, auth_client::AuthClient,
    },
};

use crate::{Client, Result, call::rpc, op::key_range};

/// The keys that a role may read, write or both. Without a call of [`Permission::write`] or
/// [`Permission::read_write`] it allows reading.
///
/// ```
/// let permission = client::Permission::prefix("/jobs/").read_write();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permission {
    pub(crate) request: PermissionMessage,
}

key_range!(Permission);

impl Permission {
    /// Allows reading the keys, which is the default.
    pub fn read(self) -> Self {
        self.of(Type::Read)
    }

    /// Allows writing the keys, without reading them.
    pub fn write(self) -> Self {
        self.of(Type::Write)
    }

    /// Allows reading and writing the keys.
    pub fn read_write(self) -> Self {
        self.of(Type::Readwrite)
    }

    fn of(mut self, kind: Type) -> Self {
        self.request.set_perm_type(kind);
        self
    }
}

/// Calls that change users and roles need the role `root` while authentication is on.
impl Client {
    /// Turns authentication on: from then on every call needs a user. The user `root` with the role
    /// `root` must exist.
    pub async fn auth_enable(&self) -> Result<AuthEnableResponse> {
        rpc!(self.caller, Once, AuthClient::auth_enable, AuthEnableRequest {})
    }

    /// Turns authentication off. Users and roles are kept. Needs the role `root`.
    pub async fn auth_disable(&self) -> Result<AuthDisableResponse> {
        rpc!(self.caller, Once, AuthClient::auth_disable, AuthDisableRequest {})
    }

    /// Returns whether authentication is on, and the revision of users and roles, which every
    /// change of them increments.
    pub async fn auth_status(&self) -> Result<AuthStatusResponse> {
        rpc!(self.caller, Repeatable, AuthClient::auth_status, AuthStatusRequest {})
    }

    /// Adds a user without roles. Fails with [`crate::Kind::UserExists`] if the name is taken.
    pub async fn user_add(&self, name: &str, password: &str) -> Result<AuthUserAddResponse> {
        self.add(name, password, false).await
    }

    /// Adds a user who cannot log in with a password, only with a client certificate whose common
    /// name is the user's name.
    pub async fn user_add_no_password(&self, name: &str) -> Result<AuthUserAddResponse> {
        self.add(name, "", true).await
    }

    async fn add(&self, name: &str, password: &str, no_password: bool) -> Result<AuthUserAddResponse> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let options = Some(UserAddOptions { no_password });
        let request = AuthUserAddRequest { name, password, options, ..Default::default() };
        rpc!(self.caller, Once, AuthClient::user_add, request)
    }

    /// Deletes a user. The tokens of the user become invalid.
    pub async fn user_delete(&self, name: &str) -> Result<AuthUserDeleteResponse> {
        rpc!(self.caller, Once, AuthClient::user_delete, AuthUserDeleteRequest { name: name.to_owned() })
    }

    /// Returns the roles of a user.
    pub async fn user_get(&self, name: &str) -> Result<AuthUserGetResponse> {
        rpc!(self.caller, Repeatable, AuthClient::user_get, AuthUserGetRequest { name: name.to_owned() })
    }

    /// Returns the names of all users.
    pub async fn user_list(&self) -> Result<AuthUserListResponse> {
        rpc!(self.caller, Repeatable, AuthClient::user_list, AuthUserListRequest {})
    }

    /// Changes a user's password. Clients that logged in with the old password lose their token.
    pub async fn user_change_password(&self, name: &str, password: &str) -> Result<AuthUserChangePasswordResponse> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let request = AuthUserChangePasswordRequest { name, password, ..Default::default() };
        rpc!(self.caller, Once, AuthClient::user_change_password, request)
    }

    /// Grants a role to a user.
    pub async fn user_grant_role(&self, user: &str, role: &str) -> Result<AuthUserGrantRoleResponse> {
        let request = AuthUserGrantRoleRequest { user: user.to_owned(), role: role.to_owned() };
        rpc!(self.caller, Once, AuthClient::user_grant_role, request)
    }

    /// Revokes a role from a user. Fails with [`crate::Kind::RoleNotGranted`] if the user does not
    /// have it.
    pub async fn user_revoke_role(&self, user: &str, role: &str) -> Result<AuthUserRevokeRoleResponse> {
        let request = AuthUserRevokeRoleRequest { name: user.to_owned(), role: role.to_owned() };
        rpc!(self.caller, Once, AuthClient::user_revoke_role, request)
    }

    /// Adds a role without permissions. Fails with [`crate::Kind::RoleExists`] if the name is
    /// taken.
    pub async fn role_add(&self, name: &str) -> Result<AuthRoleAddResponse> {
        rpc!(self.caller, Once, AuthClient::role_add, AuthRoleAddRequest { name: name.to_owned() })
    }

    /// Deletes a role, also from all users who have it.
    pub async fn role_delete(&self, role: &str) -> Result<AuthRoleDeleteResponse> {
        rpc!(self.caller, Once, AuthClient::role_delete, AuthRoleDeleteRequest { role: role.to_owned() })
    }

    /// Returns the permissions of a role.
    pub async fn role_get(&self, role: &str) -> Result<AuthRoleGetResponse> {
        rpc!(self.caller, Repeatable, AuthClient::role_get, AuthRoleGetRequest { role: role.to_owned() })
    }

    /// Returns the names of all roles.
    pub async fn role_list(&self) -> Result<AuthRoleListResponse> {
        rpc!(self.caller, Repeatable, AuthClient::role_list, AuthRoleListRequest {})
    }

    /// Grants a permission to a role. Replaces the permission that the role has on exactly these
    /// keys.
    pub async fn role_grant_permission(
        &self,
        role: &str,
        permission: Permission,
    ) -> Result<AuthRoleGrantPermissionResponse> {
        let request = AuthRoleGrantPermissionRequest { name: role.to_owned(), perm: Some(permission.request) };
        rpc!(self.caller, Once, AuthClient::role_grant_permission, request)
    }

    /// Revokes the permission on exactly these keys from a role, whether it is to read or to write.
    pub async fn role_revoke_permission(
        &self,
        role: &str,
        permission: Permission,
    ) -> Result<AuthRoleRevokePermissionResponse> {
        let PermissionMessage { key, range_end, .. } = permission.request;
        let request = AuthRoleRevokePermissionRequest { role: role.to_owned(), key, range_end };
        rpc!(self.caller, Once, AuthClient::role_revoke_permission, request)
    }
}
