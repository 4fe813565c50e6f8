//! What a request wants, as expressions see it.

use serde_json::{Value, json};

use super::rule::Place;
use crate::{resource::Resource, scale, serve::auth::User};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// One write, before it is done.
#[derive(Clone)]
pub(crate) struct Attributes<'a> {
    pub resource: &'a Resource,
    pub subresource: &'a str,
    pub operation: Operation,
    /// A namespace is in itself, as Kubernetes has it.
    pub namespace: &'a str,
    pub name: &'a str,
    pub user: &'a User,
    pub dry_run: bool,
    /// CreateOptions, UpdateOptions or DeleteOptions.
    pub options: Value,
}

impl<'a> Attributes<'a> {
    pub(crate) fn place(&self) -> Place<'_> {
        let Attributes { resource, subresource, operation, namespace, name, .. } = *self;
        Place { group: &resource.group, plural: &resource.plural, subresource, operation, namespace, name }
    }

    /// The variable `request`; `version` is the one that the rules of a policy named. What is empty is left out.
    pub(crate) fn request(&self, version: &str) -> Value {
        let (group, plural) = (&self.resource.group, &self.resource.plural);
        let kind = |version: &str| match self.subresource {
            "scale" => {
                let (group, version) = scale::API_VERSION.split_once('/').unwrap_or_default();
                json!({"group": group, "version": version, "kind": scale::KIND})
            }
            _ => json!({"group": group, "version": version, "kind": self.resource.kind}),
        };
        let resource = |version: &str| json!({"group": group, "version": version, "resource": plural});
        let own = &self.resource.version;
        let mut request = json!({
            "kind": kind(version), "resource": resource(version), "requestKind": kind(own), "requestResource": resource(own),
            "operation": self.operation.name(), "userInfo": self.user.info(), "dryRun": self.dry_run, "options": self.options,
        });
        let texts = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            request[key] = text.into();
        }
        request
    }
}
