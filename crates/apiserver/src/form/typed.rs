//! Built-in kinds as Go's decoder reads them: the types of their fields, and the form in which they are kept.

mod policy;

use serde_json::{Map, Value};

use super::{bytes, time};
use crate::patch::unlike;

/// A type of Go, as far as texts and forms depend on it.
enum Go {
    Text,
    /// A text with a type of its own.
    Named(&'static str),
    Bool,
    Int32,
    /// Left out if it is zero.
    Int64,
    Bytes,
    Time,
    MicroTime,
    /// Tells what is empty from what is not there.
    Pointer(&'static Go),
    Map(&'static Go),
    List(&'static Go),
    /// A field of a struct that is written as if it were one of the struct around it, and is named with its own.
    Of(&'static str, &'static Go),
    Struct(&'static str, &'static [(&'static str, Go)]),
}

use Go::{Bool, Bytes, Int32, Int64, List, MicroTime, Named, Pointer, Struct, Text, Time};

/// Metadata is looked at elsewhere.
const KINDS: &[(&str, &[(&str, Go)])] = &[
    ("ConfigMap", &[("data", Go::Map(&Text)), ("binaryData", Go::Map(&Bytes)), ("immutable", Bool)]),
    (
        "Secret",
        &[
            ("data", Go::Map(&Bytes)),
            ("stringData", Go::Map(&Text)),
            ("type", Named("v1.SecretType")),
            ("immutable", Bool),
        ],
    ),
    ("Namespace", &[("spec", NAMESPACE_SPEC), ("status", NAMESPACE_STATUS)]),
    ("Lease", &[("spec", LEASE_SPEC)]),
    ("ValidatingAdmissionPolicy", policy::POLICY),
    ("ValidatingAdmissionPolicyBinding", policy::BINDING),
    ("Scale", &[("spec", Struct("ScaleSpec", &[("replicas", Int32)])), ("status", SCALE_STATUS)]),
];

const NAMESPACE_SPEC: Go = Struct("NamespaceSpec", &[("finalizers", List(&Named("v1.FinalizerName")))]);
const NAMESPACE_STATUS: Go = Struct(
    "NamespaceStatus",
    &[
        ("phase", Named("v1.NamespacePhase")),
        (
            "conditions",
            List(&Struct(
                "NamespaceCondition",
                &[
                    ("type", Pointer(&Named("v1.NamespaceConditionType"))),
                    ("status", Pointer(&Named("v1.ConditionStatus"))),
                    ("lastTransitionTime", Time),
                    ("reason", Text),
                    ("message", Text),
                ],
            )),
        ),
    ],
);
const LEASE_SPEC: Go = Struct(
    "LeaseSpec",
    &[
        ("holderIdentity", Pointer(&Text)),
        ("leaseDurationSeconds", Int32),
        ("acquireTime", MicroTime),
        ("renewTime", MicroTime),
        ("leaseTransitions", Int32),
        ("strategy", Pointer(&Named("v1.CoordinatedLeaseStrategy"))),
        ("preferredHolder", Pointer(&Text)),
    ],
);
const SCALE_STATUS: Go = Struct("ScaleStatus", &[("replicas", Int32), ("selector", Text)]);

/// What is wrong with the types of an object of this kind. What says nothing is left out of it.
pub(super) fn read(object: &mut Value, kind: &str) -> Result<(), String> {
    let found = KINDS.iter().find(|(name, _)| *name == kind);
    match (found, object.as_object_mut()) {
        (Some((_, fields)), Some(map)) => read_fields(fields, map, kind, ""),
        _ => Ok(()),
    }
}

fn read_fields(fields: &[(&str, Go)], map: &mut Map<String, Value>, owner: &str, path: &str) -> Result<(), String> {
    for (key, go) in fields {
        let Some(value) = map.get_mut(*key) else { continue };
        let (go, name) = match go {
            Go::Of(inner, go) => (*go, format!("{inner}.{key}")),
            go => (go, (*key).to_owned()),
        };
        let path = if path.is_empty() { name } else { format!("{path}.{name}") };
        if !value.is_null() {
            go.read(value, owner, &path)?;
        }
        if value.is_null() || go.omits(value) {
            map.remove(*key);
        }
    }
    Ok(())
}

impl Go {
    fn name(&self) -> String {
        match self {
            Text | Time | MicroTime => "string".to_owned(),
            Named(name) => (*name).to_owned(),
            Bool => "bool".to_owned(),
            Int32 => "int32".to_owned(),
            Int64 => "int64".to_owned(),
            Bytes => "[]uint8".to_owned(),
            Pointer(to) | Go::Of(_, to) => to.name(),
            Go::Map(of) => format!("map[string]{}", of.name()),
            List(of) => format!("[]{}", of.name()),
            Struct(name, _) => format!("v1.{name}"),
        }
    }

    /// Whether a value is left out of a struct.
    fn omits(&self, value: &Value) -> bool {
        match self {
            Text | Named(_) => value == "",
            Int64 => *value == 0,
            Go::Map(_) => value.as_object().is_some_and(Map::is_empty),
            List(_) => value.as_array().is_some_and(Vec::is_empty),
            _ => false,
        }
    }

    fn read(&self, value: &mut Value, owner: &str, path: &str) -> Result<(), String> {
        let refused =
            |found: &Value| Err(unlike(found, &format!("Go struct field {owner}.{path} of type {}", self.name())));
        match (self, &mut *value) {
            (Pointer(to) | Go::Of(_, to), _) => return to.read(value, owner, path),
            (Text | Named(_), Value::String(_)) | (Bool, Value::Bool(_)) => {}
            (Int32, Value::Number(number)) if number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {}
            (Int64, Value::Number(number)) if number.is_i64() => {}
            (Bytes, Value::String(text)) => *text = bytes::canonical(text)?,
            (Time, Value::String(text)) => *text = time::second(text)?,
            (MicroTime, Value::String(text)) => *text = time::micro(text)?,
            (Go::Map(of), Value::Object(map)) => {
                map.values_mut().try_for_each(|value| of.read_item(value, owner, path))?
            }
            (List(of), Value::Array(list)) => list.iter_mut().try_for_each(|value| of.read_item(value, owner, path))?,
            (Struct(name, fields), Value::Object(map)) => read_fields(fields, map, name, path)?,
            (_, found) => return refused(found),
        }
        Ok(())
    }

    /// An item that is null is as empty as its type can be.
    fn read_item(&self, value: &mut Value, owner: &str, path: &str) -> Result<(), String> {
        if value.is_null() {
            *value = match self {
                Struct(..) => Value::Object(Map::new()),
                _ => Value::String(String::new()),
            };
        }
        self.read(value, owner, path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    /// Texts of kube-apiserver 1.36.3.
    #[test_case("Secret", json!({"data": {"a": 1}}) => "json: cannot unmarshal number into Go struct field Secret.data of type []uint8"; "bytes")]
    #[test_case("Secret", json!({"data": [1]}) => "json: cannot unmarshal array into Go struct field Secret.data of type map[string][]uint8"; "a map of bytes")]
    #[test_case("Secret", json!({"data": {"a": "YQ"}}) => "illegal base64 data at input byte 0"; "no base64")]
    #[test_case("Secret", json!({"stringData": {"a": 1}}) => "json: cannot unmarshal number into Go struct field Secret.stringData of type string"; "text")]
    #[test_case("Secret", json!({"type": 1}) => "json: cannot unmarshal number into Go struct field Secret.type of type v1.SecretType"; "a type of text")]
    #[test_case("ConfigMap", json!({"data": "x"}) => "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string"; "a map")]
    #[test_case("ConfigMap", json!({"data": {"a": true}}) => "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string"; "text in a map")]
    #[test_case("ConfigMap", json!({"immutable": 1}) => "json: cannot unmarshal number into Go struct field ConfigMap.immutable of type bool"; "a flag")]
    #[test_case("Lease", json!({"spec": {"holderIdentity": 1}}) => "json: cannot unmarshal number into Go struct field LeaseSpec.spec.holderIdentity of type string"; "a pointer")]
    #[test_case("Lease", json!({"spec": {"leaseDurationSeconds": 1.5}}) => "json: cannot unmarshal number 1.5 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32"; "a fraction")]
    #[test_case("Lease", json!({"spec": {"leaseDurationSeconds": 3000000000_i64}}) => "json: cannot unmarshal number 3000000000 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32"; "a large number")]
    #[test_case("Lease", json!({"spec": {"renewTime": 1}}) => "json: cannot unmarshal number into Go struct field LeaseSpec.spec.renewTime of type string"; "a time")]
    #[test_case("Namespace", json!({"spec": {"finalizers": [1]}}) => "json: cannot unmarshal number into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName"; "an item")]
    #[test_case("ValidatingAdmissionPolicy", json!({"spec": {"validations": "x"}}) => "json: cannot unmarshal string into Go struct field ValidatingAdmissionPolicySpec.spec.validations of type []v1.Validation"; "a list of structs")]
    #[test_case("Scale", json!({"spec": 1}) => "json: cannot unmarshal number into Go struct field Scale.spec of type v1.ScaleSpec"; "a struct")]
    #[test_case("Scale", json!({"spec": {"replicas": "x"}}) => "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"; "a count")]
    fn types(kind: &str, mut object: Value) -> String {
        read(&mut object, kind).unwrap_err()
    }

    #[test_case("Secret", json!({"data": {"a": null, "b": "YWI=\n"}, "stringData": {}, "type": ""}) => json!({"data": {"a": "", "b": "YWI="}}); "a secret")]
    #[test_case("ConfigMap", json!({"data": {}, "binaryData": null, "immutable": false}) => json!({"immutable": false}); "a map")]
    #[test_case("Lease", json!({"spec": {"holderIdentity": "", "acquireTime": null}}) => json!({"spec": {"holderIdentity": ""}}); "a lease")]
    #[test_case("Lease", json!({"spec": {"renewTime": "2026-01-02T03:04:05.123456+02:00"}}) => json!({"spec": {"renewTime": "2026-01-02T01:04:05.123456Z"}}); "a zone")]
    fn forms(kind: &str, mut object: Value) -> Value {
        read(&mut object, kind).unwrap();
        object
    }
}
