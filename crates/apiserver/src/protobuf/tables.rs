//! The built-in kinds in Kubernetes' protobuf form: numbers, names and kinds of their fields.

use super::{Field, Kind, definition};

const OWNER: &[Field] = &[
    (1, "kind", Kind::Text),
    (3, "name", Kind::Text),
    (4, "uid", Kind::Text),
    (5, "apiVersion", Kind::Text),
    (6, "controller", Kind::Bool),
    (7, "blockOwnerDeletion", Kind::Bool),
];
const MANAGER: &[Field] = &[
    (1, "manager", Kind::Text),
    (2, "operation", Kind::Text),
    (3, "apiVersion", Kind::Text),
    (4, "time", Kind::Time),
    (6, "fieldsType", Kind::Text),
    (7, "fieldsV1", Kind::Json),
    (8, "subresource", Kind::Text),
];
pub(super) const META: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "generateName", Kind::Text),
    (3, "namespace", Kind::Text),
    (5, "uid", Kind::Text),
    (6, "resourceVersion", Kind::Text),
    (7, "generation", Kind::Int),
    (8, "creationTimestamp", Kind::Time),
    (9, "deletionTimestamp", Kind::Time),
    (10, "deletionGracePeriodSeconds", Kind::Count),
    (11, "labels", Kind::Map(&Kind::Given)),
    (12, "annotations", Kind::Map(&Kind::Given)),
    (13, "ownerReferences", Kind::List(&Kind::Message(OWNER))),
    (14, "finalizers", Kind::List(&Kind::Given)),
    (17, "managedFields", Kind::List(&Kind::Message(MANAGER))),
];
const NAMESPACE_CONDITION: &[Field] = &[
    (1, "type", Kind::Given),
    (2, "status", Kind::Given),
    (4, "lastTransitionTime", Kind::Time),
    (5, "reason", Kind::Text),
    (6, "message", Kind::Text),
];
const NAMESPACE_STATUS: &[Field] =
    &[(1, "phase", Kind::Text), (2, "conditions", Kind::List(&Kind::Message(NAMESPACE_CONDITION)))];
const NAMESPACE: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "spec", Kind::Message(&[(1, "finalizers", Kind::List(&Kind::Given))])),
    (3, "status", Kind::Message(NAMESPACE_STATUS)),
];
const CONFIG_MAP: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "data", Kind::Map(&Kind::Given)),
    (3, "binaryData", Kind::Map(&Kind::Bytes)),
    (4, "immutable", Kind::Bool),
];
const SECRET: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "data", Kind::Map(&Kind::Bytes)),
    (3, "type", Kind::Text),
    (4, "stringData", Kind::Map(&Kind::Given)),
    (5, "immutable", Kind::Bool),
];
const LEASE_SPEC: &[Field] = &[
    (1, "holderIdentity", Kind::Given),
    (2, "leaseDurationSeconds", Kind::Count),
    (3, "acquireTime", Kind::MicroTime),
    (4, "renewTime", Kind::MicroTime),
    (5, "leaseTransitions", Kind::Count),
    (6, "strategy", Kind::Given),
    (7, "preferredHolder", Kind::Given),
];
const LEASE: &[Field] = &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(LEASE_SPEC))];
const REQUIREMENT: &[Field] =
    &[(1, "key", Kind::Text), (2, "operator", Kind::Text), (3, "values", Kind::List(&Kind::Given))];
const SELECTOR: &[Field] =
    &[(1, "matchLabels", Kind::Map(&Kind::Given)), (2, "matchExpressions", Kind::List(&Kind::Message(REQUIREMENT)))];
const RULE: &[Field] = &[
    (1, "apiGroups", Kind::List(&Kind::Given)),
    (2, "apiVersions", Kind::List(&Kind::Given)),
    (3, "resources", Kind::List(&Kind::Given)),
    (4, "scope", Kind::Text),
];
const OPERATIONS: &[Field] = &[(1, "operations", Kind::List(&Kind::Given)), (2, "", Kind::Inline(RULE))];
const NAMED_RULE: &[Field] = &[(1, "resourceNames", Kind::List(&Kind::Given)), (2, "", Kind::Inline(OPERATIONS))];
const MATCH: &[Field] = &[
    (1, "namespaceSelector", Kind::Message(SELECTOR)),
    (2, "objectSelector", Kind::Message(SELECTOR)),
    (3, "resourceRules", Kind::List(&Kind::Message(NAMED_RULE))),
    (4, "excludeResourceRules", Kind::List(&Kind::Message(NAMED_RULE))),
    (7, "matchPolicy", Kind::Text),
];
const NAMED_EXPRESSION: &[Field] = &[(1, "name", Kind::Text), (2, "expression", Kind::Text)];
const VALIDATION: &[Field] = &[
    (1, "expression", Kind::Text),
    (2, "message", Kind::Text),
    (3, "reason", Kind::Text),
    (4, "messageExpression", Kind::Text),
];
const POLICY_SPEC: &[Field] = &[
    (1, "paramKind", Kind::Message(&[(1, "apiVersion", Kind::Text), (2, "kind", Kind::Text)])),
    (2, "matchConstraints", Kind::Message(MATCH)),
    (3, "validations", Kind::List(&Kind::Message(VALIDATION))),
    (4, "failurePolicy", Kind::Text),
    (5, "auditAnnotations", Kind::List(&Kind::Message(&[(1, "key", Kind::Text), (2, "valueExpression", Kind::Text)]))),
    (6, "matchConditions", Kind::List(&Kind::Message(NAMED_EXPRESSION))),
    (7, "variables", Kind::List(&Kind::Message(NAMED_EXPRESSION))),
];
const CONDITION: &[Field] = &[
    (1, "type", Kind::Given),
    (2, "status", Kind::Given),
    (3, "observedGeneration", Kind::Int),
    (4, "lastTransitionTime", Kind::Time),
    (5, "reason", Kind::Given),
    (6, "message", Kind::Given),
];
const EXPRESSION_WARNING: &[Field] = &[(2, "fieldRef", Kind::Given), (3, "warning", Kind::Given)];
const TYPE_CHECKING: &[Field] = &[(1, "expressionWarnings", Kind::List(&Kind::Message(EXPRESSION_WARNING)))];
const POLICY_STATUS: &[Field] = &[
    (1, "observedGeneration", Kind::Int),
    (2, "typeChecking", Kind::Message(TYPE_CHECKING)),
    (3, "conditions", Kind::List(&Kind::Message(CONDITION))),
];
const POLICY: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "spec", Kind::Message(POLICY_SPEC)),
    (3, "status", Kind::Message(POLICY_STATUS)),
];
const PARAM_REF: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "namespace", Kind::Text),
    (3, "selector", Kind::Message(SELECTOR)),
    (4, "parameterNotFoundAction", Kind::Text),
];
const BINDING_SPEC: &[Field] = &[
    (1, "policyName", Kind::Text),
    (2, "paramRef", Kind::Message(PARAM_REF)),
    (3, "matchResources", Kind::Message(MATCH)),
    (4, "validationActions", Kind::List(&Kind::Given)),
];
const BINDING: &[Field] = &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(BINDING_SPEC))];
const DELETE_OPTIONS: &[Field] = &[
    (1, "gracePeriodSeconds", Kind::Count),
    (2, "preconditions", Kind::Message(&[(1, "uid", Kind::Text), (2, "resourceVersion", Kind::Text)])),
    (4, "propagationPolicy", Kind::Text),
    (5, "dryRun", Kind::List(&Kind::Given)),
];

const RESOURCE: &[Field] = &[
    (1, "namespace", Kind::Text),
    (2, "verb", Kind::Text),
    (3, "group", Kind::Text),
    (4, "version", Kind::Text),
    (5, "resource", Kind::Text),
    (6, "subresource", Kind::Text),
    (7, "name", Kind::Text),
];
const ACCESS: &[Field] = &[
    (1, "resourceAttributes", Kind::Message(RESOURCE)),
    (2, "nonResourceAttributes", Kind::Message(&[(1, "path", Kind::Text), (2, "verb", Kind::Text)])),
];
const ACCESS_REVIEW: &[Field] = &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(ACCESS))];
const RULES_REVIEW: &[Field] =
    &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(&[(1, "namespace", Kind::Text)]))];
const SUBJECT_REVIEW: &[Field] = &[(1, "metadata", Kind::Message(META))];

/// The fields of a kind.
pub(super) fn table(kind: &str) -> Option<&'static [Field]> {
    match kind {
        "Namespace" => Some(NAMESPACE),
        "ConfigMap" => Some(CONFIG_MAP),
        "Secret" => Some(SECRET),
        "Lease" => Some(LEASE),
        "ValidatingAdmissionPolicy" => Some(POLICY),
        "ValidatingAdmissionPolicyBinding" => Some(BINDING),
        "DeleteOptions" => Some(DELETE_OPTIONS),
        "SelfSubjectAccessReview" => Some(ACCESS_REVIEW),
        "SelfSubjectRulesReview" => Some(RULES_REVIEW),
        "SelfSubjectReview" => Some(SUBJECT_REVIEW),
        "CustomResourceDefinition" => Some(definition::DEFINITION),
        _ => None,
    }
}
