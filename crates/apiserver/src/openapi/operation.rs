//! What can be done with a resource, under which paths.

use serde_json::{Map, Value, json};

use super::{meta, schema_name};
use crate::{
    patch,
    resource::{Resource, Role},
};

const REFS: &str = "#/components/schemas/";

/// All paths of a resource with their operations.
pub(super) fn paths(resource: &Resource) -> Map<String, Value> {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let root = format!("{root}/{}", resource.version);
    let base = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let mut paths = Map::new();
    let many = json!({"get": operation(resource, "list"), "post": operation(resource, "post"), "delete": operation(resource, "deletecollection")});
    let one = json!({"get": operation(resource, "get"), "put": operation(resource, "put"), "patch": operation(resource, "patch"), "delete": operation(resource, "delete")});
    if resource.namespaced {
        paths.insert(format!("{root}/{}", resource.plural), json!({"get": operation(resource, "list")}));
    }
    paths.insert(base.clone(), many);
    for (name, verbs) in resource.parts() {
        let operations = verbs.iter().map(|verb| part_operation(resource, name, verb)).collect::<Map<_, _>>();
        paths.insert(format!("{base}/{{name}}/{name}"), operations.into());
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
            // kubectl would make strategic patches of definitions by their schema, which is not published to its leaves.
            let strategic = resource.strategic && resource.role != Role::Definition;
            let content: Map<String, Value> =
                patch::accepted(strategic).iter().map(|media| ((*media).to_owned(), body.clone())).collect();
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        _ => {}
    }
    operation
}

/// What can be done with a part of an object, by its method. That of a Scale is about a kind of its own.
fn part_operation(resource: &Resource, part: &str, verb: &str) -> (String, Value) {
    let action = if verb == "update" { "put" } else { verb };
    let mut operation = operation(resource, action);
    let id = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = format!("{id}{}", camel(part)).into();
    if part == "scale" {
        let body = json!({"schema": {"$ref": format!("{REFS}{}", meta::SCALE)}});
        operation["x-kubernetes-group-version-kind"] =
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        operation["responses"]["200"]["content"]["application/json"] = body.clone();
        if action == "put" {
            operation["requestBody"]["content"]["application/json"] = body;
        }
    }
    (action.to_owned(), operation)
}

fn camel(text: &str) -> String {
    let upper = |part: &str| {
        part.chars().next().map(|first| first.to_uppercase().chain(part.chars().skip(1)).collect::<String>())
    };
    text.split('.').filter_map(upper).collect()
}
