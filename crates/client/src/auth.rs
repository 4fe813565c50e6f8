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

/// Which keys a role may read or write.
///
/// ```
/// let permission = client::Permission::prefix("/jobs/").read_write();
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permission {
    pub(crate) request: PermissionMessage,
}

key_range!(Permission);

/// To read, unless said otherwise.
impl Permission {
    pub fn read(self) -> Self {
        self.of(Type::Read)
    }

    pub fn write(self) -> Self {
        self.of(Type::Write)
    }

    pub fn read_write(self) -> Self {
        self.of(Type::Readwrite)
    }

    fn of(mut self, kind: Type) -> Self {
        self.request.set_perm_type(kind);
        self
    }
}

/// From `auth_enable` on every call needs a user. User and role `root` must be there before.
impl Client {
    pub async fn auth_enable(&self) -> Result<AuthEnableResponse> {
        rpc!(self.caller, Once, AuthClient::auth_enable, AuthEnableRequest {})
    }

    pub async fn auth_disable(&self) -> Result<AuthDisableResponse> {
        rpc!(self.caller, Once, AuthClient::auth_disable, AuthDisableRequest {})
    }

    /// Whether users are asked for, and how often users and roles have changed.
    pub async fn auth_status(&self) -> Result<AuthStatusResponse> {
        rpc!(self.caller, Repeatable, AuthClient::auth_status, AuthStatusRequest {})
    }

    pub async fn user_add(&self, name: &str, password: &str) -> Result<AuthUserAddResponse> {
        self.add(name, password, false).await
    }

    /// A user who cannot log in, but be the common name of a client certificate.
    pub async fn user_add_no_password(&self, name: &str) -> Result<AuthUserAddResponse> {
        self.add(name, "", true).await
    }

    async fn add(&self, name: &str, password: &str, no_password: bool) -> Result<AuthUserAddResponse> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let options = Some(UserAddOptions { no_password });
        let request = AuthUserAddRequest { name, password, options, ..Default::default() };
        rpc!(self.caller, Once, AuthClient::user_add, request)
    }

    pub async fn user_delete(&self, name: &str) -> Result<AuthUserDeleteResponse> {
        rpc!(self.caller, Once, AuthClient::user_delete, AuthUserDeleteRequest { name: name.to_owned() })
    }

    /// The roles of a user.
    pub async fn user_get(&self, name: &str) -> Result<AuthUserGetResponse> {
        rpc!(self.caller, Repeatable, AuthClient::user_get, AuthUserGetRequest { name: name.to_owned() })
    }

    pub async fn user_list(&self) -> Result<AuthUserListResponse> {
        rpc!(self.caller, Repeatable, AuthClient::user_list, AuthUserListRequest {})
    }

    /// A client that has logged in with the old password ends with it: its token holds no longer.
    pub async fn user_change_password(&self, name: &str, password: &str) -> Result<AuthUserChangePasswordResponse> {
        let (name, password) = (name.to_owned(), password.to_owned());
        let request = AuthUserChangePasswordRequest { name, password, ..Default::default() };
        rpc!(self.caller, Once, AuthClient::user_change_password, request)
    }

    pub async fn user_grant_role(&self, user: &str, role: &str) -> Result<AuthUserGrantRoleResponse> {
        let request = AuthUserGrantRoleRequest { user: user.to_owned(), role: role.to_owned() };
        rpc!(self.caller, Once, AuthClient::user_grant_role, request)
    }

    pub async fn user_revoke_role(&self, user: &str, role: &str) -> Result<AuthUserRevokeRoleResponse> {
        let request = AuthUserRevokeRoleRequest { name: user.to_owned(), role: role.to_owned() };
        rpc!(self.caller, Once, AuthClient::user_revoke_role, request)
    }

    pub async fn role_add(&self, name: &str) -> Result<AuthRoleAddResponse> {
        rpc!(self.caller, Once, AuthClient::role_add, AuthRoleAddRequest { name: name.to_owned() })
    }

    pub async fn role_delete(&self, role: &str) -> Result<AuthRoleDeleteResponse> {
        rpc!(self.caller, Once, AuthClient::role_delete, AuthRoleDeleteRequest { role: role.to_owned() })
    }

    /// The permissions of a role.
    pub async fn role_get(&self, role: &str) -> Result<AuthRoleGetResponse> {
        rpc!(self.caller, Repeatable, AuthClient::role_get, AuthRoleGetRequest { role: role.to_owned() })
    }

    pub async fn role_list(&self) -> Result<AuthRoleListResponse> {
        rpc!(self.caller, Repeatable, AuthClient::role_list, AuthRoleListRequest {})
    }

    /// Replaces the permission that the role has on the same keys, if any.
    pub async fn role_grant_permission(
        &self,
        role: &str,
        permission: Permission,
    ) -> Result<AuthRoleGrantPermissionResponse> {
        let request = AuthRoleGrantPermissionRequest { name: role.to_owned(), perm: Some(permission.request) };
        rpc!(self.caller, Once, AuthClient::role_grant_permission, request)
    }

    /// Takes back the permission on exactly these keys; whether it was to read or to write does not matter.
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
