//! What users get when they log in, by `--auth-token`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use node::Node;
use tonic::Status;

use super::{Caller, jwt::Jwt};
use crate::status;

pub(crate) enum Tokens {
    /// Words that every member keeps.
    Simple,
    /// Texts that prove themselves.
    Jwt(Box<Jwt>),
    /// Nobody gets one.
    Off,
}

impl Tokens {
    /// Whose token it is.
    pub(crate) async fn caller(&self, node: &Node, token: &str) -> Option<Caller> {
        match self {
            Tokens::Simple => {
                let user = node.user_of_token(token).await?;
                Some(Caller { user, revision: node.users().revision() })
            }
            Tokens::Jwt(jwt) => jwt.verify(token, now()).inspect_err(|why| tracing::warn!(%why, "refused a JWT")).ok(),
            Tokens::Off => None,
        }
    }

    /// The token for a user whose login is applied; `assigned` is the one that the entry gave out.
    pub(crate) fn give(&self, user: &str, assigned: Option<String>, revision: u64) -> Result<String, Status> {
        match self {
            Tokens::Simple => assigned.ok_or_else(status::auth_failed),
            Tokens::Jwt(jwt) => jwt.sign(user, revision, now()).map_err(|why| status::unknown(why.to_string())),
            Tokens::Off => Err(status::auth_failed()),
        }
    }

    /// What the entry of a login makes its token of.
    pub(crate) fn word(&self) -> Result<String, Status> {
        match self {
            Tokens::Simple => random_word(),
            Tokens::Jwt(_) | Tokens::Off => Ok(String::new()),
        }
    }
}

/// Since 1970, as tokens count.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn random_word() -> Result<String, Status> {
    let mut random = [0; 64];
    loop {
        getrandom::fill(&mut random).map_err(|e| status::unknown(format!("failed to make a token: {e}")))?;
        if let Some(word) = auth::token::word(&random) {
            return Ok(word);
        }
    }
}
