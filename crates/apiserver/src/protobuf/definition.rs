//! Custom resource definitions in protobuf, as Kubernetes' typed client of them sends them.

use serde_json::Value;

use super::{Field, Kind, tables::META};

pub(super) const DEFINITION: &[Field] =
    &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(SPEC)), (3, "status", Kind::Message(STATUS))];

const NAMES: &[Field] = &[
    (1, "plural", Kind::Text),
    (2, "singular", Kind::Text),
    (3, "shortNames", Kind::List(&Kind::Given)),
    (4, "kind", Kind::Text),
    (5, "listKind", Kind::Text),
    (6, "categories", Kind::List(&Kind::Given)),
];
const SPEC: &[Field] = &[
    (1, "group", Kind::Text),
    (3, "names", Kind::Message(NAMES)),
    (4, "scope", Kind::Text),
    (7, "versions", Kind::List(&Kind::Message(VERSION))),
    (9, "conversion", Kind::Message(CONVERSION)),
    (10, "preserveUnknownFields", Kind::Flag),
];
const CONDITION: &[Field] = &[
    (1, "type", Kind::Given),
    (2, "status", Kind::Given),
    (3, "lastTransitionTime", Kind::Time),
    (4, "reason", Kind::Text),
    (5, "message", Kind::Text),
    (6, "observedGeneration", Kind::Int),
];
const STATUS: &[Field] = &[
    (1, "conditions", Kind::List(&Kind::Message(CONDITION))),
    (2, "acceptedNames", Kind::Message(NAMES)),
    (3, "storedVersions", Kind::List(&Kind::Given)),
    (4, "observedGeneration", Kind::Int),
];
const VERSION: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "served", Kind::Bool),
    (3, "storage", Kind::Bool),
    (4, "schema", Kind::Message(&[(1, "openAPIV3Schema", Kind::Message(&SCHEMA))])),
    (5, "subresources", Kind::Message(SUBRESOURCES)),
    (6, "additionalPrinterColumns", Kind::List(&Kind::Message(COLUMN))),
    (7, "deprecated", Kind::Flag),
    (8, "deprecationWarning", Kind::Given),
    (9, "selectableFields", Kind::List(&Kind::Message(&[(1, "jsonPath", Kind::Text)]))),
];
const SUBRESOURCES: &[Field] = &[(1, "status", Kind::Message(&[])), (2, "scale", Kind::Message(SCALE))];
const SCALE: &[Field] = &[
    (1, "specReplicasPath", Kind::Text),
    (2, "statusReplicasPath", Kind::Text),
    (3, "labelSelectorPath", Kind::Given),
];
const COLUMN: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "type", Kind::Text),
    (3, "format", Kind::Text),
    (4, "description", Kind::Text),
    (5, "priority", Kind::Int),
    (6, "jsonPath", Kind::Text),
];
const CONVERSION: &[Field] = &[(1, "strategy", Kind::Text), (2, "webhook", Kind::Message(WEBHOOK))];
const WEBHOOK: &[Field] =
    &[(2, "clientConfig", Kind::Message(CLIENT)), (3, "conversionReviewVersions", Kind::List(&Kind::Given))];
const CLIENT: &[Field] =
    &[(1, "service", Kind::Message(SERVICE)), (2, "caBundle", Kind::Bytes), (3, "url", Kind::Given)];
const SERVICE: &[Field] =
    &[(1, "namespace", Kind::Text), (2, "name", Kind::Text), (3, "path", Kind::Given), (4, "port", Kind::Count)];
const RULE: &[Field] = &[
    (1, "rule", Kind::Given),
    (2, "message", Kind::Text),
    (3, "messageExpression", Kind::Text),
    (4, "reason", Kind::Given),
    (5, "fieldPath", Kind::Text),
    (6, "optionalOldSelf", Kind::Bool),
];

/// A static, as schemas lie in schemas.
static SCHEMA: [Field; 44] = [
    (1, "id", Kind::Text),
    (2, "$schema", Kind::Text),
    (3, "$ref", Kind::Given),
    (4, "description", Kind::Text),
    (5, "type", Kind::Text),
    (6, "format", Kind::Text),
    (7, "title", Kind::Text),
    (8, "default", Kind::Json),
    (9, "maximum", Kind::Double),
    (10, "exclusiveMaximum", Kind::Flag),
    (11, "minimum", Kind::Double),
    (12, "exclusiveMinimum", Kind::Flag),
    (13, "maxLength", Kind::Count),
    (14, "minLength", Kind::Count),
    (15, "pattern", Kind::Text),
    (16, "maxItems", Kind::Count),
    (17, "minItems", Kind::Count),
    (18, "uniqueItems", Kind::Flag),
    (19, "multipleOf", Kind::Double),
    (20, "enum", Kind::List(&Kind::Json)),
    (21, "maxProperties", Kind::Count),
    (22, "minProperties", Kind::Count),
    (23, "required", Kind::List(&Kind::Given)),
    (24, "items", Kind::Shaped(&OR_LIST, schema_or_list)),
    (25, "allOf", Kind::List(&Kind::Message(&SCHEMA))),
    (26, "oneOf", Kind::List(&Kind::Message(&SCHEMA))),
    (27, "anyOf", Kind::List(&Kind::Message(&SCHEMA))),
    (28, "not", Kind::Message(&SCHEMA)),
    (29, "properties", Kind::Map(&Kind::Message(&SCHEMA))),
    (30, "additionalProperties", Kind::Shaped(&OR_BOOL, schema_or_bool)),
    (31, "patternProperties", Kind::Map(&Kind::Message(&SCHEMA))),
    (32, "dependencies", Kind::Map(&Kind::Shaped(&OR_TEXTS, schema_or_list))),
    (33, "additionalItems", Kind::Shaped(&OR_BOOL, schema_or_bool)),
    (34, "definitions", Kind::Map(&Kind::Message(&SCHEMA))),
    (35, "externalDocs", Kind::Message(&[(1, "description", Kind::Text), (2, "url", Kind::Text)])),
    (36, "example", Kind::Json),
    (37, "nullable", Kind::Flag),
    (38, "x-kubernetes-preserve-unknown-fields", Kind::Bool),
    (39, "x-kubernetes-embedded-resource", Kind::Flag),
    (40, "x-kubernetes-int-or-string", Kind::Flag),
    (41, "x-kubernetes-list-map-keys", Kind::List(&Kind::Given)),
    (42, "x-kubernetes-list-type", Kind::Given),
    (43, "x-kubernetes-map-type", Kind::Given),
    (44, "x-kubernetes-validations", Kind::List(&Kind::Message(RULE))),
];
static OR_BOOL: [Field; 2] = [(1, "bool", Kind::Bool), (2, "schema", Kind::Message(&SCHEMA))];
static OR_LIST: [Field; 2] = [(1, "schema", Kind::Message(&SCHEMA)), (2, "list", Kind::List(&Kind::Message(&SCHEMA)))];
static OR_TEXTS: [Field; 2] = [(1, "schema", Kind::Message(&SCHEMA)), (2, "list", Kind::List(&Kind::Given))];

fn schema_or_bool(mut either: Value) -> Value {
    match either["schema"].take() {
        Value::Null => (either["bool"] == true).into(),
        schema => schema,
    }
}

fn schema_or_list(mut either: Value) -> Value {
    match either["list"].take() {
        Value::Null => either["schema"].take(),
        list => list,
    }
}
