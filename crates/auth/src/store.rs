//! The state, and what changes it.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::{
    authpb::{Role, User},
    etcdserverpb::InternalRaftRequest,
};
use storage::{Batch, Read, schema};

use crate::{Error, Order, ROOT_ROLE, ROOT_USER, Salt, permission::Permissions};

/// What the file holds of users and roles.
pub struct Store {
    pub(crate) enabled: bool,
    pub(crate) revision: u64,
    pub(crate) users: BTreeMap<Bytes, User>,
    pub(crate) roles: BTreeMap<Bytes, Role>,
    /// What each user may do by all roles together; made anew after every change, as changes are rare and checks are not.
    pub(crate) permissions: BTreeMap<Bytes, Permissions>,
    order: Order,
}

/// One record that a request writes.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    Enabled(bool),
    User(User),
    UserGone(Bytes),
    Role(Role),
    RoleGone(Bytes),
}

/// What a request changes; nothing, if it asks for what is so already.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    pub writes: Vec<Write>,
    /// The revision from now on, if it counts up.
    pub revision: Option<u64>,
}

impl Store {
    /// Loads the file's state. A file that nobody has counted in yet counts from 1, as if an etcd had started on it.
    pub fn load(read: &impl Read, order: Order) -> Result<Store, schema::DecodeError> {
        let by_name = |users: Vec<User>| users.into_iter().map(|user| (user.name.clone(), user)).collect();
        let roles = schema::auth::roles(read)?;
        let mut store = Store {
            enabled: schema::auth::enabled(read),
            revision: schema::auth::revision(read)?.max(1),
            users: by_name(schema::auth::users(read)?),
            roles: roles.into_iter().map(|role| (role.name.clone(), role)).collect(),
            permissions: BTreeMap::new(),
            order,
        };
        store.merge_permissions();
        Ok(store)
    }

    pub fn enabled(&self) -> bool {
        self.enabled
    }

    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What a request changes; `None` if it is no request that could change users, roles or authentication. Whether its
    /// sender may do so is for [`Store::check`] to say. The salt is for passwords that [`carries_plain`](crate::carries_plain) finds.
    pub fn decide(&self, r: &InternalRaftRequest, salt: Salt) -> Option<Result<Change, Error>> {
        // In the order in which etcd looks.
        let decided = if r.auth_enable.is_some() {
            self.enable()
        } else if r.auth_disable.is_some() {
            Ok(self.disable())
        } else if let Some(r) = &r.auth_user_add {
            self.user_add(r, salt)
        } else if let Some(r) = &r.auth_user_delete {
            self.user_delete(r)
        } else if let Some(r) = &r.auth_user_change_password {
            self.user_change_password(r, salt)
        } else if let Some(r) = &r.auth_user_grant_role {
            self.user_grant_role(r)
        } else if let Some(r) = &r.auth_user_revoke_role {
            self.user_revoke_role(r)
        } else if let Some(r) = &r.auth_role_add {
            self.role_add(r)
        } else if let Some(r) = &r.auth_role_grant_permission {
            self.role_grant_permission(r)
        } else if let Some(r) = &r.auth_role_revoke_permission {
            self.role_revoke_permission(r)
        } else if let Some(r) = &r.auth_role_delete {
            self.role_delete(r)
        } else {
            return None;
        };
        Some(decided)
    }

    /// Takes a change that is in the file, or in the batch that will be.
    pub fn take(&mut self, change: Change) {
        if change == Change::default() {
            return;
        }
        for write in change.writes {
            match write {
                Write::Enabled(enabled) => self.enabled = enabled,
                Write::User(user) => drop(self.users.insert(user.name.clone(), user)),
                Write::UserGone(name) => drop(self.users.remove(&name)),
                Write::Role(role) => drop(self.roles.insert(role.name.clone(), role)),
                Write::RoleGone(name) => drop(self.roles.remove(&name)),
            }
        }
        self.revision = change.revision.unwrap_or(self.revision);
        self.merge_permissions();
    }

    /// A change that counts.
    pub(crate) fn counted(&self, writes: Vec<Write>) -> Change {
        Change { writes, revision: Some(self.revision + 1) }
    }

    /// Turning it on is the only change that does not count: entries proposed before it have no user at all.
    fn enable(&self) -> Result<Change, Error> {
        if self.enabled {
            return Ok(Change::default());
        }
        let root = self.users.get(ROOT_USER.as_bytes()).ok_or(Error::RootUserNotExist)?;
        if !has_root_role(root) {
            return Err(Error::RootRoleNotExist);
        }
        Ok(Change { writes: vec![Write::Enabled(true)], revision: None })
    }

    fn disable(&self) -> Change {
        if self.enabled { self.counted(vec![Write::Enabled(false)]) } else { Change::default() }
    }

    fn merge_permissions(&mut self) {
        let merged = |user: &User| Permissions::merge(user, &self.roles, self.order);
        self.permissions = self.users.iter().map(|(name, user)| (name.clone(), merged(user))).collect();
    }
}

impl Change {
    /// Writes it. The batch is that of the entry, so that it is in the file with its index or not at all.
    pub fn write(&self, batch: &mut Batch<'_>) {
        for write in &self.writes {
            match write {
                Write::Enabled(enabled) => schema::auth::put_enabled(batch, *enabled),
                Write::User(user) => schema::auth::put_user(batch, user),
                Write::UserGone(name) => schema::auth::delete_user(batch, name),
                Write::Role(role) => schema::auth::put_role(batch, role),
                Write::RoleGone(name) => schema::auth::delete_role(batch, name),
            }
        }
        if let Some(revision) = self.revision {
            schema::auth::put_revision(batch, revision);
        }
    }
}

/// Roles of a user are in order.
pub(crate) fn has_root_role(user: &User) -> bool {
    user.roles.binary_search_by(|role| role.as_str().cmp(ROOT_ROLE)).is_ok()
}
