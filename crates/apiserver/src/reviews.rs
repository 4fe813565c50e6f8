//! Questions about the caller itself: who it is and what it may do. They look like resources that can only be created, and nothing of
//! them is kept.

use serde_json::{Map, Value, json};

use crate::{
    builtin::{self, Basics},
    field::FieldError,
    object,
    resource::{Resource, Role},
    route::{self, Target},
    serve::auth::{self, User},
    status::{Name, Result, Status},
};

pub(crate) const VERSION: &str = "v1";
pub(crate) const AUTHORIZATION: &str = "authorization.k8s.io";
pub(crate) const AUTHENTICATION: &str = "authentication.k8s.io";

/// A kind of question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Review {
    /// May I do this?
    Access,
    /// What may I do?
    Rules,
    /// Who am I?
    Subject,
}

/// In the order of their groups.
pub(crate) const ALL: [Review; 3] = [Review::Subject, Review::Access, Review::Rules];

impl Review {
    /// What a path asks, if it asks something.
    pub(crate) fn of(target: &Target) -> Option<Review> {
        let is = |review: &Review| target.group == review.group() && target.plural == review.plural();
        let plain = target.version == VERSION && target.namespace.is_none() && target.subresource.is_none();
        ALL.into_iter().find(|review| plain && is(review))
    }

    pub(crate) fn group(self) -> &'static str {
        if self == Review::Subject { AUTHENTICATION } else { AUTHORIZATION }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Review::Access => "SelfSubjectAccessReview",
            Review::Rules => "SelfSubjectRulesReview",
            Review::Subject => "SelfSubjectReview",
        }
    }

    pub(crate) fn plural(self) -> String {
        format!("{}s", self.singular())
    }

    pub(crate) fn singular(self) -> String {
        self.kind().to_lowercase()
    }

    /// The form of the question.
    pub(crate) fn resource(self) -> Resource {
        builtin::resource(Basics {
            group: self.group(),
            plural: &self.plural(),
            kind: self.kind(),
            short_names: &[],
            namespaced: false,
            role: Role::Plain,
            schema: self.schema(),
            columns: Vec::new(),
        })
    }

    fn schema(self) -> Value {
        let texts = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
        let object = |properties: Map<String, Value>| json!({"type": "object", "properties": properties});
        let selector = || {
            let items = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            json!({"type": "object", "properties": {"rawSelector": {"type": "string"},
                   "requirements": {"type": "array", "items": items, "x-kubernetes-list-type": "atomic"}}})
        };
        let spec = match self {
            Review::Access => {
                let mut resource: Map<String, Value> =
                    texts(&["namespace", "verb", "group", "version", "resource", "subresource", "name"]);
                resource.insert("fieldSelector".to_owned(), selector());
                resource.insert("labelSelector".to_owned(), selector());
                let other = object(texts(&["path", "verb"]));
                json!({"type": "object", "properties": {"resourceAttributes": object(resource), "nonResourceAttributes": other}})
            }
            Review::Rules => object(texts(&["namespace"])),
            Review::Subject => return json!({"type": "object", "properties": {"status": {"type": "object"}}}),
        };
        json!({"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}})
    }

    /// The question with its answer, or the answer alone where Kubernetes gives no more.
    pub(crate) fn answer(self, user: &User, mut asked: Value) -> Result<Value> {
        let spec = &asked["spec"];
        let mut alone = json!({"apiVersion": asked["apiVersion"], "kind": asked["kind"], "metadata": {}});
        match self {
            Review::Access => {
                asked["status"] = self.access(user, spec)?;
                return Ok(asked);
            }
            Review::Rules if spec["namespace"].as_str().unwrap_or_default().is_empty() => {
                return Err(Status::bad_request("no namespace on request"));
            }
            Review::Rules => {
                alone["spec"] = json!({});
                alone["status"] = auth::rules(user);
            }
            Review::Subject => {
                object::set(&mut alone, "creationTimestamp", object::now());
                alone["status"] = json!({"userInfo": user.info()});
            }
        }
        Ok(alone)
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
                // Shown as Kubernetes keeps it.
                let shown = json!({"Path": text(both, "path"), "Verb": text(both, "verb")});
                FieldError::invalid("spec.nonResourceAttributes", shown, detail)
            }
            (None, None) => {
                let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
                FieldError::invalid("spec.resourceAttributes", Value::Null, detail)
            }
        };
        Err(Status::invalid(&Name::new(self.group(), ""), "", &[fault]))
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

    #[test_case(json!({}) => ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"; "nothing")]
    #[test_case(json!({"resourceAttributes": {}, "nonResourceAttributes": {}}) => ".authorization.k8s.io \"\" is invalid: spec.nonResourceAttributes: Invalid value: {\"Path\":\"\",\"Verb\":\"\"}: cannot be specified in combination with resourceAttributes"; "both")]
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
