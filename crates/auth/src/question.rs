//! What is told of users and roles, and what a login needs.

use bytes::Bytes;
use proto::authpb::{Permission, permission::Type};

use crate::{Error, ROOT_ROLE, Store};

/// What a login is judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    pub hash: Bytes,
    /// If it is another when the login is done, the password may be old.
    pub revision: u64,
}

impl Store {
    pub fn user_names(&self) -> Vec<String> {
        self.users.keys().map(|name| text(name)).collect()
    }

    pub fn role_names(&self) -> Vec<String> {
        self.roles.keys().map(|name| text(name)).collect()
    }

    pub fn roles_of(&self, user: &str) -> Result<Vec<String>, Error> {
        self.users.get(user.as_bytes()).map(|user| user.roles.clone()).ok_or(Error::UserNotFound)
    }

    /// The role root may do everything, whatever is stored with it.
    pub fn permissions_of(&self, role: &str) -> Result<Vec<Permission>, Error> {
        let stored = self.role(role)?;
        if role != ROOT_ROLE {
            return Ok(stored.key_permission.clone());
        }
        let (key, range_end) = (Bytes::new(), Bytes::from_static(&[0]));
        Ok(vec![Permission { perm_type: Type::Readwrite as i32, key, range_end }])
    }

    /// With what a password is to be compared.
    pub fn login(&self, name: &str) -> Result<Login, Error> {
        if !self.enabled {
            return Err(Error::AuthNotEnabled);
        }
        let user = self.users.get(name.as_bytes()).ok_or(Error::AuthFailed)?;
        if user.options.is_some_and(|options| options.no_password) {
            return Err(Error::NoPasswordUser);
        }
        Ok(Login { hash: user.password.clone(), revision: self.revision })
    }

    /// Whether a user whose password was compared may have a token, as of the entry that says so.
    pub fn admit_login(&self, name: &str) -> Result<(), Error> {
        match self.login(name) {
            Err(Error::NoPasswordUser) => Err(Error::AuthFailed),
            other => other.map(drop),
        }
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
