//! What a path asks for.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`, which lists all there is.
    Index,
    Version,
    Health(String),
    Metrics,
    Discovery(Discovery),
    OpenApi(OpenApi),
    Resource(Target),
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// `/api`
    Core,
    /// `/apis`
    Groups,
    Group(String),
    /// `/api/v1`, `/apis/G/V`
    Version(String, String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OpenApi {
    V2,
    V3Index,
    /// `api/v1`, `apis/G/V`
    V3(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub plural: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// `/api/v1/watch/...`, as it was done before there were options.
    pub watch: bool,
}

pub(crate) fn parse(path: &str) -> Route {
    let path = path.strip_prefix('/').unwrap_or(path);
    let parts: Vec<&str> = path.strip_suffix('/').unwrap_or(path).split('/').collect();
    match parts.as_slice() {
        [""] => Route::Index,
        ["version"] => Route::Version,
        ["livez" | "readyz" | "healthz", ..] => Route::Health(path.to_owned()),
        ["metrics"] => Route::Metrics,
        ["api"] => Route::Discovery(Discovery::Core),
        ["apis"] => Route::Discovery(Discovery::Groups),
        ["apis", group] => Route::Discovery(Discovery::Group((*group).to_owned())),
        ["api", version] => Route::Discovery(Discovery::Version(String::new(), (*version).to_owned())),
        ["apis", group, version] => Route::Discovery(Discovery::Version((*group).to_owned(), (*version).to_owned())),
        ["openapi", "v2"] if path.ends_with('/') => Route::Unknown,
        ["openapi", "v3"] if path.ends_with('/') => Route::OpenApi(OpenApi::V3(String::new())),
        ["openapi", "v2"] => Route::OpenApi(OpenApi::V2),
        ["openapi", "v3"] => Route::OpenApi(OpenApi::V3Index),
        ["openapi", "v3", rest @ ..] => Route::OpenApi(OpenApi::V3(rest.join("/"))),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let owned = |part: &&str| (*part).to_owned();
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    let (namespace, rest) = match rest {
        // A namespace is itself a resource; so are these of its parts.
        ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, inner @ ..] => (Some(owned(namespace)), inner),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(owned(name)), None),
        [plural, name, subresource] => (plural, Some(owned(name)), Some(owned(subresource))),
        _ => return Route::Unknown,
    };
    if rest.iter().any(|part| part.is_empty()) {
        return Route::Unknown;
    }
    let (group, version, plural) = (group.to_owned(), version.to_owned(), owned(plural));
    Route::Resource(Target { group, version, namespace, plural, name, subresource, watch })
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;

    fn words(target: Target) -> String {
        let Target { group, version, namespace, plural, name, subresource, .. } = target;
        let or = |part: Option<String>| part.unwrap_or("-".into());
        format!("{group}|{version}|{}|{plural}|{}|{}", or(namespace), or(name), or(subresource))
    }

    #[test_case("/api/v1/namespaces" => "|v1|-|namespaces|-|-")]
    #[test_case("/api/v1/namespaces/a" => "|v1|-|namespaces|a|-")]
    #[test_case("/api/v1/namespaces/a/finalize" => "|v1|-|namespaces|a|finalize")]
    #[test_case("/api/v1/namespaces/a/configmaps" => "|v1|a|configmaps|-|-")]
    #[test_case("/apis/g.io/v1/namespaces/a/foos/b/status" => "g.io|v1|a|foos|b|status")]
    #[test_case("/apis/g.io/v1/foos" => "g.io|v1|-|foos|-|-")]
    #[test_case("/apis/g.io/v1/foos/b/" => "g.io|v1|-|foos|b|-"; "trailing slash")]
    fn resource_paths(path: &str) -> String {
        match parse(path) {
            Route::Resource(target) => words(target),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn other_paths() {
        assert_eq!(parse("/openapi/v3/apis/g/v1"), Route::OpenApi(OpenApi::V3("apis/g/v1".into())));
        assert_eq!(parse("/apis/g.io"), Route::Discovery(Discovery::Group("g.io".into())));
        assert_eq!(parse("/readyz/etcd"), Route::Health("readyz/etcd".into()));
        assert_eq!(parse("/favicon.ico"), Route::Unknown);
        assert_eq!(parse("/apis/g/v1/a//b"), Route::Unknown);
    }
}
