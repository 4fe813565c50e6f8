//! What can be asked of which path, and what is said of the rest. Custom resources and what is built in differ, as in Kubernetes: there the
//! ones are looked up by hand, and the others are routes.

use http::Method;

use crate::{
    builtin,
    resource::{Resource, Role},
    reviews::Review,
    route::{Discovery, Route, Target},
    serve::query::Query,
    status::{Result, Status},
};

/// The word for what a request does; none for a method that nothing takes.
pub fn verb(method: &Method, route: &Route, query: &Query) -> &'static str {
    let one = !matches!(route, Route::Resource(target) if target.name.is_none());
    match *method {
        Method::GET | Method::HEAD if one => "get",
        Method::GET | Method::HEAD if query.flag("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if one => "delete",
        Method::DELETE => "deletecollection",
        _ => "",
    }
}

/// For a path under which nothing is served.
pub fn missing(group: &str) -> Box<Status> {
    match group.is_empty() || builtin::GROUPS.contains(&group) {
        true => Status::unknown_resource(),
        false => Status::no_page(),
    }
}

/// Whether what is no resource takes a method. Most of it answers all of them alike.
pub fn check_other(method: &Method, route: &Route) -> Result<()> {
    let reads_alone = match route {
        Route::Version | Route::Discovery(Discovery::Core) => true,
        Route::Discovery(Discovery::Version(group, _)) => group.is_empty() || builtin::GROUPS.contains(&&**group),
        _ => false,
    };
    match reads_alone && method != Method::GET && method != Method::HEAD {
        true => Err(Status::method_not_known()),
        false => Ok(()),
    }
}

/// Whether a question can be asked in this way.
pub fn check_review(review: Review, target: &Target, verb: &str) -> Result<()> {
    match (&target.name, verb) {
        (Some(_), _) => Err(missing(review.group())),
        (None, "create") => Ok(()),
        (None, _) => Err(Status::method_not_known()),
    }
}

/// Whether a resource takes such a request, at a place that is not wrong.
pub fn check(resource: &Resource, target: &Target, verb: &str) -> Result<()> {
    match resource.role {
        Role::Custom(_) => check_custom(resource, target, verb),
        _ => check_builtin(resource, target, verb),
    }
}

fn check_custom(resource: &Resource, target: &Target, verb: &str) -> Result<()> {
    let everywhere = target.namespace.is_none() && resource.namespaced;
    if everywhere && !matches!(verb, "list" | "watch") {
        return Err(missing(&resource.group));
    }
    let taken = match target.subresource.as_deref() {
        Some(name) if !has_part(resource, name) => {
            return Err(Status::not_found(&resource.name(), target.name.as_deref().unwrap_or_default()));
        }
        Some(_) => matches!(verb, "get" | "update" | "patch"),
        None => !verb.is_empty(),
    };
    match (taken, verb) {
        (false, _) => Err(Status::method_not_allowed(&resource.name(), verb)),
        (true, "update" | "patch") if target.name.is_none() => Err(Status::bad_request("name must be provided")),
        (true, _) => Ok(()),
    }
}

fn check_builtin(resource: &Resource, target: &Target, verb: &str) -> Result<()> {
    let known = target.subresource.as_deref().is_none_or(|name| has_part(resource, name));
    if !known {
        return Err(missing(&resource.group));
    }
    let everywhere = target.namespace.is_none() && resource.namespaced;
    let taken = match (&target.name, &target.subresource) {
        (_, Some(_)) => matches!(verb, "get" | "update" | "patch"),
        (Some(_), None) => matches!(verb, "get" | "update" | "patch" | "delete"),
        (None, None) if everywhere => matches!(verb, "list" | "watch"),
        (None, None) => resource.verbs().contains(&verb) && !matches!(verb, "update" | "patch"),
    };
    if taken { Ok(()) } else { Err(Status::method_not_known()) }
}

/// Whether a path has a namespace where there can be none, or none where there must be one.
pub fn misplaced(resource: &Resource, target: &Target) -> bool {
    target.namespace.is_some() && !resource.namespaced
        || target.namespace.is_none() && resource.namespaced && target.name.is_some()
}

fn has_part(resource: &Resource, name: &str) -> bool {
    match name {
        "status" => resource.has_status,
        "scale" => resource.scale.is_some(),
        _ => false,
    }
}
