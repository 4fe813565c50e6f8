//! Schemas that all documents share.

use serde_json::{Map, Value, json};

pub(super) const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object.";
pub(super) const KIND: &str = "Kind is a string value representing the REST resource this object represents.";
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// A reference with words of its own, which OpenAPI allows only around it.
pub(super) fn reference(refs: &str, name: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [{"$ref": format!("{refs}{META}{name}")}]})
}

pub(super) fn name(name: &str) -> String {
    format!("{META}{name}")
}

pub(super) fn schemas(refs: &str) -> Map<String, Value> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let number = |description: &str| json!({"type": "integer", "format": "int64", "description": description});
    let texts = |description: &str| json!({"type": "object", "description": description, "additionalProperties": {"type": "string"}});
    let owner = json!({"type": "object", "description": "OwnerReference names an object that this one belongs to.",
        "x-kubernetes-map-type": "atomic", "required": ["apiVersion", "kind", "name", "uid"], "properties": {
            "apiVersion": text("API version of the owner."), "kind": text("Kind of the owner."), "name": text("Name of the owner."),
            "uid": text("UID of the owner."), "controller": {"type": "boolean", "description": "Whether the owner manages this object."},
            "blockOwnerDeletion": {"type": "boolean", "description": "Whether the owner cannot go before this object."}}});
    let object = json!({"type": "object", "description": "ObjectMeta is metadata that all persisted objects have.", "properties": {
        "name": text("Name must be unique within a namespace."),
        "generateName": text("A prefix the server makes a unique name of, if no name is given."),
        "namespace": text("The space within which the name must be unique."),
        "labels": texts("Keys and values to select objects by."),
        "annotations": texts("Keys and values for tools to keep what they need."),
        "finalizers": {"type": "array", "items": {"type": "string"}, "description": "Who has to let go before the object is gone.",
                       "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
        "ownerReferences": {"type": "array", "items": {"$ref": format!("{refs}{META}OwnerReference")}, "description": "Objects that this one belongs to.",
                            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid"},
        "uid": text("Unique in time and space. Set by the server."),
        "resourceVersion": text("Changes with every change of the object. Set by the server."),
        "generation": number("Counts changes of what is wanted. Set by the server."),
        "creationTimestamp": text("CreationTimestamp is a timestamp of when the object was made. Set by the server."),
        "deletionTimestamp": text("When deletion was asked for. Set by the server."),
        "deletionGracePeriodSeconds": number("How long the object may take to end. Set by the server."),
        "selfLink": text("Not used any more."),
        "managedFields": {"type": "array", "items": {"$ref": format!("{refs}{META}ManagedFieldsEntry")}, "x-kubernetes-list-type": "atomic",
                          "description": "Who manages which fields. Kept by the server; an empty list makes it forget."},
    }});
    let managed = json!({"type": "object", "description": "ManagedFieldsEntry names the fields that one manager has set.", "properties": {
        "manager": text("Who it is: fieldManager of the request, or the client's program."),
        "operation": text("Apply or Update."),
        "apiVersion": text("The version in which the fields are named."),
        "time": {"type": "string", "format": "date-time", "description": "When the manager last added or changed a field."},
        "fieldsType": text("FieldsV1."),
        "fieldsV1": {"description": "The fields.", "allOf": [{"$ref": format!("{refs}{META}FieldsV1")}]},
        "subresource": text("The part of the object that was written, such as status; none for the whole."),
    }});
    let fields = json!({"type": "object", "description": "FieldsV1 is a set of fields: f:name for a field, k:{...} for a list item by its \
        keys, v:... for an item of a set, i:... for one by its place; a dot stands for what contains it."});
    let list = json!({"type": "object", "description": "ListMeta is metadata of lists.", "properties": {
        "resourceVersion": text("The version of the store the list is of."), "continue": text("Where the next page begins."),
        "remainingItemCount": number("How many objects follow."), "selfLink": text("Not used any more."),
    }});
    let patch = json!({"type": "object", "description": "Patch is what is to be changed."});
    let status = json!({"type": "object", "description": "Status is the answer to calls without other answer.", "properties": {
        "apiVersion": text(API_VERSION), "kind": text(KIND), "status": text("Success or Failure."), "message": text("For people."),
        "reason": text("For programs."), "code": {"type": "integer", "format": "int32", "description": "The HTTP code."},
    }});
    let all = [
        ("ObjectMeta", object),
        ("ListMeta", list),
        ("OwnerReference", owner),
        ("ManagedFieldsEntry", managed),
        ("FieldsV1", fields),
        ("Patch", patch),
        ("Status", status),
    ];
    let all = all.into_iter().map(|(short, schema)| (name(short), schema));
    all.chain([(SCALE.to_owned(), scale(refs))]).collect()
}

fn scale(refs: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let count = |description: &str| json!({"type": "integer", "format": "int32", "description": description});
    json!({"type": "object", "description": "Scale says how many there should be and are.", "properties": {
        "apiVersion": text(API_VERSION), "kind": text(KIND),
        "metadata": reference(refs, "ObjectMeta", "Standard object metadata."),
        "spec": {"type": "object", "description": "What is wanted.", "properties": {"replicas": count("How many there should be.")}},
        "status": {"type": "object", "description": "What is.", "required": ["replicas"], "properties": {
            "replicas": count("How many there are."), "selector": text("Which labels they have.")}},
    }, "x-kubernetes-group-version-kind": [{"group": "autoscaling", "version": "v1", "kind": "Scale"}]})
}
