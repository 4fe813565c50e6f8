//! Whether the user in an entry's header may do what the entry asks for.
//!
//! etcd asks at apply, with the users and roles as of that entry: what was allowed when it was proposed may be refused
//! here. It does not ask about compactions, alarms, checkpoints and grants of leases, which are judged before they are
//! proposed.

use proto::etcdserverpb::{
    DeleteRangeRequest, IncrementRequest, InternalRaftRequest, PutRequest, RequestOp, TxnRequest, request_op::Request,
};

use crate::{Error, Store, permission::Access, store::has_root_role};

/// The sender of an entry or a caller, and how many changes of users and roles its member knew of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Who<'a> {
    pub user: &'a str,
    pub revision: u64,
}

impl<'a> Who<'a> {
    /// An entry without header, or of a time without authentication, has nobody.
    pub fn of(r: &'a InternalRaftRequest) -> Who<'a> {
        r.header.as_ref().map_or_else(Who::default, |h| Who { user: &h.username, revision: h.auth_revision })
    }
}

/// Visits the keys that hang on a lease, in order, until it is told `false`; none if there is no such lease.
pub type KeysOf<'a> = dyn Fn(i64, &mut dyn FnMut(&[u8]) -> bool) + 'a;

/// Whether only root may ask for it, whatever it is about.
pub fn administers(r: &InternalRaftRequest) -> bool {
    r.auth_enable.is_some()
        || r.auth_disable.is_some()
        || r.auth_user_add.is_some()
        || r.auth_user_delete.is_some()
        || r.auth_user_change_password.is_some()
        || r.auth_user_grant_role.is_some()
        || r.auth_user_revoke_role.is_some()
        || r.auth_role_add.is_some()
        || r.auth_role_grant_permission.is_some()
        || r.auth_role_revoke_permission.is_some()
        || r.auth_role_delete.is_some()
        || r.auth_user_list.is_some()
        || r.auth_role_list.is_some()
}

impl Store {
    /// Whether an entry may be applied.
    pub fn check(&self, r: &InternalRaftRequest, keys_of: &KeysOf<'_>) -> Result<(), Error> {
        if !self.enabled {
            return Ok(());
        }
        let judge = self.judge(Who::of(r), keys_of);
        if administers(r) {
            return judge.admin();
        }
        // In the order in which etcd looks.
        if let Some(r) = &r.range {
            judge.keys(Access::Read, &r.key, &r.range_end)
        } else if let Some(r) = &r.put {
            judge.put(r)
        } else if let Some(r) = &r.delete_range {
            judge.delete_range(r)
        } else if let Some(r) = &r.txn {
            judge.txn(r)
        } else if let Some(r) = &r.lease_revoke {
            judge.lease(r.id)
        } else if let Some(r) = &r.increment {
            judge.increment(r)
        } else if let Some(r) = &r.auth_user_get {
            judge.user_get(&r.name)
        } else if let Some(r) = &r.auth_role_get {
            judge.role_get(&r.role)
        } else {
            Ok(())
        }
    }

    /// Whether a caller may read these keys; like the others below, for what is answered without the log.
    pub fn may_read(&self, who: Who<'_>, key: &[u8], range_end: &[u8]) -> Result<(), Error> {
        self.when_enabled(|| self.judge(who, &no_keys).keys(Access::Read, key, range_end))
    }

    pub fn may_write(&self, who: Who<'_>, key: &[u8]) -> Result<(), Error> {
        self.when_enabled(|| self.judge(who, &no_keys).keys(Access::Write, key, b""))
    }

    pub fn may_administer(&self, who: Who<'_>) -> Result<(), Error> {
        self.when_enabled(|| self.judge(who, &no_keys).admin())
    }

    pub fn may_txn(&self, who: Who<'_>, r: &TxnRequest, keys_of: &KeysOf<'_>) -> Result<(), Error> {
        self.when_enabled(|| self.judge(who, keys_of).txn(r))
    }

    fn when_enabled(&self, judge: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        if self.enabled { judge() } else { Ok(()) }
    }

    fn judge<'a>(&'a self, who: Who<'a>, keys_of: &'a KeysOf<'a>) -> Judge<'a> {
        Judge { store: self, who, keys_of }
    }
}

fn no_keys(_: i64, _: &mut dyn FnMut(&[u8]) -> bool) {}

/// With authentication on.
struct Judge<'a> {
    store: &'a Store,
    who: Who<'a>,
    keys_of: &'a KeysOf<'a>,
}

impl Judge<'_> {
    /// Does not ask how old the entry is.
    fn admin(&self) -> Result<(), Error> {
        if self.who.user.is_empty() {
            return Err(Error::UserEmpty);
        }
        let user = self.store.users.get(self.who.user.as_bytes()).ok_or(Error::UserNotFound)?;
        if has_root_role(user) { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    fn keys(&self, access: Access, key: &[u8], range_end: &[u8]) -> Result<(), Error> {
        // Members with authentication on count from 1.
        if self.who.revision == 0 {
            return Err(Error::UserEmpty);
        }
        if self.who.revision < self.store.revision {
            return Err(Error::AuthOldRevision);
        }
        let name = self.who.user.as_bytes();
        let user = self.store.users.get(name).ok_or(Error::PermissionDenied)?;
        let permissions = self.store.permissions.get(name).ok_or(Error::PermissionDenied)?;
        let allowed = has_root_role(user) || permissions.allow(access, key, range_end);
        if allowed { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    fn put(&self, r: &PutRequest) -> Result<(), Error> {
        self.keys(Access::Write, &r.key, b"")?;
        self.lease(r.lease)?;
        if r.prev_kv { self.keys(Access::Read, &r.key, b"") } else { Ok(()) }
    }

    /// Whoever hangs a key on a lease, or ends the lease, must be able to write all that hangs on it.
    fn lease(&self, id: i64) -> Result<(), Error> {
        if self.admin().is_ok() {
            return Ok(());
        }
        let mut judged = Ok(());
        (self.keys_of)(id, &mut |key| {
            judged = self.keys(Access::Write, key, b"");
            judged.is_ok()
        });
        judged
    }

    fn delete_range(&self, r: &DeleteRangeRequest) -> Result<(), Error> {
        self.keys(Access::Write, &r.key, &r.range_end)?;
        if r.prev_kv { self.keys(Access::Read, &r.key, &r.range_end) } else { Ok(()) }
    }

    /// A put that tells what was there, in effect: the sum tells the value before it.
    fn increment(&self, r: &IncrementRequest) -> Result<(), Error> {
        self.keys(Access::Write, &r.key, b"")?;
        self.keys(Access::Read, &r.key, b"")
    }

    /// Everybody may ask about themselves.
    fn user_get(&self, name: &str) -> Result<(), Error> {
        if name == self.who.user { Ok(()) } else { self.admin() }
    }

    /// Everybody may ask about the roles they have.
    fn role_get(&self, role: &str) -> Result<(), Error> {
        let user = self.store.users.get(self.who.user.as_bytes());
        let has_it = user.is_some_and(|user| user.roles.iter().any(|name| name == role));
        if has_it { Ok(()) } else { self.admin() }
    }

    /// All of it, whichever branch will be taken.
    fn txn(&self, r: &TxnRequest) -> Result<(), Error> {
        r.compare.iter().try_for_each(|c| self.keys(Access::Read, &c.key, &c.range_end))?;
        r.success.iter().chain(&r.failure).try_for_each(|op| self.operation(op))
    }

    fn operation(&self, op: &RequestOp) -> Result<(), Error> {
        match &op.request {
            Some(Request::RequestRange(r)) => self.keys(Access::Read, &r.key, &r.range_end),
            Some(Request::RequestPut(r)) => self.put(r),
            Some(Request::RequestDeleteRange(r)) => self.delete_range(r),
            Some(Request::RequestTxn(r)) => self.txn(r),
            None => Ok(()),
        }
    }
}
