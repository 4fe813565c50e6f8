//! Every answer that says no: Kubernetes' Status object with its reasons, codes and texts, in this file alone.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::{
    admission::Denial,
    field::{self, FieldError},
};

/// Group and resource (or kind) as error texts name them: `crontabs.example.com`, `configmaps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub group: String,
    pub resource: String,
}

impl Name {
    pub fn new(group: &str, resource: &str) -> Name {
        Name { group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => f.write_str(&self.resource),
            group => write!(f, "{}.{group}", self.resource),
        }
    }
}

/// A refusal. Boxed where it travels in results, as it is large and rare.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Map<String, Value>,
    /// A continue token, for lists that can go on although their revision is gone.
    pub next: Option<String>,
    /// Told as text: no API is there that could tell it as an object.
    pub plain: bool,
    /// Refused before anybody looked at what it is about.
    pub at_door: bool,
    /// Refused before anybody knew what it is about, which is told as details that say nothing.
    routed: bool,
}

pub(crate) type Result<T, E = Box<Status>> = std::result::Result<T, E>;

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Box<Status> {
        Box::new(Status {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            next: None,
            plain: false,
            at_door: false,
            routed: false,
        })
    }

    fn about(mut self: Box<Self>, name: &Name, object: &str) -> Box<Status> {
        for (key, value) in [("name", object), ("group", name.group.as_str()), ("kind", name.resource.as_str())] {
            if !value.is_empty() {
                self.details.insert(key.to_owned(), value.into());
            }
        }
        self
    }

    fn caused(mut self: Box<Self>, causes: Vec<Value>) -> Box<Status> {
        self.details.insert("causes".to_owned(), causes.into());
        self
    }

    fn retry_after(mut self: Box<Self>, seconds: u32) -> Box<Status> {
        self.details.insert("retryAfterSeconds".to_owned(), seconds.into());
        self
    }

    fn routed(mut self: Box<Self>) -> Box<Status> {
        self.routed = true;
        self
    }

    pub fn at_door(mut self: Box<Self>) -> Box<Status> {
        self.at_door = true;
        self
    }

    pub fn bad_request(message: impl Into<String>) -> Box<Status> {
        Status::new(400, "BadRequest", message)
    }

    pub fn unauthorized() -> Box<Status> {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    pub fn forbidden(name: &Name, object: &str, why: impl fmt::Display) -> Box<Status> {
        let message = match object {
            "" => format!("{name} is forbidden: {why}"),
            _ => format!("{name} {object:?} is forbidden: {why}"),
        };
        Status::new(403, "Forbidden", message).about(name, object)
    }

    /// What an admission policy refuses: always called forbidden, with the reason that the policy gives.
    pub fn denied(name: &Name, object: &str, denial: &Denial) -> Box<Status> {
        let mut status = Status::forbidden(name, if object.is_empty() { "Unknown" } else { object }, &denial.text);
        (status.code, status.reason) = match denial.reason.as_str() {
            "Forbidden" => (403, "Forbidden"),
            "Unauthorized" => (401, "Unauthorized"),
            "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
            _ => (422, "Invalid"),
        };
        status.caused(vec![json!({"message": denial.text})])
    }

    pub fn forbidden_path(why: impl fmt::Display) -> Box<Status> {
        Status::new(403, "Forbidden", format!("forbidden: {why}"))
    }

    pub fn namespace_terminating(name: &Name, object: &str, namespace: &str) -> Box<Status> {
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = json!({"reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"});
        Status::forbidden(name, object, why).caused(vec![cause])
    }

    pub fn not_found(name: &Name, object: &str) -> Box<Status> {
        Status::new(404, "NotFound", format!("{name} {object:?} not found")).about(name, object)
    }

    /// For a resource that is not served at all.
    pub fn unknown_resource() -> Box<Status> {
        Status::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// For a path where there is not even an API.
    pub fn no_page() -> Box<Status> {
        let mut status = Status::new(404, "NotFound", "404 page not found");
        status.plain = true;
        status
    }

    /// For a path of a built-in kind that does not take the method.
    pub fn method_not_known() -> Box<Status> {
        Status::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub fn method_not_allowed(name: &Name, action: &str) -> Box<Status> {
        let message = format!("{action} is not supported on resources of kind \"{name}\"");
        Status::new(405, "MethodNotAllowed", message).about(name, "")
    }

    /// For a route that has no answer in a form that is asked for.
    pub fn no_representation(available: &[&str]) -> Box<Status> {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Status::new(406, "NotAcceptable", message).routed()
    }

    /// For a route that does not take such bodies.
    pub fn no_route_takes() -> Box<Status> {
        Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").routed()
    }

    pub fn not_acceptable(accepted: &[&str]) -> Box<Status> {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Status::new(406, "NotAcceptable", message)
    }

    pub fn already_exists(name: &Name, object: &str) -> Box<Status> {
        Status::new(409, "AlreadyExists", format!("{name} {object:?} already exists")).about(name, object)
    }

    /// Every name that was made up for an object was taken.
    pub fn no_name_found(name: &Name, object: &str) -> Box<Status> {
        let message = format!(
            "{name} {object:?} already exists, the server was not able to generate a unique name for the object"
        );
        Status::new(409, "AlreadyExists", message).about(name, object).retry_after(1)
    }

    pub fn conflict(name: &Name, object: &str, why: impl fmt::Display) -> Box<Status> {
        let message = format!("Operation cannot be fulfilled on {name} {object:?}: {why}");
        Status::new(409, "Conflict", message).about(name, object)
    }

    pub fn modified(name: &Name, object: &str) -> Box<Status> {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Status::conflict(name, object, why)
    }

    /// Others manage fields that an apply would change.
    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Box<Status> {
        Status::new(409, "Conflict", message).caused(causes)
    }

    pub fn expired(message: impl Into<String>) -> Box<Status> {
        Status::new(410, "Expired", message)
    }

    pub fn too_large(message: impl fmt::Display) -> Box<Status> {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Box<Status> {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Status::new(415, "UnsupportedMediaType", message)
    }

    pub fn invalid(kind: &Name, object: &str, errors: &[FieldError]) -> Box<Status> {
        let message = format!("{kind} {object:?} is invalid: {}", field::join(errors));
        let causes = errors.iter().map(FieldError::cause).collect();
        Status::new(422, "Invalid", message).about(kind, object).caused(causes)
    }

    /// A patch that does not fit the object. Kubernetes says no more, and has details that say nothing.
    pub fn rejected() -> Box<Status> {
        Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
    }

    pub fn internal(why: impl fmt::Display) -> Box<Status> {
        let cause = json!({"message": why.to_string()});
        Status::new(500, "InternalError", format!("Internal error occurred: {why}")).caused(vec![cause])
    }

    /// The store does not answer; nothing was changed and the client should come again.
    pub fn server_timeout(operation: &str, why: impl fmt::Display) -> Box<Status> {
        let message =
            format!("The {operation} operation could not be completed at this time, please try again. ({why})");
        Status::new(500, "ServerTimeout", message).retry_after(2)
    }

    /// It may have been done or not.
    pub fn timeout(why: impl fmt::Display) -> Box<Status> {
        Status::new(504, "Timeout", format!("Timeout: {why}")).retry_after(1)
    }

    pub fn version_too_large(asked: i64, current: i64) -> Box<Status> {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        Status::timeout(message).caused(vec![cause])
    }

    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    pub fn to_json(&self) -> Value {
        let mut metadata = json!({});
        if let Some(next) = &self.next {
            metadata["continue"] = next.as_str().into();
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_empty() || self.routed || matches!(self.code, 403 | 404 | 405 | 422) {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}

/// The answer to a delete that left nothing behind.
pub(crate) fn success(name: &Name, object: &str, uid: &str) -> Value {
    let mut details = json!({"name": object, "kind": name.resource, "uid": uid});
    if !name.group.is_empty() {
        details["group"] = name.group.as_str().into();
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_clients_match_on() {
        let name = Name::new("example.com", "crontabs");
        let texts = [
            Status::not_found(&name, "a").message,
            Status::already_exists(&name, "a").message,
            Status::modified(&name, "a").message,
            Status::invalid(&Name::new("example.com", "CronTab"), "a", &[FieldError::required("spec.x", "")]).message,
            Status::method_not_allowed(&Name::new("", "configmaps"), "create").message,
        ];
        let expected = [
            r#"crontabs.example.com "a" not found"#,
            r#"crontabs.example.com "a" already exists"#,
            "Operation cannot be fulfilled on crontabs.example.com \"a\": the object has been modified; please apply \
             your changes to the latest version and try again",
            r#"CronTab.example.com "a" is invalid: spec.x: Required value"#,
            r#"create is not supported on resources of kind "configmaps""#,
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_status_is_the_json_that_clients_decode() {
        let status = Status::not_found(&Name::new("example.com", "crontabs"), "a").to_json();
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "NotFound", "code": 404,
            "message": "crontabs.example.com \"a\" not found",
            "details": {"name": "a", "group": "example.com", "kind": "crontabs"},
        });
        assert_eq!(status, expected);
    }
}
