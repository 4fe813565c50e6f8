//! Applying changes of users and roles, questions about them and logins, and asking whether an entry's user may do what it
//! asks for.

use std::sync::Arc;

use auth::{Salt, administers, carries_plain};
use proto::{authpb::Permission, etcdserverpb::InternalRaftRequest};
use storage::Batch;

use super::{Response, State, quota};
use crate::{
    error::{ApplyError, FatalError},
    users::Users,
};

pub(crate) struct Auth {
    pub users: Arc<Users>,
    /// Passwords that an entry carries plainly, as those of etcd 3.4 do, are hashed with a salt of this member's own.
    pub salt: fn() -> Result<Salt, String>,
}

/// What requests about users and roles are answered with.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthAnswer {
    Done,
    Status {
        enabled: bool,
        revision: u64,
    },
    /// `token` is given out by the entry itself where members keep tokens.
    LoggedIn {
        token: Option<String>,
        revision: u64,
    },
    Users(Vec<String>),
    Roles(Vec<String>),
    Permissions(Vec<Permission>),
}

impl State {
    /// Whether the entry's user may do what it asks for, as of this entry.
    pub(super) fn admit(&self, r: &InternalRaftRequest) -> Result<(), ApplyError> {
        if !self.auth.users.enabled() {
            return Ok(());
        }
        // Who replays has no keys in its lessor; the store knows them.
        let keys_of = |id, visit: &mut dyn FnMut(&[u8]) -> bool| {
            if self.lessor.lock().keys(id).iter().all(|key| visit(key)) {
                self.store.each_key_of(id, visit);
            }
        };
        let judged = self.auth.users.read().check(r, &keys_of);
        judged.map_err(|error| self.alarm_first(r).unwrap_or(ApplyError::Auth(error)))
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

    /// `None` if it is no request about users and roles.
    pub(super) fn auth_request(
        &mut self,
        batch: &mut Batch<'_>,
        index: u64,
        r: &InternalRaftRequest,
    ) -> Result<Option<Result<Response, ApplyError>>, FatalError> {
        if let Some(answer) = self.auth_question(index, r) {
            return Ok(Some(answer.map(Response::Auth).map_err(ApplyError::Auth)));
        }
        let users = &self.auth.users;
        let salt = if carries_plain(r) { (self.auth.salt)() } else { Ok(Salt::default()) };
        let salt = salt.map_err(|why| FatalError::NoSalt { index, why })?;
        let Some(decided) = users.read().decide(r, salt) else { return Ok(None) };
        Ok(Some(decided.map_err(ApplyError::Auth).map(|change| {
            change.write(batch);
            users.take(change);
            self.void_tokens(r);
            Response::Auth(AuthAnswer::Done)
        })))
    }

    /// Questions leave nothing, and logins a token in the memory of members alone.
    fn auth_question(&self, index: u64, r: &InternalRaftRequest) -> Option<Result<AuthAnswer, auth::Error>> {
        let users = self.auth.users.read();
        Some(if let Some(r) = &r.authenticate {
            users.admit_login(&r.name).map(|()| {
                let token = self.auth.users.assign(self.time.elapsed(), &r.name, &r.simple_token, index);
                AuthAnswer::LoggedIn { token, revision: users.revision() }
            })
        } else if r.auth_status.is_some() {
            Ok(AuthAnswer::Status { enabled: users.enabled(), revision: users.revision() })
        } else if let Some(r) = &r.auth_user_get {
            users.roles_of(&r.name).map(AuthAnswer::Roles)
        } else if let Some(r) = &r.auth_role_get {
            users.permissions_of(&r.role).map(AuthAnswer::Permissions)
        } else if r.auth_user_list.is_some() {
            Ok(AuthAnswer::Users(users.user_names()))
        } else if r.auth_role_list.is_some() {
            Ok(AuthAnswer::Roles(users.role_names()))
        } else {
            return None;
        })
    }

    /// Who is gone, or has another password, has to log in again; without authentication everybody has.
    fn void_tokens(&self, r: &InternalRaftRequest) {
        let users = &self.auth.users;
        if let Some(r) = &r.auth_user_delete {
            users.forget_user(&r.name);
        } else if let Some(r) = &r.auth_user_change_password {
            users.forget_user(&r.name);
        } else if r.auth_disable.is_some() {
            users.forget_all();
        }
    }
}
