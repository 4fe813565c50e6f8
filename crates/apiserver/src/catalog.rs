//! Everything that is served right now: the built-in kinds and those of established definitions, as of one revision.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use crate::{builtin, crd, openapi::Documents, resource::Resource};

/// A custom resource definition as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub key: String,
    pub revision: i64,
    pub object: Value,
}

impl Definition {
    pub(crate) fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }
}

type Id = (String, String, String);

pub(crate) struct Catalog {
    /// Every change of a definition up to this revision is in here.
    pub revision: i64,
    pub definitions: BTreeMap<String, Arc<Definition>>,
    resources: BTreeMap<Id, Arc<Resource>>,
    /// Whether gates of definitions are heeded (`CRDFieldLevelVersioning`).
    pub field_gates: bool,
    documents: OnceLock<Documents>,
}

impl Catalog {
    pub(crate) fn new(revision: i64, definitions: BTreeMap<String, Arc<Definition>>, field_gates: bool) -> Catalog {
        let mut catalog = Catalog {
            revision,
            definitions: BTreeMap::new(),
            resources: BTreeMap::new(),
            field_gates,
            documents: OnceLock::new(),
        };
        builtin::resources().into_iter().for_each(|resource| catalog.add(resource));
        for (key, definition) in definitions {
            crd::resources(&definition, field_gates).into_iter().for_each(|resource| catalog.add(resource));
            catalog.definitions.insert(key, definition);
        }
        catalog
    }

    fn add(&mut self, resource: Resource) {
        let id = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        // A definition that somebody else stored does not take the place of a built-in kind, which came first.
        self.resources.entry(id).or_insert_with(|| Arc::new(resource));
    }

    /// The same with one definition changed or gone. Resources of the others are kept as they are.
    pub(crate) fn with(&self, revision: i64, key: &str, changed: Option<Definition>) -> Catalog {
        let others = self
            .resources
            .iter()
            .filter(|(_, resource)| resource.custom().is_none_or(|custom| custom.definition_key != key));
        let mut next = Catalog {
            revision,
            definitions: self.definitions.clone(),
            resources: others.map(|(id, resource)| (id.clone(), resource.clone())).collect(),
            field_gates: self.field_gates,
            documents: OnceLock::new(),
        };
        next.definitions.remove(key);
        if let Some(definition) = changed {
            crd::resources(&definition, self.field_gates).into_iter().for_each(|resource| next.add(resource));
            next.definitions.insert(key.to_owned(), Arc::new(definition));
        }
        next
    }

    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// A resource in all its versions, its own first.
    pub(crate) fn versions(&self, resource: &Resource) -> Vec<Arc<Resource>> {
        let same = |other: &&Arc<Resource>| other.group == resource.group && other.plural == resource.plural;
        let mut found: Vec<Arc<Resource>> = self.resources().filter(same).cloned().collect();
        found.sort_by_key(|other| other.version != resource.version);
        found
    }

    pub(crate) fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// One version of each namespaced resource: where objects of a namespace can lie.
    pub(crate) fn namespaced(&self) -> Vec<Arc<Resource>> {
        let mut found: BTreeMap<String, Arc<Resource>> = BTreeMap::new();
        for resource in self.resources().filter(|resource| resource.namespaced) {
            found.entry(resource.prefix()).or_insert_with(|| resource.clone());
        }
        for resource in self.unserved().filter(|resource| resource.namespaced) {
            found.entry(resource.prefix()).or_insert_with(|| Arc::new(resource));
        }
        found.into_values().collect()
    }

    /// What is stored of definitions that serve no version.
    fn unserved(&self) -> impl Iterator<Item = Resource> + '_ {
        let is_served = |definition: &Definition| {
            let versions = definition.object["spec"]["versions"].as_array();
            versions.is_some_and(|versions| versions.iter().any(|version| version["served"] == true))
        };
        let definitions = self.definitions.values().filter(move |definition| !is_served(definition));
        definitions.filter_map(|definition| crd::stored_resource(definition))
    }

    /// Groups in the order of their names, the core group first, each with its versions, best first.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for resource in self.resources() {
            let versions = groups.entry(&resource.group).or_default();
            if !versions.contains(&resource.version) {
                versions.push(resource.version.clone());
            }
        }
        let sorted = groups.into_iter().map(|(group, mut versions)| {
            versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
            (group.to_owned(), versions)
        });
        sorted.collect()
    }

    pub(crate) fn of_version<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.resources().filter(move |resource| resource.group == group && resource.version == version)
    }

    /// Documents that describe all of it, made when first asked for.
    pub(crate) fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| Documents::new(self))
    }
}

/// Released before beta before alpha, newer before older, anything else last: `v2, v1, v1beta2, v1alpha1, foo`.
pub(crate) fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let Ok(major) = rest[..digits].parse::<u64>() else { return other };
    let none = std::cmp::Reverse(String::new());
    let (stage, minor) = match &rest[digits..] {
        "" => return (3, major, 0, none),
        rest if rest.starts_with("beta") => (2, &rest[4..]),
        rest if rest.starts_with("alpha") => (1, &rest[5..]),
        _ => return other,
    };
    minor.parse().map_or(other, |minor| (stage, major, minor, none))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_in_kubernetes() {
        let mut versions = ["foo", "v1alpha1", "v10", "v2", "v1beta2", "v1beta10", "v2alpha1", "bar"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1beta10", "v1beta2", "v2alpha1", "v1alpha1", "bar", "foo"]);
    }

    #[test]
    fn the_built_in_kinds_are_always_there() {
        let catalog = Catalog::new(1, BTreeMap::new(), true);
        assert!(catalog.get("", "v1", "configmaps").is_some());
        let groups: Vec<String> = catalog.groups().into_iter().map(|(group, _)| group).collect();
        assert_eq!(groups, ["", "admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"]);
    }
}
