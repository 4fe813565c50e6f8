//! The fields of Kubernetes' types.

use Type::{Any, Bytes, Flag, Float, Int, List, Map, OrBool, OrList, Struct, Text};

/// What a field holds. Names are Go's, as messages have them.
pub(super) enum Type {
    Any,
    /// A text, by its type.
    Text(&'static str),
    Flag,
    Int(u8),
    Float,
    Bytes,
    Struct(&'static str),
    List(&'static str, &'static Type),
    Map(&'static str, &'static Type),
    /// Types that read themselves: a schema, or whether anything goes; a schema, or several.
    OrBool(&'static str),
    OrList(&'static str),
}

impl Type {
    pub(super) fn name(&self) -> String {
        match self {
            Any => "v1.JSON".to_owned(),
            Text(name) | List(name, _) | Map(name, _) => (*name).to_owned(),
            Flag => "bool".to_owned(),
            Int(bits) => format!("int{bits}"),
            Float => "float64".to_owned(),
            Bytes => "[]uint8".to_owned(),
            Struct(name) | OrBool(name) | OrList(name) => format!("v1.{name}"),
        }
    }
}

type Fields = &'static [(&'static str, Type)];

const STRING: Type = Text("string");
const STRINGS: Type = List("[]string", &STRING);
const SCHEMA: Type = Struct("JSONSchemaProps");
const SCHEMAS: Type = List("[]v1.JSONSchemaProps", &SCHEMA);
const NAMED_SCHEMAS: Type = Map("map[string]v1.JSONSchemaProps", &SCHEMA);
const NAMES: Type = Struct("CustomResourceDefinitionNames");

/// The fields of a struct; none, if it is not known.
pub(super) fn fields(name: &str) -> Fields {
    match name {
        "CustomResourceDefinition" => {
            &[("spec", Struct("CustomResourceDefinitionSpec")), ("status", Struct("CustomResourceDefinitionStatus"))]
        }
        "CustomResourceDefinitionSpec" => SPEC,
        "CustomResourceDefinitionNames" => &[
            ("plural", STRING),
            ("singular", STRING),
            ("shortNames", STRINGS),
            ("kind", STRING),
            ("listKind", STRING),
            ("categories", STRINGS),
        ],
        "CustomResourceDefinitionVersion" => VERSION,
        "CustomResourceValidation" => &[("openAPIV3Schema", SCHEMA)],
        "CustomResourceSubresources" => &[
            ("status", Struct("CustomResourceSubresourceStatus")),
            ("scale", Struct("CustomResourceSubresourceScale")),
        ],
        "CustomResourceSubresourceScale" => {
            &[("specReplicasPath", STRING), ("statusReplicasPath", STRING), ("labelSelectorPath", STRING)]
        }
        "CustomResourceColumnDefinition" => &[
            ("name", STRING),
            ("type", STRING),
            ("format", STRING),
            ("description", STRING),
            ("priority", Int(32)),
            ("jsonPath", STRING),
        ],
        "SelectableField" => &[("jsonPath", STRING)],
        "CustomResourceConversion" => {
            &[("strategy", Text("v1.ConversionStrategyType")), ("webhook", Struct("WebhookConversion"))]
        }
        "WebhookConversion" => {
            &[("clientConfig", Struct("WebhookClientConfig")), ("conversionReviewVersions", STRINGS)]
        }
        "WebhookClientConfig" => &[("url", STRING), ("service", Struct("ServiceReference")), ("caBundle", Bytes)],
        "ServiceReference" => &[("namespace", STRING), ("name", STRING), ("path", STRING), ("port", Int(32))],
        "CustomResourceDefinitionStatus" => STATUS,
        "CustomResourceDefinitionCondition" => &[
            ("type", Text("v1.CustomResourceDefinitionConditionType")),
            ("status", Text("v1.ConditionStatus")),
            ("lastTransitionTime", STRING),
            ("reason", STRING),
            ("message", STRING),
            ("observedGeneration", Int(64)),
        ],
        "JSONSchemaProps" => PROPS,
        "ExternalDocumentation" => &[("description", STRING), ("url", STRING)],
        "ValidationRule" => &[
            ("rule", STRING),
            ("message", STRING),
            ("messageExpression", STRING),
            ("reason", Text("v1.FieldValueErrorReason")),
            ("fieldPath", STRING),
            ("optionalOldSelf", Flag),
        ],
        // Ours alone.
        "CustomFeatureGates" => {
            &[("component", STRING), ("featureGates", List("[]v1.CustomFeatureGate", &Struct("CustomFeatureGate")))]
        }
        "CustomFeatureGate" => &[
            ("name", STRING),
            ("preRelease", STRING),
            ("enabled", Flag),
            ("default", Flag),
            ("fieldPaths", STRINGS),
            ("fieldDeprecationWarning", STRING),
        ],
        _ => &[],
    }
}

const SPEC: Fields = &[
    ("group", STRING),
    ("names", NAMES),
    ("scope", Text("v1.ResourceScope")),
    ("versions", List("[]v1.CustomResourceDefinitionVersion", &Struct("CustomResourceDefinitionVersion"))),
    ("conversion", Struct("CustomResourceConversion")),
    ("preserveUnknownFields", Flag),
    ("customFeatureGates", Struct("CustomFeatureGates")),
];

const VERSION: Fields = &[
    ("name", STRING),
    ("served", Flag),
    ("storage", Flag),
    ("deprecated", Flag),
    ("deprecationWarning", STRING),
    ("schema", Struct("CustomResourceValidation")),
    ("subresources", Struct("CustomResourceSubresources")),
    (
        "additionalPrinterColumns",
        List("[]v1.CustomResourceColumnDefinition", &Struct("CustomResourceColumnDefinition")),
    ),
    ("selectableFields", List("[]v1.SelectableField", &Struct("SelectableField"))),
];

const STATUS: Fields = &[
    ("conditions", List("[]v1.CustomResourceDefinitionCondition", &Struct("CustomResourceDefinitionCondition"))),
    ("acceptedNames", NAMES),
    ("storedVersions", STRINGS),
    ("observedGeneration", Int(64)),
];

const PROPS: Fields = &[
    ("id", STRING),
    ("$schema", STRING),
    ("$ref", STRING),
    ("description", STRING),
    ("type", STRING),
    ("format", STRING),
    ("title", STRING),
    ("default", Any),
    ("maximum", Float),
    ("exclusiveMaximum", Flag),
    ("minimum", Float),
    ("exclusiveMinimum", Flag),
    ("maxLength", Int(64)),
    ("minLength", Int(64)),
    ("pattern", STRING),
    ("maxItems", Int(64)),
    ("minItems", Int(64)),
    ("uniqueItems", Flag),
    ("multipleOf", Float),
    ("enum", List("[]v1.JSON", &Any)),
    ("maxProperties", Int(64)),
    ("minProperties", Int(64)),
    ("required", STRINGS),
    ("items", OrList("JSONSchemaProps")),
    ("allOf", SCHEMAS),
    ("oneOf", SCHEMAS),
    ("anyOf", SCHEMAS),
    ("not", SCHEMA),
    ("properties", NAMED_SCHEMAS),
    ("additionalProperties", OrBool("JSONSchemaProps")),
    ("patternProperties", NAMED_SCHEMAS),
    ("dependencies", Map("v1.JSONSchemaDependencies", &Any)),
    ("additionalItems", OrBool("JSONSchemaProps")),
    ("definitions", Map("v1.JSONSchemaDefinitions", &SCHEMA)),
    ("externalDocs", Struct("ExternalDocumentation")),
    ("example", Any),
    ("nullable", Flag),
    ("x-kubernetes-preserve-unknown-fields", Flag),
    ("x-kubernetes-embedded-resource", Flag),
    ("x-kubernetes-int-or-string", Flag),
    ("x-kubernetes-list-map-keys", STRINGS),
    ("x-kubernetes-list-type", STRING),
    ("x-kubernetes-map-type", STRING),
    ("x-kubernetes-validations", List("v1.ValidationRules", &Struct("ValidationRule"))),
];
