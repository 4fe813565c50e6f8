//! Where objects of a kind are.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Such as `/api/v1` or `/apis/coordination.k8s.io/v1`.
    pub prefix: &'static str,
    pub namespace: Option<String>,
    pub plural: &'static str,
    /// Of objects only their metadata are asked for: some are large, and there may be many.
    pub metadata_only: bool,
}

impl Place {
    pub fn cluster(prefix: &'static str, plural: &'static str) -> Place {
        Place { prefix, namespace: None, plural, metadata_only: false }
    }

    pub fn namespaced(prefix: &'static str, namespace: &str, plural: &'static str) -> Place {
        Place { prefix, namespace: Some(namespace.to_owned()), plural, metadata_only: false }
    }

    pub fn metadata_only(self) -> Place {
        Place { metadata_only: true, ..self }
    }

    /// What to accept as an answer with one object, or with many.
    pub(crate) fn accept(&self, many: bool) -> &'static str {
        match (self.metadata_only, many) {
            (false, _) => "application/json",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (true, true) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }

    pub(crate) fn apply(&self, name: &str, manager: &str, force: bool) -> String {
        let force = if force { "&force=true" } else { "" };
        managed(self.object(name), Some(manager)) + force
    }

    pub(crate) fn all(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.prefix, self.plural),
            None => format!("{}/{}", self.prefix, self.plural),
        }
    }

    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.all())
    }

    pub(crate) fn list(&self, label: Option<&str>) -> String {
        match label {
            Some(label) => format!("{}?labelSelector={}", self.all(), escape(label)),
            None => self.all(),
        }
    }

    pub(crate) fn watch(&self, label: Option<&str>, from: Option<&str>, seconds: u32) -> String {
        let mut path = format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}", self.all());
        path += &label.map(|label| format!("&labelSelector={}", escape(label))).unwrap_or_default();
        path += &from.map(|from| format!("&resourceVersion={}", escape(from))).unwrap_or_default();
        path
    }
}

/// The path of a write with the name of the one who writes.
pub(crate) fn managed(path: String, manager: Option<&str>) -> String {
    match manager {
        Some(manager) => format!("{path}?fieldManager={}", escape(manager)),
        None => path,
    }
}

/// Selectors have `/`, `=` and `,` in them.
fn escape(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    text.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let place = Place::namespaced("/api/v1", "ns", "configmaps");
        assert_eq!(place.object("a"), "/api/v1/namespaces/ns/configmaps/a");
        assert_eq!(place.list(Some("a/b=c")), "/api/v1/namespaces/ns/configmaps?labelSelector=a%2Fb%3Dc");
        assert_eq!(
            place.apply("a", "me & co", true),
            "/api/v1/namespaces/ns/configmaps/a?fieldManager=me%20%26%20co&force=true"
        );
        let cluster = Place::cluster("/apis/config.openshift.io/v1", "featuregates");
        assert!(
            cluster
                .watch(None, Some("7"), 9)
                .ends_with("/v1/featuregates?watch=true&allowWatchBookmarks=true&timeoutSeconds=9&resourceVersion=7")
        );
    }
}
