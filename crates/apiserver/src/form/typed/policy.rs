//! The types of admission policies and their bindings.

use super::Go::{self, Int64, List, Map, Named, Of, Pointer, Struct, Text, Time};

type Fields = &'static [(&'static str, Go)];

pub(super) const POLICY: Fields = &[
    (
        "spec",
        Struct(
            "ValidatingAdmissionPolicySpec",
            &[
                ("paramKind", Struct("ParamKind", &[("apiVersion", Text), ("kind", Text)])),
                ("matchConstraints", RESOURCES),
                ("validations", List(&VALIDATION)),
                ("failurePolicy", Pointer(&Named("v1.FailurePolicyType"))),
                ("auditAnnotations", List(&Struct("AuditAnnotation", &[("key", KEPT), ("valueExpression", KEPT)]))),
                ("matchConditions", List(&Struct("MatchCondition", &[("name", KEPT), ("expression", KEPT)]))),
                ("variables", List(&Struct("Variable", &[("name", KEPT), ("expression", KEPT)]))),
            ],
        ),
    ),
    (
        "status",
        Struct(
            "ValidatingAdmissionPolicyStatus",
            &[
                ("observedGeneration", Int64),
                ("typeChecking", Struct("TypeChecking", &[("expressionWarnings", List(&WARNING))])),
                ("conditions", List(&CONDITION)),
            ],
        ),
    ),
];

pub(super) const BINDING: Fields = &[(
    "spec",
    Struct(
        "ValidatingAdmissionPolicyBindingSpec",
        &[
            ("policyName", Text),
            (
                "paramRef",
                Struct(
                    "ParamRef",
                    &[
                        ("name", Text),
                        ("namespace", Text),
                        ("selector", SELECTOR),
                        ("parameterNotFoundAction", Pointer(&Named("v1.ParameterNotFoundActionType"))),
                    ],
                ),
            ),
            ("matchResources", RESOURCES),
            ("validationActions", List(&Named("v1.ValidationAction"))),
        ],
    ),
)];

/// A text that is there even if it is empty.
const KEPT: Go = Pointer(&Text);

const VALIDATION: Go = Struct(
    "Validation",
    &[
        ("expression", KEPT),
        ("message", Text),
        ("reason", Pointer(&Named("v1.StatusReason"))),
        ("messageExpression", Text),
    ],
);

const RESOURCES: Go = Struct(
    "MatchResources",
    &[
        ("namespaceSelector", SELECTOR),
        ("objectSelector", SELECTOR),
        ("resourceRules", List(&RULE)),
        ("excludeResourceRules", List(&RULE)),
        ("matchPolicy", Pointer(&Named("v1.MatchPolicyType"))),
    ],
);

const RULE: Go = Struct(
    "NamedRuleWithOperations",
    &[
        ("resourceNames", List(&Text)),
        ("operations", Of("RuleWithOperations", &List(&Named("v1.OperationType")))),
        ("apiGroups", Of("RuleWithOperations.Rule", &List(&Text))),
        ("apiVersions", Of("RuleWithOperations.Rule", &List(&Text))),
        ("resources", Of("RuleWithOperations.Rule", &List(&Text))),
        ("scope", Of("RuleWithOperations.Rule", &Pointer(&Named("v1.ScopeType")))),
    ],
);

const SELECTOR: Go = Struct(
    "LabelSelector",
    &[
        ("matchLabels", Map(&Text)),
        (
            "matchExpressions",
            List(&Struct(
                "LabelSelectorRequirement",
                &[("key", KEPT), ("operator", Pointer(&Named("v1.LabelSelectorOperator"))), ("values", List(&Text))],
            )),
        ),
    ],
);

const WARNING: Go = Struct("ExpressionWarning", &[("fieldRef", KEPT), ("warning", KEPT)]);

const CONDITION: Go = Struct(
    "Condition",
    &[
        ("type", KEPT),
        ("status", Pointer(&Named("v1.ConditionStatus"))),
        ("observedGeneration", Int64),
        ("lastTransitionTime", Time),
        ("reason", KEPT),
        ("message", KEPT),
    ],
);
