//! What can be asked of which path, and what is said of the rest. Custom resources and what is built in differ, as in Kubernetes: there the
//! ones are looked up by hand, and the others are routes.

use http::{HeaderMap, Method};

use crate::{
    builtin, patch,
    resource::{Resource, Role},
    reviews::Review,
    route::{Discovery, Route, Target},
    serve::{accept, query::Query},
    status::{Result, Status},
};

/// The word for what a request does; none for a method that nothing takes.
pub(crate) fn verb(method: &Method, route: &Route, query: &Query) -> &'static str {
    let one = !matches!(route, Route::Resource(target) if target.name.is_none());
    let (builtin, watch) = match route {
        Route::Resource(target) => (is_builtin(&target.group), target.watch),
        _ => (false, false),
    };
    match *method {
        Method::GET if watch => "watch",
        _ if watch => "",
        Method::HEAD if builtin => "",
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

fn is_builtin(group: &str) -> bool {
    group.is_empty() || builtin::GROUPS.contains(&group)
}

/// For a path under which nothing is served.
pub(crate) fn missing(group: &str) -> Box<Status> {
    if is_builtin(group) { Status::unknown_resource() } else { Status::no_page() }
}

/// Whether what is no resource takes a method, and can answer in a form that is asked for. Most of it answers all alike.
pub(crate) fn check_other(method: &Method, route: &Route, headers: &HeaderMap) -> Result<()> {
    let answers = match route {
        Route::Version => &accept::ANSWERS[..1],
        Route::Discovery(Discovery::Core) => &accept::ANSWERS[..],
        Route::Discovery(Discovery::Version(group, _)) if is_builtin(group) => &accept::ANSWERS[..],
        _ => return Ok(()),
    };
    match *method {
        Method::GET => accept::check_route(headers, answers),
        _ => Err(Status::method_not_known()),
    }
}

/// Whether a question can be asked in this way.
pub(crate) fn check_review(review: Review, target: &Target, verb: &str, headers: &HeaderMap) -> Result<()> {
    match (&target.name, verb) {
        (Some(_), _) => Err(missing(review.group())),
        (None, "create") => accept::check_route(headers, &accept::answers(verb)),
        (None, _) => Err(Status::method_not_known()),
    }
}

/// Whether a resource takes such a request, at a place that is not wrong.
pub(crate) fn check(resource: &Resource, target: &Target, verb: &str, headers: &HeaderMap) -> Result<()> {
    match resource.role {
        Role::Custom(_) => check_custom(resource, target, verb, headers),
        _ => check_builtin(resource, target, verb, headers),
    }
}

fn check_custom(resource: &Resource, target: &Target, verb: &str, headers: &HeaderMap) -> Result<()> {
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
    if !taken {
        return Err(Status::method_not_allowed(&resource.name(), verb));
    }
    if verb == "patch" {
        patch::check_media(headers, resource.strategic)?;
    }
    if matches!(verb, "update" | "patch") && target.name.is_none() {
        Err(Status::bad_request("name must be provided"))
    } else {
        Ok(())
    }
}

fn check_builtin(resource: &Resource, target: &Target, verb: &str, headers: &HeaderMap) -> Result<()> {
    let known = target.subresource.as_deref().is_none_or(|name| has_part(resource, name));
    if !known {
        return Err(missing(&resource.group));
    }
    let everywhere = target.namespace.is_none() && resource.namespaced;
    let taken = match (&target.name, &target.subresource) {
        (_, Some(part)) => resource.parts().any(|(name, verbs)| name == part && verbs.contains(&verb)),
        (Some(_), None) => matches!(verb, "get" | "update" | "patch" | "delete"),
        (None, None) if everywhere => matches!(verb, "list" | "watch"),
        (None, None) => resource.verbs().contains(&verb) && !matches!(verb, "update" | "patch"),
    };
    if !taken {
        return Err(Status::method_not_known());
    }
    if verb == "patch" {
        patch::check_route(headers, resource.strategic)?;
    }
    accept::check_route(headers, &accept::answers(verb))?;
    if verb == "patch" { patch::check_media(headers, resource.strategic) } else { Ok(()) }
}

/// Whether a path has a namespace where there can be none, or none where there must be one.
pub(crate) fn misplaced(resource: &Resource, target: &Target) -> bool {
    target.namespace.is_some() && !resource.namespaced
        || target.namespace.is_none() && resource.namespaced && target.name.is_some()
}

fn has_part(resource: &Resource, name: &str) -> bool {
    resource.parts().any(|(part, _)| part == name)
}
