//! What a request is counted under, in Kubernetes' words.

use http::Method;

use crate::route::{Route, Target};

/// The component that answers, for tools that know several.
pub(crate) const COMPONENT: &str = "apiserver";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    pub verb: &'static str,
    pub dry_run: &'static str,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub scope: &'static str,
}

impl Labels {
    pub(crate) fn new(method: &Method, route: &Route, verb: &str, is_apply: bool, is_dry: bool) -> Labels {
        let own = Labels {
            verb: if is_apply { "APPLY" } else { named(verb, method) },
            dry_run: if is_dry { "All" } else { "" },
            ..Labels::default()
        };
        match route {
            Route::Resource(target) => own.of(target, verb),
            _ => own,
        }
    }

    fn of(self, target: &Target, verb: &str) -> Labels {
        let subresource = target.subresource.clone().unwrap_or_default();
        let (group, version, resource) = (target.group.clone(), target.version.clone(), target.plural.clone());
        Labels { group, version, resource, subresource, scope: scope(target, verb), ..self }
    }

    /// What nobody serves is counted as one, or strangers could fill the memory with names.
    pub(crate) fn of_nothing(self) -> Labels {
        Labels { verb: self.verb, resource: "unknown".to_owned(), ..Labels::default() }
    }

    /// In the order of the labels of requests.
    pub(crate) fn values(&self) -> [&str; 8] {
        let Labels { verb, dry_run, group, version, resource, subresource, scope } = self;
        [verb, dry_run, group, version, resource, subresource, scope, COMPONENT]
    }
}

/// Whether a request is about one object, those of a namespace, or all.
pub(crate) fn scope(target: &Target, verb: &str) -> &'static str {
    match (&target.name, &target.namespace) {
        (Some(_), _) => "resource",
        _ if verb == "create" => "resource",
        (None, Some(_)) => "namespace",
        (None, None) => "cluster",
    }
}

fn named(verb: &str, method: &Method) -> &'static str {
    match verb {
        "get" => "GET",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ if method == Method::HEAD => "HEAD",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::route;

    #[test_case("/api/v1/configmaps", "list" => "LIST||v1|configmaps||cluster"; "all")]
    #[test_case("/api/v1/namespaces/a/configmaps", "list" => "LIST||v1|configmaps||namespace"; "of a namespace")]
    #[test_case("/apis/g.io/v1/namespaces/a/foos", "create" => "POST|g.io|v1|foos||resource"; "a new one")]
    #[test_case("/apis/g.io/v1/namespaces/a/foos/x/status", "patch" => "PATCH|g.io|v1|foos|status|resource"; "a part of one")]
    #[test_case("/version", "get" => "GET|||||"; "no resource")]
    fn requests(path: &str, verb: &str) -> String {
        let labels = Labels::new(&Method::GET, &route::parse(path), verb, false, false);
        [labels.verb, &labels.group, &labels.version, &labels.resource, &labels.subresource, labels.scope].join("|")
    }
}
