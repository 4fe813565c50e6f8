//! Applying changes of users and roles, and asking whether an entry's user may do what it asks for.

use auth::{Salt, Store, administers, carries_plain};
use proto::etcdserverpb::InternalRaftRequest;
use storage::Batch;

use super::{Response, State, quota};
use crate::error::{ApplyError, FatalError};

/// Users and roles, for those who apply with them. They replay: the store knows which keys hang on leases.
pub struct Auth {
    pub store: Store,
    /// Passwords that an entry carries plainly, as those of etcd 3.4 do, are hashed with a salt of this member's own.
    pub salt: fn() -> Result<Salt, String>,
}

impl State {
    /// Whether the entry's user may do what it asks for, as of this entry.
    pub(super) fn admit(&self, r: &InternalRaftRequest) -> Result<(), ApplyError> {
        let Some(auth) = &self.auth else { return Ok(()) };
        let keys_of = |id, visit: &mut dyn FnMut(&[u8]) -> bool| self.store.each_key_of(id, visit);
        auth.store.check(r, &keys_of).map_err(|error| self.alarm_first(r).unwrap_or(ApplyError::Auth(error)))
    }

    /// What an alarm forbids is refused for that reason, whoever asks.
    fn alarm_first(&self, r: &InternalRaftRequest) -> Option<ApplyError> {
        let grows = r.put.is_some() || r.increment.is_some() || r.txn.as_ref().is_some_and(|r| quota::txn_cost(r) > 0);
        if administers(r) {
            None
        } else if self.alarms.corrupt() {
            Some(ApplyError::Corrupt)
        } else {
            (grows && self.alarms.no_space()).then_some(ApplyError::NoSpace)
        }
    }

    /// `None` if it is no request about users and roles, or if this member does not apply these.
    pub(super) fn auth_request(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        r: &InternalRaftRequest,
    ) -> Result<Option<Result<Response, ApplyError>>, FatalError> {
        let Some(auth) = &mut self.auth else { return Ok(None) };
        if reads_users(r) {
            return Ok(Some(Ok(Response::None)));
        }
        let salt = if carries_plain(r) { (auth.salt)() } else { Ok(Salt::default()) };
        let salt = salt.map_err(|why| FatalError::NoSalt { index, why })?;
        Ok(auth.store.decide(r, salt).map(|decided| {
            let change = decided.map_err(ApplyError::Auth)?;
            change.write(batch);
            auth.store.take(change);
            Ok(Response::None)
        }))
    }
}

/// Logins leave a token in the memory of members alone, and questions leave nothing.
fn reads_users(r: &InternalRaftRequest) -> bool {
    r.authenticate.is_some()
        || r.auth_status.is_some()
        || r.auth_user_get.is_some()
        || r.auth_user_list.is_some()
        || r.auth_role_get.is_some()
        || r.auth_role_list.is_some()
}
