//! `--auth-token`: `simple`, or `jwt,key=value,…`.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use super::{duration, error::ConfigError};
use crate::users::jwt::{JwtOptions, Method};

/// The kind of token that users get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthToken {
    Simple,
    Jwt(JwtOptions),
    /// Nobody can log in.
    Off,
}

const JWT_TTL: Duration = Duration::from_secs(300);
const OPTIONS: [&str; 4] = ["sign-method", "pub-key", "priv-key", "ttl"];

impl AuthToken {
    /// Keys are read later, when the member starts.
    pub fn parse(text: &str) -> Result<AuthToken, ConfigError> {
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        let options = options(text, rest)?;
        match kind {
            "simple" => Ok(AuthToken::Simple),
            "jwt" => jwt(text, &options).map(AuthToken::Jwt),
            "" => Ok(AuthToken::Off),
            _ => Err(invalid(text, format!("{kind:?} is no kind of token; give simple or jwt"))),
        }
    }
}

fn options<'a>(text: &str, rest: &'a str) -> Result<BTreeMap<&'a str, &'a str>, ConfigError> {
    let mut options = BTreeMap::new();
    for part in rest.split(',').filter(|_| !rest.is_empty()) {
        let pair = part.split_once('=').filter(|(_, value)| !value.contains('='));
        let (key, value) = pair.ok_or_else(|| invalid(text, format!("{part:?} is not key=value")))?;
        if options.insert(key, value).is_some() {
            return Err(invalid(text, format!("{key} is given twice")));
        }
    }
    Ok(options)
}

fn jwt(text: &str, options: &BTreeMap<&str, &str>) -> Result<JwtOptions, ConfigError> {
    if let Some(key) = options.keys().find(|key| !OPTIONS.contains(key)) {
        return Err(invalid(text, format!("{key:?} is no option of jwt; there are {}", OPTIONS.join(", "))));
    }
    let given = |key: &str| options.get(key).copied().filter(|value| !value.is_empty());
    let name = given("sign-method").unwrap_or_default();
    let method = Method::named(name);
    let method =
        method.ok_or_else(|| invalid(text, format!("sign-method is {name:?}; give one of {}", Method::names())))?;
    let ttl = given("ttl").map_or(Some(JWT_TTL), |ttl| {
        duration::parse(ttl).and_then(|nanos| u64::try_from(nanos).ok()).map(Duration::from_nanos)
    });
    let ttl = ttl.ok_or_else(|| invalid(text, "ttl is no duration such as 5m".into()))?;
    let (public_key, private_key) = (given("pub-key").map(PathBuf::from), given("priv-key").map(PathBuf::from));
    Ok(JwtOptions { method, public_key, private_key, ttl })
}

fn invalid(text: &str, why: String) -> ConfigError {
    ConfigError::Invalid(format!("--auth-token {text:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test_case("simple" => Ok(AuthToken::Simple); "simple")]
    #[test_case("" => Ok(AuthToken::Off); "none")]
    fn kinds(text: &str) -> Result<AuthToken, String> {
        AuthToken::parse(text).map_err(|e| e.to_string())
    }

    #[test]
    fn all_of_jwt() {
        let found = AuthToken::parse("jwt,pub-key=a.pub,priv-key=a.pem,sign-method=RS256,ttl=10m").unwrap();
        let expected = JwtOptions {
            method: Method::named("RS256").unwrap(),
            public_key: Some("a.pub".into()),
            private_key: Some("a.pem".into()),
            ttl: Duration::from_secs(600),
        };
        assert_eq!(found, AuthToken::Jwt(expected));
    }

    #[test_case("word", "no kind of token"; "another kind")]
    #[test_case("jwt", "sign-method is \"\""; "no method")]
    #[test_case("jwt,sign-method=none", "one of HS256"; "no such method")]
    #[test_case("jwt,sign-method", "not key=value"; "no value")]
    #[test_case("jwt,sign-method=a=b", "not key=value"; "two signs")]
    #[test_case("jwt,sign-method=RS256,sign-method=RS256", "given twice"; "twice")]
    #[test_case("jwt,sign-method=RS256,ttl=soon", "no duration"; "no duration")]
    #[test_case("jwt,sign-method=RS256,ttl=-5m", "no duration"; "the past")]
    #[test_case("jwt,sign-method=RS256,key=a", "no option of jwt"; "no such option")]
    fn refused(text: &str, expected: &str) {
        let error = AuthToken::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected) && error.starts_with("--auth-token"), "{error}");
    }
}
