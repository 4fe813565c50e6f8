//! Why there is no value.

use serde_json::json;

use crate::evaluate::Answer;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A code of the protocol, and what would be right.
    Caller(&'static str, String),
    NotFound(String),
    /// It is not known here, and may be later.
    Server(String),
}

impl Refusal {
    /// `key` of a single gate.
    pub(crate) fn answer(self, key: Option<&str>) -> Answer {
        let (status, mut body) = match self {
            Refusal::Caller(code, details) => (400, json!({"errorCode": code, "errorDetails": details})),
            Refusal::NotFound(details) => (404, json!({"errorCode": "FLAG_NOT_FOUND", "errorDetails": details})),
            // The protocol has neither key nor code there.
            Refusal::Server(details) => return Answer::new(500, json!({"errorDetails": details})),
        };
        if let Some(key) = key {
            body["key"] = key.into();
        }
        Answer::new(status, body)
    }
}
