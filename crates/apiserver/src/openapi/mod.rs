//! Descriptions of everything that is served, for clients that check or explain objects.

mod gnostic;
mod meta;
mod operation;
mod v2;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{catalog::Catalog, resource::Resource};

pub(crate) use self::gnostic::MEDIA as PROTOBUF_MEDIA;

const INFO: &str = "Lockgate";

/// One document as bytes, and a hash that changes when it does.
pub(crate) struct Document {
    pub bytes: Bytes,
    pub hash: String,
    pub media: &'static str,
}

impl Document {
    fn new(value: &Value) -> Document {
        Document::of(value.to_string().into(), "application/json")
    }

    pub(crate) fn of(bytes: Bytes, media: &'static str) -> Document {
        let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02X}")).collect();
        Document { bytes, hash, media }
    }
}

pub(crate) struct Documents {
    pub v2: Document,
    /// The same as protobuf.
    pub v2_protobuf: Document,
    pub index: Document,
    /// By path: `api/v1`, `apis/example.com/v1`.
    pub v3: BTreeMap<String, Document>,
}

impl Documents {
    pub(crate) fn new(catalog: &Catalog) -> Documents {
        let mut v3 = BTreeMap::new();
        for (group, versions) in catalog.groups() {
            for version in versions {
                let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
                let resources: Vec<&Resource> = catalog.of_version(&group, &version).map(AsRef::as_ref).collect();
                v3.insert(path, Document::new(&document(&resources)));
            }
        }
        let url = |(path, document): (&String, &Document)| {
            let url = format!("/openapi/v3/{path}?hash={}", document.hash);
            (path.clone(), json!({"serverRelativeURL": url}))
        };
        let index = json!({"paths": v3.iter().map(url).collect::<Map<_, _>>()});
        let all: Vec<&Resource> = catalog.resources().map(AsRef::as_ref).collect();
        let older = v2::document(&all);
        Documents {
            v2: Document::new(&older),
            v2_protobuf: Document::of(gnostic::encode(&older).into(), gnostic::MEDIA[1]),
            index: Document::new(&index),
            v3,
        }
    }
}

fn document(resources: &[&Resource]) -> Value {
    let mut schemas = meta::schemas("#/components/schemas/");
    let mut paths = Map::new();
    for resource in resources {
        let name = schema_name(resource);
        schemas.insert(format!("{name}List"), list_schema(resource, "#/components/schemas/"));
        schemas.insert(name, object_schema(resource, "#/components/schemas/"));
        paths.extend(operation::paths(resource));
    }
    json!({
        "openapi": "3.0.0", "info": {"title": INFO, "version": env!("CARGO_PKG_VERSION")},
        "paths": paths, "components": {"schemas": schemas},
    })
}

/// `com.example.v1.CronTab`: the group backwards, so that names sort by owner.
pub(crate) fn schema_name(resource: &Resource) -> String {
    let (version, kind) = (&resource.version, &resource.kind);
    match resource.group.as_str() {
        "" => format!("io.k8s.api.core.{version}.{kind}"),
        "admissionregistration.k8s.io" => format!("io.k8s.api.admissionregistration.{version}.{kind}"),
        "coordination.k8s.io" => format!("io.k8s.api.coordination.{version}.{kind}"),
        "apiextensions.k8s.io" => format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"),
        group => {
            let backwards: Vec<&str> = group.rsplit('.').collect();
            format!("{}.{version}.{kind}", backwards.join("."))
        }
    }
}

pub(crate) fn object_schema(resource: &Resource, refs: &str) -> Value {
    let mut schema = resource.published.clone();
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] = json!({"type": "string", "description": meta::API_VERSION});
    schema["properties"]["kind"] = json!({"type": "string", "description": meta::KIND});
    schema["properties"]["metadata"] = meta::reference(refs, "ObjectMeta", "Standard object's metadata.");
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
    publish_selectable(resource, &mut schema);
    schema
}

/// Which fields can be selected by, as Kubernetes tells it: at the kind and at its list.
fn publish_selectable(resource: &Resource, schema: &mut Value) {
    if resource.custom().is_some() && !resource.selectable.is_empty() {
        let fields = resource.selectable.iter().map(|path| json!({"fieldPath": path}));
        schema["x-kubernetes-selectable-fields"] = fields.collect();
    }
}

pub(crate) fn list_schema(resource: &Resource, refs: &str) -> Value {
    let items = json!({"$ref": format!("{refs}{}", schema_name(resource))});
    let mut schema = json!({
        "type": "object", "description": format!("{} is a list of {}", resource.list_kind, resource.kind), "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": meta::API_VERSION},
            "kind": {"type": "string", "description": meta::KIND},
            "metadata": meta::reference(refs, "ListMeta", "Standard list metadata."),
            "items": {"type": "array", "description": format!("List of {}.", resource.plural), "items": items},
        },
        "x-kubernetes-group-version-kind": [{"group": resource.group, "version": resource.version, "kind": resource.list_kind}],
    });
    publish_selectable(resource, &mut schema);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_have_what_kubectl_looks_for() {
        let catalog = Catalog::new(1, BTreeMap::new(), true);
        let documents = catalog.documents();
        assert_eq!(
            documents.v3.keys().collect::<Vec<_>>(),
            [
                "api/v1",
                "apis/admissionregistration.k8s.io/v1",
                "apis/apiextensions.k8s.io/v1",
                "apis/coordination.k8s.io/v1"
            ]
        );
        let core: Value = serde_json::from_slice(&documents.v3["api/v1"].bytes).unwrap();
        let patch = &core["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-action"], "patch");
        let has =
            patch["parameters"].as_array().unwrap().iter().any(|parameter| parameter["name"] == "fieldValidation");
        assert!(has, "kubectl asks for it before it sends a patch");
        assert!(core["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"]["properties"]["data"].is_object());
    }
}
