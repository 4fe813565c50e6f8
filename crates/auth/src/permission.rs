//! What a user may do with which keys.

use std::collections::BTreeMap;

use bytes::Bytes;
use proto::authpb::{Permission, Role, User, permission::Type};

use crate::interval::{Interval, Order, Tree, compare};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// All that the roles of a user allow.
pub(crate) struct Permissions {
    read: Tree,
    write: Tree,
}

impl Permissions {
    /// Roles that are not stored allow nothing.
    pub(crate) fn merge(user: &User, roles: &BTreeMap<Bytes, Role>, order: Order) -> Permissions {
        let roles = user.roles.iter().filter_map(|name| roles.get(name.as_bytes()));
        let all: Vec<_> = roles.flat_map(|role| &role.key_permission).collect();
        let tree = |access| Tree::build(all.iter().filter(|p| gives(p, access)).map(|p| range_of(p)), order);
        Permissions { read: tree(Access::Read), write: tree(Access::Write) }
    }

    /// An empty end means the key alone, and the byte 0 all keys from there on.
    pub(crate) fn allow(&self, access: Access, key: &[u8], range_end: &[u8]) -> bool {
        let tree = match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
        };
        match range_end {
            [] => tree.meets(&Interval::point(key)),
            [0] => tree.covers(&Interval::new(key, b"")),
            end => tree.covers(&Interval::new(key, end)),
        }
    }
}

/// Whether a permission for this range can be granted.
pub(crate) fn is_valid_range(key: &[u8], range_end: &[u8]) -> bool {
    !key.is_empty() && (matches!(range_end, [] | [0]) || compare(key, range_end).is_lt())
}

/// Types that are not known yet give nothing.
fn gives(permission: &Permission, access: Access) -> bool {
    match Type::try_from(permission.perm_type) {
        Ok(Type::Readwrite) => true,
        Ok(Type::Read) => access == Access::Read,
        Ok(Type::Write) => access == Access::Write,
        Err(_) => false,
    }
}

fn range_of(permission: &Permission) -> Interval {
    match &permission.range_end[..] {
        [] => Interval::point(&permission.key),
        [0] => Interval::new(&permission.key, b""),
        end => Interval::new(&permission.key, end),
    }
}
