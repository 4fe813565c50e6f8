//! Tokens that prove themselves: signed claims about a user and the revision of users and roles at the login. Nobody keeps
//! them, so they cannot be taken back: they end with their time, or with the next change of users and roles.

mod key;

use std::{path::PathBuf, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};

pub(crate) use self::key::{KeyError, Method};
use self::key::{Signer, Verifier};
use super::Caller;

/// What `--auth-token=jwt,…` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtOptions {
    pub method: Method,
    pub public_key: Option<PathBuf>,
    pub private_key: Option<PathBuf>,
    pub ttl: Duration,
}

pub(crate) struct Jwt {
    method: Method,
    ttl: Duration,
    /// `None` with a public key alone: tokens come from elsewhere.
    signer: Option<Signer>,
    verifier: Verifier,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SignError {
    #[error("auth: token signing attempted with verify-only key")]
    VerifyOnly,
    #[error("auth: failed to sign a token")]
    Failed,
}

/// Why a token is nobody's.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("it is no JWT")]
    Malformed,
    #[error("it is signed by another method than {0}")]
    Method(&'static str),
    #[error("its signature is wrong")]
    Signature,
    #[error("it has expired, or is not valid yet")]
    Time,
    #[error("it names no user, or no revision")]
    Claims,
}

impl Jwt {
    /// Reads the keys.
    pub(crate) fn load(options: &JwtOptions) -> Result<Jwt, KeyError> {
        let (method, ttl) = (options.method, options.ttl);
        let (signer, verifier) = key::load(method, options.private_key.as_deref(), options.public_key.as_deref())?;
        let jwt = Jwt { method, ttl, signer, verifier };
        // Keys that do not belong together would lock everybody out.
        let is_pair = jwt.sign("", 1, Duration::ZERO).is_ok_and(|token| jwt.verify(&token, Duration::ZERO).is_ok());
        if jwt.signer.is_some() && !is_pair { Err(KeyError::Mismatch) } else { Ok(jwt) }
    }

    /// A token for a user; `now` since 1970.
    pub(crate) fn sign(&self, user: &str, revision: u64, now: Duration) -> Result<String, SignError> {
        let signer = self.signer.as_ref().ok_or(SignError::VerifyOnly)?;
        let header = json!({ "alg": self.method.name(), "typ": "JWT" });
        let claims = json!({ "username": user, "revision": revision, "exp": (now + self.ttl).as_secs() });
        let text = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = signer.sign(text.as_bytes()).ok_or(SignError::Failed)?;
        Ok(format!("{text}.{}", BASE64.encode(signature)))
    }

    pub(crate) fn verify(&self, token: &str, now: Duration) -> Result<Caller, Refusal> {
        let (text, signature) = token.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let (header, claims) = text.split_once('.').ok_or(Refusal::Malformed)?;
        // What the header says decides nothing: a token of another method is none of ours.
        if json_of(header)?.get("alg").and_then(Value::as_str) != Some(self.method.name()) {
            return Err(Refusal::Method(self.method.name()));
        }
        let signature = BASE64.decode(signature).map_err(|_| Refusal::Malformed)?;
        if !self.verifier.verify(text.as_bytes(), &signature) {
            return Err(Refusal::Signature);
        }
        let claims = json_of(claims)?;
        check_times(&claims, now)?;
        caller_of(&claims).ok_or(Refusal::Claims)
    }
}

fn json_of(part: &str) -> Result<Value, Refusal> {
    let bytes = BASE64.decode(part).map_err(|_| Refusal::Malformed)?;
    serde_json::from_slice(&bytes).map_err(|_| Refusal::Malformed)
}

/// A claim that is there holds, whoever made the token.
fn check_times(claims: &Value, now: Duration) -> Result<(), Refusal> {
    let time = |name: &str| claims.get(name).map(|value| value.as_f64().ok_or(Refusal::Claims)).transpose();
    let now = now.as_secs_f64();
    let expired = time("exp")?.is_some_and(|exp| now >= exp);
    let early = time("nbf")?.is_some_and(|nbf| now < nbf);
    if expired || early { Err(Refusal::Time) } else { Ok(()) }
}

fn caller_of(claims: &Value) -> Option<Caller> {
    let user = claims.get("username")?.as_str()?.to_owned();
    let revision = claims.get("revision")?.as_f64()? as u64;
    Some(Caller { user, revision })
}

#[cfg(test)]
mod tests;
