//! The registry of a version as an object of the cluster: an immutable ConfigMap, which every Kubernetes has.

use serde_json::{Value, json};

use crate::{
    canonical::digest_of_bytes,
    registry::{Registry, RegistryError},
};

/// Where registries, the audit trail and the lease are, unless told otherwise.
pub const NAMESPACE: &str = "lockgate-gates";
/// On every registry, so that all are found with one list.
pub const LABEL: &str = "gates.lockgate.io/kind";
pub const LABEL_VALUE: &str = "registry";
pub const VERSION_ANNOTATION: &str = "gates.lockgate.io/version";
const KEY: &str = "registry.json";

/// The name of a version's registry. What a name cannot hold is replaced, and a part of the digest keeps two versions
/// that differ only there apart.
pub fn registry_name(version: &str) -> String {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    let tame: String = version.chars().map(|c| if plain(c) { c } else { '-' }).take(180).collect();
    let ends_well = tame.ends_with(|c: char| c.is_ascii_alphanumeric()) && !tame.contains("..") && !tame.contains(".-");
    let label_ends = !tame.contains("-.") && !tame.starts_with(['.', '-']);
    if tame == version && ends_well && label_ends {
        return format!("gates-{version}");
    }
    let flat: String = tame.chars().map(|c| if c == '.' { '-' } else { c }).collect();
    format!("gates-{flat}-{}", &digest_of_bytes(version.as_bytes())["sha256:".len()..][..10])
}

pub fn to_config_map(registry: &Registry, namespace: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": registry_name(&registry.version),
            "namespace": namespace,
            "labels": {LABEL: LABEL_VALUE},
            "annotations": {VERSION_ANNOTATION: registry.version},
        },
        "immutable": true,
        "data": {KEY: registry.to_json()},
    })
}

/// The version that the object is for, also where its content cannot be read.
pub fn version_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][VERSION_ANNOTATION].as_str().filter(|version| !version.is_empty())
}

/// The version whose registry this is, by its metadata. A copy under another name speaks for nobody: of two that differ, one
/// would have to be chosen.
pub fn registry_of(object: &Value) -> Option<&str> {
    let is_registry = object["metadata"]["labels"][LABEL] == LABEL_VALUE;
    version_of(object).filter(|version| is_registry && object["metadata"]["name"] == registry_name(version))
}

/// Reads an object of the cluster. Its name, its annotation and its content must speak of one version.
pub fn of_config_map(object: &Value) -> Result<Registry, RegistryError> {
    let text = object["data"][KEY].as_str();
    let text = text.ok_or_else(|| RegistryError::Malformed(format!("the object has no data[{KEY:?}]")))?;
    let registry = Registry::from_json(text)?;
    match version_of(object) {
        Some(version) if version == registry.version => check_name(object, registry),
        other => {
            let wanted = other.unwrap_or_default().to_owned();
            Err(RegistryError::OtherVersion { found: registry.version, wanted })
        }
    }
}

fn check_name(object: &Value, registry: Registry) -> Result<Registry, RegistryError> {
    let (found, wanted) = (object["metadata"]["name"].as_str().unwrap_or_default(), registry_name(&registry.version));
    if found == wanted {
        Ok(registry)
    } else {
        Err(RegistryError::Name { version: registry.version, found: found.to_owned(), wanted })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_differ() {
        let versions = ["1.4.0", "4.17.0-0.nightly-2024-10-01-000000", "1.4.0+Build", "1.4.0+build", "1.4.0-", "a..b"];
        let names: std::collections::BTreeSet<String> = versions.map(registry_name).into();
        assert_eq!(names.len(), versions.len());
        assert!(names.contains("gates-1.4.0"));
        for name in &names {
            let ok = |label: &str| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-');
            assert!(name.split('.').all(ok) && name.len() < 253, "{name}");
        }
    }

    #[test]
    fn a_copy_under_another_name_speaks_for_nobody() {
        let file = crate::GatesFile::parse("schema = 1\nversion = \"1.4.0\"\n").unwrap();
        let mut object = to_config_map(&Registry::of_file(&file, "1.4.0").unwrap(), NAMESPACE);
        assert_eq!((registry_of(&object), of_config_map(&object).is_ok()), (Some("1.4.0"), true));
        object["metadata"]["name"] = "gates-copy".into();
        assert_eq!(registry_of(&object), None);
        let error = of_config_map(&object).unwrap_err().to_string();
        assert_eq!(error, "the registry of version \"1.4.0\" is named gates-1.4.0, and this is named \"gates-copy\"");
    }
}
