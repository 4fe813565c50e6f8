//! Questions about the caller itself: who it is and what it may do. They look like resources that can only be created, and nothing of
//! them is kept.

use serde_json::{Value, json};

use crate::{
    field::FieldError,
    form::Kind,
    object,
    route::{self, Target},
    serve::auth::{self, User},
    status::{Name, Result, Status},
};

pub const VERSION: &str = "v1";
pub const AUTHORIZATION: &str = "authorization.k8s.io";
pub const AUTHENTICATION: &str = "authentication.k8s.io";

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Review {
    /// May I do this?
    Access,
    /// What may I do?
    Rules,
    /// Who am I?
    Subject,
}

/// In the order of their groups.
pub const ALL: [Review; 3] = [Review::Subject, Review::Access, Review::Rules];

impl Review {
    /// What a path asks, if it asks something.
    pub fn of(target: &Target) -> Option<Review> {
        let is = |review: &Review| target.group == review.group() && target.plural == review.plural();
        let plain = target.version == VERSION && target.namespace.is_none() && target.subresource.is_none();
        ALL.into_iter().find(|review| plain && is(review))
    }

    pub fn group(self) -> &'static str {
        if self == Review::Subject { AUTHENTICATION } else { AUTHORIZATION }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Review::Access => "SelfSubjectAccessReview",
            Review::Rules => "SelfSubjectRulesReview",
            Review::Subject => "SelfSubjectReview",
        }
    }

    pub fn form(self) -> Kind<'static> {
        let api_version = if self == Review::Subject { "authentication.k8s.io/v1" } else { "authorization.k8s.io/v1" };
        Kind { api_version, kind: self.kind(), typed: true }
    }

    pub fn plural(self) -> String {
        format!("{}s", self.singular())
    }

    pub fn singular(self) -> String {
        self.kind().to_lowercase()
    }

    /// The question with its answer.
    pub fn answer(self, user: &User, mut asked: Value) -> Result<Value> {
        let spec = &asked["spec"];
        let status = match self {
            Review::Access => self.access(user, spec)?,
            Review::Rules if spec["namespace"].as_str().unwrap_or_default().is_empty() => {
                return Err(Status::bad_request("no namespace on request"));
            }
            Review::Rules => auth::rules(user),
            Review::Subject => json!({"userInfo": {"username": user.name, "groups": user.groups}}),
        };
        if self == Review::Subject {
            object::set(&mut asked, "creationTimestamp", object::now());
        }
        asked["status"] = status;
        Ok(asked)
    }

    fn access(self, user: &User, spec: &Value) -> Result<Value> {
        let given = |key: &str| spec.get(key).filter(|value| value.is_object());
        let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let fault = match (given("resourceAttributes"), given("nonResourceAttributes")) {
            (Some(asked), None) => {
                let target = Target {
                    group: text(asked, "group"),
                    version: text(asked, "version"),
                    plural: text(asked, "resource"),
                    ..Target::default()
                };
                return Ok(json!({"allowed": auth::may_touch(user, &target, &text(asked, "verb"))}));
            }
            (None, Some(asked)) => {
                let path = text(asked, "path");
                return Ok(json!({"allowed": auth::may_read(user, &text(asked, "verb"), &route::parse(&path))}));
            }
            (Some(_), Some(both)) => {
                let detail = "cannot be specified in combination with resourceAttributes";
                FieldError::invalid("spec.nonResourceAttributes", both.clone(), detail)
            }
            (None, None) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                FieldError::invalid("spec.resourceAttributes", Value::Null, detail)
            }
        };
        Err(Status::invalid(&Name::new(self.group(), self.kind()), "", &[fault]))
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn master() -> User {
        User::new("root".into(), vec![auth::MASTERS.into()])
    }

    fn known() -> User {
        User::new("ann".into(), vec![])
    }

    fn asks(spec: Value) -> Value {
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec})
    }

    #[test_case(json!({"resourceAttributes": {"verb": "delete", "resource": "secrets", "namespace": "a"}}) => (true, false); "objects")]
    #[test_case(json!({"resourceAttributes": {"verb": "create", "group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"}}) => (true, true); "questions")]
    #[test_case(json!({"resourceAttributes": {"verb": "delete", "group": "authorization.k8s.io", "resource": "selfsubjectaccessreviews"}}) => (true, false); "only to be asked")]
    #[test_case(json!({"nonResourceAttributes": {"verb": "get", "path": "/version"}}) => (true, true); "version")]
    #[test_case(json!({"nonResourceAttributes": {"verb": "get", "path": "/apis"}}) => (true, true); "discovery")]
    #[test_case(json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}) => (true, false); "metrics")]
    #[test_case(json!({"nonResourceAttributes": {"verb": "post", "path": "/version"}}) => (true, false); "another verb")]
    fn masters_and_others(spec: Value) -> (bool, bool) {
        let allowed = |user| Review::Access.answer(&user, asks(spec.clone())).unwrap()["status"]["allowed"] == true;
        (allowed(master()), allowed(known()))
    }

    #[test_case(json!({}) => "SelfSubjectAccessReview.authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"; "nothing")]
    #[test_case(json!({"resourceAttributes": {}, "nonResourceAttributes": {}}) => "SelfSubjectAccessReview.authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: {}: cannot be specified in combination with resourceAttributes"; "both")]
    fn questions_must_be_questions(spec: Value) -> String {
        Review::Access.answer(&known(), asks(spec)).unwrap_err().message.clone()
    }

    #[test]
    fn one_is_told_who_one_is() {
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let told = Review::Subject.answer(&known(), asked).unwrap();
        assert_eq!(told["status"]["userInfo"], json!({"username": "ann", "groups": ["system:authenticated"]}));
        let asked = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {}});
        assert_eq!(Review::Rules.answer(&known(), asked).unwrap_err().message, "no namespace on request");
    }
}
