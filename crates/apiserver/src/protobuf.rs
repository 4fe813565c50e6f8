//! Kubernetes' protobuf form of the built-in kinds, read only: clients with types of their own send it, and a kube-apiserver
//! on the same store has written it. Tables name the fields; what they do not name is passed over.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
pub const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Int,
    Bool,
    Time,
    MicroTime,
    Texts,
    TextMap,
    BytesMap,
    Message(&'static [Field]),
    /// A message whose fields are the parent's in JSON.
    Inline(&'static [Field]),
    Messages(&'static [Field]),
}

type Field = (u64, &'static str, Kind);

const OWNER: &[Field] = &[
    (1, "kind", Kind::Text),
    (3, "name", Kind::Text),
    (4, "uid", Kind::Text),
    (5, "apiVersion", Kind::Text),
    (6, "controller", Kind::Bool),
    (7, "blockOwnerDeletion", Kind::Bool),
];
const META: &[Field] = &[
    (1, "name", Kind::Text),
    (2, "generateName", Kind::Text),
    (3, "namespace", Kind::Text),
    (5, "uid", Kind::Text),
    (6, "resourceVersion", Kind::Text),
    (7, "generation", Kind::Int),
    (8, "creationTimestamp", Kind::Time),
    (9, "deletionTimestamp", Kind::Time),
    (10, "deletionGracePeriodSeconds", Kind::Int),
    (11, "labels", Kind::TextMap),
    (12, "annotations", Kind::TextMap),
    (13, "ownerReferences", Kind::Messages(OWNER)),
    (14, "finalizers", Kind::Texts),
];
const NAMESPACE: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "spec", Kind::Message(&[(1, "finalizers", Kind::Texts)])),
    (3, "status", Kind::Message(&[(1, "phase", Kind::Text)])),
];
const CONFIG_MAP: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "data", Kind::TextMap),
    (3, "binaryData", Kind::BytesMap),
    (4, "immutable", Kind::Bool),
];
const SECRET: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "data", Kind::BytesMap),
    (3, "type", Kind::Text),
    (4, "stringData", Kind::TextMap),
    (5, "immutable", Kind::Bool),
];
const LEASE_SPEC: &[Field] = &[
    (1, "holderIdentity", Kind::Text),
    (2, "leaseDurationSeconds", Kind::Int),
    (3, "acquireTime", Kind::MicroTime),
    (4, "renewTime", Kind::MicroTime),
    (5, "leaseTransitions", Kind::Int),
    (6, "strategy", Kind::Text),
    (7, "preferredHolder", Kind::Text),
];
const LEASE: &[Field] = &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(LEASE_SPEC))];
const REQUIREMENT: &[Field] = &[(1, "key", Kind::Text), (2, "operator", Kind::Text), (3, "values", Kind::Texts)];
const SELECTOR: &[Field] = &[(1, "matchLabels", Kind::TextMap), (2, "matchExpressions", Kind::Messages(REQUIREMENT))];
const RULE: &[Field] = &[
    (1, "apiGroups", Kind::Texts),
    (2, "apiVersions", Kind::Texts),
    (3, "resources", Kind::Texts),
    (4, "scope", Kind::Text),
];
const OPERATIONS: &[Field] = &[(1, "operations", Kind::Texts), (2, "", Kind::Inline(RULE))];
const NAMED_RULE: &[Field] = &[(1, "resourceNames", Kind::Texts), (2, "", Kind::Inline(OPERATIONS))];
const MATCH: &[Field] = &[
    (1, "namespaceSelector", Kind::Message(SELECTOR)),
    (2, "objectSelector", Kind::Message(SELECTOR)),
    (3, "resourceRules", Kind::Messages(NAMED_RULE)),
    (4, "excludeResourceRules", Kind::Messages(NAMED_RULE)),
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
    (3, "validations", Kind::Messages(VALIDATION)),
    (4, "failurePolicy", Kind::Text),
    (5, "auditAnnotations", Kind::Messages(&[(1, "key", Kind::Text), (2, "valueExpression", Kind::Text)])),
    (6, "matchConditions", Kind::Messages(NAMED_EXPRESSION)),
    (7, "variables", Kind::Messages(NAMED_EXPRESSION)),
];
const POLICY: &[Field] = &[
    (1, "metadata", Kind::Message(META)),
    (2, "spec", Kind::Message(POLICY_SPEC)),
    (3, "status", Kind::Message(&[(1, "observedGeneration", Kind::Int)])),
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
    (4, "validationActions", Kind::Texts),
];
const BINDING: &[Field] = &[(1, "metadata", Kind::Message(META)), (2, "spec", Kind::Message(BINDING_SPEC))];
const DELETE_OPTIONS: &[Field] = &[
    (1, "gracePeriodSeconds", Kind::Int),
    (2, "preconditions", Kind::Message(&[(1, "uid", Kind::Text), (2, "resourceVersion", Kind::Text)])),
    (4, "propagationPolicy", Kind::Text),
    (5, "dryRun", Kind::Texts),
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

fn table(kind: &str) -> Option<&'static [Field]> {
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
        _ => None,
    }
}

/// The object in an envelope as JSON; `None` for what is damaged or of a kind not known here.
pub fn decode(bytes: &[u8]) -> Option<Value> {
    let (mut about, mut raw) = (Value::Null, &bytes[..0]);
    let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => {
                about = message(bytes, &[(1, "apiVersion", Kind::Text), (2, "kind", Kind::Text)])?
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let mut object = message(raw, table(about["kind"].as_str()?)?)?;
    object["apiVersion"] = about["apiVersion"].clone();
    object["kind"] = about["kind"].clone();
    Some(object)
}

fn message(bytes: &[u8], fields: &[Field]) -> Option<Value> {
    let mut map = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        if let Some((_, name, kind)) = fields.iter().find(|field| field.0 == number) {
            insert(&mut map, name, *kind, wire)?;
        }
    }
    Some(Value::Object(map))
}

/// Empty texts and zeros are what Kubernetes leaves out in JSON.
fn insert(map: &mut Map<String, Value>, name: &str, kind: Kind, wire: Wire<'_>) -> Option<()> {
    let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let mut put = |value: Value| drop(map.insert(name.to_owned(), value));
    match (kind, wire) {
        (Kind::Text, Wire::Bytes(b"")) => {}
        (Kind::Text, Wire::Bytes(bytes)) => put(text(bytes)?.into()),
        (Kind::Int, Wire::Varint(0)) => {}
        (Kind::Int, Wire::Varint(number)) => put((number as i64).into()),
        (Kind::Bool, Wire::Varint(number)) => put((number != 0).into()),
        (Kind::Time | Kind::MicroTime, Wire::Bytes(bytes)) => {
            if let Some(time) = time(bytes, matches!(kind, Kind::MicroTime))? {
                put(time.into());
            }
        }
        (Kind::Texts, Wire::Bytes(bytes)) => push(map, name, text(bytes)?.into()),
        (Kind::Messages(fields), Wire::Bytes(bytes)) => push(map, name, message(bytes, fields)?),
        (Kind::Message(fields), Wire::Bytes(bytes)) => put(message(bytes, fields)?),
        (Kind::Inline(fields), Wire::Bytes(bytes)) => match message(bytes, fields)? {
            Value::Object(inner) => map.extend(inner),
            _ => return None,
        },
        (Kind::TextMap | Kind::BytesMap, Wire::Bytes(bytes)) => {
            let (key, value) = entry(bytes)?;
            let value = if matches!(kind, Kind::TextMap) { text(value)? } else { STANDARD.encode(value) };
            map.entry(name).or_insert_with(|| json!({}))[text(key)?] = value.into();
        }
        _ => return None,
    }
    Some(())
}

fn push(map: &mut Map<String, Value>, name: &str, value: Value) {
    if let Value::Array(list) = map.entry(name).or_insert_with(|| json!([])) {
        list.push(value);
    }
}

fn entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut value) = (&bytes[..0], &bytes[..0]);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Bytes(bytes)) => key = bytes,
            (2, Wire::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

/// `None` within for a time that was never set.
fn time(bytes: &[u8], micros: bool) -> Option<Option<String>> {
    let (mut seconds, mut nanos) = (0, 0);
    let mut reader = Reader(bytes);
    while let Some((number, wire)) = reader.field()? {
        match (number, wire) {
            (1, Wire::Varint(value)) => seconds = value as i64,
            (2, Wire::Varint(value)) => nanos = value as i32,
            _ => {}
        }
    }
    if seconds == 0 && nanos == 0 {
        return Some(None);
    }
    let time = jiff::Timestamp::new(seconds, nanos).ok()?;
    let format = if micros { "%Y-%m-%dT%H:%M:%S%.6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Some(Some(time.strftime(format).to_string()))
}

enum Wire<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next field, or nothing at the end; the outer `None` is for bytes that are no message.
    fn field(&mut self) -> Option<Option<(u64, Wire<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => self.take(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Wire::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Wire::Fixed)?,
            _ => return None,
        };
        Some(Some((key >> 3, wire)))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    #[test]
    fn a_config_map_as_clients_send_it() {
        let about = [piece(1, b"v1"), piece(2, b"ConfigMap")].concat();
        let meta = [piece(1, b"greeting"), piece(2, b""), vec![7 << 3, 0], piece(8, b"")].concat();
        let data = [piece(1, b"text"), piece(2, b"hello")].concat();
        let raw = [piece(1, &meta), piece(2, &data), vec![4 << 3, 1]].concat();
        let envelope = [MAGIC.to_vec(), piece(1, &about), piece(2, &raw), piece(3, b""), piece(4, b"")].concat();
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "greeting"},
            "data": {"text": "hello"}, "immutable": true});
        assert_eq!(decode(&envelope), Some(expected));
        // Cut anywhere it is damaged or says less, and never more than that.
        for end in 0..envelope.len() {
            let _ = decode(&envelope[..end]);
        }
        assert_eq!(decode(b"k8s\0\xff"), None);
    }

    /// Rules of policies lie in messages within messages, and in one object in JSON.
    #[test]
    fn a_policy_as_another_server_stores_it() {
        let about = [piece(1, b"admissionregistration.k8s.io/v1"), piece(2, b"ValidatingAdmissionPolicy")].concat();
        let rule = [piece(1, b""), piece(2, b"v1"), piece(3, b"configmaps"), piece(4, b"*")].concat();
        let rule =
            [piece(1, b"a"), piece(2, &[piece(1, b"CREATE"), piece(1, b"UPDATE"), piece(2, &rule)].concat())].concat();
        let constraints = [piece(1, b""), piece(2, b""), piece(3, &rule), piece(7, b"Exact")].concat();
        let validation = [piece(1, b"false"), piece(2, b"no"), piece(4, b"")].concat();
        let spec = [piece(2, &constraints), piece(3, &validation), piece(4, b"Fail")].concat();
        let raw = [piece(1, &piece(1, b"p")), piece(2, &spec)].concat();
        let envelope = [MAGIC.to_vec(), piece(1, &about), piece(2, &raw)].concat();
        let expected = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
            "spec": {"failurePolicy": "Fail", "validations": [{"expression": "false", "message": "no"}], "matchConstraints": {
                "namespaceSelector": {}, "objectSelector": {}, "matchPolicy": "Exact", "resourceRules": [{"resourceNames": ["a"],
                    "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "scope": "*"}]}}});
        assert_eq!(decode(&envelope), Some(expected));
    }
}
