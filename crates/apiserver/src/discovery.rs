//! What is served, for clients to find their way: all at once, or step by step as older clients ask.

use serde_json::{Value, json};

use crate::{
    admission, builtin,
    catalog::Catalog,
    method,
    resource::{Resource, group_version},
    reviews::{self, Review},
    route::Discovery,
    scale,
    serve::health,
    status::Result,
};

/// The content type of the answer that has everything.
pub(crate) const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Groups that are there without a definition, the first first.
const ORDER: [&str; 6] = [
    "",
    reviews::AUTHENTICATION,
    reviews::AUTHORIZATION,
    admission::GROUP,
    builtin::DEFINITIONS.0,
    "coordination.k8s.io",
];

/// Every group with its versions and resources; `/api` has the core group, `/apis` the others.
pub(crate) fn aggregated(catalog: &Catalog, core: bool) -> Value {
    let groups = groups(catalog).into_iter().filter(|(group, _)| group.is_empty() == core);
    let items: Vec<Value> = groups.map(|(group, versions)| aggregated_group(catalog, &group, &versions)).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_group(catalog: &Catalog, group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> =
                catalog.of_version(group, version).map(|resource| aggregated_resource(resource)).collect();
            let asked = reviews_of(group, version).map(|review| {
                json!({"resource": review.plural(), "responseKind": own_kind(review.kind()), "scope": "Cluster",
                       "singularResource": review.singular(), "verbs": ["create"]})
            });
            let resources: Vec<Value> = resources.into_iter().chain(asked).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let mut metadata = json!({});
    if !group.is_empty() {
        metadata["name"] = group.into();
    }
    json!({"metadata": metadata, "versions": versions})
}

/// A kind of the group and version that it is told in.
fn own_kind(kind: &str) -> Value {
    json!({"group": "", "version": "", "kind": kind})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = match resource.custom() {
        Some(_) => json!({"group": resource.group, "version": resource.version, "kind": resource.kind}),
        None => own_kind(&resource.kind),
    };
    let mut item = json!({
        "resource": resource.plural, "responseKind": kind, "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs(),
    });
    if !resource.short_names.is_empty() {
        item["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        item["categories"] = json!(resource.categories);
    }
    let part = |(name, verbs): (&str, &[&str])| {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": scale::KIND});
        json!({"subresource": name, "responseKind": if name == "scale" { &scale } else { &kind }, "verbs": verbs})
    };
    let parts: Vec<Value> = resource.parts().map(part).collect();
    if !parts.is_empty() {
        item["subresources"] = parts.into();
    }
    item
}

/// Every path under which something is found.
pub(crate) fn paths(catalog: &Catalog) -> Value {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/apis/", "/metrics", "/openapi/v2", "/openapi/v3", "/version"].map(str::to_owned).into();
    for (group, versions) in groups(catalog) {
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        paths.extend(versions.iter().map(|version| format!("{root}/{version}")));
        paths.extend((!group.is_empty()).then_some(root));
    }
    paths.extend(health::paths());
    paths.sort();
    json!({"paths": paths})
}

pub(crate) fn legacy(catalog: &Catalog, asked: &Discovery, address: &str) -> Result<Value> {
    match asked {
        Discovery::Core => Ok(json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        })),
        Discovery::Groups => {
            let groups: Vec<Value> =
                groups(catalog).into_iter().skip_while(|(group, _)| group.is_empty()).map(api_group).collect();
            Ok(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        Discovery::Group(name) => {
            let found = groups(catalog).into_iter().find(|(group, _)| group == name && !group.is_empty());
            let mut group = api_group(found.ok_or_else(|| method::missing(name))?);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            Ok(group)
        }
        Discovery::Version(group, version) => {
            let resources: Vec<Value> =
                catalog.of_version(group, version).flat_map(|resource| api_resources(resource)).collect();
            let asked = reviews_of(group, version).map(|review| {
                json!({"name": review.plural(), "singularName": review.singular(), "namespaced": false,
                       "kind": review.kind(), "verbs": ["create"]})
            });
            let resources: Vec<Value> = resources.into_iter().chain(asked).collect();
            if resources.is_empty() {
                return Err(method::missing(group));
            }
            let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version(group, version), "resources": resources});
            // The oldest group is told as it was before lists had a version.
            if !group.is_empty() {
                list["apiVersion"] = "v1".into();
            }
            Ok(list)
        }
    }
}

/// What is kept and what can only be asked. Clients that look for a name take the first group that has it, so the kinds of
/// Kubernetes come before those of definitions.
fn groups(catalog: &Catalog) -> Vec<(String, Vec<String>)> {
    let mut groups = catalog.groups();
    for group in [reviews::AUTHENTICATION, reviews::AUTHORIZATION] {
        groups.push((group.to_owned(), vec![reviews::VERSION.to_owned()]));
    }
    let rank = |group: &str| ORDER.iter().position(|known| *known == group).unwrap_or(ORDER.len());
    groups.sort_by(|(a, _), (b, _)| (rank(a), a).cmp(&(rank(b), b)));
    groups
}

fn reviews_of<'a>(group: &'a str, version: &'a str) -> impl Iterator<Item = Review> {
    reviews::ALL.into_iter().filter(move |review| review.group() == group && version == reviews::VERSION)
}

fn api_group((group, versions): (String, Vec<String>)) -> Value {
    let version = |version: &String| json!({"groupVersion": group_version(&group, version), "version": version});
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({"name": group, "preferredVersion": all[0], "versions": all})
}

fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind,
        "verbs": resource.verbs(),
    });
    if let Some(hash) = resource.storage_version_hash() {
        main["storageVersionHash"] = hash.into();
    }
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        main["categories"] = json!(resource.categories);
    }
    let part = |(name, verbs): (&str, &[&str])| {
        let mut part = json!({"name": format!("{}/{name}", resource.plural), "singularName": "",
                              "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs});
        if name == "scale" {
            (part["group"], part["version"], part["kind"]) = ("autoscaling".into(), "v1".into(), scale::KIND.into());
        }
        part
    };
    std::iter::once(main).chain(resource.parts().map(part)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn both_ways_name_the_same_resources() {
        let catalog = Catalog::new(1, BTreeMap::new(), true);
        let all = aggregated(&catalog, true);
        let names: Vec<&str> = all["items"][0]["versions"][0]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["resource"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["configmaps", "namespaces", "secrets"]);
        let legacy_list = legacy(&catalog, &Discovery::Version(String::new(), "v1".into()), "").unwrap();
        let names: Vec<&str> = legacy_list["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["configmaps", "namespaces", "namespaces/finalize", "namespaces/status", "secrets"]);
        assert_eq!(legacy_list["resources"][0]["storageVersionHash"], "qFsyl6wFWjQ=", "as kube-apiserver has it");
        assert_eq!(legacy(&catalog, &Discovery::Group("no.such".into()), "").unwrap_err().code, 404);
    }
}
