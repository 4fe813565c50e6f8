//! Events are not recorded here. Lists of them are answered, and empty, as `kubectl describe` ends with one and fails without it.

use serde_json::{Value, json};

use crate::route::Target;

/// Whether a request asks for a list of events.
pub(crate) fn is_list(target: &Target, verb: &str) -> bool {
    let core = target.group.is_empty() && target.version == "v1";
    core && target.plural == "events" && target.subresource.is_none() && verb == "list"
}

pub(crate) fn none(revision: i64) -> Value {
    json!({"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": revision.to_string()}, "items": []})
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::*;
    use crate::route::{self, Route};

    #[test_case("/api/v1/events", "list" => true)]
    #[test_case("/api/v1/namespaces/a/events", "list" => true)]
    #[test_case("/api/v1/namespaces/a/events", "watch" => false)]
    #[test_case("/api/v1/namespaces/a/events", "create" => false)]
    #[test_case("/api/v1/namespaces/a/events/b", "get" => false)]
    #[test_case("/apis/g.io/v1/namespaces/a/events", "list" => false)]
    fn lists(path: &str, verb: &str) -> bool {
        matches!(route::parse(path), Route::Resource(target) if is_list(&target, verb))
    }
}
