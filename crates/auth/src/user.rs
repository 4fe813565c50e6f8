//! What requests about users change.

use bytes::Bytes;
use proto::{
    authpb::User,
    etcdserverpb::{
        AuthUserAddRequest, AuthUserChangePasswordRequest, AuthUserDeleteRequest, AuthUserGrantRoleRequest,
        AuthUserRevokeRoleRequest,
    },
};

use crate::{Change, Error, ROOT_ROLE, ROOT_USER, Salt, Store, Write, password};

impl Store {
    pub(crate) fn user_add(&self, r: &AuthUserAddRequest, salt: Salt) -> Result<Change, Error> {
        if r.name.is_empty() {
            return Err(Error::UserEmpty);
        }
        if self.users.contains_key(r.name.as_bytes()) {
            return Err(Error::UserAlreadyExist);
        }
        // Stored even if they were not given.
        let options = r.options.unwrap_or_default();
        let password =
            if options.no_password { Bytes::new() } else { password::select(&r.password, &r.hashed_password, salt)? };
        let user = User { name: r.name.clone().into(), password, roles: Vec::new(), options: Some(options) };
        Ok(self.counted(vec![Write::User(user)]))
    }

    pub(crate) fn user_delete(&self, r: &AuthUserDeleteRequest) -> Result<Change, Error> {
        if self.enabled && r.name == ROOT_USER {
            return Err(Error::InvalidAuthMgmt);
        }
        let user = self.user(&r.name)?;
        Ok(self.counted(vec![Write::UserGone(user.name.clone())]))
    }

    /// A user without password loses nothing and gets none; the request counts all the same.
    pub(crate) fn user_change_password(&self, r: &AuthUserChangePasswordRequest, salt: Salt) -> Result<Change, Error> {
        let user = self.user(&r.name)?;
        let password = if user.options.is_some_and(|options| options.no_password) {
            Bytes::new()
        } else {
            password::select(&r.password, &r.hashed_password, salt)?
        };
        Ok(self.counted(vec![Write::User(User { password, ..user.clone() })]))
    }

    pub(crate) fn user_grant_role(&self, r: &AuthUserGrantRoleRequest) -> Result<Change, Error> {
        let mut user = self.user(&r.user)?.clone();
        if r.role != ROOT_ROLE {
            self.role(&r.role)?;
        }
        let Err(place) = user.roles.binary_search(&r.role) else { return Ok(Change::default()) };
        user.roles.insert(place, r.role.clone());
        Ok(self.counted(vec![Write::User(user)]))
    }

    pub(crate) fn user_revoke_role(&self, r: &AuthUserRevokeRoleRequest) -> Result<Change, Error> {
        if self.enabled && r.name == ROOT_USER && r.role == ROOT_ROLE {
            return Err(Error::InvalidAuthMgmt);
        }
        let user = without_role(self.user(&r.name)?, &r.role).ok_or(Error::RoleNotGranted)?;
        Ok(self.counted(vec![Write::User(user)]))
    }

    fn user(&self, name: &str) -> Result<&User, Error> {
        self.users.get(name.as_bytes()).ok_or(Error::UserNotFound)
    }
}

/// `None` if the user does not have it.
pub(crate) fn without_role(user: &User, role: &str) -> Option<User> {
    let roles: Vec<_> = user.roles.iter().filter(|name| *name != role).cloned().collect();
    (roles.len() < user.roles.len()).then(|| User { roles, ..user.clone() })
}
