//! Continue tokens: where a list goes on, and as of which revision.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::status::{Result, Status};

/// Go on at the newest revision, as the one of the first page is gone.
pub const INCONSISTENT: i64 = -1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub revision: i64,
    /// The first key of the next page, without the prefix of the list.
    pub start: String,
}

impl Token {
    pub fn encode(&self) -> String {
        let json = json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": self.start});
        URL_SAFE_NO_PAD.encode(json.to_string())
    }

    pub fn decode(text: &str) -> Result<Token> {
        let bad = || Status::bad_request("continue key is not valid: it was not made by this server or is damaged");
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad())?;
        let json: Value = serde_json::from_slice(&bytes).map_err(|_| bad())?;
        let start =
            json["start"].as_str().filter(|start| !start.is_empty() && !start.contains("..")).ok_or_else(bad)?;
        match (json["v"].as_str(), json["rv"].as_i64()) {
            (Some("meta.k8s.io/v1"), Some(revision)) => Ok(Token { revision, start: start.to_owned() }),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_the_journey_and_damage_is_seen() {
        let token = Token { revision: 17, start: "default/a\0".to_owned() };
        assert_eq!(Token::decode(&token.encode()).unwrap(), token);
        for bad in ["", "x", "e30", "!!!"] {
            assert_eq!(Token::decode(bad).unwrap_err().code, 400);
        }
    }
}
