//! Auth: users, roles, logins. Every call is an entry, questions too, as in etcd: what is told is as of its index, and so is
//! whether the caller may be told.

use node::{AuthAnswer, Response as Applied};
use proto::etcdserverpb::{
    AuthDisableRequest, AuthDisableResponse, AuthEnableRequest, AuthEnableResponse, AuthRoleAddRequest,
    AuthRoleAddResponse, AuthRoleDeleteRequest, AuthRoleDeleteResponse, AuthRoleGetRequest, AuthRoleGetResponse,
    AuthRoleGrantPermissionRequest, AuthRoleGrantPermissionResponse, AuthRoleListRequest, AuthRoleListResponse,
    AuthRoleRevokePermissionRequest, AuthRoleRevokePermissionResponse, AuthStatusRequest, AuthStatusResponse,
    AuthUserAddRequest, AuthUserAddResponse, AuthUserChangePasswordRequest, AuthUserChangePasswordResponse,
    AuthUserDeleteRequest, AuthUserDeleteResponse, AuthUserGetRequest, AuthUserGetResponse, AuthUserGrantRoleRequest,
    AuthUserGrantRoleResponse, AuthUserListRequest, AuthUserListResponse, AuthUserRevokeRoleRequest,
    AuthUserRevokeRoleResponse, AuthenticateRequest, AuthenticateResponse, InternalAuthenticateRequest,
    InternalRaftRequest, auth_server::Auth,
};
use tonic::{Request, Response, Status};

use super::{Context, mismatch};
use crate::status;

pub(crate) struct AuthService(pub Context);

/// A call that changes something, and is answered with a header alone.
macro_rules! change {
    ($self:ident, $request:ident, $field:ident, $response:ident) => {{
        let request = InternalRaftRequest { $field: Some($request.into_inner()), ..Default::default() };
        $self.0.ask_auth(request).await?;
        Ok(Response::new($response { header: Some($self.0.header()) }))
    }};
}

/// A question, of whose answers one kind can come.
macro_rules! question {
    ($self:ident, $request:ident, $field:ident, $answer:pat => $response:expr) => {{
        let request = InternalRaftRequest { $field: Some($request.into_inner()), ..Default::default() };
        match $self.0.ask_auth(request).await? {
            $answer => Ok(Response::new($response)),
            other => Err(mismatch(&Applied::Auth(other))),
        }
    }};
}

#[tonic::async_trait]
impl Auth for AuthService {
    async fn auth_enable(&self, r: Request<AuthEnableRequest>) -> Result<Response<AuthEnableResponse>, Status> {
        change!(self, r, auth_enable, AuthEnableResponse)
    }

    async fn auth_disable(&self, r: Request<AuthDisableRequest>) -> Result<Response<AuthDisableResponse>, Status> {
        change!(self, r, auth_disable, AuthDisableResponse)
    }

    async fn auth_status(&self, r: Request<AuthStatusRequest>) -> Result<Response<AuthStatusResponse>, Status> {
        question!(self, r, auth_status, AuthAnswer::Status { enabled, revision } =>
            AuthStatusResponse { header: Some(self.0.header()), enabled, auth_revision: revision })
    }

    async fn authenticate(&self, r: Request<AuthenticateRequest>) -> Result<Response<AuthenticateResponse>, Status> {
        let AuthenticateRequest { name, password } = r.into_inner();
        let token = self.0.log_in(&name, password).await?;
        Ok(Response::new(AuthenticateResponse { header: Some(self.0.header()), token }))
    }

    async fn user_add(&self, mut r: Request<AuthUserAddRequest>) -> Result<Response<AuthUserAddResponse>, Status> {
        let user = r.get_mut();
        if !user.options.is_some_and(|options| options.no_password) {
            user.hashed_password = self.0.hash(std::mem::take(&mut user.password)).await?;
        }
        change!(self, r, auth_user_add, AuthUserAddResponse)
    }

    async fn user_get(&self, r: Request<AuthUserGetRequest>) -> Result<Response<AuthUserGetResponse>, Status> {
        question!(self, r, auth_user_get, AuthAnswer::Roles(roles) =>
            AuthUserGetResponse { header: Some(self.0.header()), roles })
    }

    async fn user_list(&self, r: Request<AuthUserListRequest>) -> Result<Response<AuthUserListResponse>, Status> {
        question!(self, r, auth_user_list, AuthAnswer::Users(users) =>
            AuthUserListResponse { header: Some(self.0.header()), users })
    }

    async fn user_delete(&self, r: Request<AuthUserDeleteRequest>) -> Result<Response<AuthUserDeleteResponse>, Status> {
        change!(self, r, auth_user_delete, AuthUserDeleteResponse)
    }

    async fn user_change_password(
        &self,
        mut r: Request<AuthUserChangePasswordRequest>,
    ) -> Result<Response<AuthUserChangePasswordResponse>, Status> {
        let user = r.get_mut();
        if !user.password.is_empty() {
            user.hashed_password = self.0.hash(std::mem::take(&mut user.password)).await?;
        }
        change!(self, r, auth_user_change_password, AuthUserChangePasswordResponse)
    }

    async fn user_grant_role(
        &self,
        r: Request<AuthUserGrantRoleRequest>,
    ) -> Result<Response<AuthUserGrantRoleResponse>, Status> {
        change!(self, r, auth_user_grant_role, AuthUserGrantRoleResponse)
    }

    async fn user_revoke_role(
        &self,
        r: Request<AuthUserRevokeRoleRequest>,
    ) -> Result<Response<AuthUserRevokeRoleResponse>, Status> {
        change!(self, r, auth_user_revoke_role, AuthUserRevokeRoleResponse)
    }

    async fn role_add(&self, r: Request<AuthRoleAddRequest>) -> Result<Response<AuthRoleAddResponse>, Status> {
        change!(self, r, auth_role_add, AuthRoleAddResponse)
    }

    async fn role_get(&self, r: Request<AuthRoleGetRequest>) -> Result<Response<AuthRoleGetResponse>, Status> {
        question!(self, r, auth_role_get, AuthAnswer::Permissions(perm) =>
            AuthRoleGetResponse { header: Some(self.0.header()), perm })
    }

    async fn role_list(&self, r: Request<AuthRoleListRequest>) -> Result<Response<AuthRoleListResponse>, Status> {
        question!(self, r, auth_role_list, AuthAnswer::Roles(roles) =>
            AuthRoleListResponse { header: Some(self.0.header()), roles })
    }

    async fn role_delete(&self, r: Request<AuthRoleDeleteRequest>) -> Result<Response<AuthRoleDeleteResponse>, Status> {
        change!(self, r, auth_role_delete, AuthRoleDeleteResponse)
    }

    async fn role_grant_permission(
        &self,
        r: Request<AuthRoleGrantPermissionRequest>,
    ) -> Result<Response<AuthRoleGrantPermissionResponse>, Status> {
        change!(self, r, auth_role_grant_permission, AuthRoleGrantPermissionResponse)
    }

    async fn role_revoke_permission(
        &self,
        r: Request<AuthRoleRevokePermissionRequest>,
    ) -> Result<Response<AuthRoleRevokePermissionResponse>, Status> {
        change!(self, r, auth_role_revoke_permission, AuthRoleRevokePermissionResponse)
    }
}

impl Context {
    async fn ask_auth(&self, request: InternalRaftRequest) -> Result<AuthAnswer, Status> {
        match self.propose(request).await? {
            Applied::Auth(answer) => Ok(answer),
            other => Err(mismatch(&other)),
        }
    }

    /// The password is compared here, so that it is in no entry; the entry gives out the token, so that all members know it.
    /// If users or roles change between, the password may have, too.
    async fn log_in(&self, name: &str, password: String) -> Result<String, Status> {
        self.linearize().await?;
        loop {
            let login = self.node.users().read().login(name).map_err(|error| refuse_login(name, error))?;
            let (given, hash) = (password.clone(), login.hash);
            let compared = self.passwords.run(move || auth::matches(&given, &hash)).await;
            if !compared.unwrap_or(false) {
                return Err(refuse_login(name, auth::Error::AuthFailed));
            }
            let simple_token = self.tokens.word()?;
            let authenticate = InternalAuthenticateRequest { name: name.into(), simple_token, ..Default::default() };
            let request = InternalRaftRequest { authenticate: Some(authenticate), ..Default::default() };
            let AuthAnswer::LoggedIn { token, revision } = self.ask_auth(request).await? else {
                return Err(status::auth_failed());
            };
            if revision == login.revision {
                return self.tokens.give(name, token, revision);
            }
            tracing::info!("revision when password checked became stale; retrying");
        }
    }

    /// The hash of a password that somebody sets. It takes long on purpose, so it is not made for callers whose entry would
    /// be refused.
    async fn hash(&self, password: String) -> Result<String, Status> {
        if self.node.users().enabled() {
            self.require_login().await?;
            // The caller may have become an administrator through another member.
            self.linearize().await?;
            self.require_admin().await?;
        }
        let cost = self.limits.bcrypt_cost;
        let mut salt = auth::Salt::default();
        getrandom::fill(&mut salt).map_err(|e| status::unknown(format!("failed to make a salt: {e}")))?;
        let hashed = self.passwords.run(move || auth::hash_to_propose(&password, cost, salt)).await;
        hashed.flatten().ok_or_else(status::password_too_long)
    }
}

fn refuse_login(name: &str, error: auth::Error) -> Status {
    if error != auth::Error::AuthNotEnabled {
        tracing::warn!(user = name, %error, "invalid authentication was requested");
    }
    status::from_auth(error)
}
