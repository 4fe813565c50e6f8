//! Who calls, and whether they may. Writes carry their user inside of their entry and are judged where it is applied; what is
//! answered without an entry is judged here, as far as this member has applied.

pub(crate) mod jwt;
mod passwords;
pub(crate) mod tokens;

use auth::{Store, Who};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use proto::etcdserverpb::InternalRaftRequest;
use tonic::Status;

pub(crate) use self::{passwords::Passwords, tokens::Tokens};
use crate::{call, services::Context, status};

/// Where clients of etcd put their token; the JSON gateway has it in `authorization`.
const TOKEN: HeaderName = HeaderName::from_static("token");
const BEARER: &str = "Bearer ";

/// A user who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub user: String,
    /// Of the users and roles that the token is good for.
    pub revision: u64,
}

/// What was allowed, and as of when.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Permit {
    /// Authentication was off.
    Off,
    /// Authentication was on, and what was asked for needs no user.
    Anybody,
    /// To a user, as of this revision of users and roles.
    AsOf(u64),
}

impl Caller {
    fn who(caller: &Option<Caller>) -> Who<'_> {
        caller.as_ref().map_or_else(Who::default, |caller| Who { user: &caller.user, revision: caller.revision })
    }
}

/// The token among the headers of a call, if there is one.
pub(crate) fn token_among(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(TOKEN).or_else(|| headers.get(header::AUTHORIZATION)).cloned()
}

impl Context {
    /// What a call shows, where it matters.
    #[inline]
    pub(crate) fn token_of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.node.users().enabled() { token_among(headers) } else { None }
    }

    /// Who calls. `None`: nobody has to say, or nobody has said.
    pub(crate) async fn caller(&self) -> Result<Option<Caller>, Status> {
        self.caller_with(call::noted().token.as_ref()).await
    }

    async fn caller_with(&self, token: Option<&HeaderValue>) -> Result<Option<Caller>, Status> {
        let Some(token) = token.filter(|_| self.node.users().enabled()) else { return Ok(None) };
        let text = token.to_str().map_err(|_| status::invalid_auth_token())?;
        let text = text.strip_prefix(BEARER).unwrap_or(text);
        match self.tokens.caller(&self.node, text).await {
            Some(caller) => Ok(Some(caller)),
            // It was of no use any more, or is of none yet, while users went.
            None if !self.node.users().enabled() => Ok(None),
            None => {
                tracing::warn!("invalid auth token");
                Err(status::invalid_auth_token())
            }
        }
    }

    /// Puts the caller into the request's entry, where it is judged when that is applied.
    pub(crate) async fn sign(&self, request: &mut InternalRaftRequest) -> Result<(), Status> {
        // Who logs in has no token yet.
        if request.authenticate.is_some() {
            return Ok(());
        }
        if let Some(Caller { user, revision }) = self.caller().await? {
            let header = request.header.get_or_insert_default();
            (header.username, header.auth_revision) = (user, revision);
        }
        Ok(())
    }

    /// For what every user may ask, and nobody else.
    pub(crate) async fn require_login(&self) -> Result<(), Status> {
        self.require_login_with(call::noted().token.as_ref()).await
    }

    pub(crate) async fn require_login_with(&self, token: Option<&HeaderValue>) -> Result<(), Status> {
        if !self.node.users().enabled() || self.caller_with(token).await?.is_some() {
            return Ok(());
        }
        Err(status::user_empty())
    }

    /// For what needs the role root.
    pub(crate) async fn require_admin(&self) -> Result<(), Status> {
        self.permit(|users, who| users.may_administer(who)).await.map(drop)
    }

    /// Whether the caller may do what is judged.
    pub(crate) async fn permit(
        &self,
        judge: impl FnOnce(&Store, Who<'_>) -> Result<(), auth::Error>,
    ) -> Result<Permit, Status> {
        self.permit_with(call::noted().token.as_ref(), judge).await
    }

    pub(crate) async fn permit_with(
        &self,
        token: Option<&HeaderValue>,
        judge: impl FnOnce(&Store, Who<'_>) -> Result<(), auth::Error>,
    ) -> Result<Permit, Status> {
        if !self.node.users().enabled() {
            return Ok(Permit::Off);
        }
        let caller = self.caller_with(token).await?;
        judge(&self.node.users().read(), Caller::who(&caller)).map_err(status::from_auth)?;
        Ok(caller.map_or(Permit::Anybody, |caller| Permit::AsOf(caller.revision)))
    }

    /// Whether users and roles are still those that something was allowed by: what was read meanwhile may be what they were
    /// changed to hide.
    pub(crate) fn check_still(&self, permit: Permit) -> Result<(), Status> {
        let users = self.node.users();
        match permit {
            Permit::AsOf(revision) if revision != users.revision() => Err(status::auth_old_revision()),
            // Authentication was turned on meanwhile, and the call was not judged for any user.
            Permit::Off if users.enabled() => Err(status::user_empty()),
            _ => Ok(()),
        }
    }
}
