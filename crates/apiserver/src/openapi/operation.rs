//! What can be done with a resource, under which paths.

use serde_json::{Map, Value, json};

use super::{meta, schema_name};
use crate::{patch, resource::Resource};

const REFS: &str = "#/components/schemas/";

/// All paths of a resource with their operations.
pub fn paths(resource: &Resource) -> Map<String, Value> {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let root = format!("{root}/{}", resource.version);
    let base = match resource.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", resource.plural),
        false => format!("{root}/{}", resource.plural),
    };
    let mut paths = Map::new();
    let many = json!({"get": operation(resource, "list"), "post": operation(resource, "post"), "delete": operation(resource, "deletecollection")});
    let one = json!({"get": operation(resource, "get"), "put": operation(resource, "put"), "patch": operation(resource, "patch"), "delete": operation(resource, "delete")});
    let part = json!({"get": operation(resource, "get"), "put": operation(resource, "put"), "patch": operation(resource, "patch")});
    if resource.namespaced {
        paths.insert(format!("{root}/{}", resource.plural), json!({"get": operation(resource, "list")}));
    }
    paths.insert(base.clone(), many);
    if resource.has_status {
        paths.insert(format!("{base}/{{name}}/status"), part);
    }
    if resource.scale.is_some() {
        paths.insert(format!("{base}/{{name}}/scale"), scale_operations(resource));
    }
    paths.insert(format!("{base}/{{name}}"), one);
    paths
}

fn operation(resource: &Resource, action: &str) -> Value {
    let query =
        |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let own = json!({"$ref": format!("{REFS}{}", schema_name(resource))});
    let parameters: Vec<Value> = match action {
        "post" | "put" => {
            ["dryRun", "fieldManager", "fieldValidation"].iter().map(|name| query(name, "string")).collect()
        }
        "patch" => {
            let texts = ["dryRun", "fieldManager", "fieldValidation"].iter().map(|name| query(name, "string"));
            texts.chain([query("force", "boolean")]).collect()
        }
        "list" => {
            let texts = ["continue", "fieldSelector", "labelSelector", "resourceVersion", "resourceVersionMatch"];
            let texts = texts.iter().map(|name| query(name, "string"));
            let numbers = ["limit", "timeoutSeconds"].iter().map(|name| query(name, "integer"));
            let flags = ["allowWatchBookmarks", "sendInitialEvents", "watch"].iter().map(|name| query(name, "boolean"));
            texts.chain(numbers).chain(flags).collect()
        }
        "delete" | "deletecollection" => {
            ["dryRun", "propagationPolicy"].iter().map(|name| query(name, "string")).collect()
        }
        _ => vec![query("resourceVersion", "string")],
    };
    let answer = match action {
        "list" => json!({"$ref": format!("{REFS}{}List", schema_name(resource))}),
        "delete" | "deletecollection" => json!({"$ref": format!("{REFS}{}", meta::name("Status"))}),
        _ => own.clone(),
    };
    let mut operation = json!({
        "operationId": format!("{action}{}{}{}", camel(&resource.group), camel(&resource.version), resource.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
    });
    match action {
        "post" | "put" => {
            operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": own}}})
        }
        "patch" => {
            let body = json!({"schema": {"$ref": format!("{REFS}{}", meta::name("Patch"))}});
            let content: Map<String, Value> =
                patch::accepted(resource.strategic).iter().map(|media| ((*media).to_owned(), body.clone())).collect();
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        _ => {}
    }
    operation
}

/// The same as of any part, about a Scale.
fn scale_operations(resource: &Resource) -> Value {
    let body = json!({"schema": {"$ref": format!("{REFS}{}", meta::SCALE)}});
    let of = |action: &str| {
        let mut operation = operation(resource, action);
        operation["operationId"] = format!("{}Scale", operation["operationId"].as_str().unwrap_or_default()).into();
        operation["x-kubernetes-group-version-kind"] =
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        operation["responses"]["200"]["content"]["application/json"] = body.clone();
        if action == "put" {
            operation["requestBody"]["content"]["application/json"] = body.clone();
        }
        operation
    };
    json!({"get": of("get"), "put": of("put"), "patch": of("patch")})
}

fn camel(text: &str) -> String {
    let upper = |part: &str| {
        part.chars().next().map(|first| first.to_uppercase().chain(part.chars().skip(1)).collect::<String>())
    };
    text.split('.').filter_map(upper).collect()
}
