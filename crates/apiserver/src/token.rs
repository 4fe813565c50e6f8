//! Continue tokens: where a list goes on, and as of which revision.

use base64::{DecodeError, Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    form,
    status::{Result, Status},
};

const VERSION: &str = "meta.k8s.io/v1";

/// Go on at the newest revision, as the one of the first page is gone.
pub(crate) const INCONSISTENT: i64 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub revision: i64,
    /// The first key of the next page, without the prefix of the list.
    pub start: String,
}

impl Token {
    pub(crate) fn encode(&self) -> String {
        let json = json!({"v": VERSION, "rv": self.revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(json.to_string())
    }

    pub(crate) fn decode(text: &str) -> Result<Token> {
        Token::read(text)
            .map_err(|why| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    }

    fn read(text: &str) -> std::result::Result<Token, String> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|error| damaged(&error))?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| form::json_fault(&error, &bytes))?;
        let version = json["v"].as_str().unwrap_or_default();
        if version != VERSION {
            return Err(format!("server does not recognize this encoded version {version}"));
        }
        let (revision, start) = (json["rv"].as_i64().unwrap_or_default(), json["start"].as_str().unwrap_or_default());
        match start {
            _ if revision == 0 => Err(format!("incorrect encoded start resourceVersion (version {version})")),
            "" => Err(format!("encoded start key empty (version {version})")),
            start if start.contains("..") => Err(start.to_owned()),
            start => Ok(Token { revision, start: start.to_owned() }),
        }
    }
}

/// What is no base64, in Go's words.
fn damaged(error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => *at,
        DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    #[test]
    fn a_token_survives_the_journey_and_damage_is_seen() {
        let token = Token { revision: 17, start: "default/a\0".to_owned() };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        for bad in ["", "x", "e30", "!!!"] {
            assert_eq!(Token::decode(bad).unwrap_err().code, 400);
        }
    }

    /// As kube-apiserver 1.37 says them.
    #[test_case("x" => "illegal base64 data at input byte 0"; "no base64")]
    #[test_case(&token(r#"{"v":"other","rv":1,"start":"a"}"#) => "server does not recognize this encoded version other"; "another version")]
    #[test_case(&token(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#) => "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"; "no revision")]
    #[test_case(&token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":""}"#) => "encoded start key empty (version meta.k8s.io/v1)"; "no start")]
    #[test_case(&token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../"}"#) => "../"; "out of the list")]
    fn damage(text: &str) -> String {
        let message = Token::decode(text).unwrap_err().message;
        message.strip_prefix("invalid continue token: continue key is not valid: ").unwrap().to_owned()
    }

    fn token(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }
}
