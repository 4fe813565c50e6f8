//! Who the client is to the servers: one login for all its calls, which then carry its token.
//!
//! **Invariant:** at most one login is under way. Calls that need it wait for its outcome, whatever it is, so that a
//! thousand calls at once cost one login: servers make a password slow to check on purpose.

use std::{
    fmt,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use proto::etcdserverpb::{AuthenticateRequest, auth_client::AuthClient};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

use crate::{
    Client, ConnectOptions, Error, Kind, Result, User,
    call::{Caller, rpc},
    required::Required,
};

const KEY: &str = "token";

/// What a client shows to be let in.
#[derive(Clone)]
pub(crate) enum Credentials {
    Password(User),
    Token(String),
}

/// Secrets do not get into logs by way of their owner.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Credentials::Password(user) => user.fmt(f),
            Credentials::Token(_) => f.write_str("token …"),
        }
    }
}

/// What a call carries.
#[derive(Clone, Default)]
pub(crate) struct Token {
    /// Which login it is of, counted from 1; 0 without any.
    login: u64,
    /// None if the cluster does not ask for one.
    value: Option<MetadataValue<Ascii>>,
}

impl Token {
    pub(crate) fn write(&self, metadata: &mut MetadataMap) {
        if let Some(value) = &self.value {
            metadata.insert(KEY, value.clone());
        }
    }
}

/// How there came to be another token than the one that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Not at all: the token is not what is wrong.
    None,
    /// From a login of others in the past; it may be too old as well.
    Known,
    LoggedIn,
}

/// The logins of a client and its clones. A token holds for the whole cluster, so all endpoints share it.
pub(crate) struct Login {
    user: User,
    /// Held by whoever logs in.
    turn: tokio::sync::Mutex<()>,
    latest: Mutex<Latest>,
}

#[derive(Clone, Default)]
struct Latest {
    /// Logins that have ended, well or not.
    ended: u64,
    outcome: Option<Result<Token>>,
}

impl Login {
    /// None if there is nothing to log in with. As in etcd's own client, neither name nor password may be empty.
    pub(crate) fn new(options: &ConnectOptions) -> Option<Login> {
        match options.credentials.clone()? {
            Credentials::Password(user) if !user.name.is_empty() && !user.password.is_empty() => {
                Some(Login { user, turn: Default::default(), latest: Default::default() })
            }
            _ => None,
        }
    }

    /// The token to send, after a login if there was none that went well.
    pub(crate) async fn token(&self, caller: &Caller) -> Result<Token> {
        let seen = self.latest().clone();
        match seen.outcome {
            Some(Ok(token)) => Ok(token),
            _ => self.log_in(caller, seen.ended).await,
        }
    }

    /// Sees to it that there is another token than `stale`.
    pub(crate) async fn renew(&self, caller: &Caller, stale: &Token) -> Result<Renewal> {
        let seen = self.latest().clone();
        match seen.outcome {
            Some(Ok(token)) if token.login != stale.login => Ok(Renewal::Known),
            _ => self.log_in(caller, seen.ended).await.map(|_| Renewal::LoggedIn),
        }
    }

    async fn log_in(&self, caller: &Caller, seen: u64) -> Result<Token> {
        let _turn = self.turn.lock().await;
        let latest = self.latest().clone();
        if let Some(outcome) = latest.outcome.filter(|_| latest.ended != seen) {
            return outcome;
        }
        let login = latest.ended + 1;
        let outcome = self.authenticate(caller).await.map(|value| Token { login, value });
        *self.latest() = Latest { ended: login, outcome: Some(outcome.clone()) };
        outcome
    }

    /// Boxed, because it is a call within every call.
    fn authenticate<'a>(&'a self, caller: &Caller) -> BoxFuture<'a, Result<Option<MetadataValue<Ascii>>>> {
        // Nothing but the password is asked for here: neither a token nor a feature.
        let caller = Caller { login: None, token: Token::default(), required: Required::default(), ..caller.clone() };
        let User { name, password } = self.user.clone();
        let request = AuthenticateRequest { name, password };
        async move {
            // A second login because the answer to the first got lost harms nobody.
            match rpc!(caller, Repeatable, AuthClient::authenticate, request) {
                Ok(response) => value(&response.token).map(Some),
                Err(error) if error.kind() == Some(Kind::AuthNotEnabled) => Ok(None),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn value(token: &str) -> Result<MetadataValue<Ascii>> {
    MetadataValue::try_from(token).map_err(|_| Error::BadToken)
}

impl Caller {
    /// The token for the next attempt.
    pub(crate) async fn token(&self) -> Result<Token> {
        match &self.login {
            Some(login) => login.token(self).await,
            None => Ok(self.token.clone()),
        }
    }

    /// After an error: if it was about the token, gets a new one, so that another attempt may go well.
    pub(crate) async fn renew(&self, stale: &Token, error: &Error) -> Result<Renewal> {
        match &self.login {
            Some(login) if error.is_about_token() => login.renew(self, stale).await,
            _ => Ok(Renewal::None),
        }
    }

    /// The token that was given in place of a password, which nobody can renew.
    pub(crate) fn given_token(options: &ConnectOptions) -> Result<Token> {
        match &options.credentials {
            Some(Credentials::Token(token)) if !token.is_empty() => Ok(Token { login: 0, value: Some(value(token)?) }),
            _ => Ok(Token::default()),
        }
    }
}

impl Client {
    /// Logs in now instead of with the first call, so that a wrong password is known from the start. Does nothing if
    /// there is no password or if somebody has logged in before.
    pub async fn log_in(&self, timeout: impl Into<Option<Duration>>) -> Result<()> {
        self.with_timeout(timeout).caller.token().await.map(drop)
    }
}
