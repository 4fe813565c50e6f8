//! What requests about roles change.

use proto::{
    authpb::{Permission, Role},
    etcdserverpb::{
        AuthRoleAddRequest, AuthRoleDeleteRequest, AuthRoleGrantPermissionRequest, AuthRoleRevokePermissionRequest,
    },
};

use crate::{Change, Error, ROOT_ROLE, Store, Write, go_sort, permission::is_valid_range, user::without_role};

impl Store {
    pub(crate) fn role_add(&self, r: &AuthRoleAddRequest) -> Result<Change, Error> {
        if r.name.is_empty() {
            return Err(Error::RoleEmpty);
        }
        if self.roles.contains_key(r.name.as_bytes()) {
            return Err(Error::RoleAlreadyExist);
        }
        let role = Role { name: r.name.clone().into(), key_permission: Vec::new() };
        Ok(self.counted(vec![Write::Role(role)]))
    }

    /// The role goes, also from the users who have it.
    pub(crate) fn role_delete(&self, r: &AuthRoleDeleteRequest) -> Result<Change, Error> {
        if self.enabled && r.role == ROOT_ROLE {
            return Err(Error::InvalidAuthMgmt);
        }
        let mut writes = vec![Write::RoleGone(self.role(&r.role)?.name.clone())];
        writes.extend(self.users.values().filter_map(|user| without_role(user, &r.role)).map(Write::User));
        Ok(self.counted(writes))
    }

    /// A range that is the first of its key in the role gets another type; any other is added, even if it is there.
    pub(crate) fn role_grant_permission(&self, r: &AuthRoleGrantPermissionRequest) -> Result<Change, Error> {
        let given = r.perm.as_ref().ok_or(Error::PermissionNotGiven)?;
        if !is_valid_range(&given.key, &given.range_end) {
            return Err(Error::InvalidAuthMgmt);
        }
        let mut role = self.role(&r.name)?.clone();
        let list = &mut role.key_permission;
        let place = list.partition_point(|p| p.key < given.key);
        match list.get_mut(place).filter(|p| is_range(p, &given.key, &given.range_end)) {
            Some(found) => found.perm_type = given.perm_type,
            None => {
                list.push(given.clone());
                go_sort::place_last(list, |a, b| a.key < b.key);
            }
        }
        Ok(self.counted(vec![Write::Role(role)]))
    }

    pub(crate) fn role_revoke_permission(&self, r: &AuthRoleRevokePermissionRequest) -> Result<Change, Error> {
        let role = self.role(&r.role)?;
        let kept = role.key_permission.iter().filter(|p| !is_range(p, &r.key, &r.range_end));
        let key_permission: Vec<_> = kept.cloned().collect();
        if key_permission.len() == role.key_permission.len() {
            return Err(Error::PermissionNotGranted);
        }
        Ok(self.counted(vec![Write::Role(Role { key_permission, ..role.clone() })]))
    }

    pub(crate) fn role(&self, name: &str) -> Result<&Role, Error> {
        self.roles.get(name.as_bytes()).ok_or(Error::RoleNotFound)
    }
}

fn is_range(permission: &Permission, key: &[u8], range_end: &[u8]) -> bool {
    permission.key == key && permission.range_end == range_end
}
