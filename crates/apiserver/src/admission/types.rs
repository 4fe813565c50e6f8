//! The types of the variables that expressions of policies can use. Objects are of any type.

use crate::cel::{ObjectType, Type};

/// The name under which a policy's own variables are found.
pub(super) const VARIABLES: &str = "variables";

/// Variables of every expression of a policy; its own are added where it may use them.
pub(super) fn variables() -> Vec<(&'static str, Type)> {
    vec![("object", Type::Dyn), ("oldObject", Type::Dyn), ("request", request()), ("namespaceObject", namespace())]
}

fn object(fields: &[(&str, Type)]) -> Type {
    let field = |(name, kind): &(&str, Type)| ((*name).to_owned(), ((*name).to_owned(), kind.clone()));
    Type::Object(ObjectType { fields: fields.iter().map(field).collect() }.into())
}

fn texts() -> Type {
    Type::list(Type::String)
}

pub(super) fn request() -> Type {
    let named =
        |last: &'static str| object(&[("group", Type::String), ("version", Type::String), (last, Type::String)]);
    let (kind, resource) = (named("kind"), named("resource"));
    let user = object(&[
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", texts()),
        ("extra", Type::map(Type::String, texts())),
    ]);
    object(&[
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::String),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", user),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ])
}

pub(super) fn namespace() -> Type {
    let map = || Type::map(Type::String, Type::String);
    let mut metadata = ObjectType::default();
    for (name, kind) in [
        ("name", Type::String),
        ("generateName", Type::String),
        ("namespace", Type::String),
        ("labels", map()),
        ("annotations", map()),
        ("creationTimestamp", Type::Timestamp),
        ("deletionGracePeriodSeconds", Type::Int),
        ("deletionTimestamp", Type::Timestamp),
        ("generation", Type::Int),
        ("resourceVersion", Type::String),
        ("finalizers", texts()),
    ] {
        metadata.fields.insert(name.to_owned(), (name.to_owned(), kind));
    }
    // Kubernetes writes this one in capitals.
    metadata.fields.insert("UID".to_owned(), ("uid".to_owned(), Type::String));
    let condition = object(&[
        ("status", Type::String),
        ("type", Type::String),
        ("lastTransitionTime", Type::Timestamp),
        ("message", Type::String),
        ("reason", Type::String),
    ]);
    object(&[
        ("metadata", Type::Object(metadata.into())),
        ("spec", object(&[("finalizers", texts())])),
        ("status", object(&[("conditions", Type::list(condition)), ("phase", Type::String)])),
    ])
}
